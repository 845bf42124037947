"""Values worked out by hand, written as arithmetic, and what no definition may change."""

from dataclasses import replace
from math import isnan, log2, nan

import numpy as np
import pytest

from metrics_core.blocks import REPEAT, GradeBlock
from metrics_core.errors import InputError
from metrics_core.metrics import parse, registered_metrics
from metrics_core.policies import Policies
from tests.blocks import block_at_every_rank

TREC_EVAL = Policies()

WORKED = ({"a": 1, "n": 0, "b": 1, "m": 0}, "naumb")
GRADED = ({"a": 1, "b": 2, "c": 0}, "acb")
FOUR = ({"a": 1, "b": 1, "c": 1, "d": 1}, "axyz")
NEGATIVE = ({"a": 1, "n": -2, "b": 1, "m": 0}, "namb")


@pytest.mark.parametrize(
    ("case", "name", "expected"),
    [
        (WORKED, "AP", (1 / 2 + 2 / 5) / 2),
        (WORKED, "GMAP", (1 / 2 + 2 / 5) / 2),
        (WORKED, "AP@2", (1 / 2) / 2),
        (WORKED, "RR", 1 / 2),
        (WORKED, "RR@1", 0),
        (WORKED, "Success@1", 0),
        (WORKED, "Success@2", 1),
        (WORKED, "P@10", 2 / 10),
        (WORKED, "R@2", 1 / 2),
        (WORKED, "R_cap@1", 0),
        (WORKED, "R_cap@3", 1 / 2),
        (WORKED, "Rprec", 1 / 2),
        (WORKED, "Bpref", ((1 - 1 / 2) + (1 - 2 / 2)) / 2),
        (WORKED, "RBP(p=0.8)", (1 - 0.8) * (0.8 + 0.8**4)),
        (WORKED, "RBP(p=0.8)@2", (1 - 0.8) * 0.8),
        (WORKED, "RBPResidual(p=0.9)", 0.9**5 + (1 - 0.9) * 0.9**2),
        (WORKED, "Unj@5", 1 / 5),
        (WORKED, "Unj@10", 1 / 10),
        (WORKED, "Judged@5", 4 / 5),
        (WORKED, "Judged@10", 4 / 5),
        (WORKED, "Judged", 4 / 5),
        (
            WORKED,
            "infAP",
            (
                (1 / 2 + 1 / 2 * (1 / 1) * (1e-5 / (1 + 2e-5)))
                + (1 / 5 + 4 / 5 * (3 / 4) * ((1 + 1e-5) / (1 + 2 + 2e-5)))
            )
            / 2,
        ),
        (WORKED, "SetP", 2 / 5),
        (WORKED, "SetR", 2 / 2),
        (WORKED, "SetF", 2 * (2 / 5) / (2 / 5 + 1)),
        (WORKED, "SetF(beta=2)", 5 * (2 / 5) / (4 * 2 / 5 + 1)),
        (WORKED, "SetF(x=2)", 3 * (2 / 5) / (2 * 2 / 5 + 1)),
        (WORKED, "SetAP", 2 / 5),
        (WORKED, "SetRelP", 2 / 2),
        (WORKED, "IPrec@0", 1 / 2),
        (WORKED, "IPrec@0.5", 1 / 2),
        (WORKED, "IPrec@0.51", 2 / 5),
        (WORKED, "IPrec11", (6 * 1 / 2 + 5 * 2 / 5) / 11),
        (WORKED, "NumRet", 5),
        (WORKED, "NumRel", 2),
        (WORKED, "NumRelRet", 2),
        (WORKED, "NumQ", 1),
        (GRADED, "DCG", 1 / log2(2) + 2 / log2(4)),
        (GRADED, "DCG@2", 1 / log2(2)),
        (GRADED, "nDCG", (1 / log2(2) + 2 / log2(4)) / (2 / log2(2) + 1 / log2(3))),
        (GRADED, "nDCG(dcg='exp-log2')", (1 / log2(2) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3))),
        (GRADED, "nDCG(rel=2)", (2 / log2(4)) / 2),
        (GRADED, "nDCG(gains={1: 5, 2: 0.5})", (5 / log2(2) + 0.5 / log2(4)) / (5 / log2(2) + 0.5 / log2(3))),
        (GRADED, "nDCG(gains={0: 1})", (1 + 1 / log2(3) + 2 / log2(4)) / (2 + 1 / log2(3) + 1 / log2(4))),
        (GRADED, "ERR(max_rel=4)", 1 / 16 + 1 / 3 * (15 / 16) * (3 / 16)),
        (GRADED, "RBP(p=0.5, max_rel=2)", (1 - 0.5) * (1 / 2 + 2 / 2 * 0.5**2)),
        (GRADED, "RBP(p=0.5, rel=2)", (1 - 0.5) * 0.5**2),
        (GRADED, "AP(rel=2)", 1 / 3),
        (GRADED, "AP(rel=-1)", 1),
        (({"a": 1, "b": 2}, "ab"), "nDCG", (1 + 2 / log2(3)) / (2 + 1 / log2(3))),
        (({"a": 0.9, "b": 0.3}, "ba"), "nDCG", (0.3 + 0.9 / log2(3)) / (0.9 + 0.3 / log2(3))),
        (FOUR, "Rprec", 1 / 4),
        (FOUR, "AP", 1 / 4),
        (FOUR, "Bpref", 1 / 4),
        (FOUR, "nDCG@1", 1),
        (({"d1": 1, "d2": 2}, ["d1", "x", "d2"]), "Bpref", 1),
        (NEGATIVE, "Bpref", (1 + (1 - 1 / 1)) / 2),
        (NEGATIVE, "Judged@4", 3 / 4),
        (NEGATIVE, "Unj@4", 1 / 4),
        (NEGATIVE, "nDCG", (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3))),
        (NEGATIVE, "RBPResidual(p=0.5)", 0.5**4 + 0.5 * 1),
        (({"a": 1, "b": 1}, "xab"), "IPrec@0.125", 2 / 3),
        (({str(i): 1 for i in range(10)}, "0x12"), "IPrec@0.3", 3 / 4),
        # depths 1, 2, 3: no, one, both of the ideal b, a found; with itself: 1 / 1, 2 / 2, 2 / 3
        (
            GRADED,
            "Compat(p=0.5)",
            (0 / 1 + 0.5 * 1 / 2 + 0.25 * 2 / 3) / (1 / 1 + 0.5 * 2 / 2 + 0.25 * 2 / 3),
        ),
        (GRADED, "Compat(p=0.5, normalize=False)", (0 / 1 + 0.5 * 1 / 2 + 0.25 * 2 / 3) / (1 + 0.5 + 0.25)),
    ],
)
def test_worked_by_hand(block_of, case, name, expected):
    judged, ranking = case
    block = block_of({"q": judged}, {"q": list(ranking)})
    assert parse(name).score(block, TREC_EVAL)[0] == pytest.approx(expected, abs=1e-15, rel=1e-15)


