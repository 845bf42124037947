"""SASEvaluator as a component."""

from __future__ import annotations

from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.utils import ComponentDevice, Secret

from metrics_core import evaluators

_HUB_TOKEN = Secret.from_env_var(["HF_API_TOKEN", "HF_TOKEN"], strict=False)


@component
class SASEvaluator(evaluators.SASEvaluator):
    """metrics_core.SASEvaluator as a component.

    Args:
        model, batch_size, options: as there.
        device: a ComponentDevice, or as there.
        token: a Secret, or as there.
    """

    def __init__(
        self,
        model: Any = "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        batch_size: int = 32,
        device: ComponentDevice | None = None,
        token: Secret | None = _HUB_TOKEN,
        **options: Any,
    ) -> None:
        evaluators.SASEvaluator.__init__(self, model, batch_size, device, token, **options)
        self._model = self.settings.model
        self._batch_size = batch_size
        self._device = device
        self._token = token
        self._options = tuple(options)

    @property
    def _similarity_model(self) -> Any:
        """The loaded SentenceTransformer or CrossEncoder; None before `warm_up`."""
        return None if self._scorer is None else self._scorer.model.loaded

    @component.output_types(score=float, individual_scores=list[float])
    def run(self, ground_truth_answers: list[str], predicted_answers: list[str]) -> dict[str, Any]:  # type: ignore[override]
        """Scores each question, as the evaluator does."""
        return evaluators.SASEvaluator.run(self, ground_truth_answers, predicted_answers)

    def to_dict(self) -> dict[str, Any]:
        """As Haystack saves its own, with the options that were given; a token that was given as text is left out.

        Raises:
            InputError: a loaded model, which no plain value can stand for.
            ValueError: a Secret that holds the token itself.
        """
        self.settings.require_named_model()
        plain = self.settings.to_dict()
        token = None if isinstance(self._token, str) else self._token
        given = {name: plain[name] for name in ("model", "batch_size", *self._options)}
        return default_to_dict(self, device=self._device, token=token, **given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SASEvaluator:
        """The component that `to_dict` described.

        Raises:
            DeserializationError: another class.
        """
        return default_from_dict(cls, data)
