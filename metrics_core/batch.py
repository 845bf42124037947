"""RankedBatch: judgements and rankings packed once, for as many metrics as you like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics_core.blocks import BoolArray, FloatArray, GradeBlock, IntArray
from metrics_core.errors import InputError
from metrics_core.metrics import Metric, parse_all
from metrics_core.policies import Policies
from metrics_core.scores import Scores


@dataclass(frozen=True, slots=True, eq=False)
class RankedBatch:
    """Grades at ranks of many queries, in blocks: all that metrics need, packed once. Made by `pack`."""

    blocks: tuple[GradeBlock, ...]
    query_ids: Sequence[Any]  # (n_queries,)
    policies: Policies
    is_missing: BoolArray  # (n_queries,), judged queries that the run lacks
    unjudged: tuple[Any, ...]  # queries of the run without judgements, which are left out

    def __len__(self) -> int:
        return len(self.query_ids)

    def __repr__(self) -> str:
        documents = sum(int(block.n_retrieved.sum()) for block in self.blocks)
        return f"RankedBatch(queries={len(self)}, documents={documents}, policies={str(self.policies)!r})"

    def score(self, metric: str | Metric) -> FloatArray:
        """(n_queries,) float64 scores of one metric, NaN where the policies leave a query out.

        Raises:
            MetricNameError: an unknown metric.
            PolicyError: ties="expected" for a metric that has no exact expectation.
            InputError: grades that the metric has no gain for; or no_relevant="error".
        """
        return self.evaluate([metric]).values[:, 0]

    def evaluate(self, metrics: str | Metric | Iterable[str | Metric]) -> Scores:
        """Scores of several metrics; raises as `score` does."""
        parsed = parse_all(metrics)
        for metric in parsed:
            metric.check_ties(self.policies)
        values = empty_values(len(self), len(parsed))
        for block in self.blocks:
            score_block(block, parsed, self.policies, self.query_ids, values)
        return finished_scores(values, parsed, self.query_ids, self.policies, self.is_missing, self.unjudged)


def empty_values(n_queries: int, n_metrics: int) -> FloatArray:
    """(n_queries, n_metrics), metric by metric in memory, as it is filled and read."""
    return np.empty((n_metrics, n_queries)).T


def score_block(
    block: GradeBlock, metrics: Sequence[Metric], policies: Policies, query_ids: Sequence[Any], values: FloatArray
) -> None:
    """Scores of a block's queries into their rows of values, (n_queries, n_metrics)."""
    rows: IntArray | slice = block.rows
    if block.rows[-1] - block.rows[0] == block.rows.size - 1:  # they ascend, so these are adjacent: a slice is faster
        rows = slice(block.rows[0], block.rows[-1] + 1)
    for column, metric in enumerate(metrics):
        scores = metric.score(block, policies)
        if policies.no_relevant != "zero":
            without = metric.without_relevant(block, policies)
            if policies.no_relevant == "error" and without.any():
                query = query_ids[block.rows[np.argmax(without)]]
                raise InputError(
                    f"query {query!r} has no relevant document for {metric}; no_relevant='zero' scores such queries "
                    "0, no_relevant='skip' leaves them out"
                )
            scores[without] = np.nan
        values[rows, column] = scores


def finished_scores(
    values: FloatArray,
    metrics: Sequence[Metric],
    query_ids: Sequence[Any],
    policies: Policies,
    is_missing: BoolArray,
    unjudged: tuple[Any, ...] = (),
) -> Scores:
    """The Scores of all queries, those left out because the run lacks them among them, as NaN."""
    if policies.missing == "skip":
        values[is_missing] = np.nan
    names, aggregates = tuple(map(str, metrics)), tuple(metric.aggregate for metric in metrics)
    missing = tuple(query_ids[row] for row in np.flatnonzero(is_missing).tolist())
    return Scores(values, names, query_ids, policies, aggregates, missing, unjudged, len(missing), len(unjudged))
