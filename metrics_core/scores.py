"""Scores: what an evaluation gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics_core.aggregate import Aggregate, AggregateName, aggregate
from metrics_core.blocks import FloatArray
from metrics_core.errors import MetricNameError
from metrics_core.export import to_arrow, to_pandas, to_polars
from metrics_core.metrics import parse
from metrics_core.policies import Policies
from metrics_core.wording import queries

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from metrics_core.dataset import DatasetScores


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Per-query scores of some metrics, with all that is needed to say what they mean.

    `scores["nDCG@10"]` is a metric's column, under any spelling of its name. NaN marks a query that was not scored.
    """

    values: FloatArray  # (n_queries, n_metrics)
    metrics: tuple[str, ...]  # canonical names
    query_ids: Sequence[Any]  # (n_queries,)
    policies: Policies
    aggregates: tuple[AggregateName, ...]  # (n_metrics,), how each metric is aggregated
    missing: tuple[Any, ...] | None = ()  # those of query_ids that the run lacks; None: only their number is known
    unjudged: tuple[Any, ...] | None = ()  # queries of the run without judgements, left out; None: as with missing
    n_missing: int = 0
    n_unjudged: int = 0

    def __len__(self) -> int:
        return len(self.query_ids)

    def __getitem__(self, metric: object) -> FloatArray:
        """(n_queries,) the scores of a metric, given by name or as a Metric.

        Raises:
            MetricNameError: not a metric, or not one of these.
        """
        name = str(metric)
        if name not in self.metrics:
            name = str(parse(name))
        if name not in self.metrics:
            raise MetricNameError(f"{name} was not evaluated; there are {', '.join(self.metrics)}")
        return self.values[:, self.metrics.index(name)]

    def mean(self) -> dict[str, float]:
        """The arithmetic mean of each metric over the scored queries; NaN where none was scored."""
        return {name: aggregate(self[name]).value for name in self.metrics}

    def aggregate(self) -> dict[str, Aggregate]:
        """Each metric's own aggregate (mean, sum of the counts, geometric mean), and how many queries it rests on."""
        return {name: aggregate(self[name], how) for name, how in zip(self.metrics, self.aggregates, strict=True)}

    def to_dict(self) -> dict[Any, dict[str, float]]:
        """{query id: {metric: score}} with Python floats, NaN for what was not scored."""
        return {
            query: dict(zip(self.metrics, row, strict=True))
            for query, row in zip(self.query_ids, self.values.tolist(), strict=True)
        }

    def columns(self) -> dict[str, Any]:
        """`query_id`, and the scores of each metric under its name."""
        numbered = isinstance(self.query_ids, range)
        query_ids = np.array(self.query_ids) if numbered else self.query_ids
        return {"query_id": query_ids} | {name: self[name] for name in self.metrics}

    def to_arrow(self) -> pa.Table:
        """A row a query: `query_id`, and a column of each metric, null where it was not scored.

        Raises:
            ImportError: pyarrow is not installed.
        """
        return to_arrow(self.columns())

    def to_pandas(self) -> pd.DataFrame:
        """As `to_arrow`, with NaN for null.

        Raises:
            ImportError: pandas is not installed.
        """
        return to_pandas(self.columns())

    def to_polars(self) -> pl.DataFrame:
        """As `to_arrow`.

        Raises:
            ImportError: polars or pyarrow is not installed.
        """
        return to_polars(self.columns())

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes what `to_arrow` gives to a parquet file.

        Raises:
            ImportError: pyarrow is not installed.
            OSError: the file cannot be written.
        """
        table = self.to_arrow()
        from pyarrow import parquet

        parquet.write_table(table, path)

    def __repr__(self) -> str:
        return summary(self)


def summary(scores: Scores | DatasetScores) -> str:
    """Lines of the metrics' aggregates, by name, under what they are of."""
    of = queries(len(scores))
    of += f", {scores.n_missing} missing in the run" if scores.n_missing else ""
    of += f", {scores.n_unjudged} unjudged left out" if scores.n_unjudged else ""
    lines = [f"{type(scores).__name__} of {of}, policies {scores.policies}"]
    width = max(map(len, scores.metrics), default=0)
    for (name, result), how in zip(scores.aggregate().items(), scores.aggregates, strict=True):
        scored = "" if result.n_scored == result.n_total else f", {result.n_scored} of {result.n_total} scored"
        lines.append(f"  {name:{width}}  {result.value:.4f}  ({how}{scored})")
    return "\n".join(lines)
