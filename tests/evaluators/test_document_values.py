"""Values of the four document evaluators worked out by hand, and by their twins where Haystack is no authority."""

from __future__ import annotations

import json
from copy import deepcopy
from math import inf, log2, nan
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from metrics_core import evaluators
from metrics_core.documents import Document
from tests import strategies
from tests.evaluators.inputs import Lists, every_evaluator, many
from tests.reference import (
    document_average_precision,
    document_ndcg,
    document_recall,
    document_reciprocal_rank,
    haystack_keys,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SINGLE_HIT = evaluators.DocumentRecallEvaluator("single_hit")
MULTI_HIT = evaluators.DocumentRecallEvaluator("multi_hit")
MRR = evaluators.DocumentMRREvaluator()
MAP = evaluators.DocumentMAPEvaluator()
NDCG = evaluators.DocumentNDCGEvaluator()


def documents(contents: Iterable[str | None] | Mapping[str, float]) -> list[Document]:
    """Documents of these contents; a dict gives them scores."""
    if isinstance(contents, dict):
        return [Document(content=content, score=score) for content, score in contents.items()]
    return [Document(content=content) for content in contents]


def score(evaluator: Any, truths: Any, retrieved: Any) -> float:
    """The score of a single question."""
    (value,) = evaluator.run([documents(truths)], [documents(retrieved)])["individual_scores"]
    return value


CENTURY = (["9th century", "9th"], ["9th century", "10th century", "9th"])
FRANCE = (["France", "Paris"], ["France", "Germany", "Paris"])
GRADED_FRANCE = ({"France": 1.0, "Paris": 0.5}, ["France", "Germany", "Paris"])
TWICE_JUDGED = (["a", "a", "b"], ["a"])
TWICE_RETRIEVED = (["a", "b"], ["x", "a", "a", "b"])


@pytest.mark.parametrize(
    ("evaluator", "question", "expected"),
    [
        (MAP, CENTURY, (1 / 1 + 2 / 3) / 2),
        (MRR, CENTURY, 1 / 1),
        (NDCG, GRADED_FRANCE, (1 + 0.5 / log2(4)) / (1 + 0.5 / log2(3))),
        (NDCG, FRANCE, (1 + 1 / log2(4)) / (1 + 1 / log2(3))),
        (MAP, TWICE_JUDGED, 1 / 2),
        (MULTI_HIT, TWICE_JUDGED, 1 / 2),
        (NDCG, TWICE_JUDGED, 1 / (1 + 1 / log2(3))),
        (MAP, TWICE_RETRIEVED, (1 / 2 + 2 / 4) / 2),
        (NDCG, TWICE_RETRIEVED, (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3))),
        (MRR, TWICE_RETRIEVED, 1 / 2),
        (SINGLE_HIT, TWICE_RETRIEVED, 1),
        (MULTI_HIT, TWICE_RETRIEVED, 2 / 2),
        (MULTI_HIT, (["a", "b", "c"], ["c", "x", "c"]), 1 / 3),
    ],
)
def test_known_value(evaluator: Any, question: tuple[Any, Any], expected: float) -> None:
    assert score(evaluator, *question) == expected


def test_the_printed_digits_of_the_contract() -> None:
    assert score(MAP, *CENTURY) == 0.8333333333333333
    assert score(NDCG, *GRADED_FRANCE) == 0.9502344167898356
    assert round(score(NDCG, *FRANCE), 4) == 0.9197
    assert round(score(NDCG, *TWICE_JUDGED), 4) == 0.6131
    assert round(score(NDCG, *TWICE_RETRIEVED), 4) == 0.6509


def test_none_matches_nothing_and_keeps_its_rank() -> None:
    for evaluator in (SINGLE_HIT, MULTI_HIT, MRR, MAP, NDCG):
        assert score(evaluator, [None], [None]) == 0
    assert score(MRR, ["a"], [None, None, "a"]) == 1 / 3
    assert score(MAP, [None, "a"], [None, "a"]) == 1 / 2
    assert score(NDCG, [None, "a"], [None, "a"]) == 1 / log2(3)


