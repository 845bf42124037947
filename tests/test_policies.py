"""Every policy and profile, with values worked out by hand."""

from __future__ import annotations

import pickle
import re
from dataclasses import FrozenInstanceError, replace
from math import inf, log2, nan

import pytest

from metrics_core import Document, IdArrays, InputError, MetricsError, Policies, PolicyError, Qrels, Run, evaluate

CHOICES = {
    "order": ("score", "input"),
    "ties": ("docid_desc", "input", "expected", "error"),
    "score_dtype": ("float64", "float32"),
    "missing": ("zero", "skip", "error"),
    "unjudged_query": ("ignore", "error"),
    "no_relevant": ("zero", "skip", "error"),
    "empty_key": ("match", "ignore"),
    "null_list": ("error", "empty"),
    "duplicates": ("error", "first_keep_rank", "first_compact"),
    "duplicate_judgements": ("error", "max", "last"),
    "nan": ("error",),
}
TREC_EVAL = {name: values[0] for name, values in CHOICES.items()} | {"default_rel": 1, "drop_identical_ids": False}

QRELS = {"q": {"a": 1}}
TIED = {"q": {"a": 1.0, "b": 1.0}}
LISTS = {"q": ["b", "a"]}


def score(qrels, run, metric, **policies):
    return evaluate(qrels, run, metric, policies=Policies(**policies)).values[:, 0].tolist()


def documents(*contents, scores=None):
    return [Document(content=c, score=s) for c, s in zip(contents, scores or [None] * len(contents), strict=True)]


class TestValue:
    @pytest.mark.parametrize(
        ("profile", "differences"),
        [
            ("trec_eval", {}),
            (
                "haystack",
                {
                    "order": "input",
                    "ties": "input",
                    "duplicates": "first_keep_rank",
                    "duplicate_judgements": "max",
                    "default_rel": -inf,
                },
            ),
            ("beir", {"score_dtype": "float32", "missing": "skip", "drop_identical_ids": True}),
            ("ranx", {"ties": "input", "missing": "error"}),
        ],
    )
    def test_profiles(self, profile, differences):
        assert Policies(profile).to_dict() == {"profile": profile} | TREC_EVAL | differences

    @pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in CHOICES.items() for value in values])
    def test_every_value_is_kept(self, name, value):
        for profile in ("trec_eval", "haystack", "beir", "ranx"):
            assert getattr(Policies(profile, **{name: value}), name) == value

    @pytest.mark.parametrize("name", CHOICES)
    @pytest.mark.parametrize("value", ["other", True, 1, []])
    def test_unknown_values_list_the_choices(self, name, value):
        with pytest.raises(PolicyError) as raised:
            Policies(**{name: value})
        listed = ", ".join(map(repr, CHOICES[name]))
        assert str(raised.value) == f"{name} must be one of {listed}, got {value!r}"

    def test_unknown_profile(self):
        message = r"^profile must be one of 'trec_eval', 'haystack', 'beir', 'ranx', got 'trec'$"
        for call in (lambda: Policies("trec"), lambda: evaluate(QRELS, TIED, "AP", policies="trec")):
            with pytest.raises(PolicyError, match=message):
                call()

    @pytest.mark.parametrize("value", [nan, "1", True, 1j])
    def test_default_rel_is_a_number(self, value):
        with pytest.raises(PolicyError, match=r"^default_rel must be a number, got "):
            Policies(default_rel=value)

    def test_drop_identical_ids_is_a_bool(self):
        with pytest.raises(PolicyError, match=r"^drop_identical_ids must be True or False, got 1$"):
            Policies(drop_identical_ids=1)

    def test_other_kinds_are_refused(self):
        with pytest.raises(PolicyError, match=r"^policies must be Policies or the name of a profile, got \{\}$"):
            evaluate(QRELS, TIED, "AP", policies={})
        with pytest.raises(TypeError):
            Policies(tie="input")
        assert issubclass(PolicyError, MetricsError)

    def test_names_what_differs_from_the_profile(self):
        policies = Policies("beir", missing="zero", default_rel=2.0)
        assert str(policies) == "beir, missing=zero, default_rel=2.0"
        assert repr(policies) == "Policies('beir', missing='zero', default_rel=2.0)"
        assert eval(repr(policies)) == policies
        assert (str(Policies()), repr(Policies())) == ("trec_eval", "Policies('trec_eval')")

    def test_is_a_frozen_value(self):
        policies = Policies("beir", ties="input")
        with pytest.raises(FrozenInstanceError):
            policies.ties = "error"
        copy = pickle.loads(pickle.dumps(policies))
        assert copy == policies
        assert hash(copy) == hash(policies)
        assert Policies("trec_eval", ties="docid_desc") == Policies()
        assert Policies(ties="input") != Policies()
        assert Policies("ranx", missing="zero", ties="docid_desc") != Policies()

    def test_a_copy_remembers_what_was_given(self):
        default, explicit = (pickle.loads(pickle.dumps(policies)) for policies in (Policies(), Policies(ties="input")))
        assert evaluate(QRELS, LISTS, "RR", policies=default)["RR"].tolist() == [1 / 2]
        with pytest.raises(PolicyError, match="cannot apply"):
            evaluate(QRELS, LISTS, "RR", policies=explicit)

    def test_replace_changes_one_thing(self):
        assert replace(Policies("beir"), missing="zero") == Policies("beir", missing="zero")
        with pytest.raises(PolicyError, match="missing must be one of"):
            replace(Policies(), missing="none")

    def test_a_replaced_copy_applies_where_the_original_does(self):
        policies = replace(Policies(), missing="skip")
        assert evaluate(QRELS, LISTS, "RR", policies=policies)["RR"].tolist() == [1 / 2]

    def test_the_policies_of_a_result_can_be_used_again(self):
        for qrels, run in ((QRELS, LISTS), ([documents("a")], [documents("b", "a")])):
            first = evaluate(qrels, run, "RR")
            again = evaluate(qrels, run, "RR", policies=first.policies)
            assert again.policies == first.policies
            assert again["RR"].tolist() == first["RR"].tolist() == [1 / 2]


