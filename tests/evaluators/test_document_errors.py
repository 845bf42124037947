"""What the document evaluators refuse, and in which words."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from metrics_core import evaluators
from metrics_core.documents import Document
from metrics_core.errors import InputError
from tests.evaluators.inputs import EVALUATORS, every_evaluator

if TYPE_CHECKING:
    from pathlib import Path

A, B, C = (Document(content=content) for content in "abc")
SIDES = {"ground_truth_documents": "ground truth", "retrieved_documents": "retrieved documents"}
NDCG = evaluators.DocumentNDCGEvaluator()
EVERY = [getattr(evaluators, case.values[0])(**case.values[1]) for case in EVALUATORS]


def message(call: Any, *arguments: Any, **keywords: Any) -> str:
    """What the InputError says."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **keywords)
    return str(caught.value)


@pytest.fixture
def evaluator(name: str, parameters: dict[str, Any]) -> Any:
    return getattr(evaluators, name)(**parameters)


@every_evaluator
@pytest.mark.parametrize("lists", [([], []), ([[A]], []), ([], [[A]])])
def test_no_questions(evaluator: Any, lists: Any) -> None:
    empty = "retrieved_documents" if lists[0] else "ground_truth_documents"
    assert message(evaluator.run, *lists) == f"{empty} must not be empty"


@every_evaluator
def test_unequal_numbers_of_questions(evaluator: Any) -> None:
    assert message(evaluator.run, [[A], [A], [A]], [[A], [A]]) == (
        "ground_truth_documents has 3 questions and retrieved_documents has 2 questions; they must pair up"
    )


@every_evaluator
@pytest.mark.parametrize(
    "field", ["", "text", "meta", "meta.", "metakey", "Content", "score", "content.a", None, 1, b"id"]
)
def test_unknown_field_at_construction(name: str, parameters: dict[str, Any], field: Any) -> None:
    with pytest.raises(InputError) as caught:
        getattr(evaluators, name)(**parameters, document_comparison_field=field)
    assert str(caught.value) == (
        f"document_comparison_field must be 'content', 'id' or 'meta.<key>[.<key>...]', got {field!r}"
    )


@pytest.mark.parametrize("mode", ["", "multi", "SINGLE_HIT", "single_hit ", None, 1, ["single_hit"]])
def test_unknown_mode(mode: Any) -> None:
    expected = f"mode must be 'single_hit' or 'multi_hit', got {mode!r}"
    assert message(evaluators.DocumentRecallEvaluator, mode) == expected
    assert message(evaluators.DocumentRecallEvaluator, mode=mode) == expected
    assert message(evaluators.RecallMode.from_str, mode) == expected


MIXED = [[A], [Document(content="a", score=0), B, C], []]
FOUND = [[A], [A], [A]]


def test_scored_and_unscored_documents_in_a_question() -> None:
    assert message(NDCG.run, MIXED, FOUND) == (
        "either none or all ground-truth documents of a question must have a score; 2 of 3 have none in question 1"
    )


def test_scored_and_unscored_documents_are_allowed_in_different_questions() -> None:
    scored = Document(content="b", score=0.5)
    assert NDCG.run([[A], [scored]], [[A], [B]])["individual_scores"] == [1, 1]


@every_evaluator
def test_only_ndcg_refuses_scored_and_unscored_documents(name: str, evaluator: Any) -> None:
    if name == "DocumentNDCGEvaluator":
        with pytest.raises(InputError):
            evaluator.run(MIXED, FOUND)
    else:
        assert evaluator.run(MIXED, FOUND)["individual_scores"][:2] != [0, 0]


@pytest.mark.parametrize("score", [nan, inf, -inf, Decimal("nan"), "x", "1", 10**400, [1.0], 1j])
def test_a_score_that_is_no_finite_number_names_its_question(score: Any) -> None:
    truths = [[A], [], [Document(content="a", score=1), SimpleNamespace(content="b", score=score)]]
    assert message(NDCG.run, truths, [[A], [A], [A]]) == (
        f"the score of a ground-truth document of question 2 must be a finite number, got {score!r}"
    )


