"""The helpers of DocumentNDCGEvaluator."""

from __future__ import annotations

from math import log2, nan
from typing import Any

import pytest
from hypothesis import given, strategies as st

from metrics_core.documents import Document
from metrics_core.errors import InputError
from metrics_core.evaluators import DocumentNDCGEvaluator
from tests import strategies
from tests.evaluators.inputs import Lists

NDCG = DocumentNDCGEvaluator()
GRADED = [Document(content=content, score=score) for content, score in (("a", 3), ("b", 2), ("c", 0.5), ("a", 1))]
UNGRADED = [Document(content=content) for content in "abb"]


def documents(contents: Any) -> list[Document]:
    return [Document(content=content) for content in contents]


def test_dcg_by_hand() -> None:
    assert NDCG.calculate_dcg(GRADED, documents("xba")) == 2 / log2(3) + 3 / log2(4)
    assert NDCG.calculate_dcg(GRADED, documents("bbca")) == 2 / log2(2) + 0.5 / log2(4) + 3 / log2(5)
    assert NDCG.calculate_dcg(UNGRADED, documents("xab")) == 1 / log2(3) + 1 / log2(4)
    assert NDCG.calculate_dcg(GRADED, documents(["x", None])) == 0


def test_idcg_by_hand() -> None:
    assert NDCG.calculate_idcg(GRADED) == 3 / log2(2) + 2 / log2(3) + 0.5 / log2(4)
    assert NDCG.calculate_idcg(GRADED[::-1]) == NDCG.calculate_idcg(GRADED)
    assert NDCG.calculate_idcg(UNGRADED) == 1 / log2(2) + 1 / log2(3)
    assert NDCG.calculate_idcg([*UNGRADED, Document()]) == NDCG.calculate_idcg(UNGRADED)


def test_nothing_gains_nothing() -> None:
    assert NDCG.calculate_dcg([], []) == NDCG.calculate_dcg([], documents("a")) == NDCG.calculate_dcg(GRADED, []) == 0
    assert NDCG.calculate_idcg([]) == NDCG.calculate_idcg([Document()]) == 0


def test_a_negative_score_gains_nothing() -> None:
    truths = [Document(content="a", score=1), Document(content="b", score=-2)]
    assert NDCG.calculate_dcg(truths, documents("ba")) == 1 / log2(3)
    assert NDCG.calculate_idcg(truths) == 1


def test_helpers_give_plain_floats() -> None:
    assert type(NDCG.calculate_dcg(GRADED, documents("a"))) is float
    assert type(NDCG.calculate_idcg(GRADED)) is float
    assert type(NDCG.calculate_idcg([])) is float


def test_helpers_compare_the_evaluators_field() -> None:
    by_key = DocumentNDCGEvaluator("meta.key")
    truths = [Document(meta={"key": value}, score=2) for value in (1, [2])]
    assert by_key.calculate_dcg(truths, [Document(), Document(meta={"key": [2.0]})]) == 2 / log2(3)
    assert by_key.calculate_idcg(truths) == 2 + 2 / log2(3)


@given(
    lists=strategies.document_lists(Document, max_questions=1),
    field=st.sampled_from((*strategies.FIELDS, "meta.a")),
)
def test_score_is_dcg_over_idcg(lists: Lists, field: str) -> None:
    evaluator = DocumentNDCGEvaluator(field)
    (truths,), (retrieved,) = lists
    dcg, idcg = evaluator.calculate_dcg(truths, retrieved), evaluator.calculate_idcg(truths)
    assert evaluator.run(*lists)["score"] == (dcg / idcg if idcg else 0)


@pytest.mark.parametrize("check", [NDCG.validate_inputs, DocumentNDCGEvaluator.validate_inputs])
def test_validate_inputs_passes_what_run_takes(check: Any) -> None:
    assert check([GRADED, UNGRADED, []], [[], UNGRADED, UNGRADED]) is None


REFUSED = [
    pytest.param([], [], id="empty"),
    pytest.param([[]], [[], []], id="unequal"),
    pytest.param([UNGRADED, GRADED[:1] + UNGRADED], [[], []], id="scored and unscored"),
    pytest.param([UNGRADED, [Document(content="a", score=nan)]], [[], []], id="nan"),
    pytest.param([UNGRADED, [None]], [[], []], id="None"),
    pytest.param(UNGRADED, UNGRADED, id="flat"),
]


@pytest.mark.parametrize(("truths", "retrieved"), REFUSED)
def test_validate_inputs_refuses_what_run_refuses_in_the_same_words(truths: Any, retrieved: Any) -> None:
    with pytest.raises(InputError) as by_run:
        NDCG.run(truths, retrieved)
    with pytest.raises(InputError) as by_check:
        DocumentNDCGEvaluator.validate_inputs(truths, retrieved)
    assert str(by_check.value) == str(by_run.value)


@pytest.mark.parametrize("helper", [NDCG.calculate_idcg, lambda truths: NDCG.calculate_dcg(truths, [])])
def test_helpers_refuse_scores_that_run_refuses(helper: Any) -> None:
    with pytest.raises(InputError, match="must be a finite number, got nan"):
        helper([Document(content="a", score=nan)])
    with pytest.raises(InputError, match="either none or all ground-truth documents"):
        helper(GRADED + UNGRADED)