def test_ndcg_equals_plain_python_bit_for_bit():
    rng = np.random.default_rng(1)
    ideal = -np.sort(-rng.random((50, 300)), axis=1)
    grades = rng.permuted(ideal, axis=1)
    block = block_at_every_rank(np.ascontiguousarray(grades.T), np.full(50, 300), np.ascontiguousarray(ideal.T))
    for name, depth in (("nDCG", 300), ("nDCG@7", 7)):
        scores = parse(name).score(block, TREC_EVAL).tolist()
        for row, best, score in zip(grades.tolist(), ideal.tolist(), scores, strict=True):
            gained = sum(grade / log2(i + 2) for i, grade in enumerate(row[:depth]))
            assert score == gained / sum(grade / log2(i + 2) for i, grade in enumerate(best[:depth]))


def complete(metric):
    bound = metric(**{each.name: each.example for each in metric.parameters if each.example is not None})
    return bound @ {"cutoff": 3, "recall": 0.5}[metric.after] if metric.after in ("cutoff", "recall") else bound


@pytest.mark.parametrize("metric", [complete(metric) for metric in registered_metrics()], ids=str)
class TestEveryMetric:
    @pytest.mark.parametrize(("width", "n_judged"), [(0, 0), (4, 0), (0, 3), (4, 3)])
    def test_empty_rankings_and_judgements(self, metric, width, n_judged):
        block = block_at_every_rank(np.full((width, 2), nan), np.zeros(2, np.int64), np.full((n_judged, 2), nan))
        scores = metric.score(block, TREC_EVAL)
        assert scores.tolist() == [{"NumQ": 1.0, "RBPResidual": 1.0}.get(metric.name, 0.0)] * 2
        assert metric.without_relevant(block, TREC_EVAL).tolist() == [metric.needs_relevant] * 2

    def test_no_queries(self, metric):
        block = block_at_every_rank(np.zeros((2, 0)), np.zeros(0, dtype=np.int64), np.zeros((3, 0)))
        assert metric.score(block, TREC_EVAL).shape == (0,)

    def test_compiled_equals_plain_python_and_leaves_the_block_alone(self, metric):
        rng = np.random.default_rng(2)
        ideal = -np.sort(-rng.integers(-2, 5, (20, 8)).astype(float), axis=1)
        grades = np.concatenate([rng.permuted(ideal, axis=1)[:, :5], np.full((20, 2), nan)], axis=1)
        grades = rng.permuted(grades, axis=1)
        grades[:, 3] = REPEAT
        n_retrieved = rng.integers(0, 8, 20)
        grades[np.arange(7) >= n_retrieved[:, None]] = nan
        made = block_at_every_rank(np.ascontiguousarray(grades.T), n_retrieved, np.ascontiguousarray(ideal.T))
        arrays = (made.rows, made.grades, made.ranks, made.n_retrieved, made.ideal)
        before = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        block = GradeBlock(*arrays)
        scores = metric.score(block, TREC_EVAL)
        plain = replace(metric, compiled=False).score(block, TREC_EVAL)
        np.testing.assert_array_equal(scores, plain)
        assert all(np.array_equal(array, copy, equal_nan=True) for array, copy in zip(arrays, before, strict=True))

    def test_a_batch_of_queries_equals_each_alone(self, metric, block_of):
        qrels = {"q1": {"a": 1, "b": 0, "c": 3}, "q2": {"a": 2}, "q3": {}, "q4": {"x": -1, "y": 1}}
        rankings = {"q1": "bxac", "q2": "zyxa", "q4": "x"}
        together = metric.score(block_of(qrels, rankings), TREC_EVAL)
        alone = [metric.score(block_of({q: qrels[q]}, rankings), TREC_EVAL)[0] for q in qrels]
        assert together.tolist() == alone


