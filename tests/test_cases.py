"""Small inputs that broke other evaluators, each with its right value; and the shared file of the same kind."""

from __future__ import annotations

import json
from math import log2

import numpy as np
import pytest

from metrics_core import Document, InputError, Policies, evaluate
from metrics_core.aggregate import aggregate

NONE = object()


def documents(*keys, field="content"):
    """Documents by content, or by meta["key"]; NONE: without that key."""
    if field == "content":
        return [Document(content=key) for key in keys]
    return [Document(content="same", meta={} if key is NONE else {"key": key}) for key in keys]


@pytest.mark.parametrize(
    ("truths", "found", "field", "metric", "expected"),
    [
        pytest.param(["x", "y"], ["y"], "content", "AP", (1 / 1) / 2, id="AP divides by all relevant documents"),
        pytest.param(["x"], ["x", "x"], "content", "nDCG", 1, id="a repeat gains nothing"),
        pytest.param(["x"], ["x", "x", "x"], "content", "AP", 1, id="nor does it raise AP"),
        pytest.param([NONE], [NONE], "meta.key", "Success", 0, id="keys that both lack do not match"),
        pytest.param([None], [None], "meta.key", "Success", 0, id="nor do keys that are None"),
        pytest.param([["u", 1]], [["v"], ["u", 1]], "meta.key", "nDCG", 1 / log2(3), id="lists as keys"),
        pytest.param([{"u": [1]}], [{"u": [1]}], "meta.key", "nDCG", 1, id="dicts as keys"),
        pytest.param([-2], [-1, -2], "meta.key", "RR", 1 / 2, id="equal hashes"),
        pytest.param([2**53], [2**53 + 1], "meta.key", "RR", 0, id="integers beyond floats"),
        pytest.param([1], [True], "meta.key", "RR", 1, id="Python's equality"),
        pytest.param(["1"], [1], "meta.key", "RR", 0, id="text is no number"),
        pytest.param([], ["x"], "content", "AP", 0, id="no ground truth"),
        pytest.param(["x"], [], "content", "nDCG", 0, id="nothing retrieved"),
    ],
)
def test_documents(truths, found, field, metric, expected):
    pair = [documents(*truths, field=field)], [documents(*found, field=field)]
    scores = evaluate(*pair, metric, document_comparison_field=field)
    assert scores[metric].tolist() == [pytest.approx(expected, abs=1e-15)]


HARMONIC_20 = sum(1 / rank for rank in range(1, 21)) / 20


@pytest.mark.parametrize(
    ("judged", "found", "metric", "expected"),
    [
        pytest.param({"x": 2, "y": 1}, ["y", "u", "x"], "Bpref", 1, id="Bpref where none is judged non-relevant"),
        pytest.param({"x": 4, "y": 4}, ["x", "y"], "RBP(p=0.5, max_rel=4)", 0.5 + 0.5 * 0.5, id="gains are scaled"),
        pytest.param({"x": 1}, ["x"], "P@4", 1 / 4, id="P@k divides by k"),
        pytest.param({"x": 1, "y": 1}, ["u", "y", "x"], "IPrec@0.375", 2 / 3, id="recall levels keep their digits"),
        pytest.param({"x": 1}, [], "Judged@3", 0, id="Judged of an empty ranking"),
        pytest.param({"x": 1}, [], "SetP", 0, id="SetP of an empty ranking"),
        pytest.param(
            {"x": 1, "y": 1},
            ["u", "y", "v"],
            "SetF(beta=2)",
            (1 + 4) * (1 / 3) * (1 / 2) / (4 * (1 / 3) + 1 / 2),
            id="true F-beta",
        ),
        pytest.param(
            {"x": 0.5, "y": 0.25},
            ["y", "x"],
            "nDCG",
            (0.25 + 0.5 / log2(3)) / (0.5 + 0.25 / log2(3)),
            id="fractional grades",
        ),
        pytest.param({"x": 0.9}, ["x"], "DCG", 0.9, id="0.9 is not 0"),
        pytest.param({"p\0q": 1}, ["p"], "RR", 0, id="NUL ends no id"),
        pytest.param({"p\0q": 1}, ["p", "p\0q"], "RR", 1 / 2, id="NUL in an id"),
        pytest.param({"\udfff": 1}, ["\ud800", "\udfff"], "RR", 1 / 2, id="lone surrogates"),
        pytest.param({"p q": 1, "#1": 1, "/": 1}, ["p", "#", "/"], "RR", 1 / 3, id="spaces, # and /"),
    ],
)
def test_rankings(judged, found, metric, expected):
    scores = evaluate({"q": judged}, {"q": found}, metric)
    assert scores[metric].tolist() == [pytest.approx(expected, abs=1e-15)]
    scored = {document: -float(place) for place, document in enumerate(found)}
    assert evaluate({"q": judged}, {"q": scored}, metric)[metric].tolist() == scores[metric].tolist()


