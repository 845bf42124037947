"""Tables evaluated part by part: those with a row a query, and long ones with --out or --executor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from metrics_core.cli.runs import EvaluatedRun, Evaluation, as_text, run_names
from metrics_core.dataset import DatasetScores, evaluate_dataset
from metrics_core.metrics import parse_all
from metrics_core.policies import Policies
from metrics_core.scores import Scores
from metrics_core.threads import thread_count


@dataclass(frozen=True, slots=True)
class Workers:
    """Who scores the parts."""

    executor: str | None  # "processes", "ray"; None: threads
    n_threads: int | None  # or processes

    @contextmanager
    def arguments(self) -> Iterator[dict[str, Any]]:
        """Arguments of `evaluate_dataset`, for as long as the workers are there."""
        started: Any = nullcontext(self.executor)
        if self.executor == "processes":
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            started = ProcessPoolExecutor(thread_count(self.n_threads), get_context("spawn"))
        with started as executor:
            n_threads = self.n_threads if executor is None else None
            yield {"executor": executor, "n_threads": n_threads, "progress_bar": sys.stderr.isatty()}


def evaluate_rows(
    paths: Sequence[str],
    metrics: Sequence[str],
    policies: Policies,
    columns: Mapping[str, str],
    out: Path | None,
    workers: Workers,
) -> Evaluation:
    """Evaluates tables with a row a query, together one data set.

    Args:
        out: where the scores of each query go; None: only the aggregates are wanted.

    Raises:
        MetricsError, ImportError, OSError: as by `metrics_core.evaluate_dataset`.
    """
    with workers.arguments() as arguments:
        found = evaluate_dataset(list(paths), metrics, out=out, columns=columns, policies=policies, **arguments)
    return _of_one_data_set(paths, metrics, found)


def evaluate_rows_in_memory(
    paths: Sequence[str], metrics: Sequence[str], policies: Policies, columns: Mapping[str, str], workers: Workers
) -> Evaluation:
    """As `evaluate_rows`, with the scores of each query."""
    with TemporaryDirectory(prefix="metrics-core-") as folder, workers.arguments() as arguments:
        found = evaluate_dataset(list(paths), metrics, out=folder, columns=columns, policies=policies, **arguments)
        scores = found.scores()
    return _of_one_data_set(paths, metrics, as_text(scores))


def _of_one_data_set(paths: Sequence[str], metrics: Sequence[str], scores: Scores | DatasetScores) -> Evaluation:
    name, more = run_names(paths)[0], len(paths) - 1
    run = EvaluatedRun(f"{name} and {more} more" if more else name, paths[0], scores)
    return Evaluation(paths[0], tuple(parse_all(metrics)), scores.policies, (run,))


def evaluate_long_tables(
    qrels: str, runs: Sequence[str], metrics: Sequence[str], policies: Policies, out: Path | None, workers: Workers
) -> Evaluation:
    """Evaluates long tables of several runs, one after the other.

    Args:
        qrels: a path of long tables, or of a TREC file.
        out: as for `evaluate_rows`; of several runs, each has a folder in it.

    Raises:
        MetricsError, ImportError, OSError: as by `metrics_core.evaluate_dataset`.
    """
    evaluated = []
    with workers.arguments() as arguments:
        for path, name in zip(runs, run_names(runs), strict=True):
            folder = out if out is None or len(runs) == 1 else out / name.replace(os.sep, "-")
            found = evaluate_dataset(path, metrics, qrels=qrels, out=folder, policies=policies, **arguments)
            evaluated.append(EvaluatedRun(name, path, found))
    return Evaluation(qrels, tuple(parse_all(metrics)), policies, tuple(evaluated))
