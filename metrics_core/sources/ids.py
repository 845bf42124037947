"""Matching of lists of integer ids: what documents and arrays become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics_core.blocks import FloatArray, Int32Array, IntArray
from metrics_core.compile import compiled
from metrics_core.errors import InputError
from metrics_core.kernels import join as kernels
from metrics_core.policies import DuplicateJudgements

NULL = -1  # the id of a document that matches nothing, where has_null

_match_ids = compiled(kernels.match_ids)
_KEEP: dict[DuplicateJudgements, int] = {
    "error": kernels.KEEP_ERROR,
    "max": kernels.KEEP_MAX,
    "last": kernels.KEEP_LAST,
}


@dataclass(frozen=True, slots=True)
class IdLists:
    """Lists of ids in one array; ids need to agree only within a query."""

    ids: IntArray  # (n_ids,) int64, or int32 as it came
    starts: IntArray  # (n_lists,)
    lengths: IntArray  # (n_lists,)

    @classmethod
    def of_lengths(cls, ids: IntArray, lengths: IntArray) -> IdLists:
        """Lists that lie one after the other."""
        return cls(ids, np.cumsum(lengths) - lengths, lengths)


class DuplicateJudgementError(InputError):
    """A document judged twice for one query; caught by the source, which knows its name."""

    def __init__(self, place: int, position: int) -> None:
        super().__init__("a document is judged twice")
        self.place, self.position = place, position


def match_ids(
    rows: IntArray,
    judged: IdLists,
    judged_grades: FloatArray,
    retrieved: IdLists,
    *,
    has_null: bool,
    duplicate_judgements: DuplicateJudgements,
) -> tuple[FloatArray, FloatArray, Int32Array | None]:
    """Grades of the retrieved documents, grades of the judged ones, and repeats, as MatchedBlock holds them.

    Args:
        rows: (q,) the lists to match.
        judged_grades: (n_ids,) finite, as judged.ids.
        has_null: the id NULL matches nothing.
        duplicate_judgements: which of two judgements of a document counts.

    Raises:
        DuplicateJudgementError: two judgements of a document under "error".
    """
    grades = np.full((int(retrieved.lengths[rows].max(initial=0)), rows.size), np.nan)  # rank by rank in memory
    grades_of_judged = np.full((int(judged.lengths[rows].max(initial=0)), rows.size), np.nan)
    refused = np.full(2, -1)

    def matched(repeat_of: Int32Array) -> int:
        return _match_ids(
            rows,
            judged.ids,
            judged.starts,
            judged.lengths,
            judged_grades,
            retrieved.ids,
            retrieved.starts,
            retrieved.lengths,
            has_null,
            _KEEP[duplicate_judgements],
            grades,
            grades_of_judged,
            repeat_of,
            refused,
        )

    n_repeats = matched(np.empty((0, 0), np.int32))
    if refused[0] >= 0:
        raise DuplicateJudgementError(int(refused[0]), int(refused[1]))
    if not n_repeats:
        return grades.T, grades_of_judged.T, None
    repeat_of = np.full(grades.shape[::-1], -1, np.int32)
    matched(repeat_of)  # writes the same grades again; repeats are rare, and noting them at once would slow the rest
    return grades.T, grades_of_judged.T, repeat_of
