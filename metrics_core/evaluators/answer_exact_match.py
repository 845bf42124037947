"""AnswerExactMatchEvaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metrics_core.answers import GroundTruthAnswers, Normalize, gold_answers, normalizer
from metrics_core.evaluators.serialisation import Evaluator


class AnswerExactMatchEvaluator(Evaluator):
    """Whether a predicted answer equals the gold answer, or one of several, letter by letter.

    Args:
        normalize: None compares the texts as they are; "squad" without case, punctuation, articles and extra spaces.

    Raises:
        InputError: another value of normalize.
    """

    def __init__(self, *, normalize: Normalize = None) -> None:
        self._normalized = normalizer(normalize)
        self.normalize = normalize

    def run(self, ground_truth_answers: GroundTruthAnswers, predicted_answers: Sequence[str]) -> dict[str, Any]:
        """Scores each question.

        Args:
            ground_truth_answers: the gold answer of each question, or a list of them.
            predicted_answers: the predicted answer of each question.

        Returns:
            {"individual_scores": 1 or 0 for each question, "score": their mean}.

        Raises:
            InputError: sides that are empty or do not pair up, or answers that are no strings.
        """
        golds, predictions = gold_answers(ground_truth_answers, predicted_answers)
        normalized = self._normalized
        matches = [
            int(normalized(predicted) in map(normalized, gold))
            for gold, predicted in zip(golds, predictions, strict=True)
        ]
        return {"individual_scores": matches, "score": sum(matches) / len(matches)}
