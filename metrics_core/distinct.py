"""Ids that turn up in several pieces of a data set, found in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import numpy as np

from metrics_core.blocks import KeyTable, UInt64Array
from metrics_core.compile import compiled, hashing_steps
from metrics_core.kernels.bytes import fingerprints

_fingerprints = compiled(fingerprints, lambda _blob, _starts, lengths, _out: hashing_steps(lengths))

_IN_MEMORY = 1 << 22  # 50 MB
_BUCKETS = 256  # of a thousand million ids each has four million: 50 MB, too
_SHIFT = np.uint64(56)
_ENTRY = np.dtype([("fingerprint", np.uint64), ("piece", np.int32)])


def fingerprints_of(keys: KeyTable) -> UInt64Array:
    """(n_keys,) a number for each key; equal keys have equal ones, and different keys hardly ever."""
    found = np.empty(keys.starts.size, np.uint64)
    _fingerprints(keys.blob, keys.starts, keys.lengths, found)
    return found


class Fingerprints:
    """Fingerprints of ids by piece; many of them go to disk, where equal ones are found a bucket at a time."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []  # arrays of entries
        self._folder: TemporaryDirectory[str] | None = None

    def add(self, piece: int, fingerprints: UInt64Array) -> None:
        """Those of a piece's ids."""
        entries = np.empty(fingerprints.size, _ENTRY)
        entries["fingerprint"], entries["piece"] = fingerprints, piece
        self._waiting.append(entries)
        if sum(map(len, self._waiting)) > _IN_MEMORY:
            self._write()

    def repeated(self) -> Iterator[tuple[int, list[int]]]:
        """Fingerprints that came several times, and the pieces they came in; different ids may share one."""
        if self._folder is None:
            yield from _repeated(self._taken())
            return
        self._write()
        for path in sorted(Path(self._folder.name).iterdir()):
            yield from _repeated(np.fromfile(path, _ENTRY))

    def _taken(self) -> Any:
        """What waits, which then no longer does."""
        entries = np.concatenate([np.empty(0, _ENTRY), *self._waiting])
        self._waiting = []
        return entries

    def _write(self) -> None:
        """Moves what waits to the files of its buckets."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="metrics-core-ids-")
        entries = self._taken()
        buckets = (entries["fingerprint"] >> _SHIFT).astype(np.uint8)
        entries = entries[np.argsort(buckets, kind="stable")]
        start = 0
        for bucket, size in enumerate(np.bincount(buckets, minlength=_BUCKETS).tolist()):
            with (Path(self._folder.name) / f"{bucket:03}").open("ab") as file:
                entries[start : start + size].tofile(file)
            start += size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def _repeated(entries: Any) -> Iterator[tuple[int, list[int]]]:
    ordered = np.sort(entries["fingerprint"])
    for fingerprint in np.unique(ordered[1:][ordered[1:] == ordered[:-1]]):
        pieces = entries["piece"][entries["fingerprint"] == fingerprint]
        yield int(fingerprint), sorted(set(pieces.tolist()))
