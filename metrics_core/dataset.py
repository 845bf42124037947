"""evaluate_dataset: files in, scores in parts out; on one machine or on many, resumed where it was interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np

from metrics_core.aggregate import Aggregate, AggregateName, Moments
from metrics_core.columns import contents
from metrics_core.distinct import Fingerprints, fingerprints_of
from metrics_core.errors import FileFormatError, InputError
from metrics_core.execution import ExecutorLike, check_executor, completed
from metrics_core.grouping import Groups, Judgements, long_files
from metrics_core.metrics import Metric, parse_all
from metrics_core.parts import Fragment, Parts, merge, output_of
from metrics_core.pieces import Piece, PieceOfGroups, PieceOfRows, Scored, read_ids
from metrics_core.policies import Policies
from metrics_core.remote import AnyPath
from metrics_core.scores import Scores, summary
from metrics_core.sources.arrow import keys_of
from metrics_core.tables import Paths, RowGroups, row_groups, schema_of, table_files
from metrics_core.tabular import ColumnIds, RowScorer
from metrics_core.threads import ordered_map, thread_count
from metrics_core.trec import Run

_PART_ROWS = 1 << 18
_DOCUMENTS = 4  # rows of long tables that are taken for a query: a million make a group
_DOCUMENT_BYTES = 64  # of such a row at most, on average, lest a group has fewer; and of a line of JSONL
_MOST_GROUPS = 400  # as each is an open file


@dataclass(frozen=True, slots=True)
class DatasetScores:
    """What became of a data set: the aggregates, and where the scores of each query are."""

    metrics: tuple[str, ...]  # canonical names
    aggregates: tuple[AggregateName, ...]  # (n_metrics,), how each metric is aggregated
    moments: tuple[Moments, ...]  # (n_metrics,)
    policies: Policies
    n_queries: int
    n_missing: int  # judged queries without a ranking, in long tables
    n_unjudged: int  # rankings without judgements, which are left out, in long tables
    paths: tuple[AnyPath, ...]  # parquet files of the scores, in the order of the data set; none without `out`

    def __len__(self) -> int:
        return self.n_queries

    @property
    def missing(self) -> tuple[()] | None:
        """As of `Scores`; None where there are some: only their number is known."""
        return None if self.n_missing else ()

    @property
    def unjudged(self) -> tuple[()] | None:
        """As of `Scores`; None where there are some: only their number is known."""
        return None if self.n_unjudged else ()

    def mean(self) -> dict[str, float]:
        """The arithmetic mean of each metric over the scored queries; NaN where none was scored."""
        return {name: each.aggregate().value for name, each in zip(self.metrics, self.moments, strict=True)}

    def aggregate(self) -> dict[str, Aggregate]:
        """Each metric's own aggregate (mean, sum of the counts, geometric mean), and how many queries it rests on."""
        return {
            name: each.aggregate(how)
            for name, how, each in zip(self.metrics, self.aggregates, self.moments, strict=True)
        }

    def scores(self) -> Scores:
        """The scores of all queries, read into memory; rows without a query id are numbered from 0.

        Raises:
            InputError: they were not kept, for want of `out`.
            OSError: they cannot be read.
        """
        from pyarrow import parquet

        if not self.paths:
            raise InputError("the scores of the queries were not kept; out= names a folder for them")
        values = np.empty((len(self.metrics), self.n_queries))
        ids, first = [], 0
        for path in self.paths:
            with path.open("rb") as file:
                table = parquet.read_table(file)
            for column, name in zip(values, self.metrics, strict=True):
                column[first : first + len(table)] = table[name].to_numpy()
            first += len(table)
            if "query_id" in table.column_names:
                ids.extend(table["query_id"].chunks)
        query_ids: Sequence[Any] = ColumnIds.concatenated([ColumnIds(each) for each in ids]) if ids else range(first)
        return Scores(
            values.T,
            self.metrics,
            query_ids,
            self.policies,
            self.aggregates,
            self.missing,
            self.unjudged,
            self.n_missing,
            self.n_unjudged,
        )

    def __repr__(self) -> str:
        return summary(self)


