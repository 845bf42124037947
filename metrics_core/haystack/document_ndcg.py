"""DocumentNDCGEvaluator as a component."""

from __future__ import annotations

from haystack import component

from metrics_core import evaluators
from metrics_core.haystack.document_component import DocumentComponent


@component
class DocumentNDCGEvaluator(DocumentComponent, evaluators.DocumentNDCGEvaluator):
    """metrics_core.DocumentNDCGEvaluator as a component."""
