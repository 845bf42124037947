"""Rows in: parquet, JSONL, CSV and Arrow streams as record batches of a few columns, whose types are checked once."""

from __future__ import annotations

import glob
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from metrics_core.errors import FileFormatError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

ColumnKind: TypeAlias = Literal["text", "texts"]
"""What a column holds: "text" strings; "texts" strings, or lists of them."""

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a file, in order."""

    path: Path
    first: int  # row of the file, from 0
    batch: pa.RecordBatch

    def where(self, row: int) -> str:
        """The name of a row of the batch in messages, from 0."""
        return f"{self.path}, row {self.first + row}"


def table_files(paths: Paths) -> list[Path]:
    """The files that are meant by paths of files, folders (all tables in them) and glob patterns, each once.

    Raises:
        InputError: a path that means no file, or a file whose suffix is none of a table's.
    """
    found: dict[Path, None] = {}
    for given in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = Path(given)
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if _format_of(each) and not each.name.startswith((".", "_")))
        elif path.exists():
            if not _format_of(path):
                raise InputError(f"{path}: the suffix must be one of {', '.join(_READERS)} (or .gz after .jsonl)")
            files = [path]
        else:
            files = sorted(Path(each) for each in glob.glob(str(given), recursive=True))  # noqa: PTH207  # absolute, too
            files = [each for each in files if _format_of(each)]
        if not files:
            raise InputError(f"{path}: there is no such file, nor a folder or pattern with tables in it")
        found |= dict.fromkeys(files)
    if not found:
        raise InputError("paths must name at least one file, got none")
    return list(found)


def n_rows(path: Path) -> int | None:
    """How many rows a file has, where it says so without being read: a parquet file."""
    if _format_of(path) != ".parquet":
        return None
    with _named_errors(path):
        rows: int = _arrow().parquet.read_metadata(path).num_rows
        return rows


def read_rows(path: Path, columns: Mapping[str, ColumnKind], batch_rows: int) -> Iterator[Rows]:
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
    suffix = _format_of(path)
    assert suffix is not None, path
    first = 0
    with _named_errors(path):
        for batch in _recut(_READERS[suffix](path, columns, batch_rows), batch_rows):
            yield Rows(path, first, batch)
            first += batch.num_rows


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


def check_columns(schema: pa.Schema, columns: Mapping[str, ColumnKind], source: Path) -> None:
    """Holds a schema against the columns that are needed.

    Raises:
        FileFormatError: one is missing or of another type; names it, and what there is.
    """
    for name, kind in columns.items():
        if name not in schema.names:
            raise FileFormatError(f"{source}: there is no column {name!r}; it has {', '.join(map(repr, schema.names))}")
        found = schema.field(name).type
        if not _is_of_kind(found, kind):
            expected = {"text": "strings", "texts": "strings or lists of strings"}[kind]
            raise FileFormatError(f"{source}, column {name!r}: {expected} expected, got {found}")


def _is_of_kind(found: Any, kind: ColumnKind) -> bool:
    types = _arrow().types
    if types.is_dictionary(found):
        return _is_of_kind(found.value_type, kind)
    if kind == "texts" and (types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found)):
        return _is_of_kind(found.value_type, "text")
    return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))


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


def _read_parquet(path: Path, columns: Mapping[str, ColumnKind], batch_rows: int) -> Iterator[pa.RecordBatch]:
    with _arrow().parquet.ParquetFile(path) as file:
        check_columns(file.schema_arrow, columns, path)
        yield from file.iter_batches(batch_size=batch_rows, columns=list(columns))


def _read_csv(path: Path, columns: Mapping[str, ColumnKind], _batch_rows: int) -> Iterator[pa.RecordBatch]:
    arrow = _arrow()
    text = dict.fromkeys(columns, arrow.string())
    reader = arrow.csv.open_csv(
        path,
        parse_options=arrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow.csv.ConvertOptions(column_types=text, strings_can_be_null=False),
    )
    with reader:
        check_columns(reader.schema, columns, path)
        for batch in reader:
            yield batch.select(list(columns))


def _read_jsonl(path: Path, columns: Mapping[str, ColumnKind], batch_rows: int) -> Iterator[pa.RecordBatch]:
    arrow = _arrow()
    types = {"text": arrow.string(), "texts": arrow.list_(arrow.string())}
    schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
    values: dict[str, list[Any]] = {name: [] for name in columns}
    open_file = gzip.open if path.suffix.lower() == ".gz" else open
    with open_file(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = _object(line, f"{path}, line {number}")
            for name, kind in columns.items():
                values[name].append(_value(row, name, kind, f"{path}, line {number}"))
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


def _value(row: Mapping[str, Any], name: str, kind: ColumnKind, where: str) -> Any:
    if name not in row:
        raise FileFormatError(f"{where}: there is no {name!r}; it has {', '.join(map(repr, row))}")
    value = row[name]
    texts = value if kind == "texts" and isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            expected = "a string" if kind == "text" else "a string or a list of strings"
            raise FileFormatError(f"{where}, {name!r}: {expected} expected, got {value!r:.80}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise FileFormatError(f"{where}, {name!r}: half a surrogate pair in {text!a:.80}") from None
    return value if kind == "text" else texts


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    arrow = _arrow()
    try:
        yield
    except arrow.ArrowException as error:
        raise FileFormatError(f"{path}: {' '.join(str(error).split())}") from error


def _format_of(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if suffix == ".gz" and (inner := Path(path.stem).suffix.lower()) in (".jsonl", ".ndjson"):
        return inner
    return suffix if suffix in _READERS else None


def _arrow() -> Any:
    """The package, with the modules that are used here."""
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet  # an attribute of the package from now on
    except ImportError as error:
        raise ImportError("tables need pyarrow: pip install 'metrics-core[arrow]'") from error
    return pa


_Reader: TypeAlias = Callable[[Path, Mapping[str, ColumnKind], int], "Iterator[pa.RecordBatch]"]
_READERS: Mapping[str, _Reader] = {
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".csv": _read_csv,
}
