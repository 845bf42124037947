"""The slow twins against the programs and pages that define the metrics; nothing of ours is imported but the twins."""

from __future__ import annotations

import json
import os
import shutil
import sys
from fractions import Fraction
from math import exp, inf, isnan, log, log2, nan
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import assume, given, settings, strategies as st

from tests import strategies
from tests.reference import (
    REFERENCE,
    add_in_order,
    aggregate,
    average_precision,
    document_average_precision,
    document_ndcg,
    document_recall,
    document_reciprocal_rank,
    expected_over_ties,
    haystack_keys,
    id_bytes,
    rank,
    without_repeats,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SHARED = Path(__file__).resolve().parents[2] / "shared"

CUTOFFS = (1, 2, 5, 10, 100)
CUTS = ",".join(map(str, CUTOFFS))

PYTREC_EVAL: dict[str, tuple[str, dict[str, Any]]] = {
    "map": ("AP", {}),
    "ndcg": ("nDCG", {}),
    "recip_rank": ("RR", {}),
    "Rprec": ("Rprec", {}),
    "bpref": ("Bpref", {}),
    "infAP": ("infAP", {}),
    "set_P": ("SetP", {}),
    "set_recall": ("SetR", {}),
    "set_map": ("SetAP", {}),
    "set_relative_P": ("SetRelP", {}),
    "num_ret": ("NumRet", {}),
    "num_rel": ("NumRel", {}),
    "num_rel_ret": ("NumRelRet", {}),
    "num_q": ("NumQ", {}),
} | {
    f"{measure}_{cutoff}": (name, {"cutoff": cutoff})
    for measure, name in {"P": "P", "recall": "R", "success": "Success", "map_cut": "AP", "ndcg_cut": "nDCG"}.items()
    for cutoff in CUTOFFS
}
WITHOUT_REL = {"nDCG", "NumRet", "NumQ"}

judged_by_trec_eval = strategies.judgements(grade=strategies.INTEGER_GRADE | st.sampled_from((-1, -2))).filter(
    # trec_eval counts grades in an array as long as the highest, which it doesn't set up for negative ones alone.
    lambda judgements: any(grade >= 0 for grade in judgements.values())
)
ranked_by_trec_eval = strategies.scored_documents(min_size=1)  # pytrec_eval crashes on an empty ranking


def value_of(name: str, ranking: Sequence[Any], judgements: Mapping[Any, float], **params: Any) -> float:
    return REFERENCE[name](ranking, judgements, **params)


@pytest.fixture(scope="module")
def pytrec_eval() -> Any:
    return pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")


@pytest.fixture(scope="module")
def ir_measures() -> Any:
    return pytest.importorskip("ir_measures", reason="ir_measures is not installed")


@pytest.fixture(scope="module")
def haystack() -> SimpleNamespace:
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported
    evaluators = pytest.importorskip("haystack.components.evaluators", reason="haystack-ai is not installed")
    return SimpleNamespace(evaluators=evaluators, Document=pytest.importorskip("haystack").Document)


@given(judged=judged_by_trec_eval, run=ranked_by_trec_eval, rel=st.sampled_from((1, 2)))
def test_metrics_equal_pytrec_eval(pytrec_eval: Any, judged: dict[str, float], run: dict[str, float], rel: int) -> None:
    measures = {name.rsplit("_", 1)[0] + f".{CUTS}" if name[-1].isdigit() else name for name in PYTREC_EVAL}
    oracle = pytrec_eval.RelevanceEvaluator({"q": judged}, measures, relevance_level=rel)
    expected = oracle.evaluate({"q": {document: float(score) for document, score in run.items()}})["q"]
    ranking = rank(run, score_dtype="float32")
    ours = {
        measure: value_of(name, ranking, judged, **params, **({} if name in WITHOUT_REL else {"rel": rel}))
        for measure, (name, params) in PYTREC_EVAL.items()
    }
    assert ours == pytest.approx({measure: expected[measure] for measure in PYTREC_EVAL}, rel=0, abs=1e-12)


@given(judged=judged_by_trec_eval, run=ranked_by_trec_eval, x=st.sampled_from((0.5, 1.0, 3.0)))
def test_set_f_with_x_equals_pytrec_eval(
    pytrec_eval: Any, judged: dict[str, float], run: dict[str, float], x: float
) -> None:
    oracle = pytrec_eval.RelevanceEvaluator({"q": judged}, {f"set_F.{x}"})
    (expected,) = oracle.evaluate({"q": {document: float(score) for document, score in run.items()}})["q"].values()
    assert value_of("SetF", rank(run), judged, x=x) == pytest.approx(expected, rel=0, abs=1e-12)


@given(values=st.lists(strategies.judgements(min_size=1, grade=strategies.INTEGER_GRADE), min_size=1, max_size=4))
def test_geometric_mean_equals_pytrec_eval(pytrec_eval: Any, values: list[dict[str, float]]) -> None:
    ranking = ["a", "b", "c", "d"]
    qrels = {f"q{i}": judged for i, judged in enumerate(values)}
    run = {query: {document: -float(i) for i, document in enumerate(ranking)} for query in qrels}
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"gm_map"}).evaluate(run)
    logarithms = [expected[query]["gm_map"] for query in qrels]
    ours = aggregate((value_of("GMAP", ranking, judged) for judged in values), "geometric mean")
    assert ours == pytest.approx(exp(add_in_order(logarithms) / len(logarithms)), rel=1e-12)


