"""compare: joining runs of every kind, families and corrections, degenerate cases, and what is refused."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from metrics_core import (
    Comparison,
    EvaluationRunResult,
    InputError,
    MetricNameError,
    Policies,
    compare,
    confidence_interval,
    evaluate,
    power,
    topics_needed,
)
from metrics_core.statistics import adjusted, mean_interval, sign_flip_test, tukey_hsd_test

stats = pytest.importorskip("scipy.stats")

NAN = float("nan")


def values(n=40, seed=0, **shifts):
    """{run: {query: value}}: queries of their own hardness, and runs that differ by a shift."""
    rng = np.random.default_rng(seed)
    queries = rng.random(n)
    return {
        name: {f"q{i}": float(value) for i, value in enumerate(queries + shift + rng.normal(0, 0.1, n))}
        for name, shift in shifts.items()
    }


RUNS = values(first=0, second=0.04, third=0.1)
UNSCORED = {
    "a": {"x": 0.9, "y": NAN, "z": 0.85, "w": 0.5},
    "b": {"x": 0.8, "y": 0.7, "z": 0.95, "v": 1},
    "c": {"x": 0.1, "y": 0.2, "z": None, "w": 0.3, "v": 0.5},
}
ONE, TWO = (1.0, 0.5, None, 0.25), (0.5, 0.5, 1, 0.5)  # scores of two judges' runs
QRELS = {f"q{i}": {"a": 1, "b": 2} for i in range(30)}
RANKINGS = {f"q{i}": [*"vwxyz"[: i % 3], "a"] for i in range(30)}


def result(name, scores, metric="faithfulness", **inputs):
    """What has the shape of an EvaluationRunResult."""
    inputs = inputs or {"question": [f"question {i}" for i in range(len(scores))]}
    return SimpleNamespace(
        run_name=name, inputs=inputs, results={metric: {"score": None, "individual_scores": list(scores)}}
    )


class TestDifferences:
    def test_of_a_pair_by_hand(self):
        found = compare({"a": {"x": 1, "y": 0.5, "z": 0}, "b": {"z": 0, "y": 0, "x": 0.25}}).differences
        (each,) = found
        assert (each.metric, each.run, each.other, each.n, each.n_left_out) == ("score", "a", "b", 3, 0)
        assert (each.mean, each.other_mean) == (1.5 / 3, 0.25 / 3)
        assert each.difference == pytest.approx((0.75 + 0.5 + 0) / 3)
        assert (each.wins, each.ties, each.losses) == (2, 1, 0)
        assert each.sd == pytest.approx(np.std([0.75, 0.5, 0], ddof=1))
        assert each.effect_size == pytest.approx(each.difference / each.sd)
        assert each.p_permutation == 2 / 4  # of the signs of two differences, + + and - - are as far from zero

    def test_are_scipys_and_the_functions_of_statistics(self):
        comparison = compare(RUNS, seed=3)
        pairs = [("first", "second"), ("first", "third"), ("second", "third")]
        assert [(each.run, each.other) for each in comparison.differences] == pairs
        for each, (run, other) in zip(comparison.differences, pairs, strict=True):
            first, second = (np.array(list(RUNS[name].values())) for name in (run, other))
            expected = stats.ttest_rel(first, second)
            assert (each.statistic, each.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
            assert (each.low, each.high) == tuple(each[0] for each in mean_interval(first - second, seed=3))
            assert each.p_permutation == sign_flip_test(first - second, seed=3).p[0]
        raw = [each.p for each in comparison.differences]
        assert [each.p_adjusted for each in comparison.differences] == adjusted(raw, "holm").tolist()

    @pytest.mark.parametrize("test", ["t", "permutation", "bootstrap", "wilcoxon", "tukey"])
    def test_every_test_finds_what_is_there_and_not_what_is_not(self, test):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            comparison = compare(values(80, a=0, b=0, c=0.2), test=test)
        significant = {(each.run, each.other): each.significant for each in comparison.differences}
        assert significant == {("a", "b"): False, ("a", "c"): True, ("b", "c"): True}

    def test_a_pair_does_not_depend_on_other_runs(self):
        alone = compare({name: RUNS[name] for name in ("first", "second")})
        assert compare(RUNS).difference("first", "second").p_permutation == alone.differences[0].p_permutation
        assert compare(RUNS).difference("first", "second").low == alone.differences[0].low

    def test_either_way_round(self):
        comparison = compare(RUNS)
        there, back = comparison.difference("first", "third"), comparison.difference("third", "first", "score")
        assert back.difference == -there.difference > 0
        assert (back.low, back.high) == (-there.high, -there.low)
        assert (back.wins, back.ties, back.losses) == (there.losses, there.ties, there.wins)
        assert (back.mean, back.statistic, back.p_adjusted) == (there.other_mean, -there.statistic, there.p_adjusted)

    def test_rounding_is_no_difference(self):
        each = compare({"a": {"x": 0.1 + 0.2, "y": 0.5}, "b": {"x": 0.3, "y": 0.5}}).differences[0]
        assert (each.wins, each.ties, each.losses, each.p) == (0, 2, 0, 1)

    def test_the_sd_is_what_topics_needed_asks_for(self):
        each = compare(RUNS).difference("third", "first")
        n = topics_needed(each.difference, each.sd)
        assert power(each.difference, each.sd, n) >= 0.8 > power(each.difference, each.sd, n - 1)


class TestUnscored:
    """Queries that are NaN, None or not there are left out of a pair, and counted."""

    def test_pair_by_pair(self):
        comparison = compare(UNSCORED)
        counts = {(each.run, each.other): (each.n, each.n_left_out) for each in comparison.differences}
        assert counts == {("a", "b"): (2, 3), ("a", "c"): (2, 3), ("b", "c"): (3, 2)}
        assert comparison.difference("a", "b").mean == pytest.approx((0.9 + 0.85) / 2)
        assert "3 of 3 comparisons leave out queries without scores, at most 3 of 5" in comparison.notes[0]
        mean = comparison.means()["a"]["score"]
        assert (mean.value, mean.n_scored, mean.n_total) == (pytest.approx((0.9 + 0.85 + 0.5) / 3), 3, 5)

    def test_tukey_takes_queries_that_all_runs_have_scores_for(self):
        runs = {name: scores | {"u": 0.4} for name, scores in UNSCORED.items()}
        comparison = compare(runs, test="tukey")
        assert {(each.n, each.n_left_out) for each in comparison.differences} == {(2, 4)}
        both = np.array([[0.9, 0.8, 0.1], [0.4, 0.4, 0.4]])
        assert comparison.difference("a", "c").p_adjusted == tukey_hsd_test(both)[0, 2]

    @pytest.mark.filterwarnings("ignore:Wilcoxon's test")
    @pytest.mark.parametrize("test", ["t", "permutation", "bootstrap", "wilcoxon", "tukey"])
    def test_differences_that_are_none_are_not_significant(self, test):
        """What rounding makes of equal scores is a tie to every test, beside a run that is always the same as well."""
        runs = {"a": dict.fromkeys(range(20), 0.0), "b": {query: 1e-13 * (1 + query % 3) for query in range(20)}}
        difference = compare(runs, test=test).difference("b", "a")
        assert (difference.ties, difference.p_adjusted, difference.significant) == (20, 1.0, False)

    def test_nothing_or_too_little_in_common(self):
        with pytest.raises(
            InputError, match=r"no query has a score of both 'a' \(scored: 'x', …\) and 'b' \(scored: 1"
        ):
            compare({"a": {"x": 1.0}, "b": {1: 1.0}})
        with pytest.raises(InputError, match="1 of 2 queries have a score of both 'a' and 'b'; a comparison needs two"):
            compare({"a": {"x": 1, "y": 1}, "b": {"x": 1, "y": NAN}})

    @pytest.mark.parametrize("value", [float("inf"), "0.5", [1], 10**400])
    def test_what_is_no_number(self, value):
        with pytest.raises(InputError, match="the score of query 'y' in run 'a' must be a finite number"):
            compare({"a": {"x": 1, "y": value}, "b": {"x": 1, "y": 1}})

    @pytest.mark.parametrize("value", [1e308, -1.5e100])
    def test_what_has_no_square(self, value):
        with pytest.raises(InputError, match=r"the score of query 'y' in run 'a' is beyond 1e\+100: squares"):
            compare({"a": {"x": 1, "y": value}, "b": {"x": 1, "y": 1}})


class TestDegenerate:
    @pytest.mark.parametrize("test", ["t", "permutation", "bootstrap", "wilcoxon", "tukey"])
    @pytest.mark.filterwarnings("ignore:Wilcoxon:UserWarning")
    def test_identical_runs(self, test):
        each = compare({"a": RUNS["first"], "b": dict(RUNS["first"])}, test=test).differences[0]
        assert (each.p, each.p_adjusted, each.p_permutation) == (1, 1, 1)
        assert (each.difference, each.low, each.high, each.sd, each.effect_size) == (0, 0, 0, 0, 0)
        assert (each.wins, each.ties, each.losses, each.significant) == (0, 40, 0, False)

    def test_a_difference_that_is_always_the_same(self):
        runs = {"a": dict.fromkeys(range(30), 0.5), "b": dict.fromkeys(range(30), 0.25)}
        each = compare(runs).differences[0]
        assert (each.difference, each.low, each.high, each.sd) == (0.25, 0.25, 0.25, 0)
        assert (each.p, each.effect_size) == (0, float("inf"))
        assert each.p_permutation == 1 / 10_001


class TestFamilies:
    def scores(self, seed, policies=None):
        rng = np.random.default_rng(seed)
        run = {query: dict(zip("abcde", rng.random(5).tolist(), strict=True)) for query in QRELS}
        return evaluate(QRELS, run, ["nDCG", "AP", "RR"], policies=policies)

    @pytest.fixture
    def runs(self):
        return {f"run {seed}": self.scores(seed) for seed in range(3)}

    @pytest.mark.parametrize(
        ("options", "size", "method"),
        [
            ({}, 3, "paired t-test, Holm over 3 comparisons per metric (all pairs)"),
            ({"baseline": "run 1"}, 2, "paired t-test, Holm over 2 comparisons per metric (each run against run 1)"),
            ({"family": "all"}, 9, "paired t-test, Holm over 9 comparisons across metrics (all pairs)"),
            (
                {"family": "all", "correction": "bh", "test": "permutation"},
                9,
                "sign-flip permutation test, Benjamini-Hochberg over 9 comparisons across metrics (all pairs)",
            ),
            ({"test": "tukey"}, 3, "randomised Tukey HSD over all pairs of runs, per metric"),
        ],
    )
    def test_are_stored_and_corrected_together(self, runs, options, size, method):
        comparison = compare(runs, **options)
        assert (comparison.family_size, comparison.method) == (size, method)
        assert comparison.baseline == options.get("baseline")
        assert comparison.correction == (
            None if "test" in options and options["test"] == "tukey" else options.get("correction", "holm")
        )
        raw = [each.p for each in comparison.differences]
        families = [raw[start : start + size] for start in range(0, len(raw), size)]
        corrected = [
            p
            for family in families
            for p in (family if comparison.correction is None else adjusted(family, comparison.correction))
        ]
        assert [each.p_adjusted for each in comparison.differences] == pytest.approx(corrected)

    def test_of_a_baseline_are_the_others_minus_it(self, runs):
        comparison = compare(runs, baseline="run 1", metrics="map")
        assert [(each.metric, each.run, each.other) for each in comparison.differences] == [
            ("AP", "run 0", "run 1"),
            ("AP", "run 2", "run 1"),
        ]

    def test_metrics_may_be_chosen_in_any_spelling(self, runs):
        comparison = compare(runs, metrics=["recip_rank", "RR", "ndcg"])
        assert comparison.metrics == ("RR", "nDCG")
        assert comparison.difference("run 0", "run 1", "mrr").metric == "RR"
        with pytest.raises(InputError, match="metric must be one of RR, nDCG"):
            comparison.difference("run 0", "run 1")
        with pytest.raises(MetricNameError, match="P@5 was not evaluated; there are nDCG, AP, RR"):
            compare(runs, metrics="P@5")

    def test_policies_that_differ_are_noted(self, runs):
        runs["other"] = self.scores(9, Policies("trec_eval", missing="skip"))
        assert compare(runs, metrics="AP").notes[0] == (
            "the runs were evaluated under different policies (run 0: trec_eval; run 1: trec_eval; run 2: trec_eval; "
            "other: trec_eval, missing=skip)"
        )
        assert compare(runs).to_dict()["policies"]["other"]["missing"] == "skip"

    def test_threads_change_nothing_and_seeds_do(self, runs):
        for test in ("t", "bootstrap", "tukey"):
            one, two, other = (
                compare(runs, test=test, n_threads=n, seed=seed).to_dict()["differences"]
                for n, seed in ((1, 5), (2, 5), (1, 6))
            )
            assert one == two != other

    def test_geometric_means_are_refused(self):
        scores = evaluate(QRELS, RANKINGS, ["GMAP", "AP"])
        with pytest.raises(InputError, match="GMAP is a geometric mean"):
            compare({"a": scores, "b": scores})
        assert compare({"a": scores, "b": scores}, metrics="AP").metrics == ("AP",)


class TestWilcoxon:
    def test_warns_and_notes_what_it_tests(self):
        with pytest.warns(UserWarning, match="symmetric around zero, not whether the means are equal"):
            comparison = compare(RUNS, test="wilcoxon")
        assert "symmetric around zero" in comparison.notes[0]

    def test_can_prefer_the_run_with_the_lower_mean(self):
        # Small gains in most queries, a great loss in a few.
        first = {i: 0.5 + (0.01 + i / 10_000 if i < 35 else -0.1) for i in range(40)}
        with pytest.warns(UserWarning, match="whose mean is lower"):
            each = compare({"a": first, "b": dict.fromkeys(range(40), 0.5)}, test="wilcoxon").differences[0]
        assert each.difference < 0
        assert each.wins > each.losses
        assert each.p < 0.05 < each.p_permutation


class TestResults:
    """EvaluationRunResults have rows; what joins them has to be known."""

    def test_a_list_of_results_has_names(self):
        comparison = compare([result("one", ONE), result("two", TWO)])
        assert (comparison.names, comparison.metrics) == (("one", "two"), ("faithfulness",))
        assert (comparison.differences[0].n, comparison.differences[0].n_left_out) == (3, 1)

    def test_haystacks_own(self):
        evaluation = pytest.importorskip("haystack.evaluation", reason="haystack-ai is not installed")
        inputs = {"questions": ["a", "b", "c"]}
        runs = [
            evaluation.EvaluationRunResult(
                name, inputs=inputs, results={"map": {"score": 0.5, "individual_scores": scores}}
            )
            for name, scores in (("one", [0.25, 0.5, 0.75]), ("two", [0.5, 0.5, 1.0]))
        ]
        assert compare(runs).difference("two", "one").difference == pytest.approx(0.5 / 3)

    def test_ours_with_scores_and_a_judge(self):
        questions = [f"q{i}" for i in range(30)]
        judged = {"individual_scores": [0.5] * 29 + [None], "reason": [None] * 29 + ["refusal"]}
        runs = [
            EvaluationRunResult(
                name,
                {"id": questions},
                {"retrieval": evaluate(QRELS, run, ["AP", "RR"]), "faithfulness": judged},
                key="id",
            )
            for name, run in (("one", RANKINGS), ("two", {query: ["a"] for query in QRELS}))
        ]
        comparison = compare(runs)
        assert comparison.metrics == ("AP", "RR", "faithfulness")
        assert comparison.difference("two", "one", "RR").wins == 20
        assert comparison.difference("two", "one", "faithfulness").n_left_out == 1
        assert comparison.runs.failures["one"] == {"faithfulness": {29: "refusal"}}
        assert compare(runs, key="id").runs.failures["one"] == {"faithfulness": {"q29": "refusal"}}

    def test_equal_names_are_an_error(self):
        with pytest.raises(InputError, match="two runs are named 'one'; rename one"):
            compare([result("one", ONE), result("one", TWO)])
        with pytest.raises(InputError, match="runs in a list must have a run_name"):
            compare([RUNS["first"], RUNS["second"]])

    def test_rows_in_another_order_are_joined_by_a_key_or_refused(self):
        one = result("one", [1, 0.5, 0.25], id=["x", "y", "z"], lang=["en"] * 3)
        two = result("two", [0.25, 1, 0.5], id=["z", "x", "y"], lang=["en"] * 3)
        with pytest.raises(InputError, match="'one' and 'two' have the same id in another order; key= names a column"):
            compare([one, two])
        each = compare([one, two], key="id").differences[0]
        assert (each.n, each.ties, each.p) == (3, 3, 1)

    def test_predictions_may_be_anything_if_the_questions_are_the_same(self):
        questions = [f"question {i}" for i in range(4)]
        one = result("one", ONE, question=questions, answer=["yes", "no", "yes", "no"])
        two = result("two", TWO, question=questions, answer=["no", "yes", "yes", "no"])
        assert compare([one, two]).differences[0].n == 3

    def test_numbers_are_the_same_as_integers_and_as_floats(self):
        one, two = result("one", ONE, number=[1, 2, 3, 4]), result("two", TWO, number=[1.0, 2.0, 3.0, 4.0])
        assert compare([one, two]).differences[0].n == 3

    @pytest.mark.parametrize(
        ("second", "key", "message"),
        [
            (result("two", [1, 0], question=["a", "b"]), None, "'one' has 4 rows and 'two' 2; key= names"),
            (result("two", [1, 0, 1, 1], question=list("abcd")), None, "no input column that is the same row by row"),
            (result("two", [1, 0, 1, 1], other=list("abcd")), None, "no input column that is the same row by row"),
            (
                result("two", [1, 0, 1, 1], other=list("abcd")),
                "question",
                "'two' has no input column 'question'; it has 'other'",
            ),
            (result("two", [1, 0, 1, 1], question=list("abca")), "question", "'two' has 'a' twice in its key column"),
            (result("two", [1, 0], question=list("abcd")), None, "'two' has 2 scores of faithfulness for 4 rows"),
        ],
    )
    def test_what_cannot_be_joined(self, second, key, message):
        with pytest.raises(InputError, match=message):
            compare(
                [
                    result(
                        "one",
                        ONE,
                        question=list("abcd") if "scores of" in message else [f"question {i}" for i in range(4)],
                    ),
                    second,
                ],
                key=key,
            )

    def test_rows_do_not_join_query_ids(self):
        with pytest.raises(InputError, match="'one' has rows and no query ids, the others have ids; key= names"):
            compare({"one": result("one", [1, 0]), "two": {"question 0": 1, "question 1": 0}})
        runs = {"one": result("one", [1, 0]), "two": {"question 0": 1, "question 1": 0}}
        assert compare(runs, key="question").metrics == ("faithfulness",)

    def test_metrics_that_differ(self):
        runs = [result("one", ONE), result("two", TWO, metric="recall")]
        with pytest.raises(InputError, match="'one' has faithfulness and 'two' recall; metrics= says which"):
            compare(runs)
        with pytest.raises(MetricNameError, match="run 'two' has no faithfulness; it has recall"):
            compare(runs, metrics="faithfulness")


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ({}, {}, "runs must not be empty"),
        ({"a": {"x": 1}}, {}, "runs must be two or more to be compared, got only 'a'"),
        ({"": {"x": 1}, "b": {"x": 1}}, {}, "a run's name must be a string that is not empty, got ''"),
        ({1: {"x": 1}, "b": {"x": 1}}, {}, "a run's name must be a string"),
        ({"a": 0.5, "b": {"x": 1}}, {}, "run 'a' must be Scores, an EvaluationRunResult or {query: value}, got float"),
        ("runs", {}, "runs must be {name: run} or a list of results with names, got 'runs'"),
        (RUNS, {"baseline": "fist"}, "no run is named 'fist'; there are 'first', 'second', 'third'"),
        (RUNS, {"test": "z"}, "test must be one of 't', 'permutation', 'bootstrap', 'wilcoxon', 'tukey', got 'z'"),
        (RUNS, {"family": "pair"}, "family must be one of 'metric', 'all', got 'pair'"),
        (RUNS, {"correction": "sidak"}, "correction must be one of 'holm', 'bh', 'by', 'none', got 'sidak'"),
        (
            RUNS,
            {"test": "tukey", "correction": "holm"},
            "test='tukey' is its own correction; leave out correction='holm'",
        ),
        (RUNS, {"test": "tukey", "family": "all"}, "test='tukey' corrects within a metric; leave out family='all'"),
        (RUNS, {"confidence": 95}, "confidence must be between 0 and 1, got 95"),
        (RUNS, {"n_resamples": 0}, "n_resamples must be a positive integer, got 0"),
        (RUNS, {"seed": "a"}, "seed must be an integer that is not negative, got 'a'"),
        (RUNS, {"metrics": []}, "metrics must not be empty"),
    ],
)
def test_refusals(runs, options, message):
    with pytest.raises(InputError) as error:
        compare(runs, **options)
    assert message in str(error.value)


class TestConfidenceInterval:
    def test_of_a_metric_of_scores(self):
        scores = evaluate(QRELS, RANKINGS, ["RR", "AP"])
        found = confidence_interval(scores, "mrr", confidence=0.9)
        low, high = mean_interval(scores["RR"], confidence=0.9)
        assert found == (scores.mean()["RR"], low[0], high[0], 30)
        with pytest.raises(MetricNameError, match="P@5 was not evaluated"):
            confidence_interval(scores, "P@5")

    def test_rests_on_scored_queries(self):
        scores = evaluate(QRELS, {"q0": ["a"]}, "RR", policies=Policies(missing="skip"))
        assert confidence_interval(scores, "RR") == (1, -np.inf, np.inf, 1)
        none = evaluate(QRELS, {"q0": ["a"]}, "RR(rel=3)", policies=Policies(no_relevant="skip"))
        with pytest.raises(InputError, match=r"no query has a score of RR\(rel=3\)"):
            confidence_interval(none, "RR(rel=3)")


def test_to_dict_is_json_and_columns_are_rows():
    comparison = compare(RUNS)
    report = json.loads(json.dumps(comparison.to_dict()))
    assert (report["test"], report["correction"], report["family"], report["seed"], report["n_resamples"]) == (
        "t",
        "holm",
        "metric",
        0,
        10_000,
    )
    assert [row["p"] for row in report["differences"]] == comparison.columns()["p"]
    assert report["runs"]["first"]["score"]["n_total"] == 40


def test_to_pandas():
    pytest.importorskip("pandas", reason="pandas is not installed")
    comparison = compare(RUNS)
    frame = comparison.to_pandas()
    assert frame.shape == (3, len(comparison.columns()))
    assert frame["p_adjusted"].tolist() == [each.p_adjusted for each in comparison.differences]


def test_the_shared_cases(shared):
    cases = {case["id"]: case for case in map(json.loads, (shared / "cases/retrieval.jsonl").read_text().splitlines())}
    assert "an error that names it" in cases["same-system-name"]["raises"]
    with pytest.raises(InputError, match="two runs are named 'bm25'"):
        compare([result("bm25", [1, 0]), result("bm25", [0, 1])])
    assert (
        compare({"a": RUNS["first"], "b": RUNS["first"]}).differences[0].p == cases["identical-runs"]["expected"]["p"]
    )
    assert "1 and on 2 threads, and never 0" in cases["seed"]["what"]
    apart = values(60, a=0, b=1)
    p = [compare(apart, test="permutation", seed=1, n_threads=n).differences[0].p for n in (1, 2)]
    assert p[0] == p[1] == 1 / 10_001
    runs = {"a": dict(enumerate([0.9, NAN, 0.85])), "b": dict(enumerate([0.5, 0.5, 0.75]))}
    mean = compare(runs).means()["a"]["score"]
    assert (mean.value, mean.n_total - mean.n_scored) == (cases["failed-row"]["expected"], 1)


def test_robust03(shared):
    """Four systems of a TREC track over its 100 topics, against scipy."""
    folder = shared / "data/ir/robust03"
    names = ["InexpC2", "MU03rob01", "NLPR03vb10", "pircRBa1"]
    runs = {
        name: evaluate(folder / "qrels.robust03.txt.gz", folder / f"input.{name}.gz", ["AP", "P@10", "nDCG@10"])
        for name in names
    }
    comparison = compare(runs)
    assert (len(comparison.differences), comparison.family_size) == (18, 6)
    raw = []
    for each in comparison.differences:
        first, second = runs[each.run][each.metric], runs[each.other][each.metric]
        assert each.n == 100
        assert each.p == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-6)
        assert abs(each.p_permutation - each.p) < 0.05  # P@10 has few values, and its sums many ties
        assert each.low < each.difference < each.high
        assert each.wins + each.ties + each.losses == 100
        raw.append(each.p)
    assert [each.p_adjusted for each in comparison.differences[:6]] == adjusted(raw[:6]).tolist()
    tukey = compare(runs, test="tukey", metrics="AP")
    gaps = [(abs(each.difference), each.p_adjusted) for each in tukey.differences]
    assert [p for _, p in sorted(gaps)] == sorted((p for _, p in gaps), reverse=True)
    significant = {frozenset((each.run, each.other)) for each in tukey.differences if each.significant}
    assert significant <= {frozenset((each.run, each.other)) for each in comparison.differences if each.p < 0.05}
    assert isinstance(comparison, Comparison)