class TestDefaults:
    def test_by_kind_of_input(self):
        assert evaluate(QRELS, TIED, "RR").policies == Policies("trec_eval")
        assert evaluate(QRELS, LISTS, "RR").policies == Policies("trec_eval", order="input")
        assert evaluate(IdArrays([[1]]), IdArrays([[1]]), "RR").policies == Policies("trec_eval", order="input")
        assert evaluate(IdArrays([[1]]), IdArrays([[1]], scores=[[1.0]]), "RR").policies == Policies("trec_eval")
        assert evaluate([documents("a")], [documents("a")], "RR").policies == Policies("haystack")

    def test_a_name_is_the_profile(self):
        assert evaluate(QRELS, TIED, "RR", policies="ranx").policies == Policies("ranx")
        assert evaluate(QRELS, LISTS, "RR", policies="beir").policies == Policies("beir", order="input")


class TestWhatCannotApply:
    """An explicit policy is an error where it could only be ignored."""

    SCORELESS = (
        (QRELS, LISTS),
        (IdArrays([[1]]), IdArrays([[1]])),
        ([documents("a")], [documents("a")]),
    )

    @pytest.mark.parametrize(("qrels", "run"), SCORELESS, ids=["lists", "arrays", "documents"])
    def test_rankings_without_scores(self, qrels, run):
        for policies, given in (
            (Policies(order="score"), "order='score'"),
            (Policies("haystack", order="score"), "order='score'"),
            (Policies(ties="docid_desc"), "ties='docid_desc'"),
            (Policies("haystack", ties="docid_desc"), "ties='docid_desc'"),
            (Policies(ties="expected"), "ties='expected'"),
            (Policies(score_dtype="float32"), "score_dtype='float32'"),
        ):
            with pytest.raises(PolicyError, match=rf"^{given} cannot apply to rankings (without|in).*; leave it out$"):
                evaluate(qrels, run, "RR", policies=policies)
        for profile in ("trec_eval", "haystack"):  # whose own choice about scores is no choice of the user's
            assert evaluate(qrels, run, "RR", policies=Policies(profile)).policies.order == "input"
            assert evaluate(qrels, run, "RR", policies=Policies(profile, order="input")).values.shape == (1, 1)

    @pytest.mark.parametrize(("qrels", "run"), SCORELESS[1:], ids=["arrays", "documents"])
    def test_identical_ids_need_ids_of_queries(self, qrels, run):
        with pytest.raises(PolicyError, match="drop_identical_ids"):
            evaluate(qrels, run, "RR", policies=Policies(drop_identical_ids=True))

    @pytest.mark.parametrize(
        ("qrels", "run"),
        [(QRELS, TIED), (Qrels.from_dict(QRELS), Run.from_dict(TIED)), SCORELESS[1]],
        ids=["dicts", "files", "arrays"],
    )
    def test_empty_keys_are_those_of_documents(self, qrels, run):
        with pytest.raises(PolicyError, match="empty_key"):
            evaluate(qrels, run, "RR", policies=Policies(empty_key="ignore"))