@given(
    judged=strategies.judgements(min_size=1, grade=strategies.INTEGER_GRADE),
    # ir_measures ranks a document that was not retrieved as if its score were 0.
    run=strategies.scored_documents(tied=False, min_size=1).map(lambda run: {d: s + 2 for d, s in run.items()}),
    p=st.sampled_from((0.5, 0.8, 0.95)),
    cutoff=st.sampled_from(CUTOFFS),
)
def test_compat_and_judged_equal_ir_measures(
    ir_measures: Any, judged: dict[str, float], run: dict[str, float], p: float, cutoff: int
) -> None:
    metrics: dict[Any, tuple[str, dict[str, Any]]] = {
        ir_measures.Compat(p=p): ("Compat", {"p": p}),
        ir_measures.Compat(p=p, normalize=False): ("Compat", {"p": p, "normalize": False}),
        ir_measures.Judged @ cutoff: ("Judged", {"cutoff": cutoff}),
    }
    found = {metric.measure: metric.value for metric in ir_measures.iter_calc(list(metrics), {"q": judged}, {"q": run})}
    ours = {metric: value_of(name, rank(run), judged, **params) for metric, (name, params) in metrics.items()}
    assert ours == pytest.approx(found, rel=0, abs=1e-12)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl, which is not installed")
@settings(max_examples=10, deadline=None)  # six processes an example
@given(
    qrels=st.lists(strategies.judgements(grade=strategies.INTEGER_GRADE | st.just(-2)), min_size=5, max_size=20),
    data=st.data(),
)
def test_err_and_exponential_ndcg_equal_gdeval(
    ir_measures: Any, qrels: list[dict[str, float]], data: st.DataObject
) -> None:
    qrels_of = {str(query): judged for query, judged in enumerate(qrels)}
    run_of = {query: data.draw(strategies.scored_documents(tied=False, min_size=1)) for query in qrels_of}
    # gdeval prints only queries that have a document of positive grade.
    shown = {query for query, judged in qrels_of.items() if max(judged.values(), default=0) > 0}
    assume(shown)
    for cutoff in (1, 3, 20):
        metrics: dict[Any, tuple[str, dict[str, Any]]] = {
            ir_measures.ERR @ cutoff: ("ERR", {"max_rel": 4, "cutoff": cutoff}),
            ir_measures.nDCG(dcg="exp-log2") @ cutoff: ("nDCG", {"dcg": "exp-log2", "cutoff": cutoff}),
        }
        found = {
            (metric.query_id, metric.measure): metric.value
            for metric in ir_measures.iter_calc(list(metrics), qrels_of, run_of)
            if metric.query_id in shown
        }
        ours = {
            (query, metric): value_of(name, rank(run_of[query]), qrels_of[query], **params)
            for query in shown
            for metric, (name, params) in metrics.items()
        }
        assert ours == pytest.approx(found, rel=0, abs=0.500001e-5)  # it prints five digits


