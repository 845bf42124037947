"""AnswerF1Evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metrics_core.aggregate import mean
from metrics_core.answers import GroundTruthAnswers, Normalize, gold_answers, normalizer, token_f1
from metrics_core.evaluators.serialisation import Evaluator


class AnswerF1Evaluator(Evaluator):
    """Token F1 of the predicted and the gold answer, or the best of several.

    Args:
        normalize: "squad" compares without case, punctuation and articles, as the measure is defined there; None
            splits the texts as they are.

    Raises:
        InputError: another value of normalize.

    Source: Rajpurkar et al., SQuAD, EMNLP 2016.
    """

    def __init__(self, *, normalize: Normalize = "squad") -> None:
        self._normalized = normalizer(normalize)
        self.normalize = normalize

    def run(self, ground_truth_answers: GroundTruthAnswers, predicted_answers: Sequence[str]) -> dict[str, Any]:
        """Scores each question; arguments and errors as in AnswerExactMatchEvaluator.run.

        Returns:
            {"individual_scores": a float from 0 to 1 for each question, "score": their mean}.
        """
        golds, predictions = gold_answers(ground_truth_answers, predicted_answers)
        normalized = self._normalized
        scores = [
            max(token_f1(normalized(answer), normalized(predicted)) for answer in gold)
            for gold, predicted in zip(golds, predictions, strict=True)
        ]
        return {"individual_scores": scores, "score": mean(scores)}