def test_ideal_ranking_scores_one(block_of):
    block = block_of({"q": {"a": 3, "b": 2, "c": 1, "d": 0}}, {"q": "abcd"})
    for name in (
        "nDCG",
        "nDCG(dcg='exp-log2')@2",
        "AP",
        "RR",
        "Success@1",
        "Rprec",
        "R@3",
        "P@3",
        "Bpref",
        "Compat",
        "IPrec@1",
        "IPrec11",
        "R_cap@2",
        "SetR",
    ):
        assert parse(name).score(block, TREC_EVAL)[0] == pytest.approx(1), name


def test_default_rel_of_minus_infinity_makes_every_judged_document_relevant():
    grades, ideal = np.array([[nan], [REPEAT], [-3.0], [0.0]]), np.array([[0.0], [-3.0]])
    block = block_at_every_rank(grades, np.array([4]), ideal)
    haystack = Policies("haystack")
    assert parse("AP").score(block, haystack)[0] == (1 / 3 + 2 / 4) / 2
    assert parse("RR").score(block, haystack)[0] == 1 / 3
    assert parse("AP(rel=0)").score(block, haystack)[0] == 1 / 4
    assert parse("nDCG").score(block, haystack)[0] == 0
    assert not parse("AP").without_relevant(block, haystack)[0]
    assert parse("nDCG").without_relevant(block, haystack)[0]
    assert parse("AP").without_relevant(block, TREC_EVAL)[0]


def test_repeat_takes_a_place_and_is_nothing_else(block_of):
    grades, ideal = np.array([[1.0], [REPEAT], [0.0], [1.0]]), np.array([[1.0], [1.0], [0.0]])
    block = block_at_every_rank(grades, np.array([4]), ideal)
    scores = {name: parse(name).score(block, TREC_EVAL)[0] for name in ("AP", "Bpref", "Judged@2", "Unj@2", "P@2")}
    assert scores == {"AP": (1 + 2 / 4) / 2, "Bpref": (1 + 0) / 2, "Judged@2": 1 / 2, "Unj@2": 0, "P@2": 1 / 2}


@pytest.mark.parametrize("name", ["ERR(max_rel=2)", "RBP(p=0.5, max_rel=2)"])
def test_grade_above_the_scale_is_refused(block_of, name):
    block = block_of({"q": {"a": 3}}, {"q": "a"})
    with pytest.raises(InputError, match="a grade of 3 is above max_rel=2, the top of the scale"):
        parse(name).score(block, TREC_EVAL)


def test_exponential_gain_that_overflows_is_refused(block_of):
    block = block_of({"q": {"a": 2000}}, {"q": "a"})
    with pytest.raises(InputError, match=r"2\^grade is too large for a grade of 2000; use linear gains"):
        parse("nDCG(dcg='exp-log2')").score(block, TREC_EVAL)


def test_exponential_gain_whose_sums_would_overflow_is_refused(block_of):
    block = block_of({"q": dict.fromkeys("abcd", 1023)}, {"q": "abcd"})
    with pytest.raises(InputError, match=r"2\^grade is too large for a grade of 1023; use linear gains"):
        parse("nDCG(dcg='exp-log2')").score(block, TREC_EVAL)
    assert parse("ERR(max_rel=1023)").score(block, TREC_EVAL)[0] == pytest.approx(1)


def test_no_score_is_nan_for_finite_grades(block_of):
    block = block_of({"q": {"a": 1e300, "b": -1e300}}, {"q": "ba"})
    assert not isnan(parse("nDCG").score(block, TREC_EVAL)[0])
