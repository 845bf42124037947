"""Qrels and runs: TREC files, read and written, and the two objects that hold them ready for many evaluations.

A file is read in blocks that end at line ends; threads parse them (the kernel releases the GIL) into ids, numbers and
the places where the query changes. Only the documents' ids are kept of the text, one after the other.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

import numpy as np

from metrics_core.blocks import ByteArray, FloatArray, Int32Array, IntArray, KeyTable
from metrics_core.compile import compiled
from metrics_core.errors import FileFormatError, InputError, PolicyError
from metrics_core.kernels import bytes as kernels
from metrics_core.keys import Id, decode_keys, file_keys, starts_of
from metrics_core.numbers import finite_floats
from metrics_core.policies import DuplicateJudgements
from metrics_core.repeats import settle_repeats
from metrics_core.threads import ordered_map, thread_count

PathLike: TypeAlias = str | os.PathLike[str]

_BLOCK = 1 << 20  # bytes of text: as fast as 4 MB for large files, and 0.2 ms against 4 for small ones
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\n\r\v\f"

_parse_lines = compiled(kernels.parse_lines, lambda text, *_: 3 * text.size)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _TrecData:
    """What a file of judgements or rankings holds; pickles."""

    query_ids: tuple[str, ...]  # in order of first appearance
    offsets: IntArray  # (n_queries + 1,) where each query's documents begin
    keys: KeyTable  # (n_documents,) the documents' ids; each query's in the order of the file
    values: FloatArray  # (n_documents,) grades or scores
    name: str | None = None  # of the file
    lines: IntArray | None = None  # (n_documents,) in the file, from 1; None: one after the other from the first

    def __len__(self) -> int:
        return len(self.query_ids)

    def __repr__(self) -> str:
        path = "" if self.name is None else f", path={self.name!r}"
        return f"{type(self).__name__}(queries={len(self)}, documents={self.values.size}{path})"

    def document(self, place: int) -> str:
        """The id of the document at a place, counted over all queries."""
        return decode_keys(self.keys.take(slice(place, place + 1)))[0]

    def line(self, place: int) -> int:
        """The line, from 1, of the document at a place in the file that was read."""
        return place + 1 if self.lines is None else int(self.lines[place])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Qrels(_TrecData):
    """Judgements, ready for many evaluations: made by `read_qrels` or `Qrels.from_dict`; pickles."""

    _nested: dict[str, dict[str, float]] = field(default_factory=dict, init=False)

    @classmethod
    def from_dict(cls, qrels: Mapping[Id, Mapping[Id, float]]) -> Qrels:
        """Judgements given as {query: {document: grade}}.

        Raises:
            InputError: ids that are neither str nor bytes, or both; grades that are no finite numbers.
        """
        return cls(*_flatten(qrels, "qrels", "grade"))

    @property
    def grades(self) -> FloatArray:
        """(n_documents,), query after query."""
        return self.values

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{query: {document: grade}}, whole grades as int."""
        return {query: dict(grades) for query, grades in self.nested().items()}

    def nested(self) -> Mapping[str, Mapping[str, float]]:
        """The same, made once and not to be changed: what evaluations against dicts read."""
        if not self._nested:
            self._nested.update(_nest(self, _plain_numbers(self.grades)))
        return self._nested

    def __reduce__(self) -> tuple[Any, ...]:  # leaves out the dicts
        return Qrels, (self.query_ids, self.offsets, self.keys, self.values, self.name, self.lines)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run(_TrecData):
    """Rankings, ready for evaluation: made by `read_run` or `Run.from_dict`; pickles.

    A document may be twice in a ranking; what that means is for the policies to say.
    """

    @classmethod
    def from_dict(cls, run: Mapping[Id, Mapping[Id, float]]) -> Run:
        """Rankings given as {query: {document: score}}.

        Raises:
            InputError: ids that are neither str nor bytes, or both; scores that are no finite numbers.
        """
        return cls(*_flatten(run, "run", "score"))

    @property
    def scores(self) -> FloatArray:
        """(n_documents,), query after query."""
        return self.values

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{query: {document: score}} in the file's order; of a document that is there twice, the last score."""
        return _nest(self, self.scores.tolist())

    def without_identical_ids(self) -> Run:
        """The run without the documents whose id is their query's."""
        same = []
        for query, begin, end in zip(self.query_ids, self.offsets.tolist(), self.offsets[1:].tolist(), strict=False):
            key = str(query).encode("utf-8", "surrogateescape")  # those of long tables may be integers
            places = begin + np.flatnonzero(self.keys.lengths[begin:end] == len(key))
            for i, byte in enumerate(key):
                places = places[self.keys.blob[self.keys.starts[places] + i] == byte]
            same.append(places)
        return _without(self, np.concatenate(same)) if same else self


