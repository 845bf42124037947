"""Documents whose ids are bytes in a buffer, from files or Arrow columns: matched without a Python object for any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metrics_core.blocks import BLOCK_CELLS, FloatArray, IntArray, KeyTable, RankedBlock, ScoredBlock, pad
from metrics_core.kernels.join import NARROW
from metrics_core.key_matching import KeyedDocuments, match_keys
from metrics_core.keys import decode_keys
from metrics_core.ranks import ranked_block


class KeyedSource:
    """Judged documents, different within a query, and rankings of the same queries.

    Args:
        query_ids: (n_queries,)
        judged: the judgements, with grades.
        retrieved: the rankings.
    """

    releases_gil = True
    block_cells = BLOCK_CELLS

    def __init__(self, query_ids: Sequence[Any], judged: KeyedDocuments, retrieved: KeyedDocuments) -> None:
        self.query_ids = query_ids
        self.judged, self.retrieved = judged, retrieved
        self.n_judged, self.n_retrieved = judged.lengths, retrieved.lengths  # (n_queries,)

    def match(self, rows: IntArray) -> RankedBlock | ScoredBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents; called from any thread."""
        judged, retrieved = self.judged.of(rows), self.retrieved.of(rows)
        n_retrieved = self.n_retrieved[rows]
        n_queries, width = rows.size, int(n_retrieved.max(initial=0))
        n_judged = int(self.n_judged[rows].max(initial=0))
        with_scores = retrieved.values is not None
        grades = np.full((n_queries, width), np.nan)
        judged_grades = _cells(n_queries, n_judged, by_query=n_judged > NARROW)  # as the join takes them
        scores = np.full((n_queries, width if with_scores else 0), np.nan)
        repeat_of = match_keys(judged, retrieved, grades, judged_grades, scores)
        repeats = None if repeat_of is None else pad(repeat_of, n_retrieved, -1)
        if not with_scores:
            return ranked_block(rows, grades, n_retrieved, judged_grades, repeats)

        def keys(places: IntArray, positions: IntArray) -> KeyTable:
            return self.key_bytes(rows[places], positions)

        return ScoredBlock(rows, grades, n_retrieved, scores, judged_grades, repeats, keys)

    def key_bytes(self, rows: IntArray, positions: IntArray) -> KeyTable:
        """The ids of the documents at `positions` (from 0) of the rankings of the queries at `rows`."""
        return self.retrieved.keys.take(self.retrieved.ranges[rows, 0] + positions)

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        return repr(decode_keys(self.key_bytes(np.array([row]), np.array([position])))[0])


def _cells(n_queries: int, width: int, *, by_query: bool) -> FloatArray:
    """(n_queries, width) of NaN, a query's side by side or not."""
    return np.full((n_queries, width), np.nan) if by_query else np.full((width, n_queries), np.nan).T
