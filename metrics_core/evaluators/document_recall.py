"""DocumentRecallEvaluator and RecallMode."""

from __future__ import annotations

import logging
from enum import Enum
from typing import Any

from metrics_core.documents import comparison_value
from metrics_core.errors import InputError
from metrics_core.evaluators.document_metric import DocumentMetric, paired_questions
from metrics_core.metrics import Metric, SetR, Success
from metrics_core.policies import Policies
from metrics_core.sources.documents import DocumentLists

_logger = logging.getLogger(__name__)


class RecallMode(Enum):
    """How recall is counted: whether any relevant document was retrieved, or how many of them."""

    SINGLE_HIT = "single_hit"
    MULTI_HIT = "multi_hit"

    def __str__(self) -> str:
        return str(self.value)

    @staticmethod
    def from_str(string: str) -> RecallMode:
        """The mode of that name.

        Raises:
            InputError: there is none.
        """
        for mode in RecallMode:
            if mode.value == string:
                return mode
        raise InputError(f"mode must be {' or '.join(repr(mode.value) for mode in RecallMode)}, got {string!r}")


class DocumentRecallEvaluator(DocumentMetric):
    """Recall: whether any relevant document was retrieved (single_hit), or the share of them that was (multi_hit).

    Documents whose comparison value is None or `""` are left out on both sides.

    Args:
        mode: a RecallMode, or its value.
        document_comparison_field: what makes two documents the same: "content", "id" or "meta.<key>[.<key>...]".

    Raises:
        InputError: an unknown mode or field.
    """

    _policies = Policies("haystack", empty_key="ignore")

    def __init__(
        self, mode: str | RecallMode = RecallMode.SINGLE_HIT, document_comparison_field: str = "content"
    ) -> None:
        super().__init__(document_comparison_field)
        self.mode = mode if isinstance(mode, RecallMode) else RecallMode.from_str(mode)

    @property
    def _metric(self) -> Metric:
        return Success if self.mode is RecallMode.SINGLE_HIT else SetR

    def run(self, ground_truth_documents: DocumentLists, retrieved_documents: DocumentLists) -> dict[str, Any]:
        """As the other evaluators' `run`; warns of questions that score 0 because a side has no value to compare."""
        sides = paired_questions(ground_truth_documents, retrieved_documents)
        result = super().run(*sides)
        value_of = comparison_value(self.document_comparison_field)
        without = [
            question
            for question, score in enumerate(result["individual_scores"])
            if score == 0.0
            and not all(any(value_of(document) not in (None, "") for document in side[question]) for side in sides)
        ]
        if without:
            _logger.warning(
                "%d of %d questions score 0 because their ground truth or their retrieved documents have no %s to "
                "compare, question %d the first",
                len(without),
                len(result["individual_scores"]),
                self.document_comparison_field,
                without[0],
            )
        return result

    def _init_parameters(self) -> dict[str, Any]:
        return super()._init_parameters() | {"mode": str(self.mode)}