_D = TypeVar("_D", Qrels, Run)


def _nest(data: _TrecData, values: Sequence[float]) -> dict[str, dict[str, float]]:
    ids = decode_keys(data.keys)
    ends = data.offsets.tolist()
    return {
        query: dict(zip(ids[begin:end], values[begin:end], strict=True))
        for query, begin, end in zip(data.query_ids, ends, ends[1:], strict=False)
    }


def _plain_numbers(values: FloatArray) -> list[float]:
    return [int(value) if value.is_integer() else value for value in values.tolist()]


def _flatten(
    rankings: Mapping[Id, Mapping[Id, float]], what: str, value_name: str
) -> tuple[tuple[str, ...], IntArray, KeyTable, FloatArray]:
    query_ids = tuple(decode_keys(file_keys(rankings)))
    for query, documents in rankings.items():
        if not isinstance(documents, Mapping):
            raise InputError(f"{what}[{query!r}] must map documents to {value_name}s, got {documents!r:.80}")
    offsets = np.zeros(len(rankings) + 1, np.int64)
    np.cumsum([len(documents) for documents in rankings.values()], out=offsets[1:])

    def describe(position: int) -> str:
        query = list(rankings)[int(np.searchsorted(offsets, position, side="right")) - 1]
        document = list(chain.from_iterable(rankings.values()))[position]
        return f"the {value_name} of document {document!r} for query {query!r}"

    values = finite_floats([*chain.from_iterable(documents.values() for documents in rankings.values())], describe)
    return query_ids, offsets, file_keys(chain.from_iterable(rankings.values())), values


@dataclass(frozen=True, slots=True)
class _Layout:
    columns: tuple[str, ...]
    document: int
    value: int
    required: int  # columns
    more: bool  # columns may follow

    def complaint(self, line: bytes) -> str:
        fields = line.split()
        if len(fields) < self.required or (len(fields) > self.required and not self.more):
            return (
                f"{len(self.columns)} columns expected ({', '.join(self.columns)}), got {len(fields)}: {_excerpt(line)}"
            )
        complaint = f"{self.columns[self.value]} must be a finite number, got {_excerpt(fields[self.value])}"
        if len(fields) == len(self.columns):
            return complaint
        return f"{complaint}, column {self.value + 1} of {len(fields)}; {', '.join(self.columns)} expected"


_QRELS = _Layout(("query", "iteration", "document", "relevance"), 2, 3, 4, False)
_BEIR_QRELS = _Layout(("query-id", "corpus-id", "score"), 1, 2, 3, False)
_RUN = _Layout(("query", "Q0", "document", "rank", "score", "tag"), 2, 4, 5, True)


def _excerpt(line: bytes) -> str:
    text = line.strip(_SPACE).decode("utf-8", "backslashreplace")
    shown = repr(text if len(text) <= 80 else f"{text[:77]}...")
    return f"{shown} (is this a text file?)" if b"\0" in line else shown


def read_qrels(
    path: PathLike, *, duplicate_judgements: DuplicateJudgements = "error", n_threads: int | None = None
) -> Qrels:
    """Reads judgements: TREC qrels (query, iteration, document, relevance) or BEIR's (with their header).

    Columns are separated by any ASCII white space; ids are bytes, kept whole (`#` begins no comment); lines of one
    query need not be adjacent; blank lines, a byte order mark and a missing line end at the end do no harm.

    Args:
        path: a file, plain or gzip (told by its content), or "-" for standard input.
        duplicate_judgements: a document judged twice for a query is refused ("error"), or the larger grade ("max") or
            the later one ("last") counts.
        n_threads: to parse with; None: as many as there are cores.

    Raises:
        FileFormatError: a malformed line or number, a document judged twice, no lines; names file and line.
        PolicyError: another duplicate_judgements.
        InputError: another n_threads.
        OSError: the file cannot be opened or read.
    """
    if duplicate_judgements not in get_args(DuplicateJudgements):
        choices = ", ".join(map(repr, get_args(DuplicateJudgements)))
        raise PolicyError(f"duplicate_judgements must be one of {choices}, got {duplicate_judgements!r}")
    qrels = _read(Qrels, path, _QRELS, n_threads)

    def refusal(repeats: IntArray, queries: IntArray) -> FileFormatError:
        line, place, query = min((qrels.line(i), i, q) for i, q in zip(repeats.tolist(), queries.tolist(), strict=True))
        return FileFormatError(
            f"{qrels.name}, line {line}: document {qrels.document(place)!r} is judged twice for query "
            f"{qrels.query_ids[query]!r}; remove one, or say which counts: duplicate_judgements='max' or "
            "duplicate_judgements='last'"
        )

    kept = settle_repeats(qrels.keys, qrels.grades, qrels.offsets, duplicate_judgements, refusal)
    return qrels if kept is None else _without(qrels, np.flatnonzero(~kept))


