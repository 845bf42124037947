"""What users have of Haystack's run results: its objects, and the reports that were saved of them."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from metrics_core.errors import FileFormatError, InputError

Columns: TypeAlias = dict[str, list[Any]]
Parts: TypeAlias = tuple[str, Mapping[str, Any], Mapping[str, Any]]


def read(result: Any, score_report: Any, run_name: str | None, metrics: Sequence[str] | None) -> Parts:
    """The run name, inputs and results of what `EvaluationRunResult.from_haystack` takes; errors as there."""
    if all(hasattr(result, name) for name in ("run_name", "inputs", "results")):
        return run_name or result.run_name, result.inputs, result.results
    columns = _columns(result)
    scores = None if score_report is None else _score_report(score_report)
    columns = _of_run(columns, run_name)
    if metrics is None:
        metrics = list(scores) if scores is not None else _last_numeric(columns)
    if missing := [name for name in metrics if name not in columns]:
        raise InputError(f"the report has no column {missing[0]!r}; it has {', '.join(map(repr, columns))}")
    name = run_name or (Path(result).stem if isinstance(result, (str, PathLike)) else "haystack")
    results = {
        metric: {
            "score": None if scores is None else scores.get(metric),
            "individual_scores": [_number(value, metric, row) for row, value in enumerate(columns[metric])],
        }
        for metric in metrics
    }
    return name, {column: _lists(values) for column, values in columns.items() if column not in metrics}, results


def _columns(report: Any) -> Columns:
    """The columns of a report, in their order."""
    if isinstance(report, (str, PathLike)):
        path = Path(report)
        report = _json(path) if path.suffix.lower() == ".json" else _csv(path)
    if hasattr(report, "columns") and hasattr(report, "__getitem__"):  # a data frame of pandas or polars
        report = {name: list(report[name]) for name in report.columns}
    if not isinstance(report, Mapping) or not all(isinstance(values, list) for values in report.values()):
        raise InputError(f"a report of Haystack's is a path, a dict of lists or a data frame, got {report!r:.80}")
    return dict(report)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except ValueError as error:
        raise FileFormatError(f"{path}: not JSON ({error})") from None


def _csv(path: Path) -> Columns:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file, strict=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: not CSV in UTF-8 ({error})") from None
    except ValueError:
        raise FileFormatError(f"{path}: empty") from None
    for row, cells in enumerate(rows):
        if len(cells) != len(header):
            raise FileFormatError(f"{path}, row {row}: {len(header)} cells expected, got {len(cells)}")
    if len(set(header)) < len(header):
        raise FileFormatError(f"{path}: two columns have one name")
    return {name: [cells[place] for cells in rows] for place, name in enumerate(header)}


def _score_report(report: Any) -> dict[str, float]:
    columns = _columns(report)
    if not {"metrics", "score"} <= columns.keys():
        raise InputError(f"a score report has the columns 'metrics' and 'score', got {', '.join(map(repr, columns))}")
    return {
        str(metric): _number(score, "score", row)
        for row, (metric, score) in enumerate(zip(columns["metrics"], columns["score"], strict=True))
    }


def _of_run(columns: Columns, run_name: str | None) -> Columns:
    """Of a comparative report the columns of one run, under their own names; others as they are."""
    compared = list(_compared_runs(columns))
    for runs, _ in compared:
        if run_name in runs:
            return runs[run_name]
    # One column each may be a pair of metrics, such as recall_single_hit and recall_multi_hit
    likely = max(
        ((n, len("".join(runs)), runs) for runs, n in compared if n > 1), key=lambda found: found[:2], default=None
    )
    if likely:
        names = " and ".join(map(repr, likely[-1]))
        raise InputError(f"the report compares {names}; run_name= takes one of them, got {run_name!r}")
    return columns


def _compared_runs(columns: Columns) -> Iterator[tuple[dict[str, Columns], int]]:
    """The columns of each of the two runs of what may be a comparative report, and how many are its own.

    Such a report ends with the columns `<run>_<column>` of one run; those of the other stand before, in the same order
    but among the columns that are shown once. Where a run's name ends and a column's begins can only be guessed.
    """
    names = list(columns)
    last = names[-1] if names else ""
    for place in (place for place, character in enumerate(last) if character == "_"):
        second = last[: place + 1]
        n_before = next((n for n in range(len(names), 0, -1) if not names[n - 1].startswith(second)), 0)
        before, own = names[:n_before], [name.removeprefix(second) for name in names[n_before:]]
        for first in {name.removesuffix(own[-1]) for name in before if name.endswith(f"_{own[-1]}")}:
            if [name.removeprefix(first) for name in before if name.startswith(first)] == own:
                once = {name: columns[name] for name in before if not name.startswith(first)}
                runs = {
                    run.removesuffix("_"): once | {name: columns[run + name] for name in own} for run in (first, second)
                }
                yield runs, len(own)


def _last_numeric(columns: Columns) -> list[str]:
    """The metrics of a detailed report: the last columns that hold nothing but numbers."""
    found: list[str] = []
    for name, values in reversed(columns.items()):
        try:
            numbers = [_number(value, name, row) for row, value in enumerate(values)]
        except InputError:
            break
        if all(map(isnan, numbers)):  # as likely an input without values
            break
        found.insert(0, name)
    if len(found) == len(columns):
        raise InputError("all columns of the report hold numbers; metrics= must name those that are metrics")
    return found


def _number(value: Any, name: str, row: int) -> float:
    """The number of a cell; NaN of an empty one."""
    if value is None or value == "":
        return nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name!r} is no metric: {value!r:.80} in row {row} is no number") from None


def _lists(values: list[Any]) -> list[Any]:
    """The cells as lists, where all are the texts of Python's lists."""
    if not all(isinstance(value, str) and value.startswith("[") and value.endswith("]") for value in values):
        return values
    try:
        parsed = [ast.literal_eval(value) for value in values]
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # such as documents
        return values
    return parsed if all(isinstance(value, list) for value in parsed) else values
