"""Full precision against pytrec_eval-terrier, which runs trec_eval 9's own code."""

from __future__ import annotations

import gzip
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import Policies, evaluate, parse
from tests import strategies

pytrec_eval = pytest.importorskip("pytrec_eval")

CUTOFFS = "1,3,5,10,30,100,1000"
MEASURES = {
    *(f"{family}.{CUTOFFS}" for family in ("P", "recall", "success", "ndcg_cut", "map_cut")),
    *("map", "ndcg", "recip_rank", "Rprec", "bpref", "infAP", "num_ret", "num_rel", "num_rel_ret", "num_q"),
    *("set_P", "set_recall", "set_F", "set_map", "set_relative_P"),
}
# It holds scores as float32 and scores only queries of both sides.
POLICIES = Policies("trec_eval", score_dtype="float32", missing="skip")

PAIRS = [
    "te-results",
    "te-rellevel",
    "te-trunc",
    "rob03-InexpC2",
    "rob03-MU03rob01",
    "rob03-NLPR03vb10",
    "rob03-pircRBa1",
    "dl19-colbert",
    "dl19-monot5",
    "dl1920-lmdir",
    "trec8-lmdirall",
    "cast21-convdr",
    "web-valid.wt11",
    "web-test.wt12",
    "irm-cwl",
    "ms100-miniLM",
]


def theirs(qrels, run, rel=1):
    """Its values, for queries on which it neither crashes nor reads uninitialised memory."""
    safe = {q for q, grades in qrels.items() if any(grade >= 0 for grade in grades.values()) and run.get(q)}
    if not safe:
        return {}
    evaluator = pytrec_eval.RelevanceEvaluator({q: qrels[q] for q in safe}, MEASURES, relevance_level=rel)
    return evaluator.evaluate({q: run[q] for q in safe})


def assert_equal(scores, expected):
    """`expected` has a value for every metric, and for every query that was scored, but for the unsafe ones."""
    rows = [list(scores.query_ids).index(query) for query in expected]
    measures = list(next(iter(expected.values())))
    assert tuple(str(parse(measure)) for measure in measures) == scores.metrics
    values = np.array([[each[measure] for measure in measures] for each in expected.values()])
    wrong = np.argwhere(~(np.abs(scores.values[rows] - values) <= 1e-12))
    assert [(list(expected)[q], measures[m], scores.values[rows[q], m], values[q, m]) for q, m in wrong] == []


def column(path: Path, document: int, value: int, number: type) -> dict[str, dict[str, float]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        if fields := line.split():
            rows.setdefault(fields[0], {})[fields[document]] = number(fields[value])
    return rows


@pytest.mark.parametrize("name", PAIRS)
def test_shared_pairs(shared, name):
    rows = [line.split("\t") for line in (shared / "data/pairs.tsv").read_text().splitlines()]
    qrels_path, run_path = next(
        (shared / "data" / qrels, shared / "data" / run) for id_, qrels, run, _ in rows if id_ == name
    )
    qrels, run = column(qrels_path, 2, 3, int), column(run_path, 2, 4, float)
    expected = theirs(qrels, run)
    assert expected.keys() == qrels.keys() & run.keys()
    measures = list(next(iter(expected.values())))
    scores = evaluate(qrels_path, run_path, measures, policies=POLICIES)
    assert_equal(scores, expected)
    for measure, mean in zip(measures, scores.mean().values(), strict=True):
        assert mean == pytest.approx(fmean(each[measure] for each in expected.values()), abs=1e-12)


@given(
    strategies.qrels_and_run(grade=st.integers(-2, 4), query_ids=("q1", "q2", "q10")),
    st.sampled_from([1, 2, 3]),
)
def test_generated(pair, rel):
    qrels, run = pair
    expected = theirs(qrels, run, rel)
    if expected:
        measures = list(next(iter(expected.values())))
        policies = Policies("trec_eval", score_dtype="float32", missing="skip", default_rel=rel)
        assert_equal(evaluate(qrels, run, measures, policies=policies), expected)


@given(st.data())
def test_long_tied_rankings(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_judged, n_retrieved = data.draw(st.sampled_from([(5, 700), (60, 300), (400, 90), (40, 40)]))
    documents = [f"d{i}" for i in range(1000)]
    qrels, run = {}, {}
    for query in ("x", "y"):
        judged = rng.choice(documents, n_judged, replace=False).tolist()
        retrieved = rng.choice(documents, n_retrieved, replace=False).tolist()
        qrels[query] = dict(zip(judged, rng.integers(0, 4, n_judged).tolist(), strict=True))
        run[query] = dict(zip(retrieved, (rng.integers(0, 20, n_retrieved) / 10).tolist(), strict=True))
    expected = theirs(qrels, run)
    scores = evaluate(qrels, run, list(expected["x"]), policies=POLICIES)
    assert_equal(scores, expected)