def _without(data: _D, places: IntArray) -> _D:
    """The data without the documents at `places`, which ascend."""
    kept = np.ones(data.values.size, np.bool_)
    kept[places] = False
    return type(data)(
        data.query_ids,
        data.offsets - np.searchsorted(places, data.offsets),
        data.keys.take(kept),
        data.values[kept],
        data.name,
        np.flatnonzero(kept) + 1 if data.lines is None else data.lines[kept],
    )


def read_run(path: PathLike, *, n_threads: int | None = None) -> Run:
    """Reads a TREC run: query, Q0, document, rank, score, and a tag that may be missing or followed by more.

    The rank is not used. White space, ids, line ends and arguments as in `read_qrels`. A document twice in a ranking
    is read as it stands.

    Raises:
        FileFormatError: a malformed line or number, no lines; names file and line.
        OSError: the file cannot be opened or read.
    """
    return _read(Run, path, _RUN, n_threads)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What a block of text holds, up to its first malformed line."""

    n_lines: int
    queries: list[bytes]  # of adjacent lines
    firsts: IntArray  # (n_groups,) the entry where each of them begins
    ids: ByteArray
    lengths: Int32Array  # (n_entries,)
    values: FloatArray  # (n_entries,)
    blank: IntArray  # the numbers of the blank lines, from 0
    malformed: tuple[int, bytes] | None  # a line's number, from 0, and its text


def _read(kind: type[_D], path: PathLike, layout: _Layout, n_threads: int | None) -> _D:
    name = "standard input" if path == "-" else os.fspath(path)
    chunks: deque[_Chunk] = deque()
    n_lines = 0
    try:
        with _opened(path) as file:
            blocks = _blocks(file)
            first = next(blocks, np.empty(0, np.uint8))
            layout = _settle_layout(first, layout, name)
            parse = partial(_parse, layout=layout)
            for chunk in ordered_map(parse, chain([first], blocks), thread_count(n_threads)):
                if chunk.malformed is not None:
                    if first[:4].tobytes() == _PARQUET and not first.all():  # a query may be called so, too
                        raise FileFormatError(
                            f"{name} is a parquet file: give evaluate its table (pyarrow.parquet.read_table), or "
                            "evaluate_dataset the path"
                        )
                    line, text = chunk.malformed
                    raise FileFormatError(f"{name}, line {n_lines + line + 1}: {layout.complaint(text)}")
                n_lines += chunk.n_lines
                chunks.append(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{name}: damaged gzip data: {error}") from error
    if not any(chunk.values.size for chunk in chunks):
        raise FileFormatError(f"{name}: empty; lines of {', '.join(layout.columns)} expected")
    return _gathered(kind, chunks, name)


@contextmanager
def _opened(path: PathLike) -> Iterator[io.BufferedIOBase]:
    """A binary file, decompressed if it begins as gzip does; standard input is read to its end and left open."""
    if path == "-" and sys.stdin is None:  # where the caller has closed it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
    with io.BufferedReader(io.BytesIO(sys.stdin.buffer.read())) if path == "-" else Path(path).open("rb") as file:
        if file.peek(2)[:2] != _GZIP:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as text:
            yield text


def _blocks(file: io.BufferedIOBase) -> Iterator[ByteArray]:
    """The text in blocks of about _BLOCK bytes that end at line ends; a last line without one gets it."""
    rest = b""
    while True:
        # A line longer than a block gets twice the room each time, so that the copying stays linear.
        text = bytearray(len(rest) + max(_BLOCK, len(rest)))
        text[: len(rest)] = rest
        size = len(rest) + file.readinto(memoryview(text)[len(rest) :])
        if size == len(rest):
            break
        end = text.rfind(b"\n", 0, size) + 1
        rest = bytes(text[end:size])
        if end:
            yield np.frombuffer(text, np.uint8, end)
    if rest:
        yield np.frombuffer(bytearray(rest + b"\n"), np.uint8)


def _settle_layout(text: ByteArray, layout: _Layout, name: str) -> _Layout:
    """Blanks a byte order mark and BEIR's header out of the first block; the header decides the layout of qrels."""
    if text[:3].tobytes() == _BOM:
        text[:3] = ord(" ")
    content = text.tobytes()
    end = 0
    line = b""
    while end < len(content) and not line.strip():
        begin, end = end, content.index(b"\n", end) + 1
        line = content[begin:end]
    if b"\r" in line.strip(_SPACE) and end == text.size:
        raise FileFormatError(f"{name}: lines end in carriage returns only; end them in line feeds")
    if layout is _QRELS and line.lower().replace(b"_", b"-").split() == [b"query-id", b"corpus-id", b"score"]:
        text[begin : end - 1] = ord(" ")
        return _BEIR_QRELS
    return layout


