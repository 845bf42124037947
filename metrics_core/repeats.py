"""Ids as bytes that come twice: documents judged twice for a query are refused or settled."""

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
    repeat_of = repeats_of(keys, offsets)
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


def repeats_of(keys: KeyTable, offsets: IntArray) -> Int32Array | None:
    """(n_keys,) where an equal key came first in its list, -1 where none did; None: none repeats.

    Args:
        offsets: (n_lists + 1,) where each list of keys begins.
    """
    unused, no_cells = np.empty(0), np.empty((offsets.size - 1, 0))
    repeat_of = np.full(keys.starts.size, -1, np.int32)
    ranges = np.column_stack([offsets[:-1], offsets[1:]])
    n_repeats = _match_rows(
        *(keys.blob, keys.starts, keys.lengths, unused, np.zeros_like(ranges)),
        *(keys.blob, keys.starts, keys.lengths, unused, ranges),
        no_cells,
        unused,
        np.zeros(2, np.int64),
        no_cells,
        repeat_of,
    )
    return repeat_of if n_repeats else None
