"""What the components that score retrieved documents by one metric share."""

from __future__ import annotations

from typing import Any

from haystack import Document, component

from metrics_core.evaluators.document_metric import DocumentMetric


class DocumentComponent(DocumentMetric):
    """An evaluator of documents with Haystack's sockets; comes before the evaluator among a component's bases."""

    @component.output_types(score=float, individual_scores=list[float])
    def run(  # type: ignore[override]
        self, ground_truth_documents: list[list[Document]], retrieved_documents: list[list[Document]]
    ) -> dict[str, Any]:
        """Scores each question, as the evaluator does."""
        return super().run(ground_truth_documents, retrieved_documents)
