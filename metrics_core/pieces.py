"""Pieces of a data set, scored one by one in whatever process: rows in, a part out, and what it adds to the whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from metrics_core.aggregate import Moments
from metrics_core.batch import empty_values
from metrics_core.blocks import FloatArray, KeyTable, UInt64Array
from metrics_core.distinct import fingerprints_of
from metrics_core.errors import InputError, MetricsError
from metrics_core.evaluation import evaluate
from metrics_core.grouping import Groups
from metrics_core.metrics import Metric
from metrics_core.parts import Parts
from metrics_core.policies import Policies
from metrics_core.remote import AnyPath
from metrics_core.sources.arrow import BATCH_ROWS, ROLES, keys_of, long_table
from metrics_core.tables import RowGroups, place_columns, read_batches
from metrics_core.tabular import ColumnIds, RowScorer, score_batch
from metrics_core.threads import ordered_map
from metrics_core.trec import Qrels, Run

if TYPE_CHECKING:
    import pyarrow as pa

_SUMMARY = b"metrics_core"  # the key of a part's metadata


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that are scored together."""

    fragment: int  # the number of the file
    part: int  # the number of the piece in it
    path: AnyPath  # absolute
    rows: RowGroups


@dataclass(frozen=True, slots=True)
class Scored:
    """What a piece adds to the whole."""

    n_rows: int  # that were read
    n_queries: int
    n_missing: int  # judged queries without a ranking
    n_unjudged: int  # rankings without judgements
    moments: tuple[Moments, ...]  # a metric each
    fingerprints: UInt64Array | None = None  # of the query ids, where the same could come in another piece


@dataclass(frozen=True, slots=True)
class PieceOfRows:
    """Scores pieces with a row a query.

    Args:
        metrics, policies: as for `evaluate_table`, the metrics parsed.
        columns: by role, all that there are.
        parts: where the scores go; None: nowhere.
        n_threads: that score batches of one piece.
        call: names the call that this belongs to: some executors hand out again what an equal call gave before.
    """

    metrics: tuple[Metric, ...]
    columns: Mapping[str, str]
    policies: Policies | str | None
    parts: Parts | None
    n_threads: int
    call: str

    def __call__(self, piece: Piece) -> Scored:
        """Scores a piece; one whose part is whole is not scored again.

        Raises:
            MetricsError: as `evaluate_table`; names file and row.
            OSError: a file that cannot be read or written.
        """
        if self.parts is not None and self.parts.done(piece.fragment, piece.part):
            return self._read_back(piece, self.parts)
        fingerprints: list[UInt64Array] = []
        with PartSink(self.parts, piece.fragment, piece.part, self.metrics) as sink:
            for first, ids, values in ordered_map(partial(self._score, piece), self._numbered(piece), self.n_threads):
                if isinstance(ids, ColumnIds):
                    fingerprints.append(fingerprints_of(keys_of(ids.column)))
                    sink.write({"query_id": ids.column}, values)
                else:
                    sink.write(place_columns(piece.path, first, len(ids)), values)
        return replace(sink.scored, fingerprints=_concatenated(fingerprints))

    def _numbered(self, piece: Piece) -> Iterator[tuple[int, pa.RecordBatch]]:
        first = piece.rows.first
        columns = {name: ROLES[role] for role, name in self.columns.items()}
        use_threads = self.n_threads > 1
        batches = read_batches(piece.path, columns, piece.rows.batch_rows, piece.rows, use_threads=use_threads)
        for batch in batches:
            if batch.num_rows:
                yield first, batch
                first += batch.num_rows

    def _score(self, piece: Piece, numbered: tuple[int, pa.RecordBatch]) -> tuple[int, Sequence[Any], FloatArray]:
        first, batch = numbered

        def score(start: int, n: int) -> tuple[Sequence[Any], FloatArray]:
            scorer = RowScorer(batch.schema, self.metrics, self.columns, self.policies)
            return scorer.score(batch.slice(start, n), first + start)

        try:
            return first, *score(0, batch.num_rows)
        except MetricsError as error:
            row, found = _first_fault(score, batch.num_rows, error)
            where = piece.path if row is None else f"{piece.path}, row {first + row}"
            raise type(found)(f"{where}: {found}") from error

    def _read_back(self, piece: Piece, parts: Parts) -> Scored:
        scored = read_summary(parts, piece.fragment, piece.part)
        if "query_id" not in self.columns:
            return scored
        path = parts.path(piece.fragment, piece.part)
        found = [fingerprints_of(keys_of(ids)) for _, ids in read_ids(path, "query_id", RowGroups(None, 0, None, None))]
        return replace(scored, fingerprints=_concatenated(found))