def _count_lines(text: ByteArray) -> int:
    return int(np.count_nonzero(text == ord("\n")))


def _parse(text: ByteArray, layout: _Layout) -> _Chunk:
    n_lines = _count_lines(text)
    ids = np.empty(text.size, np.uint8)
    lengths, values = np.empty(n_lines, np.int32), np.empty(n_lines)
    groups, blank, unsure = (
        np.empty((n_lines, 3), np.int64),
        np.empty(n_lines, np.int64),
        np.empty((n_lines, 4), np.int64),
    )
    n_bytes, n, n_groups, n_blank, n_unsure, stop = _parse_lines(
        text, layout.document, layout.value, layout.more, ids, lengths, values, groups, blank, unsure
    )
    for i, begin, end, line in unsure[:n_unsure].tolist():
        values[i] = float(text[begin:end].tobytes())
        if np.isinf(values[i]):
            stop = line
            break
    malformed = None
    if stop >= 0:
        malformed = _count_lines(text[:stop]), text[stop:].tobytes().split(b"\n", 1)[0]
    groups = groups[:n_groups]
    queries = [text[begin:end].tobytes() for begin, end in groups[:, 1:].tolist()]
    return _Chunk(
        n_lines,
        queries,
        groups[:, 0].copy(),
        ids[:n_bytes].copy(),
        lengths[:n],
        values[:n],
        blank[:n_blank].copy(),
        malformed,
    )


def _gathered(kind: type[_D], chunks: deque[_Chunk], name: str) -> _D:
    """The chunks' entries as one, those of a query together; empties `chunks`, to free them as they are copied."""
    n = sum(chunk.values.size for chunk in chunks)
    blob = np.empty(sum(chunk.ids.size for chunk in chunks), np.uint8)
    lengths, values = np.empty(n, np.int32), np.empty(n)
    numbers: dict[bytes, int] = {}
    group_queries, group_firsts, blanks = [], [], []
    n_bytes = n = n_lines = 0
    while chunks:
        chunk = chunks.popleft()
        size = chunk.values.size
        blob[n_bytes : n_bytes + chunk.ids.size] = chunk.ids
        lengths[n : n + size] = chunk.lengths
        values[n : n + size] = chunk.values
        group_queries += [numbers.setdefault(query, len(numbers)) for query in chunk.queries]
        group_firsts.append(chunk.firsts + n)
        blanks.append(chunk.blank + n_lines)
        n_bytes, n, n_lines = n_bytes + chunk.ids.size, n + size, n_lines + chunk.n_lines
    blank = np.concatenate(blanks)
    lines = np.delete(np.arange(1, n_lines + 1), blank) if blank.size else None
    query_ids = tuple(query.decode("utf-8", "surrogateescape") for query in numbers)
    starts = starts_of(lengths)
    queries, firsts = np.array(group_queries), np.concatenate(group_firsts)
    sizes = np.diff(firsts, append=n)
    offsets = np.zeros(len(numbers) + 1, np.int64)
    np.add.at(offsets, queries + 1, sizes)
    np.cumsum(offsets, out=offsets)
    if (np.diff(queries) < 0).any():  # a query comes back after others
        order = np.argsort(queries, kind="stable")
        sizes = sizes[order]
        places = np.repeat(firsts[order] - starts_of(sizes), sizes) + np.arange(n)
        starts, lengths, values = starts[places], lengths[places], values[places]
        lines = places + 1 if lines is None else lines[places]
    return kind(query_ids, offsets, KeyTable(blob, starts, lengths), values, name, lines)