class TestOrder:
    def test_score_or_input(self):
        run = {"q": {"b": 1.0, "c": 2.0, "a": 3.0}}
        assert score(QRELS, run, "RR", order="score") == [1 / 1]
        assert score(QRELS, run, "RR", order="input") == [1 / 3]

    def test_lists_are_in_order(self):
        assert score(QRELS, LISTS, "RR") == [1 / 2]

    def test_of_prepared_runs_and_arrays(self):
        run = Run.from_dict({"q": {"b": 1.0, "a": 3.0}})
        assert score(Qrels.from_dict(QRELS), run, "RR", order="input") == [1 / 2]
        arrays = IdArrays([[1]]), IdArrays([[2, 1]], scores=[[1.0, 3.0]])
        assert score(*arrays, "RR", order="input") == [1 / 2]
        assert score(*arrays, "RR") == [1 / 1]


class TestTies:
    @pytest.mark.parametrize(("ties", "expected"), [("docid_desc", 1 / 2), ("input", 1), ("expected", (1 + 1 / 2) / 2)])
    def test_of_two(self, ties, expected):
        assert score(QRELS, TIED, "RR", ties=ties) == [expected]

    def test_ids_are_ordered_within_their_tie_only(self):
        run = {"q": {"z": 1.0, "a": 2.0, "b": 2.0, "y": 3.0}}
        assert score(QRELS, run, "RR") == [1 / 3]

    def test_error_names_the_documents(self):
        message = r"^query 'q' gives documents 'a' and 'b' the same score 1.0; ties='error' refuses that$"
        with pytest.raises(InputError, match=message):
            score(QRELS, TIED, "RR", ties="error")
        assert score(QRELS, {"q": {"b": 1.0, "a": 2.0}}, "RR", ties="error") == [1]
        assert score(QRELS, {"q": {}}, "RR", ties="error") == [0]

    def test_error_says_which_of_several_queries(self):
        with pytest.raises(InputError, match=r"^query 'r' gives documents 'x' and 'y' the same score 0.5;"):
            score(
                {"q": {}, "r": {}}, {"q": {"x": 1.0, "y": 2.0}, "r": {"z": 0.0, "x": 0.5, "y": 0.5}}, "RR", ties="error"
            )

    def test_expected_is_the_mean_over_all_orders(self):
        qrels, run = {"q": {"a": 1, "b": 2}}, {"q": {"a": 1.0, "x": 1.0, "b": 2.0}}
        # b a x and b x a
        assert score(qrels, run, "AP", ties="expected") == [pytest.approx(((1 + 2 / 2) / 2 + (1 + 2 / 3) / 2) / 2)]
        assert score(qrels, run, "R@2", ties="expected") == [pytest.approx((2 / 2 + 1 / 2) / 2)]
        assert score(qrels, run, "DCG", ties="expected") == [pytest.approx(2 + (1 / log2(3) + 1 / log2(4)) / 2)]

    @pytest.mark.parametrize("duplicates", ["first_keep_rank", "first_compact"])
    def test_expected_is_refused_for_a_repeat_within_a_tie(self, duplicates):
        run = IdArrays([[2, 1, 1]], scores=[[1.0, 1.0, 1.0]])
        with pytest.raises(InputError, match=r"^query 0 retrieves document 1 twice with one score, for which ties="):
            score(IdArrays([[1]]), run, "RR", ties="expected", duplicates=duplicates)

    @pytest.mark.parametrize("scores", [[1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 1.0, 2.0]])
    def test_expected_takes_repeats_that_tie_below_the_place_that_counts(self, scores):
        run = IdArrays([[1, 1, 1, 2]], scores=[scores])
        values = score(IdArrays([[1]]), run, "RR", ties="expected", duplicates="first_keep_rank")
        assert values == [(1 + 1 / 2) / 2]

    @pytest.mark.parametrize("name", ["Bpref", "infAP", "ERR(max_rel=4)", "IPrec@0.1", "IPrec11", "Compat", "GMAP"])
    def test_expected_is_refused_by_name(self, name):
        message = rf"^{re.escape(name)} has no exact value for ties='expected'; choose another policy for ties$"
        with pytest.raises(PolicyError, match=message):
            score(QRELS, {"q": {"a": 1.0}}, name, ties="expected")

    def test_score_dtype_makes_ties(self):
        run = {"q": {"a": 1.000000001, "b": 1.0}}
        assert score(QRELS, run, "RR", score_dtype="float64") == [1]
        assert score(QRELS, run, "RR", score_dtype="float32") == [1 / 2]
        assert score(QRELS, run, "RR", score_dtype="float32", ties="expected") == [3 / 4]
        with pytest.raises(InputError, match="the same score"):
            score(QRELS, run, "RR", score_dtype="float32", ties="error")

    def test_scores_beyond_float32_do_not_break(self):
        run = {"q": {"a": 1e300, "b": 1e39, "c": -1e300}}
        assert score({"q": {"c": 1}}, run, "RR", score_dtype="float32") == [1 / 3]
        assert score(QRELS, run, "RR", score_dtype="float32") == [1 / 2]  # both are infinite

    def test_minus_zero_is_zero(self):
        assert score(QRELS, {"q": {"a": 0.0, "b": -0.0}}, "RR") == [1 / 2]


