"""DocumentMetricsEvaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metrics_core.documents import comparison_value
from metrics_core.errors import PolicyError
from metrics_core.evaluation import evaluate
from metrics_core.evaluators.document_metric import paired_questions
from metrics_core.evaluators.serialisation import Evaluator
from metrics_core.metrics import Metric, parse_all
from metrics_core.policies import Policies
from metrics_core.sources.documents import DocumentLists


class DocumentMetricsEvaluator(Evaluator):
    """Scores retrieved documents by any number of metrics, in one pass over them.

    Evaluators of one metric each look at all documents anew; this one takes about as long as one of them.

    Args:
        metrics: names such as "nDCG@10", "RR@10" and "R@5", or Metric objects, or a single one.
        policies: a Policies, the name of a profile, or {"profile": name, <policy>: value, ...}. None: "haystack".
        document_comparison_field: what makes two documents the same: "content", "id" or "meta.<key>[.<key>...]".

    Attributes:
        metrics: the canonical names.
        policies: the Policies.

    Raises:
        MetricNameError, PolicyError, InputError: no metric; a metric, policy or field that is unknown; or policies that
            cannot apply to lists in rank order.
    """

    def __init__(
        self,
        metrics: str | Metric | Sequence[str | Metric],
        policies: Policies | str | Mapping[str, Any] | None = None,
        document_comparison_field: str = "content",
    ) -> None:
        comparison_value(document_comparison_field)  # refuses an unknown one
        self._parsed = parse_all(metrics)
        self.metrics = [str(metric) for metric in self._parsed]
        if isinstance(policies, Mapping):
            policies = _policies(policies)
        self.policies = Policies.resolve(policies, default="haystack").for_rankings_without_scores()
        for metric in self._parsed:
            metric.check_ties(self.policies)
        self.document_comparison_field = document_comparison_field

    def run(self, ground_truth_documents: DocumentLists, retrieved_documents: DocumentLists) -> dict[str, Any]:
        """Scores each question.

        Args:
            ground_truth_documents: the relevant documents of each question.
            retrieved_documents: the retrieved documents of each question, best first; equally many lists.

        Returns:
            {"scores": {metric: its mean, or what aggregates it}, "individual_scores": {metric: a float for each
            question}}, by canonical names; NaN for what the policies leave unscored.

        Raises:
            InputError: lists that are empty or do not pair up, and what `evaluate` refuses.
        """
        ground_truth, retrieved = paired_questions(ground_truth_documents, retrieved_documents)
        scores = evaluate(
            ground_truth,
            retrieved,
            self._parsed,
            policies=self.policies,
            document_comparison_field=self.document_comparison_field,
        )
        return {
            "scores": {metric: found.value for metric, found in scores.aggregate().items()},
            "individual_scores": dict(zip(scores.metrics, scores.values.T.tolist(), strict=True)),
        }

    def _init_parameters(self) -> dict[str, Any]:
        policies = {"profile": self.policies.profile} | self.policies.own()
        return super()._init_parameters() | {"metrics": list(self.metrics), "policies": policies}


def _policies(named: Mapping[str, Any]) -> Policies:
    try:
        return Policies(**named)
    except TypeError as error:
        raise PolicyError(f"policies has a name that is no policy: {error}") from error
