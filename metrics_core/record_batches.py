"""Scores of record batches wherever they are, for engines that hand them to a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metrics_core.errors import InputError
from metrics_core.extras import required
from metrics_core.metrics import Metric, parse_all
from metrics_core.policies import Policies
from metrics_core.tabular import ColumnIds, RowScorer

if TYPE_CHECKING:
    import pyarrow as pa


def batch_scorer(
    metrics: str | Metric | Iterable[str | Metric],
    *,
    columns: Mapping[str, str] | None = None,
    policies: Policies | str | None = None,
) -> BatchScorer:
    """What scores record batches wherever they are, for engines that hand them to a function: Spark's `mapInArrow`.

    Args:
        metrics, columns, policies: as for `evaluate_table`. The rows need a query_id.

    Returns:
        A function from an iterator of record batches to one of as many, with the columns of `score_schema`. It can be
        pickled. It sees a batch at a time, so that query ids that come twice are for the engine to find.

    Raises:
        MetricsError: a metric or a profile that does not exist; in the function, as `evaluate_table`.
    """
    parsed = tuple(parse_all(metrics))
    return BatchScorer(parsed, columns, None if policies is None else Policies.resolve(policies, default="trec_eval"))


def score_schema(metrics: str | Metric | Iterable[str | Metric], query_id: pa.DataType | None = None) -> pa.Schema:
    """The columns that a `batch_scorer` gives: query_id, and a float64 of each metric, null where it is not scored.

    Args:
        metrics: the same as the scorer's.
        query_id: the type of the ids that come in. None: strings.

    Raises:
        MetricNameError: a metric that does not exist.
        ImportError: pyarrow is not installed.
    """
    pa = required("pyarrow", "arrow")
    names = map(str, parse_all(metrics))
    return pa.schema([("query_id", query_id or pa.string()), *((name, pa.float64()) for name in names)])


@dataclass(frozen=True)
class BatchScorer:
    """Scores an iterator of record batches; made by `batch_scorer`."""

    metrics: tuple[Metric, ...]
    columns: Mapping[str, str] | None
    policies: Policies | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Record batches of query ids and scores, one for each that comes."""
        import pyarrow as pa

        scorer: RowScorer | None = None
        for batch in batches:
            scorer = scorer or RowScorer(batch.schema, self.metrics, self.columns, self.policies)
            if "query_id" not in scorer.roles:
                raise InputError("there is no column for query_id, which the scores are to be told apart by")
            query_ids, values = scorer.score(batch)
            assert isinstance(query_ids, ColumnIds)
            scores = {str(metric): values[:, column] for column, metric in enumerate(self.metrics)}
            yield pa.record_batch(
                [query_ids.column, *(pa.array(column, from_pandas=True) for column in scores.values())],
                schema=score_schema(self.metrics, query_ids.column.type),
            )
