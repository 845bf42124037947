"""Runs evaluated against one file of judgements: what every format of `metrics-core evaluate` writes."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from metrics_core.cli.output import displayable
from metrics_core.dataset import DatasetScores, evaluate_dataset
from metrics_core.errors import InputError
from metrics_core.evaluation import evaluate
from metrics_core.grouping import read_long
from metrics_core.metrics import Metric, parse_all
from metrics_core.policies import Policies
from metrics_core.scores import Scores
from metrics_core.tables import means_tables, schema_of, table_files
from metrics_core.threads import thread_count
from metrics_core.trec import Qrels, Run, read_qrels, read_run

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run's scores, under a name that no other run of the evaluation has."""

    name: str
    path: str
    scores: Scores | DatasetScores
    query_ids: frozenset[str] | None  # of the run, judged or not; None: not in memory
    ranking: Any = None  # what was read, if it was to be kept

    @property
    def missing(self) -> list[str]:
        """The judged queries that the run lacks, as far as their names are known."""
        if self.query_ids is None or isinstance(self.scores, DatasetScores):
            return []
        return [query for query in self.scores.query_ids if query not in self.query_ids]

    @property
    def unjudged(self) -> frozenset[str]:
        """The queries of the run without judgements, as far as their names are known."""
        if self.query_ids is None or isinstance(self.scores, DatasetScores):
            return frozenset()
        return self.query_ids.difference(self.scores.query_ids)

    @property
    def n_missing(self) -> int:
        """How many judged queries the run lacks."""
        return self.scores.n_missing if isinstance(self.scores, DatasetScores) else len(self.missing)

    @property
    def n_unjudged(self) -> int:
        """How many queries of the run have no judgements."""
        return self.scores.n_unjudged if isinstance(self.scores, DatasetScores) else len(self.unjudged)

    @property
    def per_query(self) -> Scores:
        """The scores of each query."""
        return self.scores.scores() if isinstance(self.scores, DatasetScores) else self.scores


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
    if [qrels, *runs].count(STANDARD_INPUT) > 1:
        raise InputError("only one of the files can be standard input ('-')")
    if means_tables(qrels):
        judgements: Any = read_long(qrels, Qrels)
    else:
        judgements = read_qrels(qrels, duplicate_judgements=policies.duplicate_judgements, n_threads=n_threads)
    evaluated = []
    for path, name in zip(runs, run_names(runs), strict=True):
        tables = means_tables(path)
        run: Any = read_long(path, Run) if tables else read_run(path, n_threads=n_threads)
        scores = evaluate(judgements, run, parsed, policies=policies, n_threads=n_threads)
        ids = run.column("query_id").unique().to_pylist() if tables else run.query_ids
        if not keep:
            scores, ids = replace(scores, query_ids=tuple(map(str, scores.query_ids))), map(str, ids)
        evaluated.append(EvaluatedRun(name, path, scores, frozenset(ids), run if keep else None))
    return Evaluation(qrels, tuple(parsed), policies, tuple(evaluated), judgements if keep else None)


def evaluate_rows(
    paths: Sequence[str],
    metrics: Iterable[str],
    policies: Policies,
    *,
    columns: Mapping[str, str],
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluates tables with a row a query, together one data set, in memory.

    Raises:
        MetricsError, OSError: as by `metrics_core.evaluate_dataset`.
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="metrics-core-") as folder:
        found = evaluate_dataset(
            list(paths), list(metrics), out=folder, policies=policies, columns=columns, n_threads=n_threads
        )
        scores = found.scores()
    scores = replace(scores, query_ids=tuple(map(str, scores.query_ids)))
    name = run_names(paths[:1])[0]
    return Evaluation(
        paths[0], tuple(parse_all(metrics)), scores.policies, (EvaluatedRun(name, paths[0], scores, None),)
    )


def evaluate_datasets(
    qrels: str | None,
    runs: Sequence[str],
    metrics: Iterable[str],
    policies: Policies,
    *,
    columns: Mapping[str, str],
    out: Path | None,
    executor: str | None,
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluates tables a part at a time: those of each run against judgements, or rows with both.

    Args:
        qrels: None: all `runs` are one data set with a row a query.
        out: a folder for the scores of each query; of several runs, each has a folder in it.
        executor: "processes", "ray", or None.

    Raises:
        MetricsError, OSError: as by `metrics_core.evaluate_dataset`.
        ImportError: Ray is not installed.
    """
    parsed = parse_all(metrics)
    names = run_names(runs[:1] if qrels is None else runs)
    workers: Any = nullcontext(executor)
    if executor == "processes":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        workers = ProcessPoolExecutor(thread_count(n_threads), get_context("spawn"))
    evaluated = []
    with workers as pool:
        for name, path in zip(names, runs, strict=False):
            folder = out if out is None or len(names) == 1 else out / name.replace(os.sep, "-")
            found = evaluate_dataset(
                list(runs) if qrels is None else path,
                parsed,
                qrels=qrels,
                out=folder,
                executor=pool,
                columns=columns or None,
                policies=policies,
                n_threads=n_threads if executor is None else None,
                progress_bar=sys.stderr.isatty(),
            )
            evaluated.append(EvaluatedRun(name, path, found, None))
    return Evaluation(qrels or runs[0], tuple(parsed), evaluated[0].scores.policies, tuple(evaluated))


def row_columns(path: str, columns: Mapping[str, str]) -> list[str] | None:
    """The columns of a table with a row a query; None: it is no such table."""
    if not means_tables(path):
        return None
    names: list[str] = schema_of(table_files(path)[0]).names
    needed = {columns.get(role, role) for role in ("ground_truth", "retrieved")}
    return names if needed <= set(names) else None


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