def test_only_recall_ignores_the_empty_string() -> None:
    assert score(SINGLE_HIT, [""], [""]) == score(MULTI_HIT, [""], [""]) == 0
    assert score(MULTI_HIT, ["", "a", "b"], ["", "a"]) == 1 / 2
    assert score(MRR, [""], ["x", ""]) == 1 / 2
    assert score(MAP, ["", "a"], [""]) == 1 / 2
    assert score(NDCG, ["", "a"], [""]) == 1 / (1 + 1 / log2(3))


def test_empty_lists_of_documents_score_zero() -> None:
    for evaluator in (SINGLE_HIT, MULTI_HIT, MRR, MAP, NDCG):
        result = evaluator.run([[], documents("a"), [], documents("a")], [documents("a"), [], [], documents("a")])
        assert result == {"score": 1 / 4, "individual_scores": [0, 0, 0, 1]}


def test_the_score_is_the_mean_of_all_questions() -> None:
    truths, retrieved = [documents("a")] * 4, [documents("a"), documents("xa"), documents("xxxa"), documents("x")]
    assert MRR.run(truths, retrieved) == {
        "score": (1 + 1 / 2 + 1 / 4 + 0) / 4,
        "individual_scores": [1, 1 / 2, 1 / 4, 0],
    }


def test_values_are_compared_as_python_compares_them() -> None:
    def found(truth: Any, *retrieved: Any) -> list[float]:
        lists = [[SimpleNamespace(meta={"k": value}, score=None) for value in side] for side in ([truth], retrieved)]
        return [
            evaluator.run(lists[:1], lists[1:])["score"]
            for evaluator in (
                evaluators.DocumentRecallEvaluator(document_comparison_field="meta.k"),
                evaluators.DocumentMRREvaluator("meta.k"),
                evaluators.DocumentMAPEvaluator("meta.k"),
                evaluators.DocumentNDCGEvaluator("meta.k"),
            )
        ]

    assert found(1, "1", -1, True) == [1, 1 / 3, 1 / 3, 1 / log2(4)]
    assert found(1.0, 1) == found(False, 0) == found(2**53, 2.0**53) == [1] * 4
    assert found(-1, -2) == found(2**53 + 1, 2.0**53) == found("a", b"a") == [0] * 4
    assert found(nan, float("nan"), nan) == [1, 1 / 2, 1 / 2, 1 / log2(3)]
    assert found([1], [True]) == found({"k": [nan]}, {"k": [nan]}) == [1] * 4
    assert found([1], (1,)) == found([nan], [float("nan")]) == [0] * 4


def test_the_larger_score_of_a_value_counts() -> None:
    truths = [Document(content=content, score=grade) for content, grade in (("a", 1), ("b", 2), ("a", 3), ("a", 2))]
    result = NDCG.run([truths], [documents("ba")])
    assert result["score"] == (2 + 3 / log2(3)) / (3 + 2 / log2(3))


def test_the_ideal_is_not_cut_at_the_retrieved_length() -> None:
    assert score(NDCG, "abcd", "a") == 1 / (1 + 1 / log2(3) + 1 / log2(4) + 1 / log2(5))
    assert score(MAP, "abcd", "a") == 1 / 4


def test_a_negative_score_counts_as_zero() -> None:
    assert score(NDCG, {"a": 1, "b": -1}, "a") == 1
    assert score(NDCG, {"a": 1, "b": -1}, "ba") == 1 / log2(3)
    assert score(NDCG, {"a": -1, "b": -0.5}, "ab") == 0
    assert score(NDCG, {"a": 0}, "a") == 0


def test_only_ndcg_reads_the_scores_of_the_ground_truth() -> None:
    truths = [[Document(content="a", score=nan), Document(content="b"), Document(content="c", score=-inf)]]
    for evaluator in (SINGLE_HIT, MRR, MAP, MULTI_HIT):
        assert evaluator.run(truths, [documents("abc")])["score"] == 1