Lists: TypeAlias = tuple[list[list[Any]], list[list[Any]]]


def made(haystack: SimpleNamespace, lists: Lists) -> Lists:
    truths, retrieved = ([[haystack.Document(**fields) for fields in row] for row in side] for side in lists)
    return truths, retrieved


def twin_scores(twin: Callable[..., float], field: str, lists: Lists) -> list[float]:
    truths, retrieved = ([haystack_keys(documents, field) for documents in side] for side in lists)
    return [twin(*question) for question in zip(truths, retrieved, strict=True)]


@given(lists=strategies.document_lists(), field=st.sampled_from(strategies.FIELDS))
def test_document_mrr_equals_haystack(haystack: SimpleNamespace, lists: Lists, field: str) -> None:
    lists = made(haystack, lists)
    expected = haystack.evaluators.DocumentMRREvaluator(field).run(*lists)["individual_scores"]
    assert twin_scores(document_reciprocal_rank, field, lists) == expected


@given(lists=strategies.document_lists(), field=st.sampled_from(strategies.FIELDS))
def test_document_map_equals_haystack(haystack: SimpleNamespace, lists: Lists, field: str) -> None:
    lists = made(haystack, lists)
    expected = haystack.evaluators.DocumentMAPEvaluator(field).run(*lists)["individual_scores"]
    assert twin_scores(document_average_precision, field, lists) == expected


@pytest.mark.parametrize("mode", ["single_hit", "multi_hit"])
@given(lists=strategies.document_lists(unhashable=False), field=st.sampled_from(strategies.FIELDS))
def test_document_recall_equals_haystack_on_hashable_values(
    haystack: SimpleNamespace, mode: str, lists: Lists, field: str
) -> None:
    lists = made(haystack, lists)
    expected = haystack.evaluators.DocumentRecallEvaluator(mode, field).run(*lists)["individual_scores"]
    assert twin_scores(lambda truths, found: document_recall(truths, found, mode), field, lists) == expected


@given(lists=strategies.document_lists(unhashable=False), field=st.sampled_from(strategies.FIELDS))
def test_document_ndcg_equals_haystack_on_hashable_values(haystack: SimpleNamespace, lists: Lists, field: str) -> None:
    lists = made(haystack, lists)
    expected = haystack.evaluators.DocumentNDCGEvaluator(field).run(*lists)["individual_scores"]
    scores = iter([[document.score for document in documents] for documents in lists[0]])
    assert twin_scores(lambda truths, found: document_ndcg(truths, next(scores), found), field, lists) == expected


@given(
    values=st.lists(strategies.comparison_values(unhashable=False)),
    retrieved=st.lists(strategies.comparison_values(unhashable=False)),
)
def test_unhashable_values_score_as_hashable_ones(values: list[Any], retrieved: list[Any]) -> None:
    wrapped, found = ([value if value is None else [value] for value in side] for side in (values, retrieved))
    scores = [float(i % 3) for i in range(len(values))]
    assert document_ndcg(wrapped, scores, found) == document_ndcg(values, scores, retrieved)
    assert document_average_precision(wrapped, found) == document_average_precision(values, retrieved)
    values, retrieved = ([value for value in side if value != ""] for side in (values, retrieved))
    wrapped, found = ([value for value in side if value != [""]] for side in (wrapped, found))
    assert document_recall(wrapped, found, "multi_hit") == document_recall(values, retrieved, "multi_hit")