@pytest.mark.parametrize(
    ("ties", "of_two", "of_twenty"),
    [("docid_desc", 1 / 2, 1 / 20), ("input", 1 / 1, 1 / 1), ("expected", (1 / 1 + 1 / 2) / 2, HARMONIC_20)],
)
def test_equal_scores(ties, of_two, of_twenty):
    for n, expected in ((2, of_two), (20, of_twenty)):
        run = {"q": {f"doc{place:02}": 3.0 for place in range(n)}}
        scores = evaluate({"q": {"doc00": 1}}, run, "RR", policies=Policies(ties=ties))
        assert scores["RR"][0] == pytest.approx(expected, abs=1e-15)


def test_a_query_without_judgements_corrupts_no_other():
    scores = evaluate({"first": {}, "second": {"x": 1}}, {"first": ["u"], "second": ["x"]}, "nDCG")
    assert scores.to_dict() == {"first": {"nDCG": 0.0}, "second": {"nDCG": 1.0}}


def test_a_metric_asked_for_twice_is_computed_once():
    scores = evaluate({"q": {"x": 1}}, {"q": ["x"]}, ["IPrec@0.2", "iprec@0.20", "AP", "map"])
    assert scores.metrics == ("IPrec@0.2", "AP")
    assert scores["IPrec@0.20"][0] == scores["IPrec@0.2"][0] == 1


def test_numpy_scalars_and_integer_ids():
    scores = evaluate({"q": {3: np.int64(1)}}, {"q": {3: np.float32(0.5), 4: np.float32(0.25)}}, "RR")
    assert scores["RR"].tolist() == [1]


@pytest.mark.parametrize(("score_dtype", "expected"), [("float64", 1), ("float32", 1 / 2)])
def test_scores_that_differ_beyond_float32(score_dtype, expected):
    run = {"q": {"x": 2 + 2**-30, "y": 2.0}}
    assert evaluate({"q": {"x": 1}}, run, "RR", policies=Policies(score_dtype=score_dtype))["RR"][0] == expected


@pytest.mark.parametrize(("missing", "mean"), [("zero", (1 + 0) / 2), ("skip", 1)])
def test_judged_queries_that_were_not_retrieved(missing, mean):
    scores = evaluate({"q": {"x": 1}, "r": {"y": 1}}, {"q": ["x"]}, "nDCG", policies=Policies(missing=missing))
    assert scores.mean() == {"nDCG": mean}


def test_no_query_in_common():
    assert evaluate({"q": {"x": 1}}, {"r": ["x"]}, "AP").to_dict() == {"q": {"AP": 0.0}}
    with pytest.raises(InputError, match="qrels and run share no query"):
        evaluate({"q": {"x": 1}}, {"r": ["x"]}, "AP", policies=Policies(missing="skip"))


def test_the_order_of_queries_does_not_pair_them():
    scores = evaluate({"q": {"x": 1}, "r": {"y": 1}}, {"r": ["y"], "q": ["x"]}, "AP")
    assert scores["AP"].tolist() == [1, 1]


def test_rows_that_were_not_scored_are_counted():
    result = aggregate(np.array([0.9, np.nan, 0.85]))
    assert (result.value, result.n_scored, result.n_total) == (pytest.approx((0.9 + 0.85) / 2), 2, 3)


def documents_of(case, side):
    if "documents" in case:
        return [[Document(content=key) for key in keys] for keys in case["documents"][side]]
    return [[Document(meta=meta) for meta in metas] for metas in case["documents_meta"][side]]


def test_the_shared_cases(shared):
    """Every case of the file that needs no comparison of runs."""
    checked = 0
    for line in (shared / "cases/retrieval.jsonl").read_text().splitlines():
        case = json.loads(line)
        metric = case.get("metric")
        if case["id"] == "failed-row":
            assert aggregate(np.array([0.9, np.nan, 0.85])).value == case["expected"]
            checked += 1
            continue
        if metric is None:
            assert case["id"] in ("same-system-name", "identical-runs", "seed")
            continue
        if "qrels" in case:
            pair = case["qrels"], case["run"]
        else:
            pair = documents_of(case, "gt"), documents_of(case, "ret")
        field = case.get("field", "content")
        expected = {(): case.get("expected")}
        for policy in ("ties", "score_dtype", "missing"):
            if f"expected_by_{policy}" in case:
                expected = {((policy, value),): result for value, result in case[f"expected_by_{policy}"].items()}
            elif policy in case:
                expected = {((policy, case[policy]),): case["expected"]}
        for value, mean in case.get("expected_mean_by_missing", {}).items():
            scores = evaluate(*pair, metric, policies=Policies(missing=value))
            assert list(scores.mean().values()) == [mean], case["id"]
            expected = {}
            checked += 1
        for given, result in expected.items():
            policies = Policies(**dict(given)) if given else None
            if isinstance(result, str):
                with pytest.raises(InputError, match="share no query"):
                    evaluate(*pair, metric, policies=policies)
            else:
                scores = evaluate(*pair, metric, policies=policies, document_comparison_field=field)
                assert len(scores.metrics) == 1
                values = [*result.values()] if isinstance(result, dict) else np.ravel(result).tolist()
                assert scores.values[:, 0].tolist() == pytest.approx(values, abs=1e-15), case["id"]
            checked += 1
    assert checked == 27
