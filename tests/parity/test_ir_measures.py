"""Against ir_measures, on inputs without ties: it breaks them by ascending id in Judged, Compat and RR@k."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from metrics_core import evaluate, parse, read_qrels, read_run
from tests import strategies

ir_measures = pytest.importorskip("ir_measures")

NAMES = [
    *("P@3", "P(rel=2)@2", "R@3", "R(rel=2)@2", "Success@2", "RR", "RR@2", "RR(rel=2)@3", "AP", "AP(rel=2)", "AP@3"),
    *("nDCG", "nDCG@3", "nDCG(gains={1: 3, 2: 1})@3", "Bpref", "infAP", "Rprec", "Rprec(rel=2)", "Judged@3"),
    *("SetP", "SetR", "SetF", "SetAP", "NumRet", "NumRel", "NumQ"),
    *("Compat", "Compat(p=0.8)", "Compat(p=0.8, normalize=False)"),
]
# Its beta is trec_eval's x; its NumRet of a rel is NumRelRet.
OTHER_NAMES = {"SetF(beta=2.0)": "SetF(x=2)", "NumRet(rel=1)": "NumRelRet"}


def theirs(names, qrels, run):
    # Beside nDCG@3, its nDCG(gains=...)@3 is 0 for every query under some hash seeds: gains are asked for on their own.
    alone = [[name] for name in names if "gains" in name]
    values = {}
    for group in ([name for name in names if "gains" not in name], *alone):
        measures = [ir_measures.parse_measure(name) for name in group]
        values |= {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(measures, qrels, run)}
    return values


@given(
    strategies.qrels_and_run(
        grade=st.integers(0, 4),
        ranking=strategies.scored_documents(tied=False, min_size=1),
        empty_judgements=False,
        missing=False,
        unjudged=False,
    )
)
def test_generated(pair):
    qrels, run = pair
    # Its Compat takes a document that was not retrieved for one of score 0, ahead of those below 0.
    run = {query: {document: score + 2 for document, score in scored.items()} for query, scored in run.items()}
    scores = evaluate(qrels, run, NAMES)
    expected = theirs(NAMES, qrels, run)
    assert len(expected) == len(NAMES) * len(qrels)
    for (name, query), value in expected.items():
        assert scores[name][scores.query_ids.index(query)] == pytest.approx(value, abs=1e-12), (name, query)


@pytest.mark.parametrize(("their_name", "our_name"), OTHER_NAMES.items())
def test_names_that_mean_something_else(their_name, our_name):
    qrels = {"q": {"a": 1, "b": 1, "c": 0}}
    run = {"q": {"a": 3.0, "x": 2.0, "y": 1.0}}
    assert theirs([their_name], qrels, run) == {
        (their_name, "q"): pytest.approx(evaluate(qrels, run, our_name)[our_name][0])
    }


def test_names_parse_as_theirs():
    assert [str(ir_measures.parse_measure(name)).replace(" ", "") for name in NAMES if "gains" not in name] == [
        str(parse(name)).replace(" ", "") for name in NAMES if "gains" not in name
    ]


def test_its_own_test_data(shared):
    folder = shared / "data/ir/ir_measures_tests"
    qrels, run = read_qrels(folder / "cwl.qrels"), read_run(folder / "cwl.run")
    names = [name for name in NAMES if not name.startswith(("Judged", "Compat", "RR"))]  # the run has ties
    scores = evaluate(qrels, run, names)
    for (name, query), value in theirs(names, qrels.to_dict(), run.to_dict()).items():
        assert scores[name][list(scores.query_ids).index(query)] == pytest.approx(value, abs=1e-12), (name, query)
