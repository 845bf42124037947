"""Documents whose ids are bytes in a buffer, matched without a Python object for any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics_core.blocks import FloatArray, Int32Array, IntArray, KeyTable
from metrics_core.compile import compiled, hashing_steps
from metrics_core.kernels.bytes import SHORT_RANKING, SLOTS, match_by_table, match_short


def _steps(
    _judged_blob: Any,
    _judged_starts: Any,
    judged_lengths: Int32Array,
    _grades: Any,
    _judged_ranges: Any,
    _blob: Any,
    _starts: Any,
    lengths: Int32Array,
    *_: Any,
) -> int:
    return hashing_steps(judged_lengths) + hashing_steps(lengths)


_match_short, _match_by_table = compiled(match_short, _steps), compiled(match_by_table, _steps)
_NO_VALUES = np.empty(0)


@dataclass(frozen=True, slots=True)
class KeyedDocuments:
    """The documents of many queries: the judged ones with their grades, or rankings with their scores."""

    keys: KeyTable  # (n_documents,); a length of -1: a null, which equals nothing
    values: FloatArray | None  # (n_documents,) grades or scores; None: rankings in rank order
    ranges: IntArray  # (n_queries, 2) where each query's documents begin and end

    @property
    def lengths(self) -> IntArray:
        """(n_queries,) how many documents each query has."""
        lengths: IntArray = self.ranges[:, 1] - self.ranges[:, 0]
        return lengths

    def of(self, rows: IntArray) -> KeyedDocuments:
        """The documents of the queries at `rows`."""
        return KeyedDocuments(self.keys, self.values, self.ranges.take(rows, axis=0))


def match_keys(
    judged: KeyedDocuments,
    retrieved: KeyedDocuments,
    grades: FloatArray,
    judged_grades: FloatArray,
    scores: FloatArray,
) -> Int32Array | None:
    """Matches retrieved to judged documents of the same queries.

    Args:
        judged: those of a query differ.
        retrieved: the rankings.
        grades: (n_queries, width) NaN on entry; the grade of each retrieved document on return.
        judged_grades: (n_queries, n_judged) NaN on entry; the judged documents' grades on return. In either layout.
        scores: (n_queries, width) NaN on entry; the score of each retrieved document on return; may have no columns.

    Returns:
        (n_retrieved,) where an equal document came first in its ranking, -1 where none did, ranking after ranking;
        None: none repeats.
    """
    one = (judged.keys.blob, judged.keys.starts, judged.keys.lengths, _or_empty(judged.values), judged.ranges)
    other = (retrieved.keys.blob, retrieved.keys.starts, retrieved.keys.lengths)
    left = np.empty(len(retrieved.ranges), np.int64)
    n_left = _match_short(
        *one,
        *other,
        _or_empty(retrieved.values),
        retrieved.ranges,
        grades,
        judged_grades.reshape(-1, order="A"),
        np.array(judged_grades.strides) // judged_grades.itemsize,
        scores,
        np.empty(SHORT_RANKING, np.uint64),
        np.empty(SLOTS, np.uint16),
        left,
    )
    if not n_left:
        return None
    left = left[:n_left]
    lengths = retrieved.lengths
    size = 8
    while size < 2 * (judged.lengths + lengths)[left].max():
        size *= 2
    repeat_of = np.full(lengths.sum(), -1, np.int32)
    slots, prints = np.empty(size, np.int32), np.empty(size, np.uint64)
    first_of = np.cumsum(lengths) - lengths
    n_repeats = _match_by_table(*one, *other, retrieved.ranges, left, grades, slots, prints, first_of, repeat_of)
    return repeat_of if n_repeats else None


def _or_empty(values: FloatArray | None) -> FloatArray:
    return _NO_VALUES if values is None else values
