"""EvaluationRunResult: the inputs of a run and what evaluators made of them, reported, compared, kept."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from html import escape
from logging import getLogger
from math import inf, isnan, nan
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from metrics_core import export, haystack_reports, result_files
from metrics_core.aggregate import aggregate
from metrics_core.errors import FileFormatError, InputError
from metrics_core.lists import is_list
from metrics_core.markup import to_html
from metrics_core.row_order import row_order
from metrics_core.scores import Scores

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_logger = getLogger(__name__)

OutputFormat: TypeAlias = Literal["json", "csv", "df"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet compute a cell of text


class EvaluationRunResult:
    """The inputs of an evaluation run, row by row, and the scores of its evaluators.

    Args:
        run_name: the name of the run, which tells it from others in a comparison.
        inputs: columns of equal length, by name: lists, arrays or columns of data frames. They are copied.
        results: what evaluators returned, by metric: {"score", "individual_scores", ...}. Individual scores are
            numbers, one a row; None and NaN mean not scored. A score that is None, or left out, is the mean of the
            scored rows, and "coverage" then says how many they are. Other entries are kept; lists of one value a row
            (such as "status" and "reason") become columns named `<metric>_<entry>` in data frames. What has several
            metrics, a `Scores` or the dict of a DocumentMetricsEvaluator, comes under their own names. `results` may
            also be one Scores.
        key: the input column that holds the query ids of Scores. Without it, the rows must be those of the lists of
            documents or arrays that were evaluated, in their order.

    Attributes:
        run_name, inputs: as given, inputs as lists.
        results: by metric, {"score": float, "individual_scores": list, ...}.

    Raises:
        InputError: (a ValueError) no inputs, columns of unequal length, a metric without scores or with another number
            of them, scores that are no numbers, a metric named like an input column, queries without a row.

    Source: haystack.evaluation.EvaluationRunResult, whose reports these are.
    """

    def __init__(
        self,
        run_name: str,
        inputs: Mapping[str, Any],
        results: Mapping[str, Mapping[str, Any] | Scores] | Scores,
        *,
        key: str | None = None,
    ) -> None:
        if not hasattr(inputs, "items"):  # a data frame has it, too
            raise InputError(f"inputs must be a dict of columns, got {inputs!r:.80}")
        if not isinstance(results, (Mapping, Scores)):
            raise InputError(f"results must be a dict by metric, or Scores, got {results!r:.80}")
        if len(inputs) == 0:
            raise InputError("No inputs provided: inputs must have at least one column")
        self.run_name = run_name
        self.inputs = {name: deepcopy(_listed(values, f"inputs[{name!r}]")) for name, values in inputs.items()}
        lengths = {name: len(values) for name, values in self.inputs.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"Lengths of the inputs should be the same, got {lengths}")
        by_metric: dict[str, dict[str, Any]] = {}
        for name, result in ({"scores": results} if isinstance(results, Scores) else results).items():
            for metric, parts in self._by_metric(name, result, key).items():
                if metric in by_metric:
                    raise InputError(f"results has the metric {metric!r} twice")
                by_metric[metric] = _checked(metric, parts, len(self))
        self.results = by_metric
        if odd := [name for name in (*self.inputs, *by_metric) if not isinstance(name, str)]:
            raise InputError(f"inputs and results must have names that are strings, got {odd[0]!r}")
        repeated = [name for name, n in Counter(name for name, _ in self._named_columns()).items() if n > 1]
        if repeated:
            raise InputError(f"two columns have the name {repeated[0]!r}; rename the metric or the input")

    def _by_metric(self, name: str, result: Any, key: str | None) -> dict[str, dict[str, Any]]:
        if isinstance(result, Scores):
            return self._of_scores(result, key)
        if not isinstance(result, Mapping):
            raise InputError(f"results[{name!r}] must be a dict of an evaluator or Scores, got {result!r:.80}")
        if isinstance(result.get("scores"), Mapping) and isinstance(result.get("individual_scores"), Mapping):
            individual = result["individual_scores"]
            return {
                metric: {"score": score, "individual_scores": individual[metric]}
                for metric, score in result["scores"].items()
            }
        return {name: dict(result)}

    def _of_scores(self, scores: Scores, key: str | None) -> dict[str, dict[str, Any]]:
        rows = self._rows_of(scores, key)
        found = scores.aggregate()
        return {
            metric: {
                "score": found[metric].value,
                "individual_scores": [nan if row is None else values[row] for row in rows],
                "coverage": {"scored": found[metric].n_scored, "total": len(self)},
            }
            for metric, values in zip(scores.metrics, scores.values.T.tolist(), strict=True)
        }

    def _rows_of(self, scores: Scores, key: str | None) -> list[int | None]:
        """Of each row of the inputs the row of the scores, None where its query was not evaluated."""
        queries = list(scores.query_ids)
        if key is None:
            if queries != list(range(len(self))):
                raise InputError(
                    f"Scores have query ids; key= must name the input column ({self._names()}) that has them"
                )
            return list(range(len(self)))
        if key not in self.inputs:
            raise InputError(f"key must name a column of the inputs ({self._names()}), got {key!r}")
        places = _places(self.inputs[key], f"inputs[{key!r}]")
        if lost := [query for query in queries if query not in places]:
            raise InputError(
                f"{len(lost)} of {len(queries)} queries have no row in inputs[{key!r}], {lost[0]!r} the first"
            )
        row_of = {query: row for row, query in enumerate(queries)}
        return [row_of.get(query) for query in places]

    def _names(self) -> str:
        return ", ".join(map(repr, self.inputs))

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))

    def coverage(self) -> dict[str, dict[str, int]]:
        """How many rows each metric scored, of how many: {metric: {"scored", "total"}}."""
        return {
            metric: {"scored": sum(not isnan(score) for score in result["individual_scores"]), "total": len(self)}
            for metric, result in self.results.items()
        }

    def aggregated_report(
        self, output_format: OutputFormat = "json", csv_file: str | None = None, *, escape_formulas: bool = False
    ) -> Any:
        """The score of each metric, as {"metrics": names, "score": floats}.

        Args:
            output_format: "json" gives a dict of columns, "df" a data frame of pandas; "csv" writes a file.
            csv_file: the path of that file.
            escape_formulas: writes texts that a spreadsheet would compute (they begin with =, +, - or @) after a quote.

        Returns:
            Of "csv", a sentence that says where it was written.

        Raises:
            InputError: (a ValueError) another format, or "csv" without csv_file.
            OSError: the file cannot be written.
        """
        scores = {metric: result["score"] for metric, result in self.results.items()}
        columns = {"metrics": list(scores), "score": list(scores.values())}
        return _output(columns, output_format, csv_file, escape_formulas=escape_formulas)

    def detailed_report(
        self, output_format: OutputFormat = "json", csv_file: str | None = None, *, escape_formulas: bool = False
    ) -> Any:
        """The inputs and the scores row by row: a column for each input and each metric.

        Arguments, returns and errors are those of `aggregated_report`. Rows that were not scored have NaN.
        """
        return _output(self._report(), output_format, csv_file, escape_formulas=escape_formulas)

    def comparative_detailed_report(
        self,
        other: EvaluationRunResult,
        keep_columns: list[str] | None = None,
        output_format: OutputFormat = "json",
        csv_file: str | None = None,
        *,
        key: str | None = None,
        escape_formulas: bool = False,
    ) -> Any:
        """The scores of two runs side by side, row by row.

        Args:
            other: the run to compare with.
            keep_columns: input columns to show of both runs, as `<run_name>_<column>`; the others are shown once, as
                they are in this run.
            output_format, csv_file, escape_formulas: as in `aggregated_report`.
            key: the input column whose value names a row in both runs; the other run's rows may then have any order.
                Without it, rows are paired by position: inputs that show the other run to be in another order are
                refused, and a warning says where they cannot tell.

        Raises:
            TypeError: other is no EvaluationRunResult.
            InputError: (a ValueError) runs of the same name, of unequal length, in another order, or without the same
                values of key.
            OSError: the file cannot be written.
        """
        if not isinstance(other, EvaluationRunResult):
            kind = f"{type(other).__module__}.{type(other).__name__}"
            raise TypeError(f"other must be an EvaluationRunResult, such as from_haystack() returns; got {kind}")
        if isinstance(keep_columns, str):
            raise InputError(f"keep_columns must be a list of names, got {keep_columns!r}")
        if self.run_name == other.run_name:
            raise InputError(f"both runs are named {self.run_name!r}; their columns need different names")
        if self.inputs.keys() != other.inputs.keys():
            _logger.warning(
                "the input columns of %r and %r differ; those of %r are used",
                self.run_name,
                other.run_name,
                self.run_name,
            )
        if len(self) != len(other):
            raise InputError(
                f"{self.run_name!r} has {len(self)} rows and {other.run_name!r} {len(other)}; they must pair up"
            )
        rows = self._rows_by_position(other) if key is None else self._rows_by_key(other, key)
        once = [name for name in self.inputs if name not in (keep_columns or ())]
        columns = [
            (name if name in once else f"{self.run_name}_{name}", values) for name, values in self._report().items()
        ]
        columns += [
            (f"{other.run_name}_{name}", [values[row] for row in rows])
            for name, values in other._report().items()
            if name not in once
        ]
        if repeated := [name for name, n in Counter(name for name, _ in columns).items() if n > 1]:
            raise InputError(f"the comparison would have two columns named {repeated[0]!r}; rename a run")
        return _output(dict(columns), output_format, csv_file, escape_formulas=escape_formulas)

    def _rows_by_key(self, other: EvaluationRunResult, key: str) -> list[int]:
        for run in (self, other):
            if key not in run.inputs:
                raise InputError(f"key must name an input column of both runs; {run.run_name!r} has no {key!r}")
        ours, theirs = (_places(run.inputs[key], f"{key!r} of {run.run_name!r}") for run in (self, other))
        if lost := [value for value in ours if value not in theirs]:
            raise InputError(
                f"{len(lost)} rows of {self.run_name!r} are not in {other.run_name!r}, {lost[0]!r} the first"
            )
        return [theirs[value] for value in ours]

    def _rows_by_position(self, other: EvaluationRunResult) -> range:
        order = row_order(self.inputs, other.inputs)
        if order.differs:
            raise InputError(
                f"{other.run_name!r} has the same {order.moved!r} as {self.run_name!r} in another order; "
                "key= pairs rows by a column"
            )
        if order.in_doubt:
            _logger.warning(
                "%r has the same %r as %r in another order, and the same %s in the same: rows are paired by position; "
                "key= pairs them by a column",
                other.run_name,
                order.moved,
                self.run_name,
                " and ".join(map(repr, order.same)),
            )
        if not order.same:
            _logger.warning(
                "no input column has the same values in %r and %r; their rows are paired by position",
                self.run_name,
                other.run_name,
            )
        return range(len(self))

    def _report(self) -> dict[str, list[Any]]:
        return self.inputs | {
            metric: _of_one_type(result["individual_scores"]) for metric, result in self.results.items()
        }

    def _named_columns(self) -> list[tuple[str, list[Any]]]:
        extras = [
            (f"{metric}_{name}", values)
            for metric, result in self.results.items()
            for name, values in result_files.by_row(result, len(self)).items()
        ]
        scores = [(metric, _of_one_type(result["individual_scores"])) for metric, result in self.results.items()]
        return [*self.inputs.items(), *scores, *extras]

    def to_pandas(self) -> pd.DataFrame:
        """Inputs, scores and what else evaluators said of each row, as a data frame of pandas."""
        return export.to_pandas(deepcopy(dict(self._named_columns())))

    def to_polars(self) -> pl.DataFrame:
        """The same as a data frame of polars: rows that were not scored are null, documents structs or JSON."""
        return export.to_polars(dict(self._named_columns()))

    def to_arrow(self) -> pa.Table:
        """The same as an Arrow table: rows that were not scored are null, documents structs or JSON."""
        return export.to_arrow(dict(self._named_columns()))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the run to a file, .json or .parquet, that can be read without this package.

        JSON: {"format", "version", "run_name", "inputs": {column: values}, "results": {metric: {"score",
        "individual_scores", ...}}}. Parquet: the columns of `to_arrow`; the rest is JSON in the schema's metadata,
        under "metrics-core". NaN is null in both; documents are dicts of id, content, meta and score, dates are texts.
        A file that is there is replaced when the new one is complete.

        Raises:
            InputError: another suffix, or values that cannot be stored.
            OSError: the file cannot be written.
            ImportError: parquet without pyarrow.
        """
        result_files.write(path, result_files.Run(self.run_name, self.inputs, self.results))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> EvaluationRunResult:
        """The run that `save` wrote.

        Raises:
            FileFormatError: a file that is damaged, of another kind or another version.
            OSError: the file cannot be read.
            ImportError: parquet without pyarrow.
        """
        run = result_files.read(path)
        try:
            return cls(run.run_name, run.inputs, run.results)
        except InputError as error:
            raise FileFormatError(f"{fspath(path)}: damaged: {error}") from error

    @classmethod
    def from_haystack(
        cls,
        result: Any,
        score_report: Any = None,
        *,
        run_name: str | None = None,
        metrics: Sequence[str] | None = None,
    ) -> EvaluationRunResult:
        """A result of Haystack's class, or what a user has saved of one.

        Args:
            result: Haystack's EvaluationRunResult; or a detailed or comparative report of it: the path of a CSV or JSON
                file, the dict of columns, or a data frame. Texts that are Python lists become lists.
            score_report: the aggregated report, likewise; without it, scores are the means of the scored rows.
            run_name: the name, where the report has none: that of the file, without its ending, is taken if there is
                one. Of a comparative report, the run to take.
            metrics: the columns that are metrics. None: those of the score report, else the last columns that hold
                nothing but numbers.

        Raises:
            FileFormatError, InputError: a file, or columns, in which there is no such report.
            OSError: a file that cannot be read.
        """
        return cls(*haystack_reports.read(result, score_report, run_name, metrics))

    def __repr__(self) -> str:
        coverage = self.coverage()
        width = max(map(len, self.results), default=0)
        lines = [f"EvaluationRunResult {self.run_name!r}: {len(self):,} rows of {', '.join(self.inputs)}"]
        for metric, result in self.results.items():
            scored, total = coverage[metric].values()
            note = "" if scored == total else f"  ({scored:,} of {total:,} scored)"
            lines.append(f"  {metric:{width}}  {result['score']:.4f}{note}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        coverage = self.coverage().values()
        columns: dict[str, list[Any]] = {
            "metric": list(self.results),
            "score": [float(result["score"]) for result in self.results.values()],
            "rows scored": [f"{counts['scored']:,} of {counts['total']:,}" for counts in coverage],
        }
        caption = f"{escape(str(self.run_name))}: {len(self):,} rows of {escape(', '.join(self.inputs))}"
        return f"<p>{caption}</p>{to_html(columns)}"


def _listed(values: Any, what: str) -> list[Any]:
    if not is_list(values):
        raise InputError(f"{what} must be a list of one value a row, got {values!r:.80}")
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, method):
            listed: list[Any] = getattr(values, method)()
            return listed
    return list(values)


