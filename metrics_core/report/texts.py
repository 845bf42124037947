"""The texts of queries and documents: mappings, or files of which only what is wanted is kept."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from metrics_core.errors import FileFormatError, InputError

Texts: TypeAlias = Mapping[Any, str] | str | os.PathLike[str]

_GZIP = b"\x1f\x8b"
_IDS = ("_id", "id", "docid", "doc_id", "query_id", "qid")
_BODIES = ("text", "contents", "content", "body", "question", "query")


def texts_of(source: Texts, wanted: Collection[Any], name: str) -> dict[Any, str]:
    """{id: text} for those of the wanted ids that the source has.

    Args:
        source: {id: text}, or the path of a file, plain or gzip: lines of JSON with an id and a text, maybe a title
            (BEIR's), or of an id, a tab and a text.
        wanted: ids.
        name: of the argument, for messages.

    Raises:
        InputError: the source is neither, or a text is no string.
        FileFormatError: a line that is neither; names file and line.
        OSError: a file that cannot be read.
    """
    if isinstance(source, Mapping):
        found = {each: source[each] for each in wanted if each in source}
    elif isinstance(source, (str, os.PathLike)):
        sought = {str(each): each for each in wanted}  # ids of other inputs may be integers
        found = {sought[each]: text for each, text in _read(Path(source)) if each in sought}
    else:
        raise InputError(f"{name} must be {{id: text}} or the path of a file, got {source!r:.80}")
    for each, text in found.items():
        if not isinstance(text, str):
            raise InputError(f"{name}: the text of {each!r} must be a string, got {text!r:.80}")
    return found


def _read(path: Path) -> Iterator[tuple[str, str]]:
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            stripped = line.strip("\r\n")
            if not stripped.strip():
                continue
            if stripped.lstrip().startswith("{"):
                yield _of_json(stripped, path, number)
            else:
                key, tab, text = stripped.partition("\t")
                if not tab:
                    raise FileFormatError(
                        f"{path}, line {number}: an id, a tab and a text expected, got {stripped!r:.80}"
                    )
                yield key.strip(), text.replace("\t", " ")


@contextmanager
def _opened(path: Path) -> Iterator[io.TextIOBase]:
    with path.open("rb") as file:
        zipped = file.peek(2)[:2] == _GZIP
        unzipped: Any = gzip.GzipFile(fileobj=file) if zipped else file
        with io.TextIOWrapper(unzipped, "utf-8-sig", "surrogateescape", newline="\n") as text:
            yield text


def _of_json(line: str, path: Path, number: int) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FileFormatError(f"{path}, line {number}: not JSON ({error})") from None
    key = next((row[name] for name in _IDS if name in row), None)
    body = next((row[name] for name in _BODIES if name in row), None)
    if key is None or body is None:
        raise FileFormatError(
            f"{path}, line {number}: an id ({', '.join(_IDS)}) and a text ({', '.join(_BODIES)}) expected, got "
            f"{', '.join(row)}"
        )
    title = row.get("title")
    return str(key), f"{title} — {body}" if title else str(body)
