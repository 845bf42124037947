"""DocumentRecallEvaluator as a component."""

from __future__ import annotations

from haystack import component

from metrics_core import evaluators
from metrics_core.evaluators import RecallMode
from metrics_core.haystack.document_component import DocumentComponent

__all__ = ["DocumentRecallEvaluator", "RecallMode"]


@component
class DocumentRecallEvaluator(DocumentComponent, evaluators.DocumentRecallEvaluator):  # type: ignore[misc]
    """metrics_core.DocumentRecallEvaluator as a component."""

    def __init__(
        self, mode: str | RecallMode = RecallMode.SINGLE_HIT, document_comparison_field: str = "content"
    ) -> None:
        # str(): Haystack's own RecallMode will do
        evaluators.DocumentRecallEvaluator.__init__(self, str(mode), document_comparison_field)
