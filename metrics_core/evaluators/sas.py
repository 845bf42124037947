"""SASEvaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metrics_core.aggregate import mean
from metrics_core.answers import GroundTruthAnswers
from metrics_core.evaluators.serialisation import Evaluator
from metrics_core.similarity.settings import DEFAULT_MODEL, HUB_TOKEN, Dtype, Kind, OnTruncation, Settings
from metrics_core.similarity.texts import Empty, answer_pairs

if TYPE_CHECKING:
    from metrics_core.similarity.scoring import SimilarityScorer


class SASEvaluator(Evaluator):
    """Semantic answer similarity: how close the predicted answer is to the gold answer, or to the closest of several.

    A bi-encoder gives the cosine of the two embeddings, in [-1, 1]; a cross-encoder what it makes of the pair, in
    [0, 1]. A cross-encoder's score is a sigmoid, unless the model brings another activation than none, or the
    probability of a label: it does not depend on the other pairs, as that of Haystack's evaluator does.

    The arguments are those of `metrics_core.similarity.Settings`, which documents them.

    Raises:
        InputError: a value that an argument does not take.
    """

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        batch_size: int = 32,
        device: Any = None,
        token: Any = HUB_TOKEN,
        *,
        kind: Kind = "auto",
        dtype: Dtype = "float32",
        token_budget: int | None = None,
        label: str | int | None = None,
        prompt: str | tuple[str, str] | None = None,
        truncate_dim: int | None = None,
        on_truncation: OnTruncation = "warn",
        empty: Empty = "encode",
        fast_fp32: bool = False,
        revision: str | None = None,
        trust_remote_code: bool = False,
        local_files_only: bool = False,
        progress_bar: bool = False,
    ) -> None:
        self.settings = Settings(
            model=model,
            batch_size=batch_size,
            device=device,
            token=token,
            kind=kind,
            dtype=dtype,
            token_budget=token_budget,
            label=label,
            prompt=prompt,
            truncate_dim=truncate_dim,
            on_truncation=on_truncation,
            empty=empty,
            fast_fp32=fast_fp32,
            revision=revision,
            trust_remote_code=trust_remote_code,
            local_files_only=local_files_only,
            progress_bar=progress_bar,
        )
        self._scorer: SimilarityScorer | None = None

    def warm_up(self) -> None:
        """Loads the model, unless it is loaded.

        Raises:
            ImportError: sentence-transformers is not installed.
            InputError, ModelError: as `metrics_core.answer_similarity`.
        """
        if self._scorer is None:
            from metrics_core.similarity.scoring import SimilarityScorer

            self._scorer = SimilarityScorer(self.settings)

    def run(self, ground_truth_answers: GroundTruthAnswers, predicted_answers: Sequence[str]) -> dict[str, Any]:
        """Scores each question.

        Args:
            ground_truth_answers: the gold answer of each question, or a list of them.
            predicted_answers: the predicted answer of each question.

        Returns:
            {"score": the mean, "individual_scores": a float for each question}; without any question both are 0.0, as
            Haystack has it.

        Raises:
            ImportError, InputError, ModelError: as `metrics_core.answer_similarity`.
        """
        pairs = answer_pairs(ground_truth_answers, predicted_answers, self.settings.empty)
        if not len(pairs):
            return {"score": 0.0, "individual_scores": [0.0]}
        self.warm_up()
        assert self._scorer is not None
        scores = self._scorer.score(pairs).scores.tolist()
        return {"score": mean(scores), "individual_scores": scores}

    def _init_parameters(self) -> dict[str, Any]:
        return self.settings.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """As of every evaluator; a token that was given as text is left out.

        Raises:
            InputError: a loaded model, which no plain value can stand for.
        """
        self.settings.require_named_model()
        return super().to_dict()
