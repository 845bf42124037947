"""DocumentMAPEvaluator as a component."""

from __future__ import annotations

from haystack import component

from metrics_core import evaluators
from metrics_core.haystack.document_component import DocumentComponent


@component
class DocumentMAPEvaluator(DocumentComponent, evaluators.DocumentMAPEvaluator):
    """metrics_core.DocumentMAPEvaluator as a component."""
