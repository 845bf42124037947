"""From a grade at every rank to the judged documents alone, and their ranks."""

from __future__ import annotations

import numpy as np

from metrics_core.blocks import NO_RANK, REPEAT, FloatArray, Int32Array, IntArray, RankedBlock
from metrics_core.compile import compiled
from metrics_core.kernels.join import keep_judged

_keep_judged = compiled(keep_judged)


def judged_ranks(grades: FloatArray, n_judged: int) -> tuple[FloatArray, Int32Array]:
    """The documents that have a grade, in their order.

    Args:
        grades: (n_queries, width), the grade at each rank, NaN = unjudged, REPEAT = a document's second place.
        n_judged: how many documents without repeats are expected in a ranking at most; room for more is made.

    Returns:
        Their grades and their ranks, from 1; both (n_documents, n_queries), NaN and NO_RANK after the last.
    """
    room = min(n_judged, grades.shape[1])
    while True:
        kept = np.full((room, len(grades)), np.nan)
        ranks = np.full(kept.shape, NO_RANK, np.int32)
        needed = _keep_judged(grades, kept, ranks)
        if needed <= room:
            return kept[:needed], ranks[:needed]
        room = needed


def ranked_block(
    rows: IntArray, grades: FloatArray, n_retrieved: IntArray, judged: FloatArray, repeat_of: Int32Array | None
) -> RankedBlock:
    """Of rankings in rank order, given the grade at each rank (n_queries, width) and where equal documents came first.

    See `RankedBlock`, and `ScoredBlock` for `repeat_of`.
    """
    if repeat_of is not None:
        grades = np.where(repeat_of >= 0, REPEAT, grades)
    kept, ranks = judged_ranks(grades, judged.shape[1])
    return RankedBlock(rows, kept, ranks, n_retrieved, judged, repeat_of is not None)
