"""Dicts of dicts: four metrics, against pytrec_eval and ranx."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from benchmarks.engine import answers_by_query
from benchmarks.harness import run_command
from benchmarks.workload import Answers, Case, Contender, Prepared, Size, Workload, times_as_fast

METRICS = ("AP", "RR", "nDCG", "R@100")
OURS, PYTREC_EVAL, RANX = "metrics-core", "pytrec_eval", "ranx, its Qrels and Run"
PYTREC_EVAL_NAMES = dict(zip(METRICS, ("map", "recip_rank", "ndcg", "recall_100"), strict=True))
RANX_NAMES = dict(zip(METRICS, ("map", "mrr", "ndcg", "recall@100"), strict=True))

Qrels: TypeAlias = dict[str, dict[str, int]]
Run: TypeAlias = dict[str, dict[str, float]]


def qrels_and_run(size: Size, seed: int, tied: bool) -> tuple[Qrels, Run]:
    """Judgements graded 0 to 3, about half of them retrieved, and rankings in rank order.

    The two sides share no string objects, as if read from two files. Scores are distinct even as float32, which
    pytrec_eval compares; tied ones take 20 values.
    """
    rng = np.random.default_rng(seed)
    columns = np.arange(size.depth)
    retrieved = 2 * (rng.integers(0, 1 << 20, (size.queries, size.depth)) * size.depth + columns)  # distinct in a row
    judged = 2 * (rng.integers(0, 1 << 20, (size.queries, size.judged)) * size.judged + np.arange(size.judged)) + 1
    n_hits = min((size.judged + 1) // 2, size.depth // 2)
    ranks = rng.permuted(np.tile(columns, (size.queries, 1)), axis=1)[:, :n_hits]
    judged[:, :n_hits] = np.take_along_axis(retrieved, ranks, axis=1)
    grades = rng.integers(0, 4, judged.shape)
    scores = 30 - (columns + rng.random(retrieved.shape) / 2) / 8
    if tied:
        scores = np.broadcast_to(20.0 - columns * 20 // size.depth, scores.shape)
    qrels = {
        f"q{query:07}": {f"d{document}": grade for document, grade in zip(*row, strict=True)}
        for query, row in enumerate(zip(judged.tolist(), grades.tolist(), strict=True))
    }
    run = {
        f"q{query:07}": {f"d{document}": score for document, score in zip(*row, strict=True)}
        for query, row in enumerate(zip(retrieved.tolist(), scores.tolist(), strict=True))
    }
    return qrels, run


def ours(size: Size, seed: int, tied: bool) -> Prepared:
    """Ours, with trec_eval's policies."""
    from metrics_core import evaluate

    qrels, run = qrels_and_run(size, seed, tied)
    return Prepared(
        lambda: evaluate(qrels, run, METRICS, policies="trec_eval", n_threads=1),
        partial(answers_by_query, metrics=METRICS),
    )


def pytrec_eval_answers(results: dict[str, dict[str, float]], names: dict[str, str]) -> Answers:
    """The dict of dicts of pytrec_eval as columns, in the order of the query ids."""
    return {metric: [results[query][name] for query in sorted(results)] for metric, name in names.items()}


def pytrec_eval(size: Size, seed: int, tied: bool) -> Prepared:
    """The evaluator of pytrec_eval, taking in the judgements included."""
    from pytrec_eval import RelevanceEvaluator

    qrels, run = qrels_and_run(size, seed, tied)
    measures = set(PYTREC_EVAL_NAMES.values())
    return Prepared(
        lambda: RelevanceEvaluator(qrels, measures).evaluate(run),
        partial(pytrec_eval_answers, names=PYTREC_EVAL_NAMES),
    )


def ranx(size: Size, seed: int, tied: bool) -> Prepared:
    """The dicts to ranx's objects to scores; results are not saved in the run, which would add to its time."""
    from ranx import Qrels, Run, evaluate

    qrels, run = qrels_and_run(size, seed, tied)
    names = list(RANX_NAMES.values())

    def call() -> dict[str, Any]:
        results: dict[str, Any] = evaluate(
            Qrels(qrels), Run(run), names, return_mean=False, save_results_in_run=False, threads=1
        )
        return results

    def columns(results: dict[str, Any]) -> Answers:
        comparable = ("R@100",) if tied else METRICS  # its order of tied documents is arbitrary
        return {metric: results[RANX_NAMES[metric]] for metric in comparable}

    return Prepared(call, columns)


def _case(size: Size, tied: bool) -> Case:
    return Case(
        f"{size.queries // 1000}k x {size.depth}, {size.judged} judged, {'20 values' if tied else 'distinct scores'}",
        size,
        (
            Contender(OURS, partial(ours, tied=tied)),
            Contender(PYTREC_EVAL, partial(pytrec_eval, tied=tied)),
            Contender(RANX, partial(ranx, tied=tied)),
        ),
        (
            times_as_fast(OURS, PYTREC_EVAL, gate=2 if tied else 4, aim=5),
            times_as_fast(OURS, RANX, gate=20),
        ),
        rounds=1 if size.rows > 5_000_000 else 3,
        smoke=size.queries == 10_000 and tied == (size.judged > size.depth),
    )


WORKLOAD = Workload(
    "mappings",
    "Dicts of dicts: AP, RR, nDCG and R@100",
    tuple(
        _case(size, tied)
        for size in (Size(10_000, 100, 5), Size(100_000, 100, 5), Size(10_000, 100, 500))
        for tied in (False, True)
    ),
    ("pytrec_eval-terrier", "ranx"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