TWO_QUERIES = {"q": {"a": 1}, "z": {"b": 1}}


class TestQueries:
    @pytest.mark.parametrize(("missing", "values", "mean"), [("zero", [1, 0], (1 + 0) / 2), ("skip", [1, nan], 1 / 1)])
    def test_missing(self, missing, values, mean):
        scores = evaluate(TWO_QUERIES, {"q": ["a"]}, ["nDCG", "NumQ"], policies=Policies(missing=missing))
        assert scores["nDCG"].tolist() == pytest.approx(values, nan_ok=True)
        assert scores.mean()["nDCG"] == mean
        assert scores.aggregate()["NumQ"].value == (2 if missing == "zero" else 1)

    def test_missing_error(self):
        message = r"^the run lacks query 'z'; missing='zero' scores such queries 0, missing='skip' leaves them out$"
        with pytest.raises(InputError, match=message):
            score(TWO_QUERIES, {"q": ["a"]}, "AP", missing="error")
        assert score(TWO_QUERIES, {"q": ["a"], "z": []}, "AP", missing="error") == [1, 0]

    def test_an_empty_ranking_is_not_missing(self):
        assert score(TWO_QUERIES, {"q": [], "z": ["b"]}, "AP", missing="skip") == [0, 1]

    def test_no_shared_query(self):
        assert score(QRELS, {"r": ["a"]}, "AP", missing="zero") == [0]
        message = r"^qrels and run share no query: qrels have query 'q', the run query 'r'$"
        with pytest.raises(InputError, match=message):
            score(QRELS, {"r": ["a"]}, "AP", missing="skip")

    def test_a_run_without_queries(self):
        assert score(QRELS, {}, "AP") == [0]
        with pytest.raises(InputError, match=r"^qrels and run share no query: qrels have query 'q', the run \S+$"):
            score(QRELS, {}, "AP", missing="skip")

    def test_missing_in_files(self):
        qrels, run = Qrels.from_dict(TWO_QUERIES), Run.from_dict({"q": {"a": 1.0}})
        assert score(qrels, run, "AP", missing="zero") == [1, 0]
        assert score(qrels, run, "AP", missing="skip") == pytest.approx([1, nan], nan_ok=True)

    def test_unjudged_query(self):
        run = {"r": ["a"], "q": ["a"]}
        scores = evaluate(QRELS, run, "AP")
        assert (scores.query_ids, scores["AP"].tolist()) == (["q"], [1])
        with pytest.raises(
            InputError,
            match=r"^qrels judge nothing of the run's query 'r'; unjudged_query='ignore' leaves such queries out$",
        ):
            score(QRELS, run, "AP", unjudged_query="error")
        assert score(QRELS, {"q": ["a"]}, "AP", unjudged_query="error") == [1]

    def test_long_lists_of_queries_are_shortened(self):
        run = {name: ["a"] for name in "rstuv"}
        with pytest.raises(InputError, match=r"^qrels judge nothing of the run's queries 'r', 's', 't' and 2 more; "):
            score(QRELS, run, "AP", unjudged_query="error")

    def test_a_key_without_judgements_is_judged(self):
        assert score({"q": {}, "r": {"a": 1}}, {"q": ["a"], "r": ["a"]}, "AP") == [0, 1]
        assert score({"q": {}}, {"q": ["a"]}, "AP", unjudged_query="error", missing="error") == [0]


