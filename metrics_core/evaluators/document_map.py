"""DocumentMAPEvaluator."""

from __future__ import annotations

from metrics_core.evaluators.document_metric import DocumentMetric
from metrics_core.metrics import AP


class DocumentMAPEvaluator(DocumentMetric):
    """Mean average precision: the precision at each relevant document's rank, summed, over all relevant documents."""

    _metric = AP
