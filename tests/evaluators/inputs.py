"""What the evaluators' tests share: the evaluators by name, kinds of documents, and larger inputs made from a seed."""

from __future__ import annotations

from functools import cache
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from tests import strategies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Lists: TypeAlias = tuple[list[list[Any]], list[list[Any]]]

EVALUATORS = [
    pytest.param("DocumentRecallEvaluator", {"mode": "single_hit"}, id="single_hit"),
    pytest.param("DocumentRecallEvaluator", {"mode": "multi_hit"}, id="multi_hit"),
    pytest.param("DocumentMRREvaluator", {}, id="MRR"),
    pytest.param("DocumentMAPEvaluator", {}, id="MAP"),
    pytest.param("DocumentNDCGEvaluator", {}, id="NDCG"),
]
every_evaluator = pytest.mark.parametrize(("name", "parameters"), EVALUATORS)

SHAPES = {
    "few relevant": (300, (1, 2, 3), (0, 5, 10, 20)),
    "many relevant": (100, (0, 1, 50, 200), (0, 1, 50, 200)),
    "lengths that differ": (400, (0, 1, 2, 30), (0, 10, 10, 10, 10, 10, 700)),  # more than 2^18 cells if padded
    "long": (3, (1, 3_000), (5_000,)),
}
"""Questions, and the numbers of relevant and of retrieved documents that a question may have."""


def made(make: Callable[..., Any], lists: Lists) -> Lists:
    """Documents out of their keyword arguments."""
    truths, retrieved = ([[make(**fields) for fields in row] for row in side] for side in lists)
    return truths, retrieved


def many_documents(
    seed: int, n_questions: int, n_judged: Sequence[int], n_retrieved: Sequence[int], *, unhashable: bool = False
) -> Lists:
    """Keyword arguments of documents as `strategies.document_lists` draws them, for more and longer lists."""
    random = Random(seed)
    values = strategies.HASHABLE_VALUES + strategies.UNHASHABLE_VALUES * unhashable
    texts = [f"text {place}" for place in range(2 * max(*n_judged, *n_retrieved))]

    def document(score: float | None) -> dict[str, Any]:
        rare = random.random() < 0.1
        value = random.choice(values if rare else texts)
        return {
            "id": random.choice(("", "x", "y") if rare else texts),
            "content": random.choice((None, "", "a") if rare else texts),
            "meta": random.choice(({}, {"a": value}, {"key": value}, {"key": value, "a": {"b": value}})),
            "score": score,
        }

    def side(lengths: Sequence[int], scores: Sequence[tuple[float | None, ...]]) -> list[list[dict[str, Any]]]:
        rows = []
        for _ in range(n_questions):
            kind = random.choice(scores)
            rows.append([document(random.choice(kind)) for _ in range(random.choice(lengths))])
        return rows

    return side(n_judged, [(None,), (0, 0.5, 1, 2.5, 3, True)]), side(n_retrieved, [(None, 0.5, -1)])


@cache
def many(shape: str, seed: int = 0, *, unhashable: bool = False) -> Lists:
    """Documents as objects with attributes, made once for all tests that ask for the same."""
    return made(SimpleNamespace, many_documents(seed, *SHAPES[shape], unhashable=unhashable))