@given(
    # As a list: equal keys like 1 and True are one document, of which the larger grade counts.
    truths=st.lists(
        st.tuples(strategies.comparison_values(unhashable=False, none=False), st.sampled_from((0, 0.5, 1, 2.5, 3)))
    ),
    retrieved=st.lists(strategies.comparison_values(unhashable=False)),
)
def test_document_twins_equal_metric_twins_with_every_grade_relevant(
    truths: list[tuple[Any, float]], retrieved: list[Any]
) -> None:
    judged: dict[Any, float] = {}
    for value, grade in truths:
        judged[value] = max(judged.get(value, grade), grade)
    values, scores = [value for value, _ in truths], [grade for _, grade in truths]
    assert document_average_precision(values, retrieved) == value_of("AP", retrieved, judged, rel=-inf)
    assert document_reciprocal_rank(values, retrieved) == value_of("RR", retrieved, judged, rel=-inf)
    assert document_ndcg(values, scores, retrieved) == value_of("nDCG", retrieved, judged)
    if "" not in judged:  # DocumentRecallEvaluator ignores it, the others do not
        assert document_recall(values, retrieved) == value_of("Success", retrieved, judged, rel=-inf)
        assert document_recall(values, retrieved, "multi_hit") == value_of("SetR", retrieved, judged, rel=-inf)


def test_document_twins_give_the_contracts_known_values() -> None:
    century = ["9th century", "10th century", "9th"]
    assert document_average_precision(["9th century", "9th"], century) == (1 + 2 / 3) / 2
    france = ["France", "Germany", "Paris"]
    assert document_ndcg(["France", "Paris"], [1.0, 0.5], france) == (1 + 0.5 / 2) / (1 + 0.5 / log2(3))
    assert document_ndcg(["France", "Paris"], [None, None], france) == (1 + 1 / 2) / (1 + 1 / log2(3))
    repeated = ["a", "a", "b"]
    assert document_average_precision(repeated, ["a"]) == 1 / 2
    assert document_recall(repeated, ["a"], "multi_hit") == 1 / 2
    assert document_ndcg(repeated, [None] * 3, ["a"]) == 1 / (1 + 1 / log2(3))
    found = ["x", "a", "a", "b"]
    assert document_average_precision(["a", "b"], found) == (1 / 2 + 2 / 4) / 2
    assert document_ndcg(["a", "b"], [None, None], found) == (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3))


def test_document_twins_are_better_where_the_contract_says_so() -> None:
    assert document_ndcg(["a", "b"], [1, -1], ["a"]) == 1
    assert document_ndcg(["a", "b"], [1, -1], ["b", "a"]) == 1 / log2(3)
    assert document_ndcg(["a"], [-1], ["a"]) == 0
    for bad in (nan, inf, -inf):
        with pytest.raises(ValueError, match="NaN or infinite"):
            document_ndcg(["a", "b"], [1, bad], ["a"])
    with pytest.raises(ValueError, match="some"):
        document_ndcg(["a", "b"], [1, None], ["a"])
    assert document_ndcg([[1]], [None], [[1.0]]) == 1
    assert document_recall([[1], {"k": 1}], [{"k": True}], "multi_hit") == 1 / 2


def test_document_twins_keep_the_contracts_rules_of_equality() -> None:
    assert document_reciprocal_rank([None], [None]) == 0
    assert document_reciprocal_rank([""], [None, ""]) == 1 / 2
    assert document_recall([""], [""]) == 0
    assert document_reciprocal_rank([1], ["1", -1, True]) == 1 / 3
    assert document_reciprocal_rank([nan], [float("nan"), nan]) == 1 / 2
    assert document_average_precision([None, "a"], [None, "a"]) == 1 / 2