UNEVEN = {"q": {"a": 2}, "r": {"a": 1}, "s": {"a": 0}, "t": {}}
ALL_RETRIEVE_A = {query: ["a"] for query in "qrst"}


class TestNoRelevant:
    def test_zero(self):
        assert score(UNEVEN, ALL_RETRIEVE_A, "AP") == [1, 1, 0, 0]

    def test_skip_by_each_metric_s_own_threshold(self):
        names = ["AP", "AP(rel=2)", "AP(rel=0)", "nDCG", "NumRet", "Judged@1"]
        scores = evaluate(UNEVEN, ALL_RETRIEVE_A, names, policies=Policies(no_relevant="skip"))
        expected = {
            "AP": [1, 1, nan, nan],
            "AP(rel=2)": [1, nan, nan, nan],
            "AP(rel=0)": [1, 1, 1, nan],
            "nDCG": [1, 1, nan, nan],
            "NumRet": [1, 1, 1, 1],
            "Judged@1": [1, 1, 1, 0],
        }
        for name in names:
            assert scores[name].tolist() == pytest.approx(expected[name], nan_ok=True), name
        counts = {name: (each.n_scored, each.n_total) for name, each in scores.aggregate().items()}
        assert counts == {
            "AP": (2, 4),
            "AP(rel=2)": (1, 4),
            "AP(rel=0)": (3, 4),
            "nDCG": (2, 4),
            "NumRet": (4, 4),
            "Judged@1": (4, 4),
        }
        assert scores.mean()["AP(rel=2)"] == 1

    def test_error(self):
        message = r"^query 's' has no relevant document for AP; no_relevant='zero' scores .*, no_relevant='skip' leaves"
        with pytest.raises(InputError, match=message):
            score(UNEVEN, ALL_RETRIEVE_A, "AP", no_relevant="error")
        assert score({"q": {"a": 1}}, ALL_RETRIEVE_A, "AP", no_relevant="error") == [1]

    def test_error_does_not_concern_metrics_that_need_none(self):
        assert score(UNEVEN, ALL_RETRIEVE_A, "NumRet", no_relevant="error") == [1, 1, 1, 1]

    def test_together_with_missing(self):
        scores = evaluate(
            {"q": {"a": 1}, "r": {"a": 0}, "s": {"a": 1}},
            {"q": ["a"], "r": ["a"]},
            ["AP", "NumQ"],
            policies=Policies(no_relevant="skip", missing="skip"),
        )
        assert scores["AP"].tolist() == pytest.approx([1, nan, nan], nan_ok=True)
        assert scores["NumQ"].tolist() == pytest.approx([1, 1, nan], nan_ok=True)


REPEATING = {"q": ["a", "a", "x", "x", "b"]}
A_AND_B = {"q": {"a": 1, "b": 1}}


