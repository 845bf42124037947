"""The evaluators under Haystack's names and contracts."""

from llm_judges.evaluators.context_relevance import ContextRelevanceEvaluator
from llm_judges.evaluators.faithfulness import FaithfulnessEvaluator
from llm_judges.evaluators.llm import LLMEvaluator

__all__ = ["ContextRelevanceEvaluator", "FaithfulnessEvaluator", "LLMEvaluator"]