def test_worked_values_of_metrics_page() -> None:
    judged = {"a": 1, "n": 0, "b": 1, "m": 0}
    ranking = ["n", "a", "u", "m", "b"]
    assert value_of("AP", ranking, judged) == (1 / 2 + 2 / 5) / 2
    assert value_of("Bpref", ranking, judged) == (1 - 1 / 2 + 1 - 2 / 2) / 2
    assert value_of("RBP", ranking, judged, p=0.8) == pytest.approx((1 - 0.8) * (0.8 + 0.8**4), rel=1e-15)
    assert value_of("RBPResidual", ranking, judged, p=0.9) == pytest.approx(0.9**5 + (1 - 0.9) * 0.9**2, rel=1e-15)
    assert value_of("Unj", ranking, judged, cutoff=5) == 1 / 5
    at_a = 1 / 2 + 1 / 2 * (0 + 1e-5) / (0 + 1 + 2e-5)
    at_b = 1 / 5 + 3 / 5 * (1 + 1e-5) / (1 + 2 + 2e-5)
    assert value_of("infAP", ranking, judged) == pytest.approx((at_a + at_b) / 2, rel=1e-15)

    graded = {"a": 1, "b": 2, "c": 0}
    expected = (1 / log2(2) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3))
    assert value_of("nDCG", ["a", "c", "b"], graded, dcg="exp-log2") == expected
    stop_a, stop_b = 1 / 16, 3 / 16
    assert value_of("ERR", ["a", "c", "b"], graded, max_rel=4) == stop_a + (1 - stop_a) * stop_b / 3
    expected = (1 / log2(2) + 2 / log2(3)) / (2 / log2(2) + 1 / log2(3))
    assert value_of("nDCG", ["a", "b"], {"a": 1, "b": 2}) == expected

    four = {"a": 1, "b": 1, "c": 1, "d": 1}
    assert [value_of(name, ["a"], four) for name in ("Rprec", "AP", "Bpref")] == [1 / 4] * 3
    assert value_of("nDCG", ["a"], four, cutoff=1) == 1


def test_definitions_of_metrics_page_by_hand() -> None:
    judged = {"a": 2, "b": 1, "c": 0, "d": -1}
    assert value_of("P", ["a"], judged, cutoff=5) == 1 / 5
    assert value_of("RR", ["x", "a"], judged, cutoff=2) == 1 / 2
    assert value_of("RR", ["x", "a"], judged, cutoff=1) == 0
    assert value_of("Bpref", ["c", "x", "a"], {"a": 1, "c": 0, "e": 0}) == 1 - 1 / 1
    assert value_of("Bpref", ["c", "e", "a"], {"a": 1, "c": 0, "e": 0}) == 1 - 1 / 1  # no more than R count
    assert value_of("Bpref", ["c", "a"], {"a": 1, "b": 1, "c": 0}) == (1 - 1 / 1) / 2
    assert value_of("R_cap", ["a", "x"], judged, cutoff=1) == 1
    assert value_of("SetF", ["a", "x", "y"], judged, beta=2) == pytest.approx(5 * 1 / 3 * 1 / 2 / (4 / 3 + 1 / 2))
    assert value_of("SetF", ["a", "x", "y"], judged, x=2) == pytest.approx(3 * 1 / 3 * 1 / 2 / (2 * 1 / 3 + 1 / 2))
    assert value_of("IPrec", ["x", "a", "b"], judged, recall=0.125) == 2 / 3
    ten = dict.fromkeys("abcdefghij", 1)
    assert value_of("IPrec", ["a"], ten, recall=0.1) == 1  # 0.1 as a binary fraction is more than 1/10
    assert value_of("IPrec", ["a"], ten, recall=0.11) == 0
    assert value_of("IPrec11", ["x", "a"], ten) == 1 / 2 * 2 / 11
    assert value_of("DCG", ["d", "a", "b"], judged) == 2 / log2(3) + 1 / log2(4)
    assert value_of("nDCG", ["b", "a"], judged, rel=2) == 2 / log2(3) / 2
    assert value_of("nDCG", ["b", "a"], judged, gains={1: 0.5}) == (0.5 + 2 / log2(3)) / (2 + 0.5 / log2(3))
    assert value_of("RBP", ["a", "b"], judged, p=0.5, max_rel=2) == 0.5 * (1 + 0.5 * 0.5)
    assert value_of("RBPResidual", ["a", "c"], judged, p=0.5) == 0.5**2
    assert value_of("RBPResidual", ["x", "a", "y"], judged, p=0.5, cutoff=2) == 0.5**2 + 0.5 * 1
    assert value_of("RBP", ["a", "b"], judged, p=0.5, cutoff=1) == 0.5
    assert value_of("Unj", ["a", "x"], judged, cutoff=1) == 0
    assert value_of("DCG", ["a", "b"], judged, cutoff=1) == 2
    assert value_of("Judged", ["a", "d", "x"], judged, cutoff=10) == 1 / 3
    assert value_of("Unj", ["a", "d", "x"], judged, cutoff=10) == 2 / 10
    assert value_of("AP", ["d", "a"], judged, rel=-1) == (1 + 2 / 2) / 4
    assert [value_of(name, ["x"], {}) for name in ("AP", "nDCG", "Bpref", "infAP", "Rprec", "Compat")] == [0] * 6


