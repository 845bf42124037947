"""DocumentMetricsEvaluator as a component."""

from __future__ import annotations

from typing import Any

from haystack import Document, component

from metrics_core import evaluators


@component
class DocumentMetricsEvaluator(evaluators.DocumentMetricsEvaluator):
    """metrics_core.DocumentMetricsEvaluator as a component."""

    @component.output_types(scores=dict[str, float], individual_scores=dict[str, list[float]])
    def run(  # type: ignore[override]
        self, ground_truth_documents: list[list[Document]], retrieved_documents: list[list[Document]]
    ) -> dict[str, Any]:
        """Scores each question, as the evaluator does."""
        return evaluators.DocumentMetricsEvaluator.run(self, ground_truth_documents, retrieved_documents)
