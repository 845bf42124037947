"""Rows in: parquet, JSONL, CSV and Arrow streams as record batches of a few columns, whose types are checked once."""

from __future__ import annotations

import glob
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from metrics_core.columns import CONTENTS, ColumnKind, contents
from metrics_core.errors import FileFormatError, InputError
from metrics_core.extras import required
from metrics_core.remote import AnyPath, RemotePath, path_on

if TYPE_CHECKING:
    import pyarrow as pa

_LOOKED_AT = 1000  # rows of a JSONL file that may tell what a column holds
# Of four times as many, two threads hold a quarter more memory, and take no less time.
_MOST_BATCH_ROWS, _FEWEST_BATCH_ROWS = 1 << 14, 256
_BATCH_BYTES = 1 << 25
_PRE_BUFFERED = 1 << 27  # bytes of a row group before compression
_READ_BUFFER = 1 << 20

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a file, in order."""

    path: AnyPath
    first: int  # row of the file, from 0
    batch: pa.RecordBatch

    def where(self, row: int) -> str:
        """The name of a row of the batch in messages, from 0."""
        return f"{self.path}, row {self.first + row}"


def table_files(paths: Paths, filesystem: Any = None) -> list[AnyPath]:
    """The files that are meant by paths of files, folders (all tables in them) and glob patterns, each once.

    Args:
        paths: on the local file system, or URIs ("s3://...").
        filesystem: of pyarrow or fsspec, where the paths are that are no URIs.

    Raises:
        InputError: no path, one that means no file, or a file whose suffix is none of a table's.
    """
    if isinstance(paths, bytes) or not isinstance(paths, (str, os.PathLike, Iterable)):
        raise InputError(f"paths must be a path or several, got {paths!r:.80}")
    found: dict[AnyPath, None] = {}
    for given in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = path_on(given, filesystem)
        if path.is_dir():
            files = _tables_in(path)
        elif path.exists():
            if not is_table(path):
                raise InputError(f"{path}: the suffix must be one of {', '.join(_READERS)} (or .gz after .jsonl)")
            files = [path]
        elif isinstance(path, RemotePath):
            files = list(filter(is_table, path.matches()))
        else:
            matches = map(Path, glob.glob(str(given), recursive=True))  # noqa: PTH207  # absolute, too
            files = [file for each in matches if is_table(each) for file in _files_of(each)]
        if not files and path.is_dir():
            raise InputError(f"{path}: there is no table in this folder ({', '.join(_READERS)})")
        if not files:
            raise InputError(f"{path}: there is no such file, nor a folder or pattern with tables in it")
        found |= dict.fromkeys(sorted(files, key=str))
    if not found:
        raise InputError("paths must name at least one file, got none")
    return list(found)


def _tables_in(folder: AnyPath) -> list[AnyPath]:
    found = [each for each in folder.iterdir() if is_table(each) and not each.name.startswith((".", "_"))]
    return [file for each in found for file in _files_of(each)]


def _files_of(table: AnyPath) -> list[AnyPath]:
    """A table's files: Spark writes a folder of them, mostly under the name of a file."""
    return _tables_in(table) if isinstance(table, Path) and table.is_dir() else [table]


def is_table(path: AnyPath) -> bool:
    """Whether the suffix is that of a table."""
    return _format_of(path) is not None