def evaluate_dataset(
    paths: Paths,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    qrels: Any = None,
    out: str | os.PathLike[str] | None = None,
    executor: ExecutorLike = None,
    columns: Mapping[str, str] | None = None,
    policies: Policies | str | None = None,
    n_threads: int | None = None,
    filesystem: Any = None,
    part_rows: int = _PART_ROWS,
    progress_bar: bool = False,
) -> DatasetScores:
    """Scores tables in files, some row groups of a file at a time.

    Each part of the scores is written once it is whole. After an interruption, or an error, the same call goes on with
    the parts that are missing; a call with other metrics, policies, columns or files is refused.

    Args:
        paths: parquet or JSONL files, folders of them, or glob patterns; or URIs of such. Without `qrels`, a row is a
            query with its ground truth; with them, a retrieved document: query, document, score, recognised by name or,
            where there are three columns, by order.
        metrics: names ("nDCG@10"), Metric objects, or a single one.
        qrels: the judgements, with a row a document: files as `paths`; a path of a TREC file; a dict, or a table in
            memory. Rows need not be in any order: both tables are grouped by query first, on disk. The order of the
            queries in the results is then none in particular. A group of about a million rows (more, beyond 400
            million in all) is in memory for each thread, and in it all rows of a query, however many there are.
        out: a folder, where parts of columns `query_id` (or `file` and `row`, from 0) and one a metric are left beside
            `_summary.json`, which is written last; null = not scored. Or a file, .parquet, made of them in the end.
            None: only the aggregates are wanted.
        executor: where the pieces are scored. None: in threads of this process; any Executor of concurrent.futures (a
            process pool; `client.get_executor()` of Dask); "ray": the cluster that this process is connected to, or a
            local one. Workers read the files and write the parts themselves, so they have to see both; and the groups
            of long tables, which are in `out`, or else where temporary files are.
        columns: names of columns by role, as for `evaluate_table`.
        policies: as for `evaluate_table`; with qrels, as for `evaluate`.
        n_threads: for each worker; None: as many as there are cores without an executor, else one. Neither scores nor
            aggregates depend on it, nor on the executor.
        filesystem: of pyarrow or fsspec, for `paths` and `out` where they are no URIs. None: the local one.
        part_rows: about how many rows of a parquet file make a part, a row group not being split; of long tables, four
            times as many, or fewer where rows are long.
        progress_bar: whether to show one, in rows, on standard error.

    Raises:
        FileFormatError: a file that cannot be read as what it is.
        MetricsError: what `evaluate_table` refuses, the same query id in two places included; names file, row and
            column. Parts of another computation in `out`.
        WorkerError: a worker died, and no other did its work; finished parts remain in `out`.
        ImportError: pyarrow, or Ray, is not installed.
        OSError: a file that cannot be read or written; parts that were written remain.
    """
    parsed = tuple(parse_all(metrics))
    check_executor(executor)
    threads = 1 if executor is not None and n_threads is None else thread_count(n_threads)
    if isinstance(part_rows, bool) or not isinstance(part_rows, int) or part_rows < 1:
        raise InputError(f"part_rows must be a positive integer, got {part_rows!r}")
    files = [file.resolve() for file in table_files(paths, filesystem)]
    call = _Call(parsed, out, executor, threads, filesystem, progress_bar)
    if qrels is None:
        return _evaluate_rows(call, files, columns, policies, part_rows)
    if columns is not None:
        raise InputError("columns names those of tables with a row a query; long tables have theirs by name or order")
    resolved = Policies.resolve(policies, default="trec_eval")
    resolved.refuse("ids of documents", "empty_key", "null_list")
    for metric in parsed:
        metric.check_ties(resolved)
    return _evaluate_long(call, files, qrels, resolved, part_rows * _DOCUMENTS)


