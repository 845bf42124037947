"""Long tables grouped by query out of core: rows go to files by a fingerprint of their query, a file at a time fits.

`python -m benchmarks grouping` has this loop beside polars (sink_parquet with PartitionBy) and duckdb (COPY with
PARTITION_BY): neither takes less CPU time. So no other engine is needed, rows at fault are known by file and number,
and a group, which may have to be made again, does not hang on the version of somebody's hash.

What is in memory: while rows are grouped, a batch of some tens of megabytes, also of long ids; then, for each thread,
the rows of a group. Groups are cut by rows and by bytes before compression, so that many queries and long ids make more
of them. Two things make them larger: a query is never split, and there are no more groups than files may be open.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics_core.columns import CONTENTS, ColumnKind, contents
from metrics_core.distinct import fingerprints_of
from metrics_core.errors import FileFormatError, InputError
from metrics_core.keys import decode_keys
from metrics_core.parts import whole_or_not_at_all
from metrics_core.policies import Policies
from metrics_core.remote import AnyPath, path_on
from metrics_core.sources.arrow import BATCH_ROWS, batches_of, is_frame, keys_of, long_columns
from metrics_core.tables import Paths, is_table, read_batches, row_groups, schema_of, table_files
from metrics_core.threads import ordered_map
from metrics_core.trec import Qrels, Run, read_qrels

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS: tuple[ColumnKind, ...] = ("id", "id", "number")
_NAMES = {Qrels: ("query_id", "doc_id", "relevance"), Run: ("query_id", "doc_id", "score")}
_DONE = "grouped.json"
_PIECE_ROWS = 4 * BATCH_ROWS

NamedBatches = Iterable[tuple[Callable[[int], str], "pa.RecordBatch"]]
"""Batches of three columns, each after what names its rows in messages."""


@dataclass(frozen=True, slots=True)
class LongForm:
    """What the columns of a long table are called, and what its ids are."""

    names: tuple[str, ...]  # query, document, number
    query: str  # "strings" or "integers"
    document: str

    def read(self, path: AnyPath) -> NamedBatches:
        """The rows of a file."""
        columns = dict(zip(self.names, _KINDS, strict=True))
        for piece in row_groups(path, _PIECE_ROWS):
            first = piece.first
            for batch in read_batches(path, columns, piece.batch_rows, piece):
                yield partial(_named, path, first), batch.select(list(self.names))
                first += batch.num_rows


def _named(where: object, first: int, row: int) -> str:
    return f"{where}, row {first + row}"


def named(what: str, batches: Iterable[pa.RecordBatch]) -> NamedBatches:
    """Batches of a table in memory that is called so."""
    first = 0
    for batch in batches:
        yield partial(_named, what, first), batch
        first += batch.num_rows


def long_form(schema: pa.Schema, kind: type[Qrels | Run], where: object) -> LongForm:
    """What a table with these columns is as judgements or rankings.

    Raises:
        FileFormatError: columns that are not recognised, or of other types; names where.
    """
    try:
        names = long_columns(schema.names, "qrels" if kind is Qrels else "run", kind)
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None
    found = [contents(schema.field(name).type) for name in names]
    for name, has, needed in zip(names, found, _KINDS, strict=True):
        if has not in CONTENTS[needed]:
            expected = " or ".join(CONTENTS[needed])
            raise FileFormatError(f"{where}: column {name!r} must hold {expected}, got {schema.field(name).type}")
    return LongForm(tuple(names), found[0], found[1])


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judgements of whatever kind as long tables: files, or batches in memory."""

    form: LongForm
    files: tuple[AnyPath, ...]
    forms: tuple[LongForm, ...]
    batches: tuple[pa.RecordBatch, ...]

    @classmethod
    def of(cls, qrels: Any, policies: Policies, filesystem: Any) -> Judgements:
        """What `evaluate_dataset` takes as judgements."""
        if is_frame(qrels):
            batches = tuple(batches_of(qrels))
        elif isinstance(qrels, (Mapping, Qrels)) or _is_trec(qrels, filesystem):
            if isinstance(qrels, Mapping):
                qrels = Qrels.from_dict(qrels)
            elif not isinstance(qrels, Qrels):
                qrels = read_qrels(qrels, duplicate_judgements=policies.duplicate_judgements)
            batches = tuple(_batches_of_qrels(qrels))
        else:
            if isinstance(qrels, bytes) or not isinstance(qrels, (str, os.PathLike, Sequence)):
                raise InputError(
                    "qrels must be a long table, files of one, a TREC file, a dict, or what read_qrels gives, "
                    f"got {type(qrels).__name__}"
                )
            files = [file.resolve() for file in table_files(qrels, filesystem)]
            forms = long_files(files, Qrels)
            return cls(forms[0], tuple(files), tuple(forms), ())
        if not batches:
            raise InputError("the qrels have no rows")
        return cls(long_form(batches[0].schema, Qrels, "the qrels"), (), (), batches)

    @property
    def digest(self) -> str | None:
        """What tells judgements in memory from others; files are told apart by themselves."""
        if self.files:
            return None
        digest = blake2b(digest_size=16)
        for name_of, batch in self.rows():
            digest.update(_checked(batch, _NAMES[Qrels], name_of).serialize())  # as it is written, no dictionary apart
        return digest.hexdigest()

    def rows(self) -> NamedBatches:
        """Batches of the three columns."""
        if self.files:
            return chain.from_iterable(form.read(file) for form, file in zip(self.forms, self.files, strict=True))
        return named("the qrels", (batch.select(list(self.form.names)) for batch in self.batches))