def test_repeats_take_a_rank_and_none_is_unjudged() -> None:
    judged = {"a": 1, "b": 1, "c": 0}
    ranking = ["a", "a", None, "c", "c", None, "b"]
    assert value_of("AP", ranking, judged) == (1 + 2 / 7) / 2
    assert value_of("P", ranking, judged, cutoff=2) == 1 / 2
    assert value_of("Bpref", ranking, judged) == (1 + 0) / 2
    assert value_of("Judged", ranking, judged) == 3 / 7
    assert value_of("Unj", ranking, judged, cutoff=10) == 2 / 10
    assert value_of("NumRet", ranking, judged) == 7
    assert value_of("AP", [None], {None: 1}) == 0
    assert without_repeats(ranking) == ["a", None, "c", None, "b"]


def test_rank_orders_ties_as_the_policies_say() -> None:
    tied = {"a": 1.0, "10": 1.0, "9": 1.0, "é": 1.0, "\ufb01": 1.0, "\U0001f600": 1.0, "z": 2, "\ud800": 0.0}
    assert rank(tied) == ["z", "\U0001f600", "\ufb01", "é", "a", "9", "10", "\ud800"]
    assert rank(tied, ties="input") == ["z", "a", "10", "9", "é", "\ufb01", "\U0001f600", "\ud800"]
    assert rank(tied, order="input") == list(tied)
    assert rank({9: 1, 10: 1, -1: 1}) == [9, 10, -1]
    assert rank([("a", 1.0), ("b", 2.0), ("a", 3.0)]) == ["a", "b", "a"]
    with pytest.raises(ValueError, match="equal"):
        rank(tied, ties="error")
    near = {"a": 1.000000001, "b": 1.0}
    assert rank(near, ties="error") == ["a", "b"]
    assert rank(near, score_dtype="float32") == ["b", "a"]
    assert rank({"a": 0.0, "b": -0.0, "c": 1e300, "d": 1e301}, score_dtype="float32") == ["d", "c", "b", "a"]


@given(documents=st.lists(st.text(st.characters())))
def test_id_bytes_order_as_code_points(documents: list[str]) -> None:
    assert sorted(documents, key=id_bytes) == sorted(documents)


def test_expected_over_ties_equals_closed_forms() -> None:
    def harmonic(n: int) -> float:
        return float(sum(Fraction(1, i) for i in range(1, n + 1)))

    tied = dict.fromkeys("abcdef", 1.0)
    assert expected_over_ties(REFERENCE["RR"], tied, {"a": 1}) == pytest.approx(harmonic(6) / 6, rel=1e-15)
    assert expected_over_ties(REFERENCE["P"], tied, {"a": 1, "b": 1}, cutoff=2) == pytest.approx(1 / 3, rel=1e-15)
    assert expected_over_ties(REFERENCE["Success"], tied, {"a": 1, "b": 1}, cutoff=2) == pytest.approx(
        1 - 4 / 6 * 3 / 5, rel=1e-15
    )
    assert expected_over_ties(REFERENCE["RR"], {"a": 1.0, "b": 1.0}, {"a": 1}) == (1 + 1 / 2) / 2
    discounts = add_in_order(1 / log2(i + 1) for i in range(2, 5))
    assert expected_over_ties(REFERENCE["DCG"], {"z": 9, "a": 1, "b": 1, "c": 1}, {"a": 2}) == pytest.approx(
        2 * discounts / 3, rel=1e-15
    )


@given(judged=strategies.judgements(), run=strategies.scored_documents(tied=False), name=st.sampled_from(("RR", "AP")))
def test_expectation_without_ties_is_the_value(judged: dict[str, float], run: dict[str, float], name: str) -> None:
    assert expected_over_ties(REFERENCE[name], run, judged) == value_of(name, rank(run, ties="error"), judged)


