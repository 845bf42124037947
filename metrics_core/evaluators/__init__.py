"""The evaluators under Haystack's names and contracts."""

from metrics_core.evaluators.answer_exact_match import AnswerExactMatchEvaluator
from metrics_core.evaluators.answer_f1 import AnswerF1Evaluator
from metrics_core.evaluators.document_map import DocumentMAPEvaluator
from metrics_core.evaluators.document_metrics import DocumentMetricsEvaluator
from metrics_core.evaluators.document_mrr import DocumentMRREvaluator
from metrics_core.evaluators.document_ndcg import DocumentNDCGEvaluator
from metrics_core.evaluators.document_recall import DocumentRecallEvaluator, RecallMode
from metrics_core.evaluators.sas import SASEvaluator

__all__ = [
    "AnswerExactMatchEvaluator",
    "AnswerF1Evaluator",
    "DocumentMAPEvaluator",
    "DocumentMRREvaluator",
    "DocumentMetricsEvaluator",
    "DocumentNDCGEvaluator",
    "DocumentRecallEvaluator",
    "RecallMode",
    "SASEvaluator",
]
