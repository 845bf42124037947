"""Ids that turn up in several pieces of a data set, found in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import numpy as np

from metrics_core.blocks import KeyTable, UInt64Array
from metrics_core.compile import compiled
from metrics_core.kernels.bytes import fingerprints

_fingerprints = compiled(fingerprints)

_BUCKETS = 256  # of a thousand million ids each has four million: 48 MB
_SHIFT = np.uint64(56)
_ENTRY = np.dtype([("fingerprint", np.uint64), ("piece", np.int32)])


def fingerprints_of(keys: KeyTable) -> UInt64Array:
    """(n_keys,) a number for each key; equal keys have equal ones, and different keys hardly ever."""
    found = np.empty(keys.starts.size, np.uint64)
    _fingerprints(keys.blob, keys.starts, keys.lengths, found)
    return found


class Fingerprints:
    """Fingerprints of ids by piece, on disk; equal ones are found a bucket at a time."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="metrics-core-ids-")

    def add(self, piece: int, fingerprints: UInt64Array) -> None:
        """Those of a piece's ids."""
        entries = np.empty(fingerprints.size, _ENTRY)
        entries["fingerprint"], entries["piece"] = np.sort(fingerprints), piece
        buckets = (entries["fingerprint"] >> _SHIFT).astype(np.int64)
        bounds = np.searchsorted(buckets, np.arange(_BUCKETS + 1))
        for bucket in np.flatnonzero(np.diff(bounds)).tolist():
            with self._path(bucket).open("ab") as file:
                entries[bounds[bucket] : bounds[bucket + 1]].tofile(file)

    def repeated(self) -> Iterator[tuple[int, list[int]]]:
        """Fingerprints that came several times, and the pieces they came in; different ids may share one."""
        for bucket in range(_BUCKETS):
            path = self._path(bucket)
            if not path.exists():
                continue
            entries = np.fromfile(path, _ENTRY)
            entries = entries[np.argsort(entries["fingerprint"], kind="stable")]
            same = np.flatnonzero(entries["fingerprint"][1:] == entries["fingerprint"][:-1])
            for fingerprint in np.unique(entries["fingerprint"][same]):
                pieces = entries["piece"][entries["fingerprint"] == fingerprint]
                yield int(fingerprint), sorted(set(pieces.tolist()))

    def _path(self, bucket: int) -> Path:
        return Path(self._folder.name) / f"{bucket:03}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._folder.cleanup()