def test_a_score_is_refused_however_many_documents_there_are() -> None:
    many = [Document(content=str(i), score=1) for i in range(300)]
    truths = [[A]] * 200 + [many, [*many, Document(content=None, score=nan)]]
    assert message(NDCG.run, truths, [[A]] * 200 + [many, many]) == (
        "the score of a ground-truth document of question 201 must be a finite number, got nan"
    )


@pytest.mark.parametrize("bad", ["abc", None, A, 3], ids=repr)
@pytest.mark.parametrize("side", ["ground_truth_documents", "retrieved_documents"])
def test_what_is_no_list_of_documents(side: str, bad: Any) -> None:
    sides = {"ground_truth_documents": [[A], [A]], "retrieved_documents": [[A], [A]]}
    sides[side] = [[A], bad]
    for evaluator in EVERY:
        assert message(evaluator.run, **sides) == (
            f"the {SIDES[side]} of question 1 must be a list of documents, got {bad!r:.60} ({type(bad).__name__})"
        )


@pytest.mark.parametrize(
    ("documents", "bad"),
    [
        (["abc"], "abc"),
        ([None], None),
        ([A, None, B], None),
        ([{"content": "a"}], {"content": "a"}),
        ([[A]], [A]),
        ([A] * 300 + [3], 3),
    ],
)
@pytest.mark.parametrize("side", ["ground_truth_documents", "retrieved_documents"])
def test_what_is_no_document(side: str, documents: Any, bad: Any) -> None:
    sides = {"ground_truth_documents": [[A], [A] * 300], "retrieved_documents": [[A], [A] * 300]}
    sides[side] = [[A], documents]
    for evaluator in EVERY:
        words = message(evaluator.run, **sides)
        assert words == (
            f"the {SIDES[side]} of question 1 must be documents, with content, id, meta and score; got {bad!r:.60} "
            f"({type(bad).__name__})"
        )


def test_documents_without_lists_around_them() -> None:
    for evaluator in EVERY:
        words = message(evaluator.run, [A, B], [A, B])
        assert words == (f"the ground truth of question 0 must be a list of documents, got {A!r:.60} (Document)")


def test_arrays_of_questions_are_taken_as_lists() -> None:
    truth, retrieved = (np.empty(2, object) for _ in range(2))
    truth[:], retrieved[:] = [[A], [B, C]], [[B, A], [C]]
    for evaluator in EVERY:
        assert evaluator.run(truth, retrieved) == evaluator.run(truth.tolist(), retrieved.tolist())


@pytest.mark.parametrize("bad", [None, "a", A, 3, {"q": [A]}, np.array(3)], ids=repr)
def test_what_is_no_list_of_questions(bad: Any) -> None:
    words = f"must be a list of lists of documents, one a question, got {bad!r:.80}"
    for evaluator in EVERY:
        assert message(evaluator.run, bad, [[A]]) == f"ground_truth_documents {words}"
        assert message(evaluator.run, [[A]], bad) == f"retrieved_documents {words}"
        assert message(evaluator.run, bad, bad) == f"ground_truth_documents {words}"


def test_other_inputs_of_evaluate_are_refused(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run12.txt"  # equally long paths
    qrels.write_text("q 0 a 1\n")
    run.write_text("q Q0 a 1 1.0 tag\n")
    for evaluator in EVERY:
        message(evaluator.run, str(qrels), str(run))
        message(evaluator.run, {"q": {"a": 1}}, {"q": {"a": 1.0}})
        message(evaluator.run, np.array([[1]]), np.array([[1]]))


def test_an_error_leaves_the_evaluator_usable() -> None:
    with pytest.raises(InputError):
        NDCG.run(MIXED, FOUND)
    assert NDCG.run([[A]], [[A]]) == {"score": 1, "individual_scores": [1]}