def means_tables(given: str | os.PathLike[str]) -> bool:
    """Whether a path is that of tables: a URI, a folder, a pattern, or a file whose suffix is a table's."""
    path = path_on(given)
    if isinstance(path, RemotePath) or path.is_dir() or is_table(path):
        return True
    return bool(set(path.name) & set("*?[")) and not path.exists()


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Rows of a file that lie together: some row groups of a parquet file, or all of another file."""

    numbers: tuple[int, ...] | None  # None: all of a file that has none
    first: int  # row of the file, from 0
    n_rows: int | None  # None: not known
    n_bytes: int | None  # before compression

    @property
    def batch_rows(self) -> int:
        """How many of the rows make a batch of some tens of megabytes at most, as rows are on average."""
        if not self.n_bytes or not self.n_rows:
            return _MOST_BATCH_ROWS // 2
        return min(_MOST_BATCH_ROWS, max(_FEWEST_BATCH_ROWS, _BATCH_BYTES * self.n_rows // self.n_bytes))


def schema_of(path: AnyPath) -> pa.Schema:
    """The columns of a file; of a JSONL file, those of its first object, whose values say what they hold.

    Raises:
        FileFormatError, ImportError, OSError: as `read_rows`.
    """
    with _named_errors(path):
        return _SCHEMAS[_known_format(path)](path)


def row_groups(path: AnyPath, n: int) -> list[RowGroups]:
    """A file in pieces of about `n` rows that can be read on their own; all of it where it cannot be read so.

    Raises:
        FileFormatError, ImportError, OSError: as `read_rows`.
    """
    if _format_of(path) != ".parquet":
        return [RowGroups(None, 0, None, None)]
    with _named_errors(path), path.open("rb") as file:
        metadata = _arrow().parquet.read_metadata(file)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    pieces: list[RowGroups] = []
    numbers: list[int] = []
    first = rows = size = 0
    for number, group in enumerate(groups):
        numbers.append(number)
        rows += group.num_rows
        size += group.total_byte_size
        if number + 1 == len(groups) or rows + groups[number + 1].num_rows > n:
            pieces.append(RowGroups(tuple(numbers), first, rows, size))
            numbers, first, rows, size = [], first + rows, 0, 0
    return pieces


def n_rows(path: AnyPath) -> int | None:
    """How many rows a file has, where it says so without being read: a parquet file."""
    counts = [piece.n_rows for piece in row_groups(path, 0)]
    return None if None in counts else sum(filter(None, counts))


def read_rows(path: AnyPath, columns: Mapping[str, ColumnKind], batch_rows: int) -> Iterator[Rows]:
    """The columns of a file, in batches of `batch_rows` rows, the last one shorter; a batch at a time is in memory.

    Args:
        path: .parquet; .jsonl or .ndjson (an object a line; also .gz), where a text may stand for a list of one; or
            .csv (a header; each cell is a text).
        columns: their kinds, by name.
        batch_rows: does not depend on how the file is cut inside.

    Raises:
        FileFormatError: a file that is none, a column that is missing or of another type; names file, column and, in
            text files, the line.
        ImportError: pyarrow is not installed.
        OSError: a file that cannot be read.
    """
    first = 0
    for batch in _recut(read_batches(path, columns, batch_rows), batch_rows):
        yield Rows(path, first, batch)
        first += batch.num_rows


def read_batches(
    path: AnyPath,
    columns: Mapping[str, ColumnKind],
    batch_rows: int,
    groups: RowGroups | None = None,
    *,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """As `read_rows`, of all of a file or some of its row groups, in batches of up to `batch_rows` as they come.

    Args:
        use_threads: whether columns may be read at the same time.
    """
    with _named_errors(path):
        numbers = None if groups is None else groups.numbers
        yield from _READERS[_known_format(path)](path, columns, batch_rows, numbers, use_threads)


def stream_rows(table: Any, columns: Mapping[str, ColumnKind], batch_rows: int) -> Iterator[Rows]:
    """As `read_rows`, of anything with the Arrow C stream interface (tables, data frames, readers).

    Raises:
        InputError: there is no such interface, or a column is missing or of another type.
        ImportError: pyarrow is not installed.
    """
    if not hasattr(table, "__arrow_c_stream__"):
        raise InputError(f"a table with the Arrow C stream interface is needed, got a {type(table).__name__}")
    reader = _arrow().RecordBatchReader.from_stream(table)
    name = Path(type(table).__name__)
    check_columns(reader.schema, columns, name)
    first = 0
    for batch in _recut((each.select(list(columns)) for each in reader), batch_rows):
        yield Rows(name, first, batch)
        first += batch.num_rows


def place_columns(path: AnyPath, first: int, n: int) -> dict[str, pa.Array]:
    """Columns `file` and `row` of `n` rows, which count from `first`: what names rows that have no ids."""
    arrow = _arrow()
    name = arrow.DictionaryArray.from_arrays(arrow.repeat(arrow.scalar(0, arrow.int32()), n), [str(path)])
    return {"file": name, "row": arrow.array(range(first, first + n), arrow.int64())}


def check_columns(schema: pa.Schema, columns: Mapping[str, ColumnKind], source: AnyPath) -> None:
    """Holds a schema against the columns that are needed.

    Raises:
        FileFormatError: one is missing or of another type; names it, and what there is.
    """
    for name, kind in columns.items():
        if name not in schema.names:
            raise FileFormatError(f"{source}: there is no column {name!r}; it has {', '.join(map(repr, schema.names))}")
        if schema.names.count(name) > 1:
            raise FileFormatError(f"{source}: there are {schema.names.count(name)} columns {name!r}; one is needed")
        found = schema.field(name).type
        if contents(found) not in CONTENTS[kind]:
            raise FileFormatError(f"{source}, column {name!r}: {' or '.join(CONTENTS[kind])} expected, got {found}")


def _recut(batches: Iterable[pa.RecordBatch], n: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of n."""
    arrow = _arrow()
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, n - n_waiting)
            waiting.append(piece)
            n_waiting += piece.num_rows
            start += piece.num_rows
            if n_waiting == n:
                yield arrow.concat_batches(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield arrow.concat_batches(waiting)


def _parquet_schema(path: AnyPath) -> pa.Schema:
    with path.open("rb") as file:
        return _arrow().parquet.read_schema(file)


def _read_parquet(
    path: AnyPath,
    columns: Mapping[str, ColumnKind],
    batch_rows: int,
    groups: tuple[int, ...] | None,
    use_threads: bool,
) -> Iterator[pa.RecordBatch]:
    arrow = _arrow()
    source = path if isinstance(path, Path) else path.open("rb")
    metadata = arrow.parquet.read_metadata(source)
    numbers = range(metadata.num_row_groups) if groups is None else groups
    largest = max((metadata.row_group(number).total_byte_size for number in numbers), default=0)
    # Pre-buffering reads the columns of a row group at once, in a fifth to a quarter less CPU time; one that makes most
    # of a huge file would fill the memory.
    pre_buffer = largest <= _PRE_BUFFERED
    options = {"pre_buffer": pre_buffer, "buffer_size": 0 if pre_buffer else _READ_BUFFER}
    with arrow.parquet.ParquetFile(source, metadata=metadata, **options) as parquet:
        check_columns(parquet.schema_arrow, columns, path)
        yield from parquet.iter_batches(batch_rows, list(numbers), list(columns), use_threads)


def _csv_reader(path: AnyPath, columns: Iterable[str] = ()) -> Any:
    """Reads some columns as text: what the first block seems to hold need not be true of the rest; or all, guessed."""
    arrow = _arrow()
    text = dict.fromkeys(columns, arrow.string())
    return arrow.csv.open_csv(
        path if isinstance(path, Path) else path.open("rb"),
        parse_options=arrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow.csv.ConvertOptions(
            column_types=text, include_columns=list(text), strings_can_be_null=False
        ),
    )


def _csv_schema(path: AnyPath) -> pa.Schema:
    arrow = _arrow()
    with _csv_reader(path) as reader:
        return arrow.schema([(name, arrow.string()) for name in reader.schema.names])


def _read_csv(
    path: AnyPath, columns: Mapping[str, ColumnKind], _batch_rows: int, _groups: tuple[int, ...] | None, _threads: bool
) -> Iterator[pa.RecordBatch]:
    check_columns(_csv_schema(path), columns, path)
    with _csv_reader(path, columns) as reader:
        yield from reader


def _jsonl_rows(path: AnyPath) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of the lines, each after where it is."""
    with path.open("rb") as file, gzip.open(file) if path.suffix.lower() == ".gz" else BufferedReader(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}, line {number}"
                yield where, _object(line, where)


def _jsonl_schema(path: AnyPath) -> pa.Schema:
    """The columns of the first object; a type by the first value that tells, strings where none does."""
    arrow = _arrow()
    types: dict[str, Any] = {}
    unknown: set[str] = set()
    for _, row in islice(_jsonl_rows(path), _LOOKED_AT):
        if not types:
            unknown = set(row)
            types = {
                name: arrow.list_(arrow.string()) if isinstance(row[name], list) else arrow.string() for name in row
            }
        for name in sorted(unknown & row.keys()):
            value = row[name]
            item = next((each for each in value if each is not None), None) if isinstance(value, list) else value
            kind = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}.get(
                type(item)
            )
            if kind is not None:
                types[name] = arrow.list_(kind) if isinstance(value, list) else kind
                unknown.discard(name)
        if not unknown:
            break
    return arrow.schema(types.items())


def _read_jsonl(
    path: AnyPath, columns: Mapping[str, ColumnKind], batch_rows: int, _groups: tuple[int, ...] | None, _threads: bool
) -> Iterator[pa.RecordBatch]:
    arrow = _arrow()
    types = {"text": arrow.string(), "texts": arrow.list_(arrow.string())}
    types |= {"number": arrow.float64(), "numbers": arrow.list_(arrow.float64())}
    chosen = {name: types[kind] for name, kind in columns.items() if kind in types}
    if len(chosen) < len(columns):  # ids, which are strings or integers
        ids = {name: kind for name, kind in columns.items() if name not in chosen}
        found = _jsonl_schema(path)
        check_columns(found, ids, path)
        chosen |= {name: found.field(name).type for name in ids}
    schema = arrow.schema([(name, chosen[name]) for name in columns])
    values: dict[str, list[Any]] = {name: [] for name in columns}
    for where, row in _jsonl_rows(path):
        for name, kind in columns.items():
            values[name].append(_value(row, name, kind, schema.field(name).type, where))
        if len(values[name]) == batch_rows:
            yield arrow.record_batch(list(values.values()), schema=schema)
            values = {name: [] for name in columns}
    yield arrow.record_batch(list(values.values()), schema=schema)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise FileFormatError(f"{where}: an object expected, got {row!r:.80}")
    return row


def _value(row: Mapping[str, Any], name: str, kind: ColumnKind, found: pa.DataType, where: str) -> Any:
    """The value of a column in a row, of a type that the column can take."""
    if name not in row:
        raise FileFormatError(f"{where}: there is no {name!r}; it has {', '.join(map(repr, row))}")
    value = row[name]
    if kind == "texts" and not isinstance(value, list):
        value = [value]
    may_be_null = kind not in ("text", "texts")
    if value is None and may_be_null:
        return None
    holds = contents(found).removeprefix("lists of ")
    types = {"strings": (str,), "integers": (int,), "floats": (int, float, bool)}[holds]
    is_list = isinstance(value, list)
    for item in value if is_list else [value]:
        if is_list != (kind in ("texts", "ids", "numbers")) or not (
            type(item) in types or (item is None and may_be_null)
        ):
            one = {"strings": "a string", "integers": "an integer", "floats": "a number"}[holds]
            expected = one if kind in ("text", "id", "number") else f"a list of {holds}"
            expected = "a string or a list of strings" if kind == "texts" else expected
            raise FileFormatError(f"{where}, {name!r}: {expected} expected, got {row[name]!r:.80}")
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError:
                raise FileFormatError(f"{where}, {name!r}: half a surrogate pair in {item!a:.80}") from None
    return value


@contextmanager
def _named_errors(path: AnyPath) -> Iterator[None]:
    arrow = _arrow()
    try:
        yield
    except arrow.ArrowException as error:
        raise FileFormatError(f"{path}: {' '.join(str(error).split())}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        # How Arrow reports what it cannot decode.
        raise FileFormatError(f"{path}: {' '.join(str(error).split())}") from error


def _known_format(path: AnyPath) -> str:
    suffix = _format_of(path)
    assert suffix is not None, path
    return suffix


def _format_of(path: AnyPath) -> str | None:
    suffix = path.suffix.lower()
    if suffix == ".gz" and (inner := Path(path.stem).suffix.lower()) in (".jsonl", ".ndjson"):
        return inner
    return suffix if suffix in _READERS else None


def _arrow() -> Any:
    """The package, with the modules that are used here."""
    pa = required("pyarrow", "arrow")
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401  # an attribute of the package from now on

    return pa


_Reader: TypeAlias = Callable[
    [AnyPath, Mapping[str, ColumnKind], int, tuple[int, ...] | None, bool], "Iterator[pa.RecordBatch]"
]
_READERS: Mapping[str, _Reader] = {
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".csv": _read_csv,
}
_SCHEMAS: Mapping[str, Callable[[AnyPath], pa.Schema]] = {
    ".parquet": _parquet_schema,
    ".jsonl": _jsonl_schema,
    ".ndjson": _jsonl_schema,
    ".csv": _csv_schema,
}
