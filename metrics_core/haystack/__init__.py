"""The evaluators as components of Haystack's pipelines.

Change the import line, `from haystack.components.evaluators import ...` to `from metrics_core.haystack import ...`;
modules have Haystack's names, too. Constructors, sockets, results and dict forms stay; DIFFERENCES.md in this folder
lists what deliberately differs. Needs the extra: `pip install 'metrics-core[haystack]'`.

Importing this package lets Haystack load pipelines that were saved with these components. A pipeline that was saved
with Haystack's evaluators becomes one with these by one replacement in its text:

    Pipeline.loads(text.replace("haystack.components.evaluators.", "metrics_core.haystack."))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    from haystack.core.serialization import allow_deserialization_module
except ModuleNotFoundError as error:
    if error.name != "haystack":
        raise
    message = "metrics_core.haystack needs haystack-ai: pip install 'metrics-core[haystack]'"
    raise ImportError(message, name="haystack") from error

if TYPE_CHECKING:
    from metrics_core.haystack.answer_exact_match import AnswerExactMatchEvaluator as AnswerExactMatchEvaluator
    from metrics_core.haystack.answer_f1 import AnswerF1Evaluator as AnswerF1Evaluator
    from metrics_core.haystack.context_relevance import ContextRelevanceEvaluator as ContextRelevanceEvaluator
    from metrics_core.haystack.document_map import DocumentMAPEvaluator as DocumentMAPEvaluator
    from metrics_core.haystack.document_metrics import DocumentMetricsEvaluator as DocumentMetricsEvaluator
    from metrics_core.haystack.document_mrr import DocumentMRREvaluator as DocumentMRREvaluator
    from metrics_core.haystack.document_ndcg import DocumentNDCGEvaluator as DocumentNDCGEvaluator
    from metrics_core.haystack.document_recall import (
        DocumentRecallEvaluator as DocumentRecallEvaluator,
        RecallMode as RecallMode,
    )
    from metrics_core.haystack.faithfulness import FaithfulnessEvaluator as FaithfulnessEvaluator
    from metrics_core.haystack.llm_evaluator import LLMEvaluator as LLMEvaluator
    from metrics_core.haystack.sas_evaluator import SASEvaluator as SASEvaluator

_HOMES = {
    "AnswerExactMatchEvaluator": "answer_exact_match",
    "AnswerF1Evaluator": "answer_f1",
    "ContextRelevanceEvaluator": "context_relevance",
    "DocumentMAPEvaluator": "document_map",
    "DocumentMRREvaluator": "document_mrr",
    "DocumentMetricsEvaluator": "document_metrics",
    "DocumentNDCGEvaluator": "document_ndcg",
    "DocumentRecallEvaluator": "document_recall",
    "FaithfulnessEvaluator": "faithfulness",
    "LLMEvaluator": "llm_evaluator",
    "RecallMode": "document_recall",
    "SASEvaluator": "sas_evaluator",
}

__all__ = list(_HOMES)  # computed from the one list of names

for _package in (__name__, "llm_judges"):  # the latter for its chat generators
    allow_deserialization_module(_package)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