@dataclass(frozen=True, slots=True)
class PieceOfGroups:
    """Scores groups of long tables; a piece is a group.

    Args:
        metrics, policies: as for `evaluate`, the metrics parsed.
        groups: the judgements and rankings.
        parts, n_threads, call: as for `PieceOfRows`.
    """

    metrics: tuple[Metric, ...]
    policies: Policies
    groups: Groups
    parts: Parts | None
    n_threads: int
    call: str

    def __call__(self, piece: Piece) -> Scored:
        """Scores a group; one whose part is whole is not scored again.

        Raises:
            MetricsError: as `evaluate`.
            OSError: a file that cannot be read or written.
        """
        if self.parts is not None and self.parts.done(piece.fragment, piece.part):
            return read_summary(self.parts, piece.fragment, piece.part)
        import pyarrow as pa

        judged, retrieved = (self.groups.read(kind, piece.part) for kind in (Qrels, Run))
        with PartSink(self.parts, piece.fragment, piece.part, self.metrics) as sink:
            kind = judged.schema.field("query_id").type
            if not len(judged):
                unjudged = retrieved["query_id"].unique()
                if len(unjudged) and self.policies.unjudged_query == "error":
                    raise InputError(f"qrels judge nothing of the run's query {unjudged[0].as_py()!r}")
                sink.write(
                    {"query_id": pa.array([], kind)},
                    empty_values(0, len(self.metrics)),
                    n_rows=len(retrieved),
                    n_unjudged=len(unjudged),
                )
                return sink.scored
            qrels = long_table(judged, Qrels, self.policies.duplicate_judgements, lambda _: "the qrels").data
            run = long_table(retrieved, Run, None).data if len(retrieved) else _NO_RUN
            known = set(run.query_ids)
            n_missing = sum(query not in known for query in qrels.query_ids)
            if n_missing == len(qrels) and self.policies.missing == "skip":
                values = np.full((len(qrels), len(self.metrics)), np.nan)  # evaluate() refuses runs without any query
            else:
                policies, threads = self.policies, self.n_threads
                values = evaluate(qrels, run, self.metrics, policies=policies, n_threads=threads).values
            sink.write(
                {"query_id": pa.array(qrels.query_ids, kind)},
                values,
                n_rows=len(retrieved),
                n_missing=n_missing,
                n_unjudged=len(run) - len(qrels) + n_missing,
            )
        return sink.scored


_NO_RUN = Run(
    (),
    np.zeros(1, np.int64),
    KeyTable(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int32)),
    np.empty(0),
)


class PartSink:
    """Takes scores, writes them as a part if there is to be one, and sums up what they add to the whole."""

    def __init__(self, parts: Parts | None, fragment: int, part: int, metrics: Sequence[Metric]) -> None:
        self._parts, self._place, self._metrics = parts, (fragment, part), metrics
        self._stack = ExitStack()
        self._writer: Any = None
        self.scored = Scored(0, 0, 0, 0, tuple(Moments() for _ in metrics))  # what all of it adds to the whole

    def write(
        self,
        names: Mapping[str, pa.Array],
        values: FloatArray,
        *,
        n_rows: int | None = None,
        n_missing: int = 0,
        n_unjudged: int = 0,
    ) -> None:
        """The scores of some queries, (n_queries, n_metrics), beside columns that name them.

        Args:
            n_rows: how many were read for them; None: one a query.
            n_missing: how many of the queries have no ranking.
            n_unjudged: how many others have only a ranking.
        """
        before = self.scored
        found = [Moments.of(column, metric.aggregate) for column, metric in zip(values.T, self._metrics, strict=True)]
        self.scored = Scored(
            n_rows=before.n_rows + (len(values) if n_rows is None else n_rows),
            n_queries=before.n_queries + len(values),
            n_missing=before.n_missing + n_missing,
            n_unjudged=before.n_unjudged + n_unjudged,
            moments=tuple(one.merged(other) for one, other in zip(before.moments, found, strict=True)),
        )
        if self._parts is None:
            return
        batch = score_batch(names, list(map(str, self._metrics)), values)
        if self._writer is None:
            self._writer = self._stack.enter_context(self._parts.writer(*self._place, batch.schema))
        self._writer.write_batch(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None and error is None:
            self._writer.add_key_value_metadata({_SUMMARY: json.dumps(asdict(self.scored))})
        self._stack.__exit__(kind, error, traceback)


def read_summary(parts: Parts, fragment: int, part: int) -> Scored:
    """What a part adds to the whole, as it says itself."""
    from pyarrow import parquet

    with parts.path(fragment, part).open("rb") as file:
        summary = json.loads(parquet.read_metadata(file).metadata[_SUMMARY])
    return Scored(**summary | {"moments": tuple(Moments(**each) for each in summary["moments"])})


def read_ids(path: AnyPath, column: str, rows: RowGroups) -> Iterator[tuple[int, pa.Array]]:
    """The query ids of some rows of a file, in batches after the number of their first row."""
    first = rows.first
    for batch in read_batches(path, {column: "id"}, BATCH_ROWS, rows, use_threads=False):
        yield first, batch.column(0)
        first += batch.num_rows


def _concatenated(found: Sequence[UInt64Array]) -> UInt64Array | None:
    return np.concatenate(found) if found else None


def _first_fault(score: Callable[[int, int], object], n: int, error: MetricsError) -> tuple[int | None, MetricsError]:
    """The first row that cannot be scored, and why; None where rows fail only together."""
    start, end = 0, n
    while end - start > 1:
        middle = (start + end) // 2
        try:
            score(start, middle - start)
        except MetricsError:
            end = middle
        else:
            start = middle
    try:
        score(start, 1)
    except MetricsError as found:
        return start, found
    return None, error
