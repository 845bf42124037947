"""DocumentMRREvaluator as a component."""

from __future__ import annotations

from haystack import component

from metrics_core import evaluators
from metrics_core.haystack.document_component import DocumentComponent


@component
class DocumentMRREvaluator(DocumentComponent, evaluators.DocumentMRREvaluator):
    """metrics_core.DocumentMRREvaluator as a component."""
