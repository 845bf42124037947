"""Scores of answers: each distinct text or pair is read once, and the best gold answer of a question counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from logging import getLogger
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metrics_core.answers import GroundTruthAnswers
from metrics_core.blocks import FloatArray
from metrics_core.errors import InputError, ModelError
from metrics_core.similarity.models import load
from metrics_core.similarity.progress import Progress
from metrics_core.similarity.reader import Key, Reader
from metrics_core.similarity.settings import Settings
from metrics_core.similarity.texts import AnswerPairs, answer_pairs, is_empty

_logger = getLogger(__name__)

_GATHERED_AT_ONCE, _DOTS_AT_ONCE = 8192, 512  # rows


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """Scores of answers, and how they came about."""

    scores: FloatArray  # (n_questions,), cosines in [-1, 1], or a cross-encoder's scores in [0, 1]
    kind: Literal["bi", "cross"]
    dtype: str  # of the weights, and whether float32 products were rounded
    device: str
    n_unique: int  # distinct texts (bi-encoder) or pairs (cross-encoder) that the model read
    n_truncated: int | None  # of these, how many it read only the beginning of; None: the model does not tell


def answer_similarity(
    ground_truth_answers: GroundTruthAnswers, predicted_answers: Sequence[str], model: Any, **settings: Any
) -> Similarity:
    """Semantic answer similarity: how close each predicted answer is to the gold answer, or to the closest of several.

    Args:
        ground_truth_answers: the gold answer of each question, or a list of them.
        predicted_answers: the predicted answer of each question.
        model: a folder or a name on the Hugging Face hub, loaded anew in each call; or a loaded model.
        settings: the other arguments of Settings.

    Raises:
        InputError: answers that do not pair up or are no text; settings that do not fit; texts that are too long, if
            they are refused.
        ModelError: a model that cannot be had, or that gives NaN or infinity.
        ImportError: sentence-transformers is not installed.

    Source: Risch et al., Semantic Answer Similarity for Evaluating Question Answering Models, MRQA 2021.
    """
    chosen = Settings(model, **settings)
    pairs = answer_pairs(ground_truth_answers, predicted_answers, chosen.empty)  # before the model is loaded
    return SimilarityScorer(chosen).score(pairs)


class SimilarityScorer:
    """A loaded model that scores answers.

    Args:
        settings: the model, and how it compares.
        n_kept: how many embeddings (bi-encoder) or scores (cross-encoder) are kept from one call to the next.

    Raises:
        ImportError, InputError, ModelError: of the model, as `answer_similarity`.
    """

    def __init__(self, settings: Settings, *, n_kept: int = 0) -> None:
        self.settings = settings
        self.model = load(settings)
        self._reader = Reader(self.model, settings, n_kept=n_kept)

    @contextmanager
    def workers(self) -> Iterator[None]:
        """Keeps the processes of several devices while the context lasts, rather than for one call of `score`."""
        with self._reader.workers():
            yield

    def score(self, pairs: AnswerPairs, progress: Progress | None = None) -> Similarity:
        """Scores each question.

        Args:
            pairs: what `answer_pairs` makes of the answers.
            progress: a bar to go on with, if these are but a part. The caller then warns of truncated texts.

        Raises:
            InputError, ModelError: as `answer_similarity`.
        """
        if progress is not None:
            return self._scored(pairs, progress)
        with Progress(pairs.n_questions, shown=self.settings.progress_bar) as own:
            result = self._scored(pairs, own)
        self.warn_of_truncation(result.n_truncated)
        return result

    def warn_of_truncation(self, n_truncated: int | None) -> None:
        """Logs a warning that texts were too long, if there were any and `on_truncation` is "warn"."""
        if n_truncated and self.settings.on_truncation == "warn":
            _logger.warning(
                "the model read only the first %d tokens of %d %s: what comes after them changes no score",
                self.model.max_tokens,
                n_truncated,
                ("text" if self.model.kind == "bi" else "pair") + "s" * (n_truncated > 1),
            )

    def _scored(self, pairs: AnswerPairs, progress: Progress) -> Similarity:
        scores = np.zeros(len(pairs))
        sides = self._keys(pairs)
        to_score = np.flatnonzero(~self._score_without_model(pairs, sides, scores))
        numbers: dict[Key, int] = {}  # of the distinct keys, by their first appearance
        indices = [
            np.fromiter((numbers.setdefault(side[pair], len(numbers)) for pair in to_score), np.int64, to_score.size)
            for side in sides
        ]
        with self.model.alone():
            plan = self._reader.plan(list(numbers))
            if plan.truncated and self.settings.on_truncation == "raise":
                self._refuse(plan.truncated[0], pairs, sides)
            progress.begin_chunk(pairs.n_questions, int(plan.n_tokens.sum()))
            rows = self._reader.read(plan, progress) if numbers else None
        if numbers:
            found = paired_cosines(rows, *indices) if self.model.kind == "bi" else _scores(rows, *indices)
            self._check(found, to_score, pairs)
            scores[to_score] = found
        progress.end_chunk()
        return Similarity(
            scores=np.maximum.reduceat(scores, pairs.starts) if len(pairs) else scores,
            kind=self.model.kind,
            dtype=self._reader.dtype,
            device=", ".join(self.model.devices),
            n_unique=plan.n_new,
            n_truncated=None if plan.truncated is None else len(plan.truncated),
        )

    def _keys(self, pairs: AnswerPairs) -> list[list[Key]]:
        """What the model reads of each pair: the gold and the predicted text, or both at once."""
        of_golds, of_predictions = self.settings.prompts
        if self.model.kind == "cross":
            return [[(of_golds, both) for both in zip(pairs.predictions, pairs.golds, strict=True)]]
        return [[(of_golds, text) for text in pairs.golds], [(of_predictions, text) for text in pairs.predictions]]

    def _score_without_model(self, pairs: AnswerPairs, sides: list[list[Key]], scores: FloatArray) -> NDArray[np.bool_]:
        """Enters the scores that need no model, and says which those are."""
        n_pairs = len(pairs)
        done = np.zeros(n_pairs, bool)
        if self.settings.empty == "zero":
            texts = zip(pairs.golds, pairs.predictions, strict=True)
            done |= np.fromiter((is_empty(gold) or is_empty(predicted) for gold, predicted in texts), np.bool_, n_pairs)
        if self.model.kind == "bi":
            # The cosine of a text with itself; of two empty texts the model may think otherwise.
            golds, predictions = sides
            read = zip(golds, predictions, pairs.golds, strict=True)
            same = np.fromiter((left == right and not is_empty(gold) for left, right, gold in read), np.bool_, n_pairs)
            scores[same] = 1.0
            done |= same
        return done

    def _refuse(self, key: Key, pairs: AnswerPairs, sides: list[list[Key]]) -> None:
        for side in sides:
            if key in side:
                text = key[1] if isinstance(key[1], str) else key[1][0]
                raise InputError(
                    f"{pairs.question(side.index(key))} has more than the {self.model.max_tokens} tokens that the "
                    f"model reads: {text!r:.80} (on_truncation='raise')"
                )

    def _check(self, found: FloatArray, to_score: NDArray[np.int64], pairs: AnswerPairs) -> None:
        wrong = ~np.isfinite(found)
        if wrong.any():
            pair = int(to_score[wrong.argmax()])
            what = "NaN" if np.isnan(found[wrong][0]) else "infinity"
            advice = "" if self.model.dtype == "float32" else "; dtype='float32' may help"
            raise ModelError(
                f"the model gives {what} in {pairs.question(pair)}, for {pairs.golds[pair]!r:.80} and "
                f"{pairs.predictions[pair]!r:.80}{advice}"
            )


def paired_cosines(rows: Any, left: NDArray[np.int64], right: NDArray[np.int64]) -> FloatArray:
    """(n_pairs,) cosines of rows of length 1, in [-1, 1]: computed where the rows are, and taken from there at once.

    Args:
        rows: a tensor (n_rows, width), float32.
        left: (n_pairs,) the first row of each pair.
        right: (n_pairs,) the second.
    """
    import torch

    found = rows.new_empty(left.size)
    lefts, rights = (torch.from_numpy(side).to(rows.device) for side in (left, right))
    for start in range(0, left.size, _GATHERED_AT_ONCE):
        part = slice(start, start + _GATHERED_AT_ONCE)
        found[part] = row_dots(rows.index_select(0, lefts[part]), rows.index_select(0, rights[part]))
    return np.asarray(found.clamp_(-1, 1).cpu(), np.float64)


def row_dots(left: Any, right: Any) -> Any:
    """(n,) the dot product of each row of a tensor (n, width) with that of another."""
    import torch

    # On a CPU the products of a block stay in the cache: 1.6 times as fast as all at once, measured with 384 columns.
    at_once = _DOTS_AT_ONCE if left.device.type == "cpu" else max(left.shape[0], 1)
    found = left.new_empty(left.shape[0])
    for start in range(0, left.shape[0], at_once):
        part = slice(start, start + at_once)
        torch.linalg.vecdot(left[part], right[part], out=found[part])
    return found


def _scores(rows: Any, index: NDArray[np.int64]) -> FloatArray:
    return np.asarray(rows[:, 0].cpu(), np.float64)[index]