def test_aggregates_leave_out_nan() -> None:
    assert aggregate([0.9, nan, 0.85]) == (0.9 + 0.85) / 2
    assert aggregate([1, nan, 2], "sum") == 3
    assert aggregate([0, 1], "geometric mean") == exp((log(1e-5) + 0) / 2)
    assert isnan(aggregate([nan]))
    assert aggregate([], "sum") == 0


def shared_cases(*sides: str) -> Iterable[Any]:
    path = SHARED / "cases" / "retrieval.jsonl"
    if not path.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason=f"{path} is absent"))]
    cases = map(json.loads, path.read_text("utf-8").splitlines())
    return [pytest.param(case, id=case["id"]) for case in cases if any(side in case for side in sides)]


def expectations(case: dict[str, Any]) -> Iterable[tuple[dict[str, str], dict[str, float]]]:
    """The policies that a case names and the value of each query; `missing` is not the twins' business."""
    if "expected" in case:
        yield ({"ties": case["ties"]} if "ties" in case else {}), case["expected"]
    for policy in ("ties", "score_dtype"):
        for choice, value in case.get(f"expected_by_{policy}", {}).items():
            yield {policy: choice}, dict.fromkeys(case["qrels"], value)


@pytest.mark.parametrize("case", shared_cases("qrels"))
def test_shared_case(case: dict[str, Any]) -> None:
    for spelling in [case["metric"]] if isinstance(case["metric"], str) else case["metric"]:
        name, params = params_of(spelling)
        for policies, values in expectations(case):
            for query, expected in values.items():
                judged, run = case["qrels"][query], case["run"][query]
                if policies.get("ties") != "expected":
                    ranking = rank(run, **policies) if isinstance(run, dict) else run
                    value = value_of(name, ranking, judged, **params)
                elif len(run) < 8:
                    value = expected_over_ties(REFERENCE[name], run, judged, **params)
                else:  # too many orders to try: all tied, one relevant, so every rank is as likely
                    assert name == "RR"
                    value = add_in_order(1 / place for place in range(1, len(run) + 1)) / len(run)
                assert value == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("case", shared_cases("documents", "documents_meta"))
def test_shared_case_of_documents(case: dict[str, Any]) -> None:
    twins: dict[str, Callable[..., float]] = {
        "AP": document_average_precision,
        "RR": document_reciprocal_rank,
        "Success": document_recall,
        "nDCG": lambda truths, found: document_ndcg(truths, [None] * len(truths), found),
    }
    if "documents" in case:
        sides = [case["documents"]["gt"], case["documents"]["ret"]]
    else:
        sides = [
            [haystack_keys([SimpleNamespace(meta=meta) for meta in metas], case["field"]) for metas in side]
            for side in (case["documents_meta"]["gt"], case["documents_meta"]["ret"])
        ]
    assert [twins[case["metric"]](*question) for question in zip(*sides, strict=True)] == case["expected"]


def params_of(spelling: str) -> tuple[str, dict[str, Any]]:
    """The twin's name and parameters; only what the shared cases hold is understood."""
    head, _, level = spelling.partition("@")
    name, _, listed = head.removesuffix(")").partition("(")
    pairs = [pair.split("=") for pair in listed.replace(" ", "").split(",") if pair]
    params: dict[str, Any] = {key: float(value) for key, value in pairs}
    if level:
        params |= {"recall": float(level)} if name == "IPrec" else {"cutoff": int(level)}
    return name, params


@given(judged=strategies.judgements(min_size=1))
def test_ideal_ranking_scores_one(judged: dict[str, float]) -> None:
    ideal = sorted(judged, key=lambda document: -judged[document])
    if max(judged.values()) > 0:
        assert value_of("nDCG", ideal, judged) == 1
        assert value_of("Compat", ideal, judged) == pytest.approx(1)
    if max(judged.values()) >= 1:
        for name in ("AP", "RR", "Rprec", "Bpref", "IPrec11", "R", "Success"):
            assert value_of(name, ideal, judged) == 1


def test_twins_import_nothing_of_ours() -> None:
    source = Path(average_precision.__code__.co_filename).read_text("utf-8")
    imported = {
        line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))
    }
    assert imported <= sys.stdlib_module_names
