"""AnswerExactMatchEvaluator and AnswerF1Evaluator."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core.errors import InputError
from metrics_core.evaluators import AnswerExactMatchEvaluator, AnswerF1Evaluator

EXACT, NORMALIZED = AnswerExactMatchEvaluator(), AnswerExactMatchEvaluator(normalize="squad")
F1, PLAIN_F1 = AnswerF1Evaluator(), AnswerF1Evaluator(normalize=None)
every_evaluator = pytest.mark.parametrize("evaluator", [EXACT, NORMALIZED, F1, PLAIN_F1], ids=repr)


def test_exact_match_compares_letter_by_letter() -> None:
    truths = ["Berlin", "Paris", "", "a", "é"]
    predicted = ["Berlin", "paris", "", "a ", "e\u0301"]
    assert EXACT.run(truths, predicted) == {"individual_scores": [1, 0, 1, 0, 0], "score": 2 / 5}


def test_normalised_exact_match() -> None:
    truths = ["The Beatles", "Paris", "U.S.", "apple"]
    predicted = ["beatles!", " paris\n", "us", "apples"]
    assert NORMALIZED.run(truths, predicted) == {"individual_scores": [1, 1, 1, 0], "score": 3 / 4}


def test_any_of_several_gold_answers_matches() -> None:
    truths = [["Paris", "Paris, France"], ("Rome", "Roma"), "Berlin", ["a", "a"]]
    predicted = ["Paris, France", "Turin", "Berlin", "a"]
    assert EXACT.run(truths, predicted) == {"individual_scores": [1, 0, 1, 1], "score": 3 / 4}
    assert NORMALIZED.run(truths, ["the PARIS france", "roma", "berlin.", "b"])["individual_scores"] == [1, 1, 1, 0]


def test_f1_by_hand() -> None:
    truths = ["the quick brown fox", "Paris", "a"]
    predicted = ["A quick, red fox jumped", "Paris", "cat"]
    fox = 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)  # quick fox, of quick red fox jumped and of quick brown fox
    result = F1.run(truths, predicted)
    assert result["individual_scores"] == pytest.approx([fox, 1, 0], rel=1e-15)
    assert result["score"] == pytest.approx((fox + 1 + 0) / 3, rel=1e-15)


def test_f1_without_normalisation() -> None:
    assert PLAIN_F1.run(["the fox"], ["The fox"])["score"] == 1 / 2
    assert PLAIN_F1.run(["fox."], ["fox"])["score"] == 0


def test_the_best_of_several_gold_answers_counts() -> None:
    truths = [["x y z", "b c d", "b"], ["x", "y"]]
    assert F1.run(truths, ["b c", "z"])["individual_scores"] == [2 * 1 * (2 / 3) / (1 + 2 / 3), 0]


def test_answers_that_normalise_to_nothing() -> None:
    assert F1.run(["The", "the", "b"], ["a", "b", "?"])["individual_scores"] == [1, 0, 0]
    assert NORMALIZED.run(["The", "the", "b"], ["a", "b", "?"])["individual_scores"] == [1, 0, 0]


@given(
    questions=st.lists(
        st.tuples(st.lists(st.text("aAb. "), min_size=1, max_size=3), st.text("aAb. ")), min_size=1, max_size=5
    ),
    order=st.randoms(),
)
def test_order_of_gold_answers_and_of_questions_changes_nothing(questions: Any, order: Any) -> None:
    shuffled = [(order.sample(golds, len(golds)), predicted) for golds, predicted in questions]
    for evaluator in (EXACT, NORMALIZED, F1, PLAIN_F1):
        scores = evaluator.run(*zip(*questions, strict=True))["individual_scores"]
        assert evaluator.run(*zip(*shuffled, strict=True))["individual_scores"] == scores
        assert evaluator.run(*zip(*shuffled[::-1], strict=True))["individual_scores"] == scores[::-1]
        alone = [evaluator.run([golds], [predicted])["score"] for golds, predicted in questions]
        assert alone == scores
        by_one_gold = [max(evaluator.run([g], [p])["score"] for g in golds) for golds, p in questions]
        assert by_one_gold == scores


@every_evaluator
def test_result_is_plain_python(evaluator: Any) -> None:
    result = evaluator.run(["a b", ["c", "d"]], ["a b", "x"])
    assert type(result) is dict
    assert result.keys() == {"score", "individual_scores"}
    assert type(result["score"]) is float
    kind = int if isinstance(evaluator, AnswerExactMatchEvaluator) else float
    assert list(map(type, result["individual_scores"])) == [kind, kind]
    assert json.loads(json.dumps(result)) == result == {"score": 1 / 2, "individual_scores": [1, 0]}


@every_evaluator
def test_tuples_and_arrays_will_do(evaluator: Any) -> None:
    expected = evaluator.run(["a b", ["c", "d"]], ["a b", "d"])
    assert evaluator.run(("a b", ("c", "d")), ("a b", "d")) == expected
    assert evaluator.run(["a b", np.array(["c", "d"])], np.array(["a b", "d"])) == expected


@every_evaluator
def test_inputs_are_not_changed(evaluator: Any) -> None:
    arguments = (["The a", ["b", "The c"]], ["a", "c"])
    before = deepcopy(arguments)
    evaluator.run(*arguments)
    assert arguments == before


@pytest.mark.parametrize(
    ("truths", "predicted", "words"),
    [
        ([], [], "ground_truth_answers must not be empty"),
        ([], ["a"], "ground_truth_answers must not be empty"),
        (["a"], [], "predicted_answers must not be empty"),
        (
            ["a", "b", "c"],
            ["a", "b"],
            "ground_truth_answers has 3 questions and predicted_answers has 2 questions; they must pair up",
        ),
        ("a", ["a"], "ground_truth_answers must be a list of answers, one a question, got 'a'"),
        (["a"], "a", "predicted_answers must be a list of answers, one a question, got 'a'"),
        (
            ["a"],
            np.array("a"),
            "predicted_answers must be a list of answers, one a question, got array('a', dtype='<U1')",
        ),
        (["a", "b"], ["a", None], "predicted_answers must be strings, got None in row 1"),
        (["a", "b"], ["a", 1], "predicted_answers must be strings, got 1 in row 1"),
        (["a", "b"], ["a", ["b"]], "predicted_answers must be strings, got ['b'] in row 1"),
        (["a", None], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got None in row 1"),
        (["a", 1], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got 1 in row 1"),
        (["a", b"b"], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got b'b' in row 1"),
        (["a", {"b"}], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got {'b'} in row 1"),
        (["a", [1]], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got [1] in row 1"),
        (["a", [["b"]]], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got [['b']] in row 1"),
        (["a", []], ["a", "b"], "ground_truth_answers has no answer in row 1"),
    ],
)
@every_evaluator
def test_bad_input(evaluator: Any, truths: Any, predicted: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluator.run(truths, predicted)
    assert str(caught.value) == words


@pytest.mark.parametrize("bad", [None, 3])
@every_evaluator
def test_what_is_no_list_of_answers_is_named(evaluator: Any, bad: Any) -> None:
    with pytest.raises(InputError, match=f"ground_truth_answers must be .*{bad}"):
        evaluator.run(bad, ["a"])
    with pytest.raises(InputError, match=f"predicted_answers must be .*{bad}"):
        evaluator.run(["a"], bad)


@pytest.mark.parametrize("make", [AnswerExactMatchEvaluator, AnswerF1Evaluator])
def test_normalize_is_named(make: Any) -> None:
    with pytest.raises(TypeError, match="positional"):
        make("squad")