def _checked(metric: str, parts: dict[str, Any], n_rows: int) -> dict[str, Any]:
    """The result of a metric, copied: its score, the individual ones as plain numbers, and what else there is."""
    if "score" not in parts and "individual_scores" not in parts:
        raise InputError(f"Aggregate score missing for {metric}, and individual scores that would give it")
    if "individual_scores" not in parts:
        raise InputError(f"Individual scores missing for {metric}")
    given = _listed(parts["individual_scores"], f"individual_scores of {metric!r}")
    if len(given) != n_rows:
        raise InputError(
            f"Length of individual scores for {metric!r} should be the same as the inputs': {n_rows}, got {len(given)}"
        )
    individual = [_number(score, f"individual_scores of {metric!r}, row {row}") for row, score in enumerate(given)]
    checked = {"score": parts.get("score"), "individual_scores": individual}
    checked |= deepcopy({name: value for name, value in parts.items() if name not in checked})
    if checked["score"] is None:
        found = aggregate(np.array(individual, np.float64))
        checked["score"] = found.value
        checked.setdefault("coverage", {"scored": found.n_scored, "total": found.n_total})
    else:
        checked["score"] = _number(checked["score"], f"score of {metric!r}")
    return checked


def _number(value: Any, what: str) -> int | float:
    """A Python number; None and NaN are NaN."""
    if value is None:
        return nan
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, (int, float)) or number in (inf, -inf):
        raise InputError(f"{what} must be a finite number, or None where it was not scored, got {value!r:.80}")
    return number