class TestDuplicates:
    def test_error(self):
        message = (
            r"^query 'q' retrieves document 'a' twice; remove the repeat, or say which one counts: "
            r"duplicates='first_keep_rank' or duplicates='first_compact'$"
        )
        with pytest.raises(InputError, match=message):
            score(A_AND_B, REPEATING, "AP")

    @pytest.mark.parametrize(
        ("metric", "keep_rank", "compact"),
        [
            ("AP", (1 / 1 + 2 / 5) / 2, (1 / 1 + 2 / 3) / 2),
            ("P@2", 1 / 2, 1 / 2),
            ("P@3", 1 / 3, 2 / 3),
            ("SetP", 2 / 5, 2 / 3),
            ("NumRet", 5, 3),
            ("NumRelRet", 2, 2),
            ("Unj@4", 1 / 4, 1 / 4),
            ("Judged@4", 1 / 4, 2 / 3),
            ("DCG", 1 + 1 / log2(6), 1 + 1 / log2(4)),
            ("RBPResidual(p=0.5)", 0.5**5 + 0.5 * 0.5**2, 0.5**3 + 0.5 * 0.5**1),
        ],
    )
    def test_first(self, metric, keep_rank, compact):
        assert score(A_AND_B, REPEATING, metric, duplicates="first_keep_rank") == [pytest.approx(keep_rank)]
        assert score(A_AND_B, REPEATING, metric, duplicates="first_compact") == [pytest.approx(compact)]

    def test_first_is_the_best_ranked_after_ordering(self):
        run = IdArrays([[1, 2, 1, 3, 2]], scores=[[1.0, 2.0, 3.0, 4.0, 5.0]])  # by score 2 3 1 2' 1'
        assert score(IdArrays([[1]]), run, "RR", duplicates="first_keep_rank") == [1 / 3]
        assert score(IdArrays([[2]]), run, "RR", duplicates="first_compact") == [1 / 1]
        assert score(IdArrays([[1, 9]]), run, "SetP", duplicates="first_compact") == [1 / 3]
        assert score(IdArrays([[1]]), run, "RR", duplicates="first_keep_rank", order="input") == [1 / 1]

    def test_tied_repeats(self):
        run = IdArrays([[2, 1, 2]], scores=[[1.0, 1.0, 1.0]])  # by id 2 2' 1
        assert score(IdArrays([[1]]), run, "RR", duplicates="first_keep_rank") == [1 / 3]
        assert score(IdArrays([[1]]), run, "RR", duplicates="first_compact") == [1 / 2]


class TestDuplicateJudgements:
    @pytest.mark.parametrize(("which", "grade"), [("max", 3), ("last", 2)])
    def test_which_counts(self, which, grade):
        for ids in ([1, 1, 1], [7, 7, 7]):
            qrels = IdArrays([[*ids, 5]], grades=[[1, 3, 2, 0]])
            scores = evaluate(
                qrels, IdArrays([ids[:1]]), ["DCG", "NumRel"], policies=Policies(duplicate_judgements=which)
            )
            assert scores.values.tolist() == [[grade, 1]]

    @pytest.mark.parametrize(("which", "grade"), [("max", 3), ("last", 2)])
    def test_of_documents_and_files(self, which, grade, tmp_path):
        policies = Policies("haystack", duplicate_judgements=which)
        truth, retrieved = [documents("a", "a", "a", scores=[1, 3, 2])], [documents("a")]
        assert evaluate(truth, retrieved, "DCG", policies=policies)["DCG"].tolist() == [grade]
        path = tmp_path / "qrels"
        path.write_text("q 0 a 1\nq 0 a 3\nq 0 a 2\n")
        assert score(path, {"q": ["a"]}, "DCG", duplicate_judgements=which) == [grade]

    def test_error(self, tmp_path):
        with pytest.raises(InputError, match=r"^query 0 judges document 7 twice; remove one, or say which counts: "):
            evaluate(IdArrays([[7, 7]]), IdArrays([[1]]), "AP")
        message = r"^question 0 has the ground-truth document 'a' twice; remove one, or say which counts: "
        with pytest.raises(InputError, match=message):
            evaluate(
                [documents("a", "a")],
                [documents("a")],
                "AP",
                policies=Policies("haystack", duplicate_judgements="error"),
            )
        path = tmp_path / "qrels"
        path.write_text("q 0 a 1\nq 0 b 1\nq 0 a 1\n")
        with pytest.raises(InputError, match=r"qrels, line 3: document 'a' is judged twice for query 'q'; "):
            evaluate(path, {"q": ["a"]}, "AP")


