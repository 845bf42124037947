"""Rows in, from JSONL, CSV and parquet; judged rows out, as JSONL: a file appears whole or not at all."""

from __future__ import annotations

import ast
import csv
import json
import os
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from io import StringIO
from itertools import islice, pairwise
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, get_origin

from metrics_core.errors import FileFormatError, InputError

Row: TypeAlias = dict[str, Any]

_NOT_TEXT = (list, dict, int, float, bool)


def read_rows(path: Path, limit: int | None = None) -> list[Row]:
    """Reads a file of rows, {column: value} each; its format is that of its suffix.

    Args:
        path: .jsonl or .ndjson (objects, UTF-8), .csv (a header, UTF-8 with or without a byte order mark; every
            value is a str) or .parquet.
        limit: read no more rows than that.

    Raises:
        FileFormatError: what the file holds is not that; names the line.
        InputError: another suffix, or .parquet without pyarrow.
        OSError: the file cannot be read.
    """
    if (suffix := path.suffix.lower()) not in _READERS:
        raise InputError(f"{path}: the suffix must be one of {', '.join(_READERS)}")
    try:
        return list(islice(_READERS[suffix](path), limit))
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not UTF-8; convert it first") from None


def check_writable(path: Path) -> None:
    """Raises what `write_rows` would raise of a path, before anybody pays for the rows.

    Raises:
        InputError: another suffix than .jsonl or .ndjson, or a folder that is not there.
        OSError: a folder that cannot be written to.
    """
    if path.suffix.lower() not in {".jsonl", ".ndjson"}:
        raise InputError(f"{path}: judged rows are JSONL; name a file with the suffix .jsonl")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    temporary = _temporary(path)
    temporary.touch()
    temporary.unlink()


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Writes an object a line; until all are written the path keeps what it held."""
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as stream:
            write_jsonl(rows, stream)
        temporary.replace(path.resolve())
    finally:
        temporary.unlink(missing_ok=True)


def write_jsonl(rows: Iterable[Row], stream: BinaryIO) -> None:
    """Writes an object a line, as UTF-8; what is no finite number becomes null."""
    for row in rows:
        text = json.dumps(_without_nan(row), ensure_ascii=False, allow_nan=False, default=str)
        # What UTF-8 cannot hold, half a surrogate pair, becomes its JSON escape.
        stream.write(text.encode("utf-8", "backslashreplace") + b"\n")


def values_of(rows: Sequence[Row], column: str, kind: Any = Any) -> list[Any]:
    """A column as the items of one input of a judge, (n_rows,).

    Args:
        kind: the type of an item. Text in the place of a list, an object or a number is read as JSON or as a Python
            literal, as CSV files hold lists.

    Raises:
        InputError: a row that lacks the column or holds something else; names the row, from 1.
    """
    origin = get_origin(kind) or kind
    values = []
    for number, row in enumerate(rows, 1):
        if column not in row:
            raise InputError(f"row {number} has no {column!r}; it has {', '.join(map(repr, row))}")
        value = row[column]
        if isinstance(value, str) and origin in _NOT_TEXT:
            value = _literal(value, f"row {number}, {column!r}")
        if origin in (str, list, dict) and not isinstance(value, origin):
            raise InputError(f"row {number}, {column!r}: a {origin.__name__} expected, got {value!r:.100}")
        values.append(value)
    return values


def _literal(text: str, where: str) -> Any:
    text = text.strip()
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        value = ast.literal_eval(text)
        tokens = [
            token.type for token in tokenize.generate_tokens(StringIO(text).readline) if token.type != tokenize.NL
        ]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # all that they raise
        raise InputError(f"{where}: neither JSON nor a Python literal: {text!r:.100}") from None
    # NumPy prints arrays without commas, and Python joins adjacent strings: ['a' 'b'] would be read as ['ab']
    if (tokenize.STRING, tokenize.STRING) in pairwise(tokens):
        raise InputError(f"{where}: strings without a comma between them, as NumPy prints arrays: {text!r:.100}")
    return value


def _read_jsonl(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileFormatError(f"{path}, line {number}: not JSON ({error}): {line.strip()!r:.100}") from None
            if not isinstance(row, dict):
                raise FileFormatError(f"{path}, line {number}: an object expected, got {line.strip()!r:.100}")
            yield row


def _read_csv(path: Path) -> Iterator[Row]:
    limit = csv.field_size_limit(sys.maxsize)  # 128 KiB, which contexts reach; it is the process's
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = csv.DictReader(stream, strict=True)
        try:
            header = lines.fieldnames or []
            if not header or len(set(header)) < len(header):
                raise FileFormatError(f"{path}: a header of different names expected in its first line, got {header}")
            for row in lines:
                if None in row or None in row.values():  # cells beyond the header's, or too few
                    raise FileFormatError(f"{path}, line {lines.reader.line_num}: {len(header)} columns expected")
                yield row
        except csv.Error as error:
            raise FileFormatError(f"{path}, line {lines.reader.line_num}: {error}") from None
        finally:
            csv.field_size_limit(limit)


def _read_parquet(path: Path) -> Iterator[Row]:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise InputError("parquet files need pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise FileFormatError(f"{path}: {error}") from None


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _temporary(path: Path) -> Path:
    path = path.resolve()
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