@dataclass(frozen=True, slots=True)
class _Call:
    """What both kinds of tables are scored with."""

    metrics: tuple[Metric, ...]
    out: str | os.PathLike[str] | None
    executor: ExecutorLike
    n_threads: int
    filesystem: Any
    progress_bar: bool

    def output(self, computed: Mapping[str, Any], files: Sequence[AnyPath]) -> tuple[AnyPath | None, Parts | None]:
        """The file that is wanted in the end, if one is, and the folder of parts."""
        if self.out is None:
            return None, None
        target, folder = output_of(self.out, files, self.filesystem)
        return target, Parts(folder.resolve(), computed, map(Fragment.of, files))

    def threads_inside(self, n_pieces: int) -> int:
        """How many threads score a piece, where others score others if there are enough."""
        return self.n_threads if self.executor is not None or n_pieces < self.n_threads else 1

    @contextmanager
    def progress(self, doing: str, n_rows: int | None) -> Iterator[Callable[[int], object]]:
        """What is to be told of rows that are done."""
        if not self.progress_bar:
            yield lambda _: None
            return
        from tqdm import tqdm

        with tqdm(desc=doing, total=n_rows, unit="row", unit_scale=True, dynamic_ncols=True) as bar:
            yield bar.update

    def scored(
        self, work: Callable[[Piece], Scored], pieces: Sequence[Piece], id_column: str | None = None
    ) -> list[Scored]:
        """What each piece adds to the whole.

        Raises:
            InputError: the same query id in two places, if they are in a column of the pieces' files.
        """
        results: list[Any] = [None] * len(pieces)
        known = [piece.rows.n_rows for piece in pieces]
        total = None if None in known else sum(filter(None, known))
        outside = self.n_threads // self.threads_inside(len(pieces))
        with Fingerprints() as fingerprints, self.progress("scoring", total) as progress:
            for number, found in completed(work, pieces, self.executor, outside):
                if found.fingerprints is not None:
                    fingerprints.add(number, found.fingerprints)
                results[number] = replace(found, fingerprints=None)
                progress(found.n_rows)
            for fingerprint, places in fingerprints.repeated():
                assert id_column is not None
                _refuse_repeats(fingerprint, [pieces[place] for place in places], id_column)
        return results


def _evaluate_rows(
    call: _Call,
    files: Sequence[AnyPath],
    columns: Mapping[str, str] | None,
    policies: Policies | str | None,
    part_rows: int,
) -> DatasetScores:
    scorer = _scorer_of_all(files, call.metrics, columns, policies)
    pieces = [
        Piece(fragment, part, file, rows)
        for fragment, file in enumerate(files)
        for part, rows in enumerate(row_groups(file, part_rows))
    ]
    computed = _computed("a row a query", call.metrics, scorer.policies) | {"part_rows": part_rows}
    computed |= {f"column of {role}": name for role, name in scorer.roles.items()}
    target, parts = call.output(computed, files)
    inside = call.threads_inside(len(pieces))
    work = PieceOfRows(call.metrics, scorer.roles, policies, parts, inside, uuid4().hex)
    results = call.scored(work, pieces, scorer.roles.get("query_id"))
    if not sum(each.n_rows for each in results):
        raise InputError(f"there is not a row in {', '.join(map(str, files))}")
    return _finished(results, call.metrics, scorer.policies, target, parts)


def _evaluate_long(
    call: _Call, files: Sequence[AnyPath], qrels: Any, policies: Policies, group_rows: int
) -> DatasetScores:
    retrieved = long_files(files, Run)
    judged = Judgements.of(qrels, policies, call.filesystem)
    for of in ("query", "document"):
        one, other = getattr(judged.form, of), getattr(retrieved[0], of)
        if one != other:
            raise InputError(f"{of} ids are {one} in the qrels and {other} in {files[0]}: they would never match")
    sizes = map(_about_rows, (*files, *judged.files))
    n_groups = min(_MOST_GROUPS, 1 + sum(sizes) // group_rows)
    computed = _computed("long tables", call.metrics, policies) | {"qrels": judged.digest, "groups": n_groups}
    target, parts = call.output(computed, [*files, *judged.files])
    with ExitStack() as stack:
        if parts is not None:
            folder = parts.folder / "_groups"
        else:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="metrics-core-groups-"))) / "_groups"
        groups = Groups(folder, n_groups)
        finished = parts is not None and all(parts.done(0, number) for number in range(n_groups))
        if not finished and not groups.written:
            rows = chain.from_iterable(form.read(file) for form, file in zip(retrieved, files, strict=True))
            with call.progress("grouping", None) as progress:
                groups.write(judged.rows(), rows, progress)
        counts = [None] * n_groups if finished else groups.counts(Run)
        pieces = [Piece(0, number, folder, RowGroups(None, 0, n, None)) for number, n in enumerate(counts)]
        inside = call.threads_inside(n_groups)
        work = PieceOfGroups(call.metrics, policies, groups, parts, inside, uuid4().hex)
        results = call.scored(work, pieces)
        if policies.missing == "skip" and all(each.n_missing == each.n_queries for each in results):
            raise InputError(f"the qrels and {', '.join(map(str, files))} share no query")
        groups.remove()
    return _finished(results, call.metrics, policies, target, parts)


