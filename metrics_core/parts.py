"""Results in parts that outlive an interruption: a manifest says what is computed, a part counts once it is whole."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from metrics_core import __version__
from metrics_core.errors import InputError
from metrics_core.remote import AnyPath, path_on

if TYPE_CHECKING:
    import pyarrow as pa

# Readers of folders of parquet (pyarrow, Spark) take no notice of names that begin so.
_MANIFEST, _SUMMARY = "_manifest.json", "_summary.json"
_TEMPORARY = ".tmp"
_OTHER_FILES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz")  # suffixes that mean a file, which parts are not


@dataclass(frozen=True, slots=True)
class Fragment:
    """A file that is read, and by what another file in its place would be noticed."""

    path: str  # absolute
    size: int  # bytes
    modified_ns: int  # since the epoch

    @classmethod
    def of(cls, path: AnyPath) -> Self:
        """The file as it is now; OSError if there is none."""
        found = path.stat()
        return cls(str(path.resolve()), found.st_size, found.st_mtime_ns)


class Parts:
    """A folder of parquet files, one a part, and the manifest of what they hold.

    Opened again with the same manifest, it knows the parts that are whole. Several processes may write parts at once.

    Args:
        folder: is made if it is not there.
        computed: what is computed, as plain values: whatever the results depend on.
        fragments: what it is computed from.

    Raises:
        InputError: the folder holds parts of another computation, or other files; names the difference.
        OSError: it cannot be written.
    """

    def __init__(self, folder: AnyPath, computed: Mapping[str, Any], fragments: Iterable[Fragment]) -> None:
        self.folder = folder
        manifest = {
            "version": __version__,
            "computed": dict(computed),
            "fragments": [asdict(fragment) for fragment in fragments],
        }
        manifest = json.loads(json.dumps(manifest))  # as it is read back
        if (folder / _MANIFEST).exists():
            _compare(json.loads((folder / _MANIFEST).read_text("utf-8")), manifest, folder)
            return
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} is there and is no folder of earlier parts; name another, or remove it")
        folder.mkdir(parents=True, exist_ok=True)
        with whole_or_not_at_all(folder / _MANIFEST) as temporary:
            temporary.write_text(json.dumps(manifest, indent=1), "utf-8")

    def path(self, fragment: int, part: int) -> AnyPath:
        """Where a part is, or will be: parts in the order of their names are in the order of the rows."""
        return self.folder / f"part-{fragment:05}-{part:06}.parquet"

    def done(self, fragment: int, part: int) -> bool:
        """Whether a part is whole."""
        return self.path(fragment, part).exists()

    def write(self, fragment: int, part: int, table: pa.Table) -> None:
        """Writes a part; until it is whole, its name does not exist.

        Raises:
            OSError: it cannot be written; nothing of it is left then.
        """
        from pyarrow import parquet

        with whole_or_not_at_all(self.path(fragment, part)) as temporary, temporary.open("wb") as file:
            parquet.write_table(table, file)

    @contextmanager
    def writer(self, fragment: int, part: int, schema: pa.Schema) -> Iterator[Any]:
        """A pyarrow.parquet.ParquetWriter of a part, for one that is not in memory as a whole; else as `write`."""
        from pyarrow import parquet

        with (
            whole_or_not_at_all(self.path(fragment, part)) as temporary,
            temporary.open("wb") as file,
            parquet.ParquetWriter(file, schema) as writer,
        ):
            yield writer

    def paths(self) -> list[AnyPath]:
        """The parts that are whole, in the order of the rows."""
        return sorted(self.folder.glob("part-*.parquet"), key=str)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Writes what came out of all parts as `_summary.json`; until then the folder is not complete.

        What workers left half-written that were killed is removed.
        """
        for path in self._half_written():
            path.unlink(missing_ok=True)
        with whole_or_not_at_all(self.folder / _SUMMARY) as temporary:
            temporary.write_text(json.dumps(dict(summary), indent=1), "utf-8")

    def remove(self) -> None:
        """Removes the folder with all that was written to it, also what was left half-written."""
        for path in [*self.paths(), *self._half_written(), self.folder / _SUMMARY, self.folder / _MANIFEST]:
            path.unlink(missing_ok=True)
        self.folder.rmdir()

    def _half_written(self) -> list[AnyPath]:
        return list(self.folder.glob(f".*{_TEMPORARY}"))


def output_of(
    out: str | os.PathLike[str], files: Iterable[AnyPath], filesystem: Any = None
) -> tuple[AnyPath | None, AnyPath]:
    """The file that is wanted in the end, if `out` names one (.parquet), and the folder of parts.

    Args:
        files: that are read, none of which may be replaced.

    Raises:
        InputError: a file that is no .parquet, a folder with that suffix, or one of the files.
    """
    path = path_on(out, filesystem)
    if path.suffix.lower() in _OTHER_FILES and not path.is_dir():
        raise InputError(f"out is {path}; name a .parquet file, or a folder without the suffix of a file")
    if path.suffix.lower() != ".parquet":
        return None, path
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file, or a folder without the suffix .parquet")
    if path.resolve() in {file.resolve() for file in files}:
        raise InputError(f"out is {path}, which is read; name another file")
    return path, path.with_name(f"{path.name}.parts")


def merge(paths: Sequence[AnyPath], into: AnyPath) -> None:
    """Writes the rows of parts as one parquet file, one part at a time in memory; whole, or not at all."""
    from pyarrow import parquet

    with paths[0].open("rb") as file:
        schema = parquet.read_schema(file).remove_metadata()
    with (
        whole_or_not_at_all(into) as temporary,
        temporary.open("wb") as written,
        parquet.ParquetWriter(written, schema) as writer,
    ):
        for path in paths:
            with path.open("rb") as file:
                writer.write_table(parquet.read_table(file).replace_schema_metadata())


@contextmanager
def whole_or_not_at_all(path: AnyPath) -> Iterator[Any]:
    """A temporary name beside a path, which becomes the path if all goes well."""
    temporary: Any = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename == str(temporary):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _compare(found: Mapping[str, Any], asked: Mapping[str, Any], folder: AnyPath) -> None:
    """Refuses to go on with what was computed otherwise."""
    advice = "name another folder, or remove this one"
    if found.get("version") != asked["version"]:
        raise InputError(
            f"{folder} holds parts of version {found.get('version')}, this is {asked['version']}; {advice}"
        )
    for name in dict.fromkeys([*found["computed"], *asked["computed"]]):
        before, now = (each["computed"].get(name) for each in (found, asked))
        if before != now:
            raise InputError(
                f"{folder} holds parts of another computation: {name} was {before!r}, now {now!r}; {advice}"
            )
    before, now = ({each["path"]: each for each in manifest["fragments"]} for manifest in (found, asked))
    for path in dict.fromkeys([*before, *now]):
        if path not in now:
            raise InputError(f"{folder} holds parts of {path}, too, which is not among the files now; {advice}")
        if path not in before:
            raise InputError(f"{folder} holds parts of other files: {path} is new; {advice}")
        if before[path] != now[path]:
            raise InputError(f"{folder} holds parts of {path} as it was before it changed; {advice}")
    if list(before) != list(now):
        raise InputError(f"{folder} holds parts of the same files in another order; {advice}")
