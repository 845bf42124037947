# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ANN202, ARG001, D103 (kernels share the signature that Metric documents)
"""Expectations over all orders of tied documents, exact and in one pass.

Source: McSherry and Najork, "Computing information retrieval performance measures efficiently in the presence of tied
scores", ECIR 2008. A tie of `size` documents with `relevant` ones begins after rank `start`; the chance that none of
the first j are relevant is a product of fractions below 1, so that ties of thousands lose no precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metrics_core.compile import compiled

if TYPE_CHECKING:
    from metrics_core.blocks import FloatArray, IntArray


def mean_gains(gains: FloatArray, n_retrieved: IntArray, tie_ends: IntArray) -> FloatArray:
    """Each positive gain replaced by the mean gain of its tie, (width, n_queries); exact for sums over ranks."""
    means = np.zeros(gains.shape)
    _mean_gains(gains, n_retrieved, tie_ends, means)
    return means


@compiled
def _mean_gains(gains, n_retrieved, tie_ends, means):
    for q in range(gains.shape[1]):
        start = 0
        while start < n_retrieved[q]:
            end = tie_ends[start, q]
            total = 0.0
            for i in range(start, end):
                if gains[i, q] > 0:
                    total += gains[i, q]
            means[start:end, q] = total / (end - start)
            start = end


def count_relevant(grades, rel):  # as in binary.py: numba's cache watches one file a kernel, see compile.compiled
    n_relevant = 0
    for i in range(grades.size):
        if grades[i] >= rel:
            n_relevant += 1
    return n_relevant


def expected_hits(row, tie_ends, rel, depth):
    hits, start = 0.0, 0
    while start < min(depth, row.size):
        end = tie_ends[start]
        hits += count_relevant(row[start:end], rel) * (min(end, depth) - start) / (end - start)
        start = end
    return hits


def precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        out[q] = expected_hits(grades[: n_retrieved[q], q], tie_ends[:, q], rel, cutoff) / cutoff


def recall(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        n_relevant = count_relevant(ideal[:, q], rel)
        if n_relevant > 0:
            out[q] = expected_hits(grades[: n_retrieved[q], q], tie_ends[:, q], rel, cutoff) / n_relevant


def capped_recall(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        most = min(count_relevant(ideal[:, q], rel), cutoff)
        if most > 0:
            out[q] = expected_hits(grades[: n_retrieved[q], q], tie_ends[:, q], rel, cutoff) / most


def r_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        n_relevant = count_relevant(ideal[:, q], rel)
        if n_relevant > 0:
            out[q] = expected_hits(grades[: n_retrieved[q], q], tie_ends[:, q], rel, n_relevant) / n_relevant


def success(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        start = 0
        while start < min(cutoff, n_retrieved[q]):
            end = tie_ends[start, q]
            relevant = count_relevant(grades[start:end, q], rel)
            if relevant > 0:
                none = 1.0
                for i in range(min(end, cutoff) - start):
                    none *= max(end - start - relevant - i, 0) / (end - start - i)
                out[q] = 1.0 - none
                break  # had all its ranks been seen, `none` would be 0: no later tie can add anything
            start = end


def reciprocal_rank(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        start = 0
        while start < min(cutoff, n_retrieved[q]):
            end = tie_ends[start, q]
            relevant = count_relevant(grades[start:end, q], rel)
            if relevant > 0:
                none, total = 1.0, 0.0
                for i in range(start, min(end, cutoff)):
                    total += none * relevant / (end - i) / (i + 1)
                    none *= max(end - i - relevant, 0) / (end - i)
                out[q] = total
                break
            start = end


def average_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out, tie_ends):
    for q in range(out.size):
        n_relevant = count_relevant(ideal[:, q], rel)
        hits, total, start = 0, 0.0, 0
        while start < min(cutoff, n_retrieved[q]):
            end = tie_ends[start, q]
            size, relevant = end - start, count_relevant(grades[start:end, q], rel)
            for i in range(start, min(end, cutoff)):
                above = (i - start) * (relevant - 1) / (size - 1) if size > 1 else 0.0
                total += relevant / size * (hits + 1 + above) / (i + 1)
            hits += relevant
            start = end
        out[q] = total / n_relevant if n_relevant else 0.0
