"""DocumentMRREvaluator."""

from __future__ import annotations

from metrics_core.evaluators.document_metric import DocumentMetric
from metrics_core.metrics import RR


class DocumentMRREvaluator(DocumentMetric):
    """Mean reciprocal rank: 1 / the rank of the first relevant document, 0 if none was retrieved."""

    _metric = RR
