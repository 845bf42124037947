"""Matching of lists of integer ids: what documents and arrays become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics_core.blocks import FloatArray, Int32Array, IntArray
from metrics_core.compile import compiled
from metrics_core.errors import InputError
from metrics_core.kernels import join as kernels
from metrics_core.policies import DuplicateJudgements

NULL = -1  # the id of a document that matches nothing, where has_null


def _steps(
    _judged: Any,
    _judged_starts: Any,
    n_judged: IntArray,
    _grades: Any,
    _retrieved: Any,
    _retrieved_starts: Any,
    n_retrieved: IntArray,
    _has_null: bool,
    _keep: int,
    find_unjudged: bool,
    _room: Any,
    _ranks: Any,
    judged: FloatArray,
    *_: Any,
) -> int:
    """Of comparing the judged ids of each query with each other and with all of its ranking; short ones are padded."""
    most, n_queries = judged.shape
    short = min(int(n_retrieved.max(initial=0)), kernels.NARROW_RANKINGS)
    padded = most * (1 + most) + short * (most + find_unjudged * short // 2)
    return int(n_queries * padded + (n_retrieved * (1 + n_judged)).sum())


_match_ids = compiled(kernels.match_ids, _steps)
_KEEP: dict[DuplicateJudgements, int] = {
    "error": kernels.KEEP_ERROR,
    "max": kernels.KEEP_MAX,
    "last": kernels.KEEP_LAST,
}


@dataclass(frozen=True, slots=True)
class IdLists:
    """Lists of ids in one array; ids need to agree only within a query."""

    ids: IntArray  # (n_ids,) int64, or int32 as it came
    lengths: IntArray  # (n_lists,)
    begins: IntArray | int  # (n_lists,), or how far the beginnings are apart

    @classmethod
    def of_lengths(cls, ids: IntArray, lengths: IntArray) -> IdLists:
        """Lists that lie one after the other."""
        return cls(ids, lengths, np.cumsum(lengths) - lengths)

    def starts(self, rows: IntArray) -> IntArray:
        """(n_rows,) where the lists at `rows` begin."""
        return rows * self.begins if isinstance(self.begins, int) else self.begins[rows]

    def place_of(self, row: int, position: int) -> int:
        """Where in `ids` the id at a position of a list is."""
        return int(self.starts(np.array([row]))[0]) + position

    def lists_of(self, places: IntArray) -> IntArray:
        """(n_places,) which list each of the ids at `places` belongs to, or is padding of."""
        if isinstance(self.begins, int):
            return places // self.begins
        return np.searchsorted(self.begins, places, side="right") - 1


class DuplicateJudgementError(InputError):
    """A document judged twice for one query; caught by the source, which knows its name."""

    def __init__(self, place: int, position: int) -> None:
        super().__init__("a document is judged twice")
        self.place, self.position = place, position


@dataclass(frozen=True, slots=True)
class MatchedIds:
    """The judged documents of rankings, in the order of these; as in `RankedBlock`."""

    grades: FloatArray  # (n_documents, n_queries)
    ranks: Int32Array  # (n_documents, n_queries)
    judged: FloatArray  # (n_queries, n_judged)
    n_repeats: int


def match_ids(
    rows: IntArray,
    judged: IdLists,
    judged_grades: FloatArray,
    retrieved: IdLists,
    *,
    has_null: bool,
    duplicate_judgements: DuplicateJudgements,
    unjudged_repeats: bool,
    repeat_of: Int32Array | None = None,
) -> MatchedIds:
    """Finds the judged documents, and repeats, in rankings.

    Args:
        rows: (n_queries,) the lists to match.
        judged_grades: (n_ids,) finite, as judged.ids.
        has_null: the id NULL matches nothing.
        duplicate_judgements: which of two judgements of a document counts.
        unjudged_repeats: whether a document that is not judged counts as a repeat where it comes again.
        repeat_of: (n_queries, width) of -1, to be filled with the positions of the first equal documents, if wanted.

    Raises:
        DuplicateJudgementError: two judgements of a document under "error".
    """
    n_judged, n_retrieved = judged.lengths[rows], retrieved.lengths[rows]
    most = int(n_judged.max(initial=0))
    room = min(most, int(n_retrieved.max(initial=0)))
    refused = np.full(2, -1)
    while True:
        grades = np.empty((room, rows.size))
        ranks = np.empty(grades.shape, np.int32)
        grades_of_judged = np.empty((most, rows.size))
        n_documents, n_repeats = _match_ids(
            judged.ids,
            judged.starts(rows),
            n_judged,
            judged_grades,
            retrieved.ids,
            retrieved.starts(rows),
            n_retrieved,
            has_null,
            _KEEP[duplicate_judgements],
            unjudged_repeats,
            grades,
            ranks,
            grades_of_judged,
            np.empty((0, 0), np.int32) if repeat_of is None else repeat_of,
            refused,
        )
        if refused[0] >= 0:
            raise DuplicateJudgementError(int(refused[0]), int(refused[1]))
        if n_documents <= room:
            return MatchedIds(grades, ranks, grades_of_judged.T, n_repeats)
        room = n_documents  # repeats, which are rare, need more
