"""evaluate_table: tables with a row a query, scored batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from metrics_core.batch import empty_values, finished_scores, score_block
from metrics_core.blocks import FloatArray, cut_blocks
from metrics_core.distinct import fingerprints_of
from metrics_core.errors import InputError
from metrics_core.join import join
from metrics_core.metrics import Metric, parse_all
from metrics_core.policies import Policies
from metrics_core.repeats import repeats_of
from metrics_core.scores import Scores
from metrics_core.sources.arrow import batches_of, keys_of, roles_of, row_policies, row_source
from metrics_core.threads import ordered_map, thread_count

if TYPE_CHECKING:
    import pyarrow as pa


def evaluate_table(
    table: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    columns: Mapping[str, str] | None = None,
    policies: Policies | str | None = None,
    n_threads: int | None = None,
) -> Scores:
    """Scores a table with a row a query: what is relevant to it, and what was retrieved, as lists.

    Args:
        table: anything with the Arrow C stream interface (a table or reader of pyarrow; a data frame of pandas, polars
            or duckdb), a polars LazyFrame or a Hugging Face dataset.
        metrics: names ("nDCG@10"), Metric objects, or a single one.
        columns: the names of the columns by role, where they differ from it: "ground_truth" and "retrieved", lists of
            strings or of integers; and where the table has them "query_id", strings or integers; "relevance", the
            grades of ground_truth (else 1 each); "scores", those of retrieved (else retrieved is in rank order).
        policies: a Policies, or the name of a profile. None: "trec_eval" with scores, else "haystack".
        n_threads: None: as many as there are cores. Scores do not depend on it.

    Returns:
        Scores, a row of the table each; without a query_id they are numbered from 0.

    Raises:
        MetricsError: a subclass that names column and query: columns that are missing or of other types, lists that do
            not pair up, null lists, query ids given twice, and what `evaluate` refuses.
        ImportError: pyarrow is not installed.
    """
    parsed = parse_all(metrics)
    threads = thread_count(n_threads)
    scorer: RowScorer | None = None
    parts: list[tuple[Sequence[Any], FloatArray]] = []

    def numbered() -> Iterator[tuple[int, pa.RecordBatch]]:
        nonlocal scorer
        first = 0
        for batch in batches_of(table):
            if scorer is None:
                scorer = RowScorer(batch.schema, parsed, columns, policies)
            yield first, batch
            first += batch.num_rows

    def score(item: tuple[int, pa.RecordBatch]) -> tuple[Sequence[Any], FloatArray]:
        assert scorer is not None
        return scorer.score(item[1], item[0])

    parts.extend(ordered_map(score, numbered(), threads))
    if scorer is None or not parts:
        raise InputError("the table has no rows")
    query_ids = parts[0][0] if len(parts) == 1 else ColumnIds.concatenated([ids for ids, _ in parts])
    _check_distinct(query_ids)
    values = empty_values(len(query_ids), len(parsed))
    np.concatenate([part for _, part in parts], out=values)
    return finished_scores(values, parsed, query_ids, scorer.policies, np.zeros(len(query_ids), np.bool_))


class RowScorer:
    """Scores record batches of one schema.

    Args:
        schema: of the batches.
        metrics, columns, policies: as for `evaluate_table`, the metrics parsed.
    """

    def __init__(
        self,
        schema: pa.Schema,
        metrics: Sequence[Metric],
        columns: Mapping[str, str] | None,
        policies: Policies | str | None,
    ) -> None:
        self.metrics = metrics
        self.roles = roles_of(schema, columns)
        self.policies = row_policies(policies, self.roles)
        for metric in metrics:
            metric.check_ties(self.policies)
        self.unjudged_repeats = any(metric.reads_unjudged_repeats(self.policies) for metric in metrics)

    def score(self, batch: pa.RecordBatch, first: int = 0) -> tuple[Sequence[Any], FloatArray]:
        """The query ids of a batch and the scores, (n_rows, n_metrics); its rows count from `first`.

        Raises:
            MetricsError: as `evaluate_table`.
        """
        query_ids: Sequence[Any] = range(first, first + batch.num_rows)
        if "query_id" in self.roles:
            query_ids = ColumnIds(batch.column(self.roles["query_id"]), first)
        source = row_source(batch, self.roles, self.policies, query_ids, unjudged_repeats=self.unjudged_repeats)
        values = empty_values(batch.num_rows, len(self.metrics))
        for rows in cut_blocks(source.n_retrieved, source.n_judged, source.block_cells):
            score_block(join(source, rows, self.policies), self.metrics, self.policies, query_ids, values)
        return query_ids, values


class ColumnIds(Sequence[Any]):
    """The ids in an Arrow column, which become Python objects one by one as they are asked for.

    Raises:
        InputError: an id is null.
    """

    def __init__(self, column: pa.Array | pa.ChunkedArray, first: int = 0) -> None:
        if column.null_count:
            row = first + int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise InputError(f"the query id in row {row} is null")
        self.column = column

    @staticmethod
    def concatenated(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
        """The ids of several batches: of columns, or numbers of rows."""
        import pyarrow as pa

        columns = [part.column for part in parts if isinstance(part, ColumnIds)]
        if columns:
            return ColumnIds(pa.chunked_array(columns))
        return range(sum(map(len, parts)))

    def __arrow_array__(self, type: Any = None) -> Any:  # Arrow's protocol
        """The column itself."""
        return self.column if type is None else self.column.cast(type)

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self.column[i].as_py() for i in range(*index.indices(len(self)))]
        return self.column[int(index)].as_py()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.column.to_pylist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} query ids>"


def score_batch(names: Mapping[str, pa.Array], metrics: Sequence[str], values: FloatArray) -> pa.RecordBatch:
    """Scores, (n_queries, n_metrics), as columns named after the metrics beside those that name the queries.

    What was not scored is null.
    """
    import pyarrow as pa

    columns = dict(names)
    if clash := [name for name in metrics if name in columns]:
        raise InputError(f"a metric has the name of the column {clash[0]!r}")
    columns |= {name: pa.array(column, from_pandas=True) for name, column in zip(metrics, values.T, strict=True)}
    return pa.RecordBatch.from_pydict(columns)


def _check_distinct(query_ids: Sequence[Any]) -> None:
    if not isinstance(query_ids, ColumnIds):
        return
    keys = keys_of(query_ids.column)
    fingerprints = np.sort(fingerprints_of(keys))
    if (fingerprints[1:] != fingerprints[:-1]).all():
        return
    repeat_of = repeats_of(keys, np.array([0, len(query_ids)]))
    if repeat_of is not None:
        row = int(np.flatnonzero(repeat_of >= 0)[0])
        raise InputError(f"query id {query_ids[row]!r} is in rows {repeat_of[row]} and {row}; ids must be distinct")
