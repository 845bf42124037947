"""TREC files, from parsing to scores, against pytrec_eval, ir_measures, ranx and a mere reading by polars."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine import answers_by_query
from benchmarks.harness import run_command, work_directory
from benchmarks.mappings import pytrec_eval_answers
from benchmarks.workload import (
    Answers,
    Case,
    Contender,
    Prepared,
    Size,
    Workload,
    growth_mb,
    times_as_fast,
    times_the_time,
)

METRICS = ("AP", "RR", "nDCG@10", "R@1000")
OURS, OURS_ONE_THREAD = "metrics-core", "metrics-core, one thread"
PYTREC_EVAL, IR_MEASURES, RANX, POLARS = "pytrec_eval", "ir_measures", "ranx", "polars, only reading"
PYTREC_EVAL_NAMES = dict(zip(METRICS, ("map", "recip_rank", "ndcg_cut_10", "recall_1000"), strict=True))
RANX_NAMES = dict(zip(METRICS, ("map", "mrr", "ndcg@10", "recall@1000"), strict=True))


def qrels_and_run_files(size: Size, seed: int) -> tuple[str, str]:
    """Paths of judgements and a run of the shape of MS MARCO's dev set, made at the first call.

    Numeric ids, one to four judged passages a query (1.07 on average), 86% of them retrieved, mostly early. Scores
    fall by at least 0.001, so that no two are equal even as float32.
    """
    stem = work_directory() / f"{size.queries}x{size.depth}-{seed}"
    qrels, run = stem.with_suffix(".qrels"), stem.with_suffix(".run")
    if not run.exists():
        _write_files(size, seed, qrels, run)
    for path in (qrels, run):
        path.read_bytes()  # into the page cache
    return str(qrels), str(run)


def _write_files(size: Size, seed: int, qrels: Path, run: Path) -> None:
    rng = np.random.default_rng(seed)
    query_ids = np.sort(rng.choice(1_102_000, size.queries, replace=False)).tolist()
    unfinished = run.with_suffix(".unfinished")
    with qrels.open("w") as qrels_file, unfinished.open("w") as run_file:
        for query in query_ids:
            n_judged = min(int(rng.geometric(0.94)), 4)
            documents = rng.choice(8_841_823, size.depth + n_judged, replace=False, shuffle=False)
            retrieved, judged = documents[: size.depth], documents[size.depth :]
            for document in judged:
                rank = int(rng.exponential(60))
                if rng.random() < 0.857 and rank < size.depth and retrieved[rank] not in judged:
                    retrieved[rank] = document
                qrels_file.write(f"{query} 0 {document} 1\n")
            scores = 25 - np.cumsum(0.001 + 0.018 * rng.random(size.depth))
            run_file.writelines(
                f"{query} Q0 {document} {rank} {score:.6f} synth\n"
                for rank, (document, score) in enumerate(zip(retrieved.tolist(), scores.tolist(), strict=True), 1)
            )
        run_file.flush()
        os.fsync(run_file.fileno())  # or the file is written to disk while the first contender is timed
    unfinished.rename(run)


def ours(size: Size, seed: int, threads: int) -> Prepared:
    """Ours, from the two paths."""
    from metrics_core import evaluate

    qrels, run = qrels_and_run_files(size, seed)
    return Prepared(
        lambda: evaluate(qrels, run, METRICS, n_threads=threads),
        partial(answers_by_query, metrics=METRICS),
    )


def pytrec_eval(size: Size, seed: int) -> Prepared:
    """Scores by pytrec_eval with its own parsers."""
    from pytrec_eval import RelevanceEvaluator, parse_qrel, parse_run

    qrels, run = qrels_and_run_files(size, seed)

    def call() -> dict[str, dict[str, float]]:
        with Path(qrels).open() as qrels_lines, Path(run).open() as run_lines:
            evaluator = RelevanceEvaluator(parse_qrel(qrels_lines), set(PYTREC_EVAL_NAMES.values()))
            results: dict[str, dict[str, float]] = evaluator.evaluate(parse_run(run_lines))
        return results

    return Prepared(call, partial(pytrec_eval_answers, names=PYTREC_EVAL_NAMES))


def ir_measures(size: Size, seed: int) -> Prepared:
    """Scores by ir_measures with its own readers, values per query and means in one pass."""
    import ir_measures as package

    qrels, run = qrels_and_run_files(size, seed)
    measures = [package.parse_measure(metric) for metric in METRICS]
    read_qrels: Any = package.read_trec_qrels
    read_run: Any = package.read_trec_run

    def columns(results: Any) -> Answers:
        values: dict[str, dict[str, float]] = {metric: {} for metric in METRICS}
        for found in results.per_query:
            values[str(found.measure)][found.query_id] = found.value
        return {metric: [found[query] for query in sorted(found)] for metric, found in values.items()}

    return Prepared(lambda: package.calc(measures, read_qrels(qrels), read_run(run)), columns)


def ranx(size: Size, seed: int, threads: int) -> Prepared:
    """Scores by ranx with its own readers; not saved in the run, which would add to its time."""
    from ranx import Qrels, Run, evaluate

    qrels, run = qrels_and_run_files(size, seed)
    names = list(RANX_NAMES.values())

    def call() -> dict[str, Any]:
        results: dict[str, Any] = evaluate(
            Qrels.from_file(qrels, kind="trec"),
            Run.from_file(run, kind="trec"),
            names,
            return_mean=False,
            save_results_in_run=False,
            threads=threads,
        )
        return results

    def columns(results: dict[str, Any]) -> Answers:
        return {metric: results[RANX_NAMES[metric]] for metric in METRICS}

    return Prepared(call, columns)


def polars(size: Size, seed: int) -> Prepared:
    """The run's columns read by polars; nothing is computed."""
    import polars as pl

    _, run = qrels_and_run_files(size, seed)
    schema = {
        "query": pl.String,
        "iteration": pl.String,
        "document": pl.String,
        "rank": pl.Int32,
        "score": pl.Float64,
        "tag": pl.String,
    }
    return Prepared(lambda: pl.read_csv(run, separator=" ", has_header=False, schema=schema))


WORKLOAD = Workload(
    "trec_files",
    "TREC files, from parsing to AP, RR, nDCG@10 and R@1000",
    (
        Case(
            "6,980 x 1,000",
            Size(6_980, 1_000, 1),
            (
                Contender(OURS, partial(ours, threads=2), threads=2),
                Contender(OURS_ONE_THREAD, partial(ours, threads=1)),
                Contender(PYTREC_EVAL, pytrec_eval, threads=2),
                Contender(IR_MEASURES, ir_measures, threads=2),
                Contender(RANX, partial(ranx, threads=2), threads=2),
                Contender(POLARS, polars, threads=2),
            ),
            (
                times_as_fast(OURS, PYTREC_EVAL, gate=4),
                times_as_fast(OURS, IR_MEASURES, gate=7),
                times_as_fast(OURS, RANX, gate=15),
                times_the_time(OURS, POLARS, aim=2),
                growth_mb(OURS, gate=700),
            ),
            rounds=3,
        ),
    ),
    ("pytrec_eval-terrier", "ir_measures", "ranx", "polars"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
