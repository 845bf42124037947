"""Lists of documents: the five contract metrics from one pack, and each evaluator alone, against haystack-ai's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.engine import CONTRACT_METRICS, answers
from benchmarks.harness import run_command
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

OUR_DOCUMENT = "metrics-core, its Document"
THEIR_DOCUMENT = "metrics-core, Haystack's Document"
HAYSTACK = "haystack-ai"

EVALUATORS: dict[str, Callable[[Any], Any]] = {
    "Success": lambda module: module.DocumentRecallEvaluator(mode="single_hit"),
    "SetR": lambda module: module.DocumentRecallEvaluator(mode="multi_hit"),
    "RR": lambda module: module.DocumentMRREvaluator(),
    "AP": lambda module: module.DocumentMAPEvaluator(),
    "nDCG": lambda module: module.DocumentNDCGEvaluator(),
}


def document_lists(size: Size, seed: int, document: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    """Ground-truth and retrieved documents of about 200 characters; every content is its own string object.

    Six in ten ground-truth documents are retrieved, at a random rank; ground-truth documents carry grades 1 to 3.
    """
    rng = np.random.default_rng(seed)
    letters = rng.integers(97, 123, 1 << 24, dtype=np.uint8).tobytes().decode("ascii")
    truths = _texts(rng, (size.queries, size.judged))
    retrieved = _texts(rng, (size.queries, size.depth))
    rows = np.arange(size.queries)
    first = rng.integers(0, size.depth, size.queries)
    for judged in range(size.judged):
        hit = rows[rng.random(size.queries) < 0.6]
        retrieved[hit, (first[hit] + judged) % size.depth] = truths[hit, judged]
    grades = rng.integers(1, 4, (size.queries, size.judged)).astype(np.float64)
    scores = -np.sort(-rng.random((size.queries, size.depth)), axis=1)

    def documents(texts: np.ndarray[Any, Any], scores: np.ndarray[Any, Any]) -> list[list[Any]]:
        return [
            [
                document(id="d", content=letters[start:end], score=score)  # slicing makes a new string, not yet hashed
                for (start, end), score in zip(row, row_scores, strict=True)
            ]
            for row, row_scores in zip(texts.tolist(), scores.tolist(), strict=True)
        ]

    return documents(truths, grades), documents(retrieved, scores)


def _texts(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """(*shape, 2), where texts start and end in a string of 2**24 letters."""
    start = rng.integers(0, (1 << 24) - 250, shape)
    return np.stack([start, start + rng.integers(150, 251, shape)], axis=-1)


def _document_class(module: str) -> Callable[..., Any]:
    found: Callable[..., Any] = import_module(module).Document
    return found


def one_pack(size: Size, seed: int, document_module: str) -> Prepared:
    """Ours: five metrics from one pack."""
    from metrics_core import evaluate

    truths, retrieved = document_lists(size, seed, _document_class(document_module))
    return Prepared(
        lambda: evaluate(truths, retrieved, CONTRACT_METRICS, policies="haystack", n_threads=1),
        partial(answers, metrics=CONTRACT_METRICS),
    )


def evaluators(
    size: Size, seed: int, document_module: str, evaluator_module: str, metrics: tuple[str, ...]
) -> Prepared:
    """The evaluators of these metrics, one after the other; the same classes in both packages."""
    chosen = {metric: EVALUATORS[metric](import_module(evaluator_module)) for metric in metrics}
    truths, retrieved = document_lists(size, seed, _document_class(document_module))

    def call() -> dict[str, Any]:
        return {
            metric: evaluator.run(ground_truth_documents=truths, retrieved_documents=retrieved)
            for metric, evaluator in chosen.items()
        }

    def individual_scores(results: dict[str, Any]) -> Answers:
        return {metric: result["individual_scores"] for metric, result in results.items()}

    return Prepared(call, individual_scores)


def _haystack(metrics: tuple[str, ...]) -> Contender:
    setup = partial(
        evaluators, document_module="haystack", evaluator_module="haystack.components.evaluators", metrics=metrics
    )
    return Contender(HAYSTACK, setup)


def _alone(metric: str, size: Size) -> Case:
    ours = partial(evaluators, evaluator_module="metrics_core", metrics=(metric,))
    return Case(
        f"{metric} evaluator alone, {size.queries // 1000}k x {size.depth}",
        size,
        (
            Contender(OUR_DOCUMENT, partial(ours, document_module="metrics_core")),
            Contender(THEIR_DOCUMENT, partial(ours, document_module="haystack")),
            _haystack((metric,)),
        ),
        (
            times_the_time(OUR_DOCUMENT, HAYSTACK, gate=1.05, aim=0.8),
            times_the_time(THEIR_DOCUMENT, HAYSTACK, gate=1.05, aim=0.8),
        ),
        rounds=3 if size is NARROW else 1,
        smoke=size is NARROW,
    )


WIDE = Size(queries=10_000, depth=100, judged=2)
NARROW = Size(queries=100_000, depth=10, judged=2)

WORKLOAD = Workload(
    "documents",
    "Lists of documents, compared by content of about 200 characters",
    (
        *(
            Case(
                f"five metrics, {size.queries // 1000}k x {size.depth}",
                size,
                (
                    Contender(OUR_DOCUMENT, partial(one_pack, document_module="metrics_core")),
                    Contender(THEIR_DOCUMENT, partial(one_pack, document_module="haystack")),
                    _haystack(CONTRACT_METRICS),
                ),
                (
                    times_as_fast(OUR_DOCUMENT, HAYSTACK, gate=4.5),
                    times_as_fast(THEIR_DOCUMENT, HAYSTACK, gate=4),
                    growth_mb(OUR_DOCUMENT, gate=30),
                    growth_mb(THEIR_DOCUMENT, gate=30),
                )
                if size is NARROW
                else (),
                rounds=5 if size is NARROW else 3,
                smoke=size is NARROW,
            )
            for size in (NARROW, WIDE)
        ),
        *(_alone(metric, size) for size in (NARROW, WIDE) for metric in CONTRACT_METRICS),
    ),
    ("haystack-ai",),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
