"""Answers as they come from outside, checked: pairs of texts, and the question of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrics_core.answers import GroundTruthAnswers, gold_answers
from metrics_core.errors import InputError
from metrics_core.lists import paired, row_number

Empty: TypeAlias = Literal["encode", "zero", "raise"]  # what becomes of texts without a character

Where = Callable[[int], str]
SIDES = ("ground_truth_answers", "predicted_answers")


@dataclass(frozen=True, slots=True)
class AnswerPairs:
    """Each predicted answer beside each of its gold answers, in the order of the questions."""

    golds: list[str]  # (n_pairs,)
    predictions: list[str]  # (n_pairs,)
    starts: NDArray[np.int64]  # (n_questions,), the first pair of each
    where: Where  # names a question in messages

    def __len__(self) -> int:
        return len(self.golds)

    @property
    def n_questions(self) -> int:
        """How many scores there will be."""
        return self.starts.size

    def question(self, pair: int) -> str:
        """The name of a pair's question."""
        return self.where(int(np.searchsorted(self.starts, pair, side="right")) - 1)


def answer_pairs(
    ground_truth_answers: GroundTruthAnswers,
    predicted_answers: Sequence[str],
    empty: Empty,
    where: Where = row_number,
) -> AnswerPairs:
    """Pairs the answers. Two sides without any question make no pairs.

    Args:
        ground_truth_answers: the gold answer of each question, or a list of them.
        predicted_answers: the predicted answer of each question.
        empty: "raise" refuses empty answers.
        where: names a question, by its position.

    Raises:
        InputError: sides that do not pair up, what is no text, text that UTF-8 cannot hold; names side and question.
    """
    truths, predicted = paired(
        "answers", may_be_empty=True, ground_truth_answers=ground_truth_answers, predicted_answers=predicted_answers
    )
    if not predicted:
        return AnswerPairs([], [], np.zeros(0, np.int64), where)
    gold_lists, predictions = gold_answers(truths, predicted, where)
    n_golds = np.fromiter(map(len, gold_lists), np.int64, len(gold_lists))
    pairs = AnswerPairs(
        [gold for golds in gold_lists for gold in golds],
        [text for text, golds in zip(predictions, gold_lists, strict=True) for _ in golds],
        np.cumsum(n_golds) - n_golds,
        where,
    )
    for side, texts in zip(SIDES, (pairs.golds, pairs.predictions), strict=True):
        _check_encodable(side, texts, pairs)
        if empty == "raise":
            for pair, text in enumerate(texts):
                if is_empty(text):
                    raise InputError(f"{side} has an empty answer in {pairs.question(pair)}: {text!r} (empty='raise')")
    return pairs


def is_empty(text: str) -> bool:
    """Whether a text has no characters but white space and NUL."""
    return not text.replace("\0", " ").strip()


def half_surrogate(text: str) -> str | None:
    """The first half of a surrogate pair in a text, which no tokenizer takes as UTF-8 cannot hold it; None: no such."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return None


def _check_encodable(side: str, texts: list[str], pairs: AnswerPairs) -> None:
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError:
        for pair, text in enumerate(texts):
            if half := half_surrogate(text):
                raise InputError(
                    f"{side} has half a surrogate pair ({half!a}) in {pairs.question(pair)}, which no tokenizer takes; "
                    "read the text as UTF-8, or put a replacement character in its place"
                ) from None
