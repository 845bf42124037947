"""Paths on file systems of pyarrow (S3, GCS, HDFS, fsspec's): what this package uses of pathlib's interface."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import Any, Self, TypeAlias

from metrics_core.errors import InputError

AnyPath: TypeAlias = "Path | RemotePath"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def path_on(given: str | os.PathLike[str], filesystem: Any = None) -> AnyPath:
    """A path on a file system of pyarrow or fsspec, or on the local one; a URI says itself where it is.

    Raises:
        InputError: no path.
    """
    if isinstance(given, RemotePath):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(f"a path must be a string or a Path, got {given!r:.80}")
    text = os.fspath(given)
    if _URI.match(text):
        from pyarrow import fs

        filesystem, text = fs.FileSystem.from_uri(text)
    if filesystem is None or getattr(filesystem, "type_name", None) == "local":
        return Path(text)
    if not hasattr(filesystem, "type_name"):  # of fsspec
        from pyarrow import fs

        filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    return RemotePath(text, filesystem)


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells a file from another in its place, named as os.stat names it."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemotePath(os.PathLike[str]):
    """A path on a file system of pyarrow; methods are those of pathlib.Path.

    Where a file system cannot rename, `replace` copies and removes; a file that is written there appears when it is
    closed.
    """

    path: str
    filesystem: Any = field(hash=False)  # pyarrow.fs.FileSystem

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def __lt__(self, other: RemotePath) -> bool:
        return self.path < other.path

    def __truediv__(self, name: str) -> Self:
        return self._at(PurePosixPath(self.path) / name)

    def _at(self, path: str | PurePosixPath) -> Self:
        return type(self)(str(path), self.filesystem)

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.path).stem

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return PurePosixPath(self.path).suffix

    def with_name(self, name: str) -> Self:
        """The path of something else in the same folder."""
        return self._at(PurePosixPath(self.path).with_name(name))

    def resolve(self) -> Self:
        """The path itself: there are no relative ones."""
        return self

    def _info(self) -> Any:
        return self.filesystem.get_file_info(self.path)

    def exists(self) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._info().type.name != "NotFound")

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return bool(self._info().type.name == "Directory")

    def stat(self) -> FileState:
        """Size and time of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        info = self._info()
        if info.type.name == "NotFound":
            raise FileNotFoundError(2, "no such file", self.path)
        return FileState(info.size or 0, info.mtime_ns or 0)

    def iterdir(self) -> Iterator[Self]:
        """What is in a folder."""
        from pyarrow.fs import FileSelector

        for info in self.filesystem.get_file_info(FileSelector(self.path)):
            yield self._at(info.path)

    def glob(self, pattern: str) -> Iterator[Self]:
        """What is in a folder under names of this pattern."""
        matches = re.compile(translate(pattern)).match
        return (each for each in self.iterdir() if matches(each.name))

    def matches(self) -> Iterator[Self]:
        """The files that the path means as a pattern; its folders before the first wildcard are searched."""
        from pyarrow.fs import FileSelector

        parts = PurePosixPath(self.path).parts
        plain = next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
        base = str(PurePosixPath(*parts[:plain])) if plain else ""
        selector = FileSelector(base, recursive=True, allow_not_found=True)
        matches = re.compile(_pattern(self.path)).fullmatch
        for info in self.filesystem.get_file_info(selector):
            if info.type.name == "File" and matches(info.path):
                yield self._at(info.path)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:  # noqa: ARG002  # as pathlib
        """Makes a folder."""
        self.filesystem.create_dir(self.path, recursive=parents)

    def open(self, mode: str) -> Any:
        """A file to be read ("rb") or written ("wb"), in bytes."""
        return (
            self.filesystem.open_output_stream(self.path)
            if mode == "wb"
            else self.filesystem.open_input_file(self.path)
        )

    def read_text(self, encoding: str) -> str:
        """All of a file."""
        with self.open("rb") as file:
            return str(file.read(), encoding)

    def write_text(self, text: str, encoding: str) -> None:
        """Writes a file."""
        with self.open("wb") as file:
            file.write(text.encode(encoding))

    def replace(self, target: RemotePath) -> None:
        """Renames it; what was there before is gone."""
        self.filesystem.move(self.path, target.path)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes a file."""
        try:
            self.filesystem.delete_file(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmdir(self) -> None:
        """Removes a folder."""
        self.filesystem.delete_dir(self.path)


def _pattern(path: str) -> str:
    """A glob pattern as a regular expression: * stays within a folder, ** does not."""
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        pieces[token] if token in pieces else token.replace("[!", "[^") if token.startswith("[") else re.escape(token)
        for token in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", path)
    )