def write_run(
    path: PathLike, run: Run | Mapping[Id, Mapping[Id, float] | Sequence[Id]], *, tag: str = "metrics-core"
) -> None:
    """Writes a TREC run; documents stay in the order they have, the rank is that of their score.

    Args:
        path: a file, compressed if the name ends in ".gz", or "-" for standard output.
        run: a Run, {query: {document: score}}, or {query: [document, best first]}, which get descending scores.
            Scores are written so that they read back as the same float.
        tag: the run's name, without white space.

    Raises:
        InputError: an id that is empty, holds white space or has no form in bytes; scores that are no finite numbers.
        OSError: the file cannot be written.
    """
    if not isinstance(run, Run):
        run = Run.from_dict({query: _scored(documents) for query, documents in run.items()})
    tag_bytes = b"".join(_written_ids(file_keys([tag]), "tag"))
    queries = _written_ids(file_keys(run.query_ids), "query id")
    documents = _written_ids(run.keys, "document id")
    scores = run.scores.tolist()
    lines: list[bytes] = []
    for query, begin, end in zip(queries, run.offsets.tolist(), run.offsets[1:].tolist(), strict=False):
        ranks = np.empty(end - begin, np.int64)
        ranks[np.argsort(-run.scores[begin:end], kind="stable")] = np.arange(1, end - begin + 1)
        lines += [
            b"%b Q0 %b %d %a %b\n" % (query, document, rank, score, tag_bytes)
            for document, rank, score in zip(documents[begin:end], ranks.tolist(), scores[begin:end], strict=True)
        ]
    _write(path, b"".join(lines))


def _scored(documents: Mapping[Id, float] | Sequence[Id]) -> Mapping[Id, float]:
    if isinstance(documents, Mapping):
        return documents
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Sequence):
        raise InputError(f"a ranking must be a dict of scores or a list of ids, got {documents!r:.80}")
    scored = {document: float(len(documents) - i) for i, document in enumerate(documents)}
    if len(scored) < len(documents):
        twice = next(document for i, document in enumerate(documents) if document in documents[:i])
        raise InputError(f"a ranking holds document {twice!r} twice; a run file may hold it once")
    return scored


def write_qrels(path: PathLike, qrels: Qrels | Mapping[Id, Mapping[Id, float]]) -> None:
    """Writes TREC qrels; path, ids and errors as in `write_run`. Whole grades are written without a point."""
    if not isinstance(qrels, Qrels):
        qrels = Qrels.from_dict(qrels)
    queries = _written_ids(file_keys(qrels.query_ids), "query id")
    documents = _written_ids(qrels.keys, "document id")
    lines = [
        b"%b 0 %b %a\n" % (query, document, grade)
        for query, document, grade in zip(
            chain.from_iterable(map(repeat, queries, np.diff(qrels.offsets).tolist())),
            documents,
            _plain_numbers(qrels.grades),
            strict=True,
        )
    ]
    _write(path, b"".join(lines))


def _written_ids(keys: KeyTable, what: str) -> list[bytes]:
    blob = keys.blob.tobytes()
    ids = [blob[start : start + n] for start, n in zip(keys.starts.tolist(), keys.lengths.tolist(), strict=True)]
    for key in ids:
        if key.split() != [key]:
            raise InputError(f"{what} {key.decode('utf-8', 'backslashreplace')!r} is empty or holds white space")
    return ids


def _write(path: PathLike, text: bytes) -> None:
    if text.startswith((_BOM, _GZIP)):
        raise InputError(f"the first query id begins with {text[:3]!r}, which a reader would take for a file's mark")
    if path == "-":
        sys.stdout.buffer.write(text)
        return
    Path(path).write_bytes(gzip.compress(text, mtime=0) if os.fspath(path).endswith(".gz") else text)