def _of_one_type(scores: list[Any]) -> list[Any]:
    return list(map(float, scores)) if any(isinstance(score, float) for score in scores) else scores


def _places(values: list[Any], what: str) -> dict[Any, int]:
    """The row of each value."""
    try:
        places = {value: row for row, value in enumerate(values)}
    except TypeError:
        raise InputError(f"{what} cannot name rows: its values must be hashable, such as texts or numbers") from None
    if len(places) < len(values):
        repeated = next(value for value, n in Counter(values).items() if n > 1)
        raise InputError(f"{what} cannot name rows: {repeated!r} is there more than once")
    return places


def _output(columns: dict[str, list[Any]], output_format: str, csv_file: str | None, *, escape_formulas: bool) -> Any:
    match output_format:
        case "json":
            return deepcopy(columns)
        case "df":
            return export.to_pandas(deepcopy(columns))
        case "csv" if csv_file:
            _write_csv(csv_file, columns, escape_formulas=escape_formulas)
            return f"Data successfully written to {fspath(csv_file)}"
        case "csv":
            raise InputError("output_format 'csv' needs csv_file, the path of the file to write")
    raise InputError(f"output_format must be 'json', 'csv' or 'df', got {output_format!r}")


def _write_csv(path: str, columns: dict[str, list[Any]], *, escape_formulas: bool) -> None:
    def cell(value: Any) -> Any:
        is_formula = escape_formulas and isinstance(value, str) and value.startswith(_FORMULA)
        return f"'{value}" if is_formula else value

    # Lone surrogates, which UTF-8 does not have, as \udfff
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123
        writer = csv.writer(file)
        writer.writerow(map(cell, columns))
        writer.writerows(map(cell, row) for row in zip(*columns.values(), strict=True))