def _is_trec(qrels: Any, filesystem: Any) -> bool:
    """Whether a path is that of a file of judgements that is no table."""
    if not isinstance(qrels, (str, os.PathLike)):
        return False
    path = path_on(qrels, filesystem)
    return isinstance(path, Path) and not is_table(path) and path.is_file()


def long_files(files: Sequence[AnyPath], kind: type[Qrels | Run]) -> list[LongForm]:
    """The forms of files that hold ids of one kind."""
    schemas = ordered_map(schema_of, files, min(8, len(files)))
    forms = [long_form(schema, kind, file) for file, schema in zip(files, schemas, strict=True)]
    for file, form in zip(files, forms, strict=True):
        for of in ("query", "document"):
            one, other = getattr(form, of), getattr(forms[0], of)
            if one != other:
                raise FileFormatError(f"{file}: {of} ids are {one}, those of {files[0]} {other}; cast one")
    return forms


def read_long(paths: Paths, kind: type[Qrels | Run]) -> pa.Table:
    """Long tables in files, in memory: query_id, doc_id, and relevance or score.

    Raises:
        InputError, OSError: as `Groups.write`.
    """
    files = table_files(paths)
    read = zip(long_files(files, kind), files, strict=True)
    rows = chain.from_iterable(form.read(file) for form, file in read)
    batches = [_checked(batch, _NAMES[kind], name_of) for name_of, batch in rows]
    if not batches:
        raise InputError(f"there is not a row in {', '.join(map(str, files))}")
    import pyarrow as pa  # here, as the tables' readers say what to do where it is absent

    return pa.Table.from_batches(batches)


