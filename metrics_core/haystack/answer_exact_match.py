"""AnswerExactMatchEvaluator as a component."""

from __future__ import annotations

from typing import Any

from haystack import component

from metrics_core import evaluators


@component
class AnswerExactMatchEvaluator(evaluators.AnswerExactMatchEvaluator):
    """metrics_core.AnswerExactMatchEvaluator as a component."""

    @component.output_types(individual_scores=list[int], score=float)
    def run(self, ground_truth_answers: list[str], predicted_answers: list[str]) -> dict[str, Any]:  # type: ignore[override]
        """Scores each question, as the evaluator does."""
        return evaluators.AnswerExactMatchEvaluator.run(self, ground_truth_answers, predicted_answers)
