"""Prepared qrels and runs, aligned by the ids of their queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metrics_core.key_matching import KeyedDocuments
from metrics_core.sources.keyed import KeyedSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metrics_core.blocks import IntArray
    from metrics_core.trec import Qrels, Run


class TrecSource(KeyedSource):
    """Queries that `qrels` judge, with the rankings that `run` has for them.

    Args:
        query_ids: which of the qrels' queries, in the order of the results.
        qrels: the judgements.
        run: the rankings; queries that it lacks have empty ones.
    """

    def __init__(self, query_ids: Sequence[str], qrels: Qrels, run: Run) -> None:
        super().__init__(query_ids, _documents(query_ids, qrels), _documents(query_ids, run))
        self._run = run

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document, and where it stands in a file."""
        place = int(self.retrieved.ranges[row, 0]) + position
        located = f" ({self._run.name}, line {self._run.line(place)})" if self._run.name else ""
        return f"{self._run.document(place)!r}{located}"


def _documents(query_ids: Sequence[str], data: Qrels | Run) -> KeyedDocuments:
    row_of = {query: row for row, query in enumerate(data.query_ids)}
    absent = len(data)
    rows = np.fromiter((row_of.get(query, absent) for query in query_ids), np.int64, len(query_ids))
    ranges: IntArray = np.zeros((absent + 1, 2), np.int64)
    ranges[:absent, 0], ranges[:absent, 1] = data.offsets[:-1], data.offsets[1:]
    return KeyedDocuments(data.keys, data.values, ranges[rows])
