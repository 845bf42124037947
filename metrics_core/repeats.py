"""Documents that are judged twice for a query, where ids are bytes: found, refused or settled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metrics_core.blocks import BoolArray, FloatArray, Int32Array, IntArray, KeyTable
from metrics_core.compile import compiled
from metrics_core.kernels.bytes import match_rows
from metrics_core.policies import DuplicateJudgements

_match_rows = compiled(match_rows)


def settle_repeats(
    keys: KeyTable,
    grades: FloatArray,
    offsets: IntArray,
    duplicate_judgements: DuplicateJudgements,
    refusal: Callable[[IntArray, IntArray], Exception],
) -> BoolArray | None:
    """Gives the first of several judgements of a document the grade that counts, in place.

    Args:
        keys, grades: (n_documents,) the judged documents, query after query.
        offsets: (n_queries + 1,) where each query's documents begin.
        duplicate_judgements: which judgement counts.
        refusal: the error to raise under "error", given the places of the repeats and their queries.

    Returns:
        (n_documents,) False for the judgements that are to be left out; None: no document is judged twice.
    """
    repeat_of = _repeat_of(keys, grades, offsets)
    if repeat_of is None:
        return None
    repeats = np.flatnonzero(repeat_of >= 0)
    queries = np.searchsorted(offsets, repeats, side="right") - 1
    if duplicate_judgements == "error":
        raise refusal(repeats, queries)
    firsts = offsets[queries] + repeat_of[repeats]
    if duplicate_judgements == "max":
        np.maximum.at(grades, firsts, grades[repeats])
    else:
        grades[firsts] = grades[repeats]  # of several values for one place NumPy keeps the last
    return repeat_of < 0


def _repeat_of(keys: KeyTable, grades: FloatArray, offsets: IntArray) -> Int32Array | None:
    """(n_documents,) where an equal document came first in its query, -1 where none did; None: no document repeats."""
    no_cells = np.empty((offsets.size - 1, 0))
    repeat_of = np.full(grades.size, -1, np.int32)
    ranges = np.column_stack([offsets[:-1], offsets[1:]])
    n_repeats = _match_rows(
        *(keys.blob, keys.starts, keys.lengths, grades, np.zeros_like(ranges)),
        *(keys.blob, keys.starts, keys.lengths, grades, ranges),
        *(no_cells, no_cells, no_cells, repeat_of),
    )
    return repeat_of if n_repeats else None
