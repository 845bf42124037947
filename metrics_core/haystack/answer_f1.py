"""AnswerF1Evaluator as a component."""

from __future__ import annotations

from typing import Any

from haystack import component

from metrics_core import evaluators


@component
class AnswerF1Evaluator(evaluators.AnswerF1Evaluator):
    """metrics_core.AnswerF1Evaluator as a component."""

    @component.output_types(individual_scores=list[float], score=float)
    def run(self, ground_truth_answers: list[str], predicted_answers: list[str]) -> dict[str, Any]:  # type: ignore[override]
        """Scores each question, as the evaluator does."""
        return evaluators.AnswerF1Evaluator.run(self, ground_truth_answers, predicted_answers)
