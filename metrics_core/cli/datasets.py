"""Parquet files on the command line: rows of queries, scored in parts, and their aggregates as text."""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from metrics_core import __version__
from metrics_core.cli import formats
from metrics_core.dataset import DatasetScores, evaluate_dataset
from metrics_core.policies import Policies
from metrics_core.threads import thread_count

_SUFFIX = ".parquet"


def are_tables(paths: Sequence[str]) -> bool:
    """Whether these are parquet files, folders of them or patterns, and not judgements and runs."""
    return all(Path(path).is_dir() or _is_pattern(path) or path.lower().endswith(_SUFFIX) for path in paths)


def _is_pattern(path: str) -> bool:
    return glob.has_magic(path) and not Path(path).exists()


def evaluate_tables(
    paths: Sequence[str],
    metrics: Sequence[str],
    policies: Policies | None,
    *,
    out: Path | None,
    executor: Literal["processes", "ray"] | None,
    n_threads: int | None,
) -> DatasetScores:
    """As `evaluate_dataset`, which see for errors, with a bar where standard error is a terminal."""
    with _started(executor, n_threads) as started:
        return evaluate_dataset(
            paths,
            metrics,
            policies=policies,
            out=out,
            executor=started,
            n_threads=None if executor else n_threads,
            progress_bar=sys.stderr is not None and sys.stderr.isatty(),
        )


def _started(
    executor: Literal["processes", "ray"] | None, n_processes: int | None
) -> AbstractContextManager[Executor | Literal["ray"] | None]:
    if executor == "processes":
        return ProcessPoolExecutor(thread_count(n_processes), get_context("spawn"))
    return nullcontext(executor)


def text_of(scores: DatasetScores, format_name: str, *, plain: bool) -> str:
    """The aggregates as a table, TSV or JSON, and where the scores of each query are."""
    aggregates = scores.aggregate()
    if format_name == "json":
        shown: dict[str, Any] = {
            "version": __version__,
            "policies": scores.policies.to_dict(),
            "n_queries": len(scores),
            "metrics": {
                name: {
                    "value": found.value,
                    "aggregate": how,
                    "n_scored": found.n_scored,
                    "n_total": found.n_total,
                }
                for (name, found), how in zip(aggregates.items(), scores.aggregates, strict=True)
            },
            "paths": list(map(str, scores.paths)),
        }
        return formats.json_of(shown)
    if format_name == "tsv":
        return formats.tsv_of(("metric", "value"), ((name, repr(found.value)) for name, found in aggregates.items()))
    from metrics_core.cli.output import drawn
    from metrics_core.cli.tables import aggregate_cell, empty_table

    table = empty_table("metric", ["value"])
    for (name, found), how in zip(aggregates.items(), scores.aggregates, strict=True):
        table.add_row(name, aggregate_cell(found, how, best=False))
    return drawn(table, f"{len(scores)} queries, policies {scores.policies}", plain=plain)
