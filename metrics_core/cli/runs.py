"""Runs evaluated against one file of judgements: what every format of `metrics-core evaluate` writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrics_core.cli.output import displayable
from metrics_core.errors import InputError, MetricNameError
from metrics_core.evaluation import evaluate
from metrics_core.metrics import Metric, parse, parse_all
from metrics_core.policies import Policies
from metrics_core.scores import Scores
from metrics_core.tables import means_tables
from metrics_core.trec import Qrels, Run, read_qrels, read_run
from metrics_core.wording import queries

if TYPE_CHECKING:
    from metrics_core.dataset import DatasetScores

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run's scores, under a name that no other run of the evaluation has."""

    name: str
    path: str
    scores: Scores | DatasetScores
    ranking: Any = None  # what was read, if it was to be kept

    @property
    def per_query(self) -> Scores:
        """The scores of each query, which are in memory where they were asked for."""
        assert isinstance(self.scores, Scores)
        return self.scores


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All runs that were evaluated, by the same metrics and policies."""

    qrels: str  # path
    metrics: tuple[Metric, ...]
    policies: Policies
    runs: tuple[EvaluatedRun, ...]
    judgements: Any = None  # what was read, if it was to be kept


def evaluate_files(
    qrels: str,
    runs: Sequence[str],
    metrics: Iterable[str],
    policies: Policies,
    *,
    n_threads: int | None = None,
    keep: bool = False,
) -> Evaluation:
    """Reads the judgements once, and evaluates one run after the other.

    Args:
        qrels, runs: paths of TREC files or of long tables; "-" for standard input, once.
        keep: whether what was read is kept, under its own ids, for those who go on to use it.

    Raises:
        MetricsError: as by `metrics_core.evaluate`; what is wrong with a run names it.
        OSError: a file that cannot be read.
    """
    parsed = parse_all(metrics)
    for metric in parsed:
        metric.check_ties(policies)
    for path in runs:
        _refuse_metric(path)
    if [qrels, *runs].count(STANDARD_INPUT) > 1:
        raise InputError("only one of the files can be standard input ('-')")
    if means_tables(qrels):
        judgements: Any = _long_table(qrels, Qrels)
    else:
        judgements = read_qrels(qrels, duplicate_judgements=policies.duplicate_judgements, n_threads=n_threads)
    evaluated = []
    for path, name in zip(runs, run_names(runs), strict=True):
        run: Any = _long_table(path, Run) if means_tables(path) else read_run(path, n_threads=n_threads)
        scores = evaluate(judgements, run, parsed, policies=policies, n_threads=n_threads)
        evaluated.append(EvaluatedRun(name, path, scores, run) if keep else EvaluatedRun(name, path, as_text(scores)))
    return Evaluation(qrels, tuple(parsed), policies, tuple(evaluated), judgements if keep else None)


def _refuse_metric(path: str) -> None:
    """Says so where a metric stands among the runs."""
    if not Path(path).exists():
        with suppress(MetricNameError):
            parse(path)
            raise InputError(f"{path!r} is a metric, and no file; metrics are given as -m {path}")


def _long_table(path: str, kind: type[Qrels | Run]) -> Any:
    from metrics_core.grouping import read_long  # here, as TREC files need not wait for it

    return read_long(path, kind)


def as_text(scores: Scores) -> Scores:
    """The same with strings for the ids of queries."""
    missing, unjudged = (ids and tuple(map(str, ids)) for ids in (scores.missing, scores.unjudged))
    return replace(scores, query_ids=tuple(map(str, scores.query_ids)), missing=missing, unjudged=unjudged)


def run_names(paths: Sequence[str]) -> list[str]:
    """The files' names, with as many of their folders as tell them apart; a number for a path that comes again."""
    parts = {path: ("stdin",) if path == STANDARD_INPUT else Path(path).parts or (path,) for path in paths}
    depths = dict.fromkeys(parts, 1)
    while True:
        names = {path: displayable(str(Path(*parts[path][-depth:]))) for path, depth in depths.items()}
        times = Counter(names.values())
        ambiguous = [path for path, name in names.items() if times[name] > 1 and depths[path] < len(parts[path])]
        if not ambiguous:
            break
        for path in ambiguous:
            depths[path] += 1
    numbered: list[str] = []
    for path in paths:
        candidates = chain([names[path]], (f"{names[path]} ({n})" for n in count(2)))
        numbered.append(next(name for name in candidates if name not in numbered))
    return numbered


def report_unpaired_queries(evaluation: Evaluation) -> None:
    """Prints `unpaired_queries` to standard error, for formats that do not show them."""
    for sentence in unpaired_queries(evaluation):
        click.echo(f"metrics-core: {sentence}", err=True)


def unpaired_queries(evaluation: Evaluation) -> list[str]:
    """A sentence for each run that lacks judged queries, then for each that has others, and what became of these."""
    missing = evaluation.policies.missing
    treatment = "left out" if missing == "skip" else "scored as empty rankings"
    sentences = [
        f"{run.name} lacks {_some(run.scores.n_missing, run.scores.missing)}: {treatment} (missing={missing})"
        for run in evaluation.runs
        if run.scores.n_missing
    ]
    return sentences + [
        f"{run.name} has {_some(run.scores.n_unjudged, run.scores.unjudged)} without judgements: left out "
        "(unjudged_query=ignore)"
        for run in evaluation.runs
        if run.scores.n_unjudged
    ]


def _some(n: int, names: Sequence[str] | None) -> str:
    return queries(n, names and list(map(displayable, names)))