def _about_rows(file: AnyPath) -> int:
    """How many rows of a long table a file has, those being counted as several that are long."""
    found = row_groups(file, sys.maxsize)
    if found and found[0].n_rows is None:
        return file.stat().st_size // _DOCUMENT_BYTES
    return sum(max(piece.n_rows or 0, (piece.n_bytes or 0) // _DOCUMENT_BYTES) for piece in found)


def _scorer_of_all(
    files: Sequence[AnyPath],
    metrics: Sequence[Metric],
    columns: Mapping[str, str] | None,
    policies: Policies | str | None,
) -> RowScorer:
    """A scorer for files that all have the same columns.

    Raises:
        FileFormatError: one cannot be scored, or has other columns than the first.
    """
    first: RowScorer | None = None
    kinds: dict[str, str] = {}
    for file, schema in zip(files, ordered_map(schema_of, files, min(8, len(files))), strict=True):
        try:
            scorer = RowScorer(schema, metrics, columns, policies)
        except InputError as error:
            raise FileFormatError(f"{file}: {error}") from error
        found = {role: contents(schema.field(name).type) for role, name in scorer.roles.items()}
        for role in ("query_id", "ground_truth", "retrieved"):  # numbers of any type do
            if first is not None and found.get(role) != kinds.get(role):
                one, other = (each.get(role, "nothing") for each in (kinds, found))
                raise FileFormatError(f"{file}: the column for {role} holds {other}, that of {files[0]} {one}")
        if first is not None and found.keys() != kinds.keys():
            role = next(iter(found.keys() ^ kinds.keys()))
            has, lacks = (file, files[0]) if role in found else (files[0], file)
            raise FileFormatError(f"{has} has a column for {role}, {lacks} has none; a data set needs one or the other")
        if first is None:
            first, kinds = scorer, found
    assert first is not None
    return first


def _computed(form: str, metrics: Sequence[Metric], policies: Policies) -> dict[str, Any]:
    """Whatever the results depend on but the files, as plain values."""
    plain = {name: str(value) if isinstance(value, float) else value for name, value in policies.to_dict().items()}
    return {"form": form, "metrics": list(map(str, metrics))} | plain


def _refuse_repeats(fingerprint: int, pieces: Sequence[Piece], id_column: str) -> None:
    """Raises InputError if two of the query ids with this fingerprint are the same, not only their fingerprints."""
    places: dict[Any, str] = {}
    for piece in pieces:
        for first, ids in read_ids(piece.path, id_column, piece.rows):
            for row in np.flatnonzero(fingerprints_of(keys_of(ids)) == np.uint64(fingerprint)).tolist():
                query, place = ids[row].as_py(), f"{piece.path}, row {first + row}"
                if query in places:
                    raise InputError(f"query id {query!r} is in {places[query]}, and in {place}; ids must be distinct")
                places[query] = place


def _finished(
    results: Sequence[Scored],
    metrics: Sequence[Metric],
    policies: Policies,
    target: AnyPath | None,
    parts: Parts | None,
) -> DatasetScores:
    paths: tuple[AnyPath, ...] = ()
    if parts is not None:
        paths = (target,) if target is not None else tuple(parts.paths())
    found = DatasetScores(
        metrics=tuple(map(str, metrics)),
        aggregates=tuple(metric.aggregate for metric in metrics),
        moments=tuple(
            reduce(Moments.merged, column) for column in zip(*(each.moments for each in results), strict=True)
        ),
        policies=policies,
        n_queries=sum(each.n_queries for each in results),
        n_missing=sum(each.n_missing for each in results),
        n_unjudged=sum(each.n_unjudged for each in results),
        paths=paths,
    )
    if parts is not None and target is not None:
        merge(parts.paths(), target)
        parts.remove()
    elif parts is not None:
        counts = {name: getattr(found, name) for name in ("n_queries", "n_missing", "n_unjudged")}
        parts.finish(counts | {"metrics": {name: asdict(each) for name, each in found.aggregate().items()}})
    return found
