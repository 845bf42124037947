"""Comparison of answers as text: pairing of the two sides, SQuAD's normalisation, token F1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from metrics_core.errors import InputError
from metrics_core.lists import is_list, paired, row_number

GroundTruthAnswers: TypeAlias = Sequence[str | Sequence[str]]
Normalize: TypeAlias = Literal["squad"] | None

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_normalized(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, single spaces.

    Source: the evaluation script of SQuAD 1.1, Rajpurkar et al., EMNLP 2016.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def _unchanged(text: str) -> str:  # not str(), which subclasses may define otherwise
    return text


def normalizer(normalize: Normalize) -> Callable[[str], str]:
    """The function that `normalize=` names.

    Raises:
        InputError: neither None nor "squad".
    """
    if normalize is None:
        return _unchanged
    if normalize == "squad":
        return squad_normalized
    raise InputError(f"normalize must be None or 'squad', got {normalize!r}")


def token_f1(gold: str, predicted: str) -> float:
    """The harmonic mean of precision and recall of the white-space separated tokens, in [0, 1].

    Two texts without tokens are the same, 1; one without has nothing in common with the other, 0.

    Source: the evaluation scripts of SQuAD 1.1 and, for answers without tokens, 2.0.
    """
    gold_tokens, predicted_tokens = gold.split(), predicted.split()
    if not gold_tokens or not predicted_tokens:
        return float(gold_tokens == predicted_tokens)
    common = (Counter(gold_tokens) & Counter(predicted_tokens)).total()
    return 2 * common / (len(gold_tokens) + len(predicted_tokens))


def gold_answers(
    ground_truth_answers: GroundTruthAnswers,
    predicted_answers: Sequence[str],
    where: Callable[[int], str] = row_number,
) -> tuple[list[Sequence[str]], Sequence[str]]:
    """The gold answers of each question, as a list even where there is one, and the predicted answer of each.

    Args:
        ground_truth_answers: the gold answer of each question, or a list of them.
        predicted_answers: the predicted answer of each question.
        where: names a question in messages, by its position.

    Raises:
        InputError: sides that are empty, do not pair up or are no lists, an answer that is no string, a question
            without gold answers.
    """
    truths, predictions = paired(
        "answers", ground_truth_answers=ground_truth_answers, predicted_answers=predicted_answers
    )
    golds: list[Sequence[str]] = []
    for row, (truth, predicted) in enumerate(zip(truths, predictions, strict=True)):
        if not isinstance(predicted, str):
            raise InputError(f"predicted_answers must be strings, got {predicted!r} in {where(row)}")
        gold = [truth] if isinstance(truth, str) else truth
        if not is_list(gold) or not all(isinstance(answer, str) for answer in gold):
            raise InputError(f"ground_truth_answers must be strings or lists of strings, got {truth!r} in {where(row)}")
        if len(gold) == 0:
            raise InputError(f"ground_truth_answers has no answer in {where(row)}")
        golds.append(list(gold))
    return golds, predictions
