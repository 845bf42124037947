"""Blocks for kernels, and the grade at every rank: what they are made of in tests, and back."""

from __future__ import annotations

import numpy as np

from metrics_core.blocks import NO_RANK, GradeBlock


def block_at_every_rank(grades, n_retrieved, ideal, tie_ends=None):
    """Of grades (width, n_queries), judged or not."""
    width, n_queries = grades.shape
    ranks = np.repeat(np.arange(1, width + 1, dtype=np.int32)[:, None], n_queries, axis=1)
    ranks[ranks > n_retrieved] = NO_RANK
    return GradeBlock(np.arange(n_queries), grades, ranks, n_retrieved, ideal, tie_ends)


def grades_at_every_rank(grades, ranks, width):
    """(n_queries, width) from grades and ranks (n_documents, n_queries); NaN where a rank has none."""
    found = np.full((grades.shape[1], width), np.nan)
    for q in range(grades.shape[1]):
        there = ranks[:, q] != NO_RANK
        assert (np.diff(ranks[there, q]) > 0).all()
        assert np.isnan(grades[~there, q]).all()
        assert not there[np.count_nonzero(there) :].any()
        found[q, ranks[there, q] - 1] = grades[there, q]
    return found
