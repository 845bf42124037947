"""Prepared qrels and runs: documents are matched by the bytes of their ids, without a Python object for any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metrics_core.blocks import KeyTable, MatchedBlock, pad
from metrics_core.compile import compiled
from metrics_core.kernels.bytes import match_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metrics_core.blocks import IntArray
    from metrics_core.trec import Qrels, Run

_match_rows = compiled(match_rows)


def _ranges(query_ids: Sequence[str], data: Qrels | Run) -> IntArray:
    """(n_queries, 2) where each query's documents begin and end."""
    row_of = {query: row for row, query in enumerate(data.query_ids)}
    absent = len(data)
    rows = np.fromiter((row_of.get(query, absent) for query in query_ids), np.int64, len(query_ids))
    ranges = np.zeros((absent + 1, 2), np.int64)
    ranges[:absent, 0], ranges[:absent, 1] = data.offsets[:-1], data.offsets[1:]
    return ranges[rows]


class TrecSource:
    """Queries that `qrels` judge, with the rankings that `run` has for them.

    Args:
        query_ids: which of the qrels' queries, in the order of the results.
        qrels: the judgements.
        run: the rankings; queries that it lacks have empty ones.
    """

    __slots__ = ("_judged_ranges", "_ranges", "n_judged", "n_retrieved", "qrels", "query_ids", "run")

    releases_gil = True

    def __init__(self, query_ids: Sequence[str], qrels: Qrels, run: Run) -> None:
        self.query_ids = query_ids
        self.qrels = qrels
        self.run = run
        self._judged_ranges = _ranges(query_ids, qrels)
        self._ranges = _ranges(query_ids, run)
        self.n_judged: IntArray = np.diff(self._judged_ranges)[:, 0]  # (n_queries,)
        self.n_retrieved: IntArray = np.diff(self._ranges)[:, 0]  # (n_queries,), 0 where the run lacks the query

    def match(self, rows: IntArray) -> MatchedBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents; called from any thread."""
        judged_ranges, ranges = self._judged_ranges[rows], self._ranges[rows]
        n_retrieved = ranges[:, 1] - ranges[:, 0]
        shape = (rows.size, int(n_retrieved.max(initial=0)))
        grades, scores = np.full(shape, np.nan), np.full(shape, np.nan)
        judged = np.full((rows.size, int(np.diff(judged_ranges).max(initial=0))), np.nan)
        repeat_of = np.full(int(n_retrieved.sum()), -1, np.int32)
        qrels, run = self.qrels, self.run
        n_repeats = _match_rows(
            qrels.keys.blob,
            qrels.keys.starts,
            qrels.keys.lengths,
            qrels.grades,
            judged_ranges,
            run.keys.blob,
            run.keys.starts,
            run.keys.lengths,
            run.scores,
            ranges,
            grades,
            scores,
            judged,
            repeat_of,
        )
        return MatchedBlock(
            rows,
            grades,
            n_retrieved,
            scores,
            judged,
            pad(repeat_of, n_retrieved, -1) if n_repeats else None,
            lambda places, positions: self.key_bytes(rows[places], positions),
        )

    def key_bytes(self, rows: IntArray, positions: IntArray) -> KeyTable:
        """The ids of the documents at `positions` (from 0) of the rankings of the queries at `rows`."""
        places = self._ranges[rows, 0] + positions
        keys = self.run.keys
        return KeyTable(keys.blob, keys.starts[places], keys.lengths[places])

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document, and where it stands in a file."""
        place = int(self._ranges[row, 0]) + position
        located = f" ({self.run.name}, line {self.run.line(place)})" if self.run.name else ""
        return f"{self.run.document(place)!r}{located}"