class Groups:
    """Judgements and rankings in a folder, in `n` groups of whole queries.

    Rows of a query keep their order.
    """

    def __init__(self, folder: AnyPath, n: int) -> None:
        self.folder, self.n = folder, n

    def path(self, kind: type[Qrels | Run], group: int) -> AnyPath:
        """The file of a group, of Arrow's IPC format."""
        return self.folder / f"{'judged' if kind is Qrels else 'retrieved'}-{group:05}.arrow"

    def read(self, kind: type[Qrels | Run], group: int) -> pa.Table:
        """A group's rows: query_id, doc_id, and relevance or score."""
        from pyarrow import ipc

        with self.path(kind, group).open("rb") as file:
            return ipc.open_file(file).read_all()

    def write(self, judged: NamedBatches, retrieved: NamedBatches, progress: Callable[[int], object]) -> None:
        """Groups the rows of both tables; `progress` is told how many are done.

        Raises:
            InputError: an id that is null, or a number that is null, NaN or infinite; names the row.
            OSError: a file that cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        sides: tuple[tuple[type[Qrels | Run], NamedBatches], ...] = ((Qrels, judged), (Run, retrieved))
        counts = {kind.__name__: self._write(kind, batches, progress) for kind, batches in sides}
        with whole_or_not_at_all(self.folder / _DONE) as temporary:
            temporary.write_text(json.dumps(counts), "utf-8")

    def counts(self, kind: type[Qrels | Run]) -> list[int]:
        """The rows of each group."""
        found: list[int] = json.loads((self.folder / _DONE).read_text("utf-8"))[kind.__name__]
        return found

    @property
    def written(self) -> bool:
        """Whether all groups are whole."""
        return (self.folder / _DONE).exists()

    def remove(self) -> None:
        """Removes them."""
        if self.folder.exists():
            found: list[AnyPath] = list(self.folder.iterdir())
            for path in found:
                path.unlink()
            self.folder.rmdir()

    def _write(self, kind: type[Qrels | Run], batches: NamedBatches, progress: Callable[[int], object]) -> list[int]:
        import pyarrow as pa

        counts = np.zeros(self.n, np.int64)
        writers: list[Any] = []
        with ExitStack() as stack:
            for name_of, batch in batches:
                checked = _checked(batch, _NAMES[kind], name_of)
                if not writers:
                    options = pa.ipc.IpcWriteOptions(compression="lz4")
                    for group in range(self.n):
                        file = stack.enter_context(self.path(kind, group).open("wb"))
                        writers.append(stack.enter_context(pa.ipc.new_file(file, checked.schema, options=options)))
                group_of = (fingerprints_of(keys_of(checked.column(0))) % np.uint64(self.n)).astype(np.uint16)
                sizes = np.bincount(group_of, minlength=self.n)
                rows = checked.take(pa.array(np.argsort(group_of, kind="stable")))
                start = 0
                for group in np.flatnonzero(sizes).tolist():
                    writers[group].write_batch(rows.slice(start, sizes[group]))
                    start += sizes[group]
                counts += sizes
                progress(len(rows))
        return [int(count) for count in counts]


def _checked(batch: pa.RecordBatch, names: Sequence[str], name_of: Callable[[int], str]) -> pa.RecordBatch:
    """Ids as large strings or 64-bit integers, numbers as finite floats.

    Raises:
        InputError: a null, NaN or an infinite number; an integer beyond 64 bits with a sign.
    """
    import pyarrow as pa

    columns = []
    for given, column, kind in zip(batch.schema.names, batch.columns, _KINDS, strict=True):
        target = pa.float64() if kind == "number" else pa.large_string()
        if kind == "id" and contents(column.type) == "integers":
            target = pa.int64()
        decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        if kind == "number" and pa.types.is_boolean(decoded.type):
            decoded = decoded.cast(pa.int8())
        cast = decoded.cast(target, safe=False)
        fault, expected = np.asarray(cast.is_null()), "an id"
        if kind == "number":
            fault, expected = fault | ~np.isfinite(cast.to_numpy(zero_copy_only=False)), "a finite number"
        elif pa.types.is_uint64(decoded.type):
            beyond = cast.fill_null(0).to_numpy() < 0
            fault, expected = fault | beyond, "an id, a 64-bit signed integer"
        if fault.any():
            row = int(np.flatnonzero(fault)[0])
            raise InputError(f"{name_of(row)}: {given!r} must be {expected}, got {column[row].as_py()!r}")
        columns.append(cast)
    return pa.RecordBatch.from_arrays(columns, list(names))


def _batches_of_qrels(qrels: Qrels) -> Iterator[pa.RecordBatch]:
    """Prepared judgements as a long table.

    Raises:
        InputError: a query that has none, or an id that is not UTF-8: neither has a place in such a table.
    """
    import pyarrow as pa

    lengths = np.diff(qrels.offsets)
    if not lengths.all():
        query = qrels.query_ids[int(np.flatnonzero(lengths == 0)[0])]
        raise InputError(f"the qrels have query {query!r} without any judgement, as no long table has; leave it out")

    def texts(ids: Sequence[str]) -> pa.Array:
        try:
            return pa.array(ids, pa.large_string())
        except UnicodeEncodeError as error:
            raise InputError(f"id {error.object!r} of the qrels is not UTF-8, as all of a table is") from None

    rows = np.repeat(np.arange(len(qrels)), lengths)
    queries = texts(qrels.query_ids)
    for start in range(0, rows.size, _PIECE_ROWS):
        at = slice(start, start + _PIECE_ROWS)
        yield pa.RecordBatch.from_pydict(
            {
                "query_id": queries.take(pa.array(rows[at])),
                "doc_id": texts(decode_keys(qrels.keys.take(at))),
                "relevance": pa.array(qrels.grades[at]),
            }
        )
