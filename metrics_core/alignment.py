"""Runs of several kinds, aligned query by query: what comparisons and reports start from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import isinf
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from metrics_core.blocks import FloatArray
from metrics_core.errors import InputError, MetricNameError
from metrics_core.lists import is_list
from metrics_core.metrics import Metric, parse
from metrics_core.policies import Policies
from metrics_core.row_order import row_order
from metrics_core.scores import Scores

RunsLike: TypeAlias = Any  # documented in comparison.compare
_UNNAMED = "score"  # the metric of {query: value}, unless something names it
_LARGEST_SCORE = 1e100  # squares of differences of larger ones could overflow
_KEY_JOINS = "key= names a column of ids to join them by"


@dataclass(frozen=True, slots=True, eq=False)
class AlignedRuns:
    """Per-query scores of several runs in one table; NaN where a run has no score for a query.

    Attributes:
        names: (n_runs,) in the order given.
        metrics: (n_metrics,) canonical names.
        query_ids: (n_queries,) of all runs, in order of appearance.
        values: (n_queries, n_runs, n_metrics).
        policies: of the runs that are Scores, by name.
        failures: of the runs that are results of judges, by name: {query: why it has no score}, metric by metric.
        texts: {query: its text}, the first input column of strings, other than the key, of the runs that are results.
    """

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    query_ids: tuple[Any, ...]
    values: FloatArray
    policies: Mapping[str, Policies]
    failures: Mapping[str, Mapping[str, Mapping[Any, str]]]
    texts: Mapping[Any, str]

    def column(self, name: str, metric: str) -> FloatArray:
        """(n_queries,) the scores of a run.

        Raises:
            InputError: no such run or metric.
        """
        return self.values[:, self.names.index(self.named(name)), self.metrics.index(self.metric_named(metric))]

    def named(self, name: str) -> str:
        """The name, if a run has it.

        Raises:
            InputError: none has.
        """
        if name not in self.names:
            raise InputError(f"no run is named {name!r}; there are {', '.join(map(repr, self.names))}")
        return name

    def metric_named(self, metric: object) -> str:
        """The metric, in its canonical spelling, if it is one of these.

        Raises:
            MetricNameError: it is not.
        """
        return _spelled(metric, self.metrics)


def align(
    runs: RunsLike, metrics: str | Metric | Iterable[str | Metric] | None = None, *, key: str | None = None
) -> AlignedRuns:
    """Joins the scores of runs by query id; arguments and errors as of `compare`."""
    named = _named(runs)
    asked = [metrics] if isinstance(metrics, (str, Metric)) else None if metrics is None else list(metrics)
    columns = _columns(named, asked, key)
    if positional := [name for name, run in columns.items() if run.inputs is not None]:
        _check_same_rows(positional, columns)
    chosen = _chosen_metrics(columns, asked)
    place: dict[Any, int] = {}
    for run in columns.values():
        for query in run.ids:
            place.setdefault(query, len(place))
    values = np.full((len(place), len(columns), len(chosen)), np.nan)
    for column, (name, run) in enumerate(columns.items()):
        rows = [place[query] for query in run.ids]
        for depth, metric in enumerate(chosen):
            values[rows, column, depth] = _checked(run.scores[metric], name, metric, run.ids)
    return AlignedRuns(
        tuple(columns),
        chosen,
        tuple(place),
        values,
        {name: run.policies for name, run in named.items() if isinstance(run, Scores)},
        {
            name: {metric: why for metric, why in run.failures.items() if metric in chosen}
            for name, run in columns.items()
            if run.failures.keys() & set(chosen)
        },
        dict(chain.from_iterable(run.texts.items() for run in columns.values())),
    )


def _named(runs: RunsLike) -> dict[str, Any]:
    """{name: run}; results in a list have names of their own."""
    if isinstance(runs, Mapping):
        named = dict(runs)
    elif is_list(runs):
        named = {}
        for run in runs:
            name = getattr(run, "run_name", None)
            if name is None:
                raise InputError(
                    f"runs in a list must have a run_name; give the others names: {{name: run}}; got {run!r:.80}"
                )
            if name in named:
                raise InputError(f"two runs are named {name!r}; rename one, or give them names: {{name: run}}")
            named[name] = run
    else:
        raise InputError(f"runs must be {{name: run}} or a list of results with names, got {runs!r:.80}")
    if not named:
        raise InputError("runs must not be empty")
    for name in named:
        if not isinstance(name, str) or not name:
            raise InputError(f"a run's name must be a string that is not empty, got {name!r}")
    return named


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """A run as query ids and a column of scores a metric."""

    ids: Sequence[Any]  # (n_queries,)
    scores: Mapping[str, Any]  # {metric: (n_queries,)}
    failures: Mapping[str, Mapping[Any, str]]  # {metric: {query: why a judge gave no score}}
    inputs: Mapping[str, Sequence[Any]] | None = None  # what has to show which rows these are, where no ids do
    texts: Mapping[Any, str] = field(default_factory=dict)  # {query: text}


def _columns(named: Mapping[str, Any], asked: Sequence[str | Metric] | None, key: str | None) -> dict[str, _Columns]:
    columns: dict[str, _Columns] = {}
    for name, run in named.items():
        if isinstance(run, Scores):
            columns[name] = _Columns(run.query_ids, {metric: run[metric] for metric in run.metrics}, {})
        elif hasattr(run, "results") and hasattr(run, "inputs"):
            columns[name] = _of_result(name, run, key)
        elif not isinstance(run, Mapping):
            raise InputError(
                f"run {name!r} must be Scores, an EvaluationRunResult or {{query: value}}, got {type(run).__name__}"
            )
    label = _label(columns.values(), asked)
    return {
        name: columns[name] if name in columns else _Columns(tuple(run), {label: list(run.values())}, {})
        for name, run in named.items()
    }


def _label(columns: Iterable[_Columns], asked: Sequence[str | Metric] | None) -> str:
    """The metric of {query: value}: the only one there is, or that is asked for."""
    candidates = {str(metric) for metric in asked or ()} or {metric for run in columns for metric in run.scores}
    return _canonical(candidates.pop()) if len(candidates) == 1 else _UNNAMED


def _of_result(name: str, result: Any, key: str | None) -> _Columns:
    """An EvaluationRunResult: the rows of a table, under the ids of a key column or in their order."""
    inputs = result.inputs
    if key is not None and key not in inputs:
        raise InputError(f"run {name!r} has no input column {key!r}; it has {', '.join(map(repr, inputs))}")
    ids = range(len(next(iter(inputs.values())))) if key is None else tuple(inputs[key])
    if key is not None and (repeated := [query for query, times in Counter(ids).items() if times > 1]):
        raise InputError(f"run {name!r} has {repeated[0]!r} twice in its key column {key!r}; ids must be different")
    failures = {
        metric: _reasons(ids, outcome["reason"], outcome.get("detail"))
        for metric, outcome in result.results.items()
        if outcome.get("reason") is not None
    }
    scores = {metric: outcome["individual_scores"] for metric, outcome in result.results.items()}
    worded = (
        values for column, values in inputs.items() if column != key and all(isinstance(each, str) for each in values)
    )
    texts = dict(zip(ids, next(worded, ()), strict=False))
    return _Columns(ids, scores, failures, inputs if key is None else None, texts)


def _reasons(ids: Sequence[Any], reasons: Sequence[Any], details: Sequence[Any] | None) -> dict[Any, str]:
    """{query: why a judge gave no score}, where its whole result is kept."""
    return {
        query: ": ".join(str(part) for part in (reason, detail) if part)
        for query, reason, detail in zip(ids, reasons, details or [None] * len(ids), strict=True)
        if reason
    }


def _check_same_rows(positional: Sequence[str], columns: Mapping[str, _Columns]) -> None:
    """Rows without ids are paired by position only where their inputs show that they are the same rows."""
    if len(positional) < 2 and len(columns) > 1:
        raise InputError(
            f"run {positional[0]!r} has rows and no query ids, the others have ids; key= names its column of ids"
        )
    first, *others = positional
    n, rows = len(columns[first].ids), columns[first].inputs or {}
    for other in others:
        others_rows = columns[other].inputs or {}
        if len(columns[other].ids) != n:
            raise InputError(f"run {first!r} has {n} rows and {other!r} {len(columns[other].ids)}; {_KEY_JOINS}")
        order = row_order(rows, others_rows)
        if order.differs:
            raise InputError(f"runs {first!r} and {other!r} have the same {order.moved} in another order; {_KEY_JOINS}")
        if not order.same:
            raise InputError(
                f"runs {first!r} and {other!r} have no input column that is the same row by row, so that nothing shows "
                f"that their rows belong together; {_KEY_JOINS}"
            )


def _chosen_metrics(columns: Mapping[str, _Columns], asked: Sequence[str | Metric] | None) -> tuple[str, ...]:
    (first, run), *others = columns.items()
    if asked is None:
        for name, other in others:
            if set(other.scores) != set(run.scores):
                raise InputError(
                    f"run {first!r} has {', '.join(run.scores)} and {name!r} {', '.join(other.scores)}; "
                    "metrics= says which to compare"
                )
        return tuple(run.scores)
    if not asked:
        raise InputError("metrics must not be empty")
    chosen = tuple(dict.fromkeys(_spelled(metric, tuple(run.scores)) for metric in asked))
    for name, other in others:
        for metric in chosen:
            if metric not in other.scores:
                raise MetricNameError(f"run {name!r} has no {metric}; it has {', '.join(other.scores)}")
    return chosen


def _spelled(metric: object, known: Sequence[str]) -> str:
    """A metric as one of those known is spelled."""
    for text in (str(metric), _canonical(str(metric))):
        if text in known:
            return text
    raise MetricNameError(f"{metric} was not evaluated; there are {', '.join(known)}")


def _canonical(text: str) -> str:
    try:
        return str(parse(text))
    except MetricNameError:
        return text  # results name metrics as they like


def _checked(values: Any, name: str, metric: str, ids: Sequence[Any]) -> FloatArray:
    """(n_queries,) scores as floats; None is NaN."""
    if len(values) != len(ids):
        raise InputError(f"run {name!r} has {len(values)} scores of {metric} for {len(ids)} rows")
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or np.isinf(values).any():
        for query, value in zip(ids, values, strict=True):
            if value is not None and not _is_score(value):
                raise InputError(
                    f"the {metric} of query {query!r} in run {name!r} must be a finite number, or None or NaN where it "
                    f"was not scored; got {value!r:.80}"
                )
    scores = np.array([np.nan if value is None else value for value in values], np.float64)
    huge = np.flatnonzero(np.abs(scores) > _LARGEST_SCORE)
    if huge.size:
        raise InputError(
            f"the {metric} of query {ids[huge[0]]!r} in run {name!r} is beyond {_LARGEST_SCORE:g}: squares of "
            "differences would overflow"
        )
    return scores


def _is_score(value: object) -> bool:
    try:
        return isinstance(value, (Real, np.bool_)) and not isinf(value)
    except OverflowError:  # of an integer beyond the floats
        return False
