"""Blocks for kernels, made by hand from judgements and rankings."""

from collections.abc import Callable, Mapping, Sequence
from math import nan

import numpy as np
import pytest

from metrics_core.blocks import GradeBlock
from tests.blocks import block_at_every_rank

Judgements = Mapping[str, Mapping[str, float]]
Rankings = Mapping[str, Sequence[str]]


def _block(qrels: Judgements, rankings: Rankings) -> GradeBlock:
    queries = list(qrels)
    grades = [[qrels[query].get(document, nan) for document in rankings.get(query, ())] for query in queries]
    ideal = [sorted(qrels[query].values(), reverse=True) for query in queries]
    n_retrieved = np.array([len(row) for row in grades], dtype=np.int64)
    return block_at_every_rank(_padded(grades), n_retrieved, _padded(ideal))


def _padded(rows: Sequence[Sequence[float]]) -> np.ndarray:
    padded = np.full((max(map(len, rows), default=0), len(rows)), nan)
    for q, values in enumerate(rows):
        padded[: len(values), q] = values
    return padded


@pytest.fixture(scope="session")
def block_of() -> Callable[[Judgements, Rankings], GradeBlock]:
    """Makes a block of all queries of qrels, from rankings in rank order."""
    return _block
