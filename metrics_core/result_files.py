"""The files of run results: JSON or parquet, both readable without this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any

from metrics_core import export
from metrics_core.errors import FileFormatError, InputError
from metrics_core.extras import required
from metrics_core.lists import is_list
from metrics_core.parts import whole_or_not_at_all

FORMAT, VERSION = "metrics-core run result", 1
_METADATA = b"metrics-core"  # of a parquet file's schema


@dataclass(frozen=True)
class Run:
    """A run as its constructor takes it."""

    run_name: str
    inputs: Mapping[str, list[Any]]
    results: Mapping[str, Mapping[str, Any]]


def by_row(result: Mapping[str, Any], n_rows: int) -> dict[str, list[Any]]:
    """The entries of an evaluator's dict, beside its scores, that have one value a row."""
    return {
        name: list(values)
        for name, values in result.items()
        if name not in ("score", "individual_scores") and is_list(values) and len(values) == n_rows
    }


def write(path: str | PathLike[str], run: Run) -> None:
    """Writes a run; the file's ending chooses the format.

    Raises:
        InputError: another ending, or values that cannot be stored.
        OSError: the file cannot be written.
    """
    target = Path(path)
    writer = {".json": _write_json, ".parquet": _write_parquet}[_suffix(target)]
    with whole_or_not_at_all(target) as temporary:
        writer(temporary, run)


def read(path: str | PathLike[str]) -> Run:
    """Reads a run.

    Raises:
        FileFormatError: a file that is damaged, of another kind or another version.
        OSError: the file cannot be read.
    """
    source = Path(path)
    reader = {".json": _read_json, ".parquet": _read_parquet}[_suffix(source)]
    try:
        return reader(source)
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"{source}: damaged, or not written by save(): {error!r}") from error


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".parquet"):
        raise InputError(f"a run result is kept as .json or .parquet, got {str(path)!r}")
    return suffix


def _document(run: Run, inputs: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "run_name": run.run_name, "inputs": inputs, "results": results}


def _dumps(document: Mapping[str, Any]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")  # lone surrogates, which UTF-8 does not have, as JSON's \udfff


def _checked(document: Any, path: Path) -> Mapping[str, Any]:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise FileFormatError(f"{path}: not a run result that save() wrote")
    if document.get("version") != VERSION:
        raise FileFormatError(
            f"{path}: version {document.get('version')!r} of the format, and this metrics-core reads version {VERSION}"
        )
    if not all(isinstance(document.get(part), dict) for part in ("inputs", "results")):
        raise FileFormatError(f"{path}: damaged: it has no inputs or no results")
    return document


def _write_json(path: Path, run: Run) -> None:
    inputs = {name: export.plain(values, f"inputs[{name!r}]") for name, values in run.inputs.items()}
    results = {metric: export.plain(result, f"results[{metric!r}]") for metric, result in run.results.items()}
    path.write_bytes(_dumps(_document(run, inputs, results)))


def _read_json(path: Path) -> Run:
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not JSON, or cut off ({error})") from None
    document = _checked(document, path)
    results = {metric: result | {"score": _score(result)} for metric, result in document["results"].items()}
    return Run(document["run_name"], document["inputs"], results)


def _score(result: Mapping[str, Any]) -> float:
    return nan if result["score"] is None else result["score"]


def _write_parquet(path: Path, run: Run) -> None:
    """Inputs, scores and entries by row as columns; the metadata says which is which, and has all else."""
    n_rows = len(next(iter(run.inputs.values())))
    columns, results = dict(run.inputs), {}
    for metric, result in run.results.items():
        entries = by_row(result, n_rows)
        names = {name: f"{metric}_{name}" for name in entries}
        columns |= {metric: result["individual_scores"]} | {names[name]: values for name, values in entries.items()}
        others = {name: value for name, value in result.items() if name not in entries and name != "individual_scores"}
        results[metric] = {"columns": {"individual_scores": metric} | names, "others": export.plain(others, metric)}
    table = export.to_arrow(columns)
    document = _document(run, {name: name for name in run.inputs}, results)
    import pyarrow.parquet as pq

    pq.write_table(table.replace_schema_metadata({_METADATA: _dumps(document)}), path)


def _read_parquet(path: Path) -> Run:
    pa, pq = required("pyarrow", "arrow"), required("pyarrow.parquet", "arrow")
    try:
        with path.open("rb") as file:
            table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        if not path.is_file():
            raise
        raise FileFormatError(f"{path}: not parquet, or cut off ({error})") from None
    try:
        document = json.loads((table.schema.metadata or {}).get(_METADATA, b"null"))
    except ValueError as error:
        raise FileFormatError(f"{path}: damaged metadata ({error})") from None
    document = _checked(document, path)

    def column(name: str) -> list[Any]:
        values: list[Any] = table.column(name).to_pylist()
        if export.JSON_TEXT.items() <= (table.field(name).metadata or {}).items():
            return [None if value is None else json.loads(value) for value in values]
        return values

    results = {
        metric: {name: column(place) for name, place in parts["columns"].items()}
        | parts["others"]
        | {"score": _score(parts["others"])}
        for metric, parts in document["results"].items()
    }
    return Run(document["run_name"], {name: column(name) for name in document["inputs"]}, results)
