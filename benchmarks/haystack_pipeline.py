"""Documents in a pipeline of Haystack's: one DocumentMetricsEvaluator against haystack-ai's five evaluators.

Nearly all of the time is the pipeline's: it copies all documents twice for each component.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.documents import EVALUATORS, document_lists
from benchmarks.engine import CONTRACT_METRICS
from benchmarks.harness import run_command
from benchmarks.workload import Answers, Case, Contender, Prepared, Size, Workload, times_as_fast

ONE = "metrics-core, DocumentMetricsEvaluator"
HAYSTACK = "haystack-ai"


def _pipeline(components: dict[str, Any]) -> Any:
    from haystack import Pipeline

    pipeline = Pipeline()
    for name, component in components.items():
        pipeline.add_component(name, component)
    return pipeline


def _inputs(size: Size, seed: int, names: Any) -> dict[str, dict[str, Any]]:
    from haystack import Document

    truths, retrieved = document_lists(size, seed, Document)
    documents = {"ground_truth_documents": truths, "retrieved_documents": retrieved}
    return {name: documents for name in names}  # noqa: C420  # a pipeline only reads them


def one(size: Size, seed: int) -> Prepared:
    """Ours: all metrics from one component."""
    from metrics_core.haystack import DocumentMetricsEvaluator

    pipeline = _pipeline({"documents": DocumentMetricsEvaluator(list(CONTRACT_METRICS))})
    inputs = _inputs(size, seed, pipeline.graph.nodes)

    def individual_scores(result: Any) -> Answers:
        found: Answers = result["documents"]["individual_scores"]
        return found

    return Prepared(lambda: pipeline.run(inputs), individual_scores)


def five(size: Size, seed: int) -> Prepared:
    """Haystack's: a component for each metric."""
    from haystack.components import evaluators

    pipeline = _pipeline({metric: make(evaluators) for metric, make in EVALUATORS.items()})
    inputs = _inputs(size, seed, pipeline.graph.nodes)

    def individual_scores(result: Any) -> Answers:
        return {metric: result[metric]["individual_scores"] for metric in EVALUATORS}

    return Prepared(lambda: pipeline.run(inputs), individual_scores)


WORKLOAD = Workload(
    "haystack_pipeline",
    "Haystack's documents, scored by a pipeline of Haystack's",
    (
        Case(
            "five metrics, 20k x 10",
            Size(queries=20_000, depth=10, judged=2),
            (
                Contender(ONE, one),
                Contender(HAYSTACK, five),
            ),
            (times_as_fast(ONE, HAYSTACK, gate=3.5, aim=4.5),),
            rounds=1,  # minutes each, and of one kind: copying
        ),
    ),
    ("haystack-ai",),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
