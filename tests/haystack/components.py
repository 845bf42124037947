"""The components that Haystack has too, with the arguments that the tests give both."""

from __future__ import annotations

from typing import Any

LLM: dict[str, Any] = {
    "instructions": "Is it polite?",
    "inputs": [("answers", list[str])],
    "outputs": ["polite"],
    "examples": [{"inputs": {"answers": "Certainly."}, "outputs": {"polite": 1}}],
}
EXAMPLES = {"examples": [{"inputs": {"questions": "q", "contexts": ["c"]}, "outputs": {"relevant_statements": []}}]}

# Haystack's module, class, and arguments beside the defaults
COMPONENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("answer_exact_match", "AnswerExactMatchEvaluator", {}),
    ("context_relevance", "ContextRelevanceEvaluator", EXAMPLES | {"raise_on_failure": False}),
    ("document_map", "DocumentMAPEvaluator", {"document_comparison_field": "id"}),
    ("document_mrr", "DocumentMRREvaluator", {"document_comparison_field": "meta.a.b"}),
    ("document_ndcg", "DocumentNDCGEvaluator", {"document_comparison_field": "id"}),
    ("document_recall", "DocumentRecallEvaluator", {"mode": "multi_hit", "document_comparison_field": "meta.a"}),
    ("faithfulness", "FaithfulnessEvaluator", {"progress_bar": False, **EXAMPLES}),
    ("llm_evaluator", "LLMEvaluator", LLM),
    ("sas_evaluator", "SASEvaluator", {"model": "some/model", "batch_size": 4}),
]
