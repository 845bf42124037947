"""What the four evaluators of retrieved documents share."""

from __future__ import annotations

from typing import Any

from metrics_core.aggregate import mean
from metrics_core.documents import comparison_value
from metrics_core.evaluation import evaluate
from metrics_core.evaluators.serialisation import Evaluator
from metrics_core.lists import paired
from metrics_core.metrics import Metric
from metrics_core.policies import Policies
from metrics_core.sources.documents import DocumentLists


class DocumentMetric(Evaluator):
    """Scores retrieved documents by one metric.

    Args:
        document_comparison_field: what makes two documents the same: "content", "id" or "meta.<key>[.<key>...]".

    Raises:
        InputError: any other field.
    """

    _policies = Policies("haystack")

    @property
    def _metric(self) -> Metric:
        raise NotImplementedError

    def __init__(self, document_comparison_field: str = "content") -> None:
        comparison_value(document_comparison_field)  # refuses an unknown one
        self.document_comparison_field = document_comparison_field

    def run(self, ground_truth_documents: DocumentLists, retrieved_documents: DocumentLists) -> dict[str, Any]:
        """Scores each question.

        Args:
            ground_truth_documents: the relevant documents of each question.
            retrieved_documents: the retrieved documents of each question, best first; equally many lists.

        Returns:
            {"score": the mean, "individual_scores": a float from 0 to 1 for each question}.

        Raises:
            InputError: lists that are empty or do not pair up.
        """
        ground_truth, retrieved = paired_questions(ground_truth_documents, retrieved_documents)
        scores = evaluate(
            ground_truth,
            retrieved,
            self._metric,
            policies=self._policies,
            document_comparison_field=self.document_comparison_field,
        )
        individual_scores = scores.values[:, 0].tolist()
        return {"score": mean(individual_scores), "individual_scores": individual_scores}


def paired_questions(ground_truth_documents: DocumentLists, retrieved_documents: DocumentLists) -> list[DocumentLists]:
    """Both sides, checked as `paired` does."""
    return paired(
        "lists of documents",
        ground_truth_documents=ground_truth_documents,
        retrieved_documents=retrieved_documents,
    )
