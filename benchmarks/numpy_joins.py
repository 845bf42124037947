"""What one writes without an engine: joins of integer arrays in NumPy, and the five contract metrics.

Those of padded arrays take `ids` (n_queries, depth), `judged` (n_queries, n_judged), distinct within a row, and
`grades` of the judged documents, above 0. They work in chunks of queries that stay in the cache, of the length that was
fastest for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Join: TypeAlias = Callable[[Ids, Ids, FloatArray], FloatArray]


def five_metrics(ids: Ids, judged: Ids, grades: FloatArray, join: Join, chunk_cells: int) -> dict[str, FloatArray]:
    """Success, SetR, RR, AP and nDCG of each query, with gains at ranks from `join`."""
    chunk = max(1, chunk_cells // ids.shape[1])
    parts = [
        _dense_metrics(join(ids[rows], judged[rows], grades[rows]), grades[rows])
        for rows in (slice(start, start + chunk) for start in range(0, len(ids), chunk))
    ]
    return _concatenated(parts)


def broadcast_gains(ids: Ids, judged: Ids, grades: FloatArray) -> FloatArray:
    """Every retrieved against every judged document of its query."""
    matches = ids[:, :, None] == judged[:, None, :]
    gains: FloatArray = np.matmul(matches, grades[:, :, None])[:, :, 0]
    return gains


def column_gains(ids: Ids, judged: Ids, grades: FloatArray) -> FloatArray:
    """Every retrieved document against one judged document of its query after the other: no third axis."""
    gains = np.zeros(ids.shape)
    for column in range(judged.shape[1]):
        gains += (ids == judged[:, column, None]) * grades[:, column, None]
    return gains


def sorted_gains(ids: Ids, judged: Ids, grades: FloatArray) -> FloatArray:
    """Judged documents sorted within their query, retrieved ones looked up by bisection."""
    order = np.argsort(judged, axis=1)
    offsets = np.arange(len(ids), dtype=np.int64)[:, None] << 32
    known = (np.take_along_axis(judged, order, axis=1) + offsets).ravel()
    wanted = ids + offsets
    found = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    return np.where(known[found] == wanted, np.take_along_axis(grades, order, axis=1).ravel()[found], 0.0)


def sparse_metrics(ids: Ids, judged: Ids, grades: FloatArray, chunk_cells: int) -> dict[str, FloatArray]:
    """The five metrics from the hits alone, which are few: the fastest in NumPy that we found."""
    chunk = max(1, chunk_cells // ids.shape[1])
    parts = [
        _sparse_chunk(ids[rows], judged[rows], grades[rows])
        for rows in (slice(start, start + chunk) for start in range(0, len(ids), chunk))
    ]
    return _concatenated(parts)


def flat_gains(ids: Ids, lengths: IntArray, judged: Ids, grades: FloatArray) -> FloatArray:
    """Rankings of any lengths, end to end: retrieved documents looked up among all judged ones by bisection."""
    judged_rows = np.arange(len(judged), dtype=np.int64)[:, None] << 32
    known = (judged + judged_rows).ravel()
    order = np.argsort(known)
    wanted = ids + np.repeat(judged_rows[:, 0], lengths)
    found = np.minimum(np.searchsorted(known[order], wanted), known.size - 1)
    found = order[found]
    return np.where(known[found] == wanted, grades.ravel()[found], 0.0)


def flat_metrics(gains: FloatArray, lengths: IntArray, grades: FloatArray) -> dict[str, FloatArray]:
    """The five metrics of rankings end to end, none of them empty."""
    n_relevant = grades.shape[1]
    starts = np.cumsum(lengths) - lengths
    ranks = np.arange(gains.size) - np.repeat(starts, lengths) + 1
    hits = gains > 0
    n_hits = np.add.reduceat(hits, starts, dtype=np.int64)
    hits_so_far = np.cumsum(hits) - np.repeat(np.cumsum(n_hits) - n_hits, lengths)
    return {
        "Success": (n_hits > 0).astype(np.float64),
        "SetR": n_hits / n_relevant,
        "RR": np.maximum.reduceat(hits / ranks, starts),
        "AP": np.add.reduceat(hits * hits_so_far / ranks, starts) / n_relevant,
        "nDCG": np.add.reduceat(gains / np.log2(ranks + 1), starts) / _ideal_dcg(grades),
    }


def _dense_metrics(gains: FloatArray, grades: FloatArray) -> dict[str, FloatArray]:
    n_relevant = grades.shape[1]
    hits = gains > 0
    ranks = np.arange(1, gains.shape[1] + 1)
    n_hits = np.cumsum(hits, axis=1)
    success = n_hits[:, -1] > 0
    return {
        "Success": success.astype(np.float64),
        "SetR": n_hits[:, -1] / n_relevant,
        "RR": np.where(success, 1 / (np.argmax(hits, axis=1) + 1), 0.0),
        "AP": (n_hits * hits) @ (1 / ranks) / n_relevant,
        "nDCG": gains @ _discounts(gains.shape[1]) / _ideal_dcg(grades),
    }


def _sparse_chunk(ids: Ids, judged: Ids, grades: FloatArray) -> dict[str, FloatArray]:
    n_relevant = judged.shape[1]
    ranks = np.zeros(judged.shape, np.int64)  # of each judged document, 0 where it is not retrieved
    for column in range(n_relevant):
        cells = np.flatnonzero(ids == judged[:, column, None])
        rows, ranks_found = np.divmod(cells, ids.shape[1])
        ranks[rows, column] = ranks_found + 1
    retrieved = ranks > 0
    dcg = (np.where(retrieved, grades, 0.0) * np.append(0.0, _discounts(ids.shape[1]))[ranks]).sum(axis=1)
    first = np.sort(np.where(retrieved, ranks, np.iinfo(np.int64).max), axis=1)
    precisions = np.where(first <= ids.shape[1], np.arange(1, n_relevant + 1) / first, 0.0)
    n_hits = retrieved.sum(axis=1)
    return {
        "Success": (n_hits > 0).astype(np.float64),
        "SetR": n_hits / n_relevant,
        "RR": np.where(n_hits > 0, 1 / first[:, 0], 0.0),
        "AP": precisions.sum(axis=1) / n_relevant,
        "nDCG": dcg / _ideal_dcg(grades),
    }


def _ideal_dcg(grades: FloatArray) -> FloatArray:
    ideal: FloatArray = -np.sort(-grades, axis=1) @ _discounts(grades.shape[1])
    return ideal


def _discounts(depth: int) -> FloatArray:
    discounts: FloatArray = 1 / np.log2(np.arange(2, depth + 2))
    return discounts


def _concatenated(parts: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0]}