class TestProfiles:
    def test_trec_eval_counts_missing_queries_and_breaks_ties_by_id(self):
        scores = evaluate({"q": {"a": 1}, "z": {"a": 1}}, TIED, "RR", policies="trec_eval")
        assert scores["RR"].tolist() == [1 / 2, 0]

    def test_beir_drops_the_query_itself_and_missing_queries(self):
        qrels = {"q": {"a": 1}, "z": {"a": 1}}
        run = {"q": {"q": 9.0, "x": 2.0, "a": 1.0}}
        before = {query: dict(scored) for query, scored in run.items()}
        for judged, retrieved in ((qrels, run), (Qrels.from_dict(qrels), Run.from_dict(run))):
            scores = evaluate(judged, retrieved, ["RR", "NumRet"], policies="beir")
            assert scores.values.tolist()[0] == [1 / 2, 2]
            assert scores.mean()["RR"] == 1 / 2
        assert run == before
        assert score(qrels, run, "RR") == [1 / 3, 0]
        lists = {"q": ["q", "x", "a"]}
        assert evaluate(qrels, lists, "RR", policies="beir")["RR"][0] == 1 / 2
        assert lists == {"q": ["q", "x", "a"]}

    def test_beir_compares_float32(self):
        run = {"q": {"a": 1.000000001, "b": 1.0}}
        assert evaluate(QRELS, run, "RR", policies="beir")["RR"].tolist() == [1 / 2]

    def test_beir_does_not_round(self):
        run = {"q": {"x": 3.0, "y": 2.0, "a": 1.0}}
        assert evaluate(QRELS, run, "RR", policies="beir").mean() == {"RR": 1 / 3}

    def test_ranx_keeps_the_order_of_ties_and_refuses_missing_queries(self):
        assert evaluate(QRELS, TIED, "RR", policies="ranx")["RR"].tolist() == [1]
        with pytest.raises(InputError, match="the run lacks query 'z'"):
            evaluate({"q": {"a": 1}, "z": {}}, TIED, "RR", policies="ranx")

    def test_haystack_makes_every_ground_truth_document_relevant(self):
        truth = [documents("a", "b", scores=[0, -1]), documents("a", "b", scores=[3, 1])]
        retrieved = [documents("x", "b", "b", "a"), documents("x", "b", "b", "a")]
        scores = evaluate(truth, retrieved, ["Success", "SetR", "RR", "AP", "nDCG"])
        dcg, idcg = 1 / log2(3) + 3 / log2(5), 3 / log2(2) + 1 / log2(3)
        for row, ndcg in zip(scores.values.tolist(), (0, dcg / idcg), strict=True):
            assert row == pytest.approx([1, 2 / 2, 1 / 2, (1 / 2 + 2 / 4) / 2, ndcg])

    def test_haystack_pairs_by_position_and_keeps_the_rank_of_none(self):
        truth, retrieved = [documents("a"), documents("b")], [documents(None, "a"), documents("a")]
        scores = evaluate(truth, retrieved, ["RR", "NumRet"], query_ids=["x", "y"])
        assert scores.to_dict() == {"x": {"RR": 1 / 2, "NumRet": 2}, "y": {"RR": 0, "NumRet": 1}}

    def test_none_never_matches(self):
        assert evaluate([documents(None)], [documents(None)], ["RR", "NumRel"]).values.tolist() == [[0, 0]]

    def test_empty_key(self):
        truth, retrieved = [documents("", "a")], [documents("", "x", "a")]
        match, ignore = (
            evaluate(truth, retrieved, ["RR", "SetR", "AP", "NumRel"], policies=Policies("haystack", empty_key=value))
            for value in ("match", "ignore")
        )
        assert match.values.tolist() == [[1, 2 / 2, (1 / 1 + 2 / 3) / 2, 2]]
        assert ignore.values.tolist() == [[1 / 3, 1 / 1, 1 / 3, 1]]

    def test_haystack_on_dicts(self):
        scores = evaluate({"q": {"a": 0}}, {"q": {"b": 1.0, "a": 9.0}}, "RR", policies="haystack")
        assert scores["RR"].tolist() == [1 / 2]

    def test_default_rel(self):
        qrels = {"q": {"a": 1, "b": 2}}
        assert score(qrels, {"q": ["a", "b"]}, "RR", default_rel=2) == [1 / 2]
        assert score(qrels, {"q": ["a", "b"]}, "RR(rel=1)", default_rel=2) == [1]
        assert score(qrels, {"q": ["a", "b"]}, "nDCG", default_rel=2) == score(qrels, {"q": ["a", "b"]}, "nDCG")