@every_evaluator
def test_nothing_reads_the_score_of_a_retrieved_document(name: str, parameters: dict[str, Any]) -> None:
    class Retrieved:
        content = "a"

        @property
        def score(self) -> float:
            raise AssertionError

    result = getattr(evaluators, name)(**parameters).run([documents("a")], [[Retrieved()]])
    assert result == {"score": 1, "individual_scores": [1]}


@every_evaluator
@pytest.mark.parametrize("field", ["content", "id", "meta.k"])
def test_only_the_compared_attribute_is_read(name: str, parameters: dict[str, Any], field: str) -> None:
    document = SimpleNamespace(**{field.partition(".")[0]: {"k": "a"} if "." in field else "a"})
    truth = SimpleNamespace(**vars(document), score=None)
    evaluator = getattr(evaluators, name)(**parameters, document_comparison_field=field)
    assert evaluator.run([[truth]], [[document]])["score"] == 1


@every_evaluator
def test_result_is_plain_python(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    result = evaluator.run([documents({"a": 1, "b": 2}), []], [documents("xb"), []])
    assert type(result) is dict
    assert result.keys() == {"score", "individual_scores"}
    assert type(result["score"]) is float
    assert type(result["individual_scores"]) is list
    assert list(map(type, result["individual_scores"])) == [float, float]
    assert json.loads(json.dumps(result)) == result
    assert result["score"] == sum(result["individual_scores"]) / 2 > 0


@every_evaluator
def test_any_sequence_will_do(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    truths, retrieved = [documents("ab"), documents("c")], [documents("ca"), documents("c")]
    assert evaluator.run(tuple(map(tuple, truths)), tuple(map(tuple, retrieved))) == evaluator.run(truths, retrieved)


@every_evaluator
@given(lists=strategies.document_lists(SimpleNamespace), field=st.sampled_from(strategies.FIELDS))
def test_inputs_are_not_changed(name: str, parameters: dict[str, Any], lists: Lists, field: str) -> None:
    before = deepcopy(lists)
    getattr(evaluators, name)(**parameters, document_comparison_field=field).run(*lists)
    assert lists == before


TWINS: dict[str, Callable[..., float]] = {
    "single_hit": lambda truths, _scores, retrieved: document_recall(truths, retrieved, "single_hit"),
    "multi_hit": lambda truths, _scores, retrieved: document_recall(truths, retrieved, "multi_hit"),
    "DocumentMRREvaluator": lambda truths, _scores, retrieved: document_reciprocal_rank(truths, retrieved),
    "DocumentMAPEvaluator": lambda truths, _scores, retrieved: document_average_precision(truths, retrieved),
    "DocumentNDCGEvaluator": document_ndcg,
}


def assert_equals_twin(name: str, parameters: dict[str, Any], lists: Lists, field: str) -> None:
    evaluator = getattr(evaluators, name)(**parameters, document_comparison_field=field)
    twin = TWINS[parameters.get("mode", name)]
    expected = [
        twin(haystack_keys(truths, field), [document.score for document in truths], haystack_keys(retrieved, field))
        for truths, retrieved in zip(*lists, strict=True)
    ]
    assert evaluator.run(*lists)["individual_scores"] == expected


@every_evaluator
@given(
    lists=strategies.document_lists(Document, gains=(-1, -0.5, 0, 0.5, 1, 3), max_size=10),
    field=st.sampled_from((*strategies.FIELDS, "meta.a")),
)
def test_equals_twin_on_unhashable_values_and_negative_scores(
    name: str, parameters: dict[str, Any], lists: Lists, field: str
) -> None:
    assert_equals_twin(name, parameters, lists, field)


@every_evaluator
@pytest.mark.parametrize("shape", ["few relevant", "many relevant"])
def test_equals_twin_on_many_unhashable_values(name: str, parameters: dict[str, Any], shape: str) -> None:
    assert_equals_twin(name, parameters, many(shape, unhashable=True), "meta.key")
