"""Comparison of answers as text: pairing of the two sides, SQuAD's normalisation, token F1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet, Sized
from typing import Literal, TypeAlias

from metrics_core.errors import InputError

GroundTruthAnswers: TypeAlias = Sequence[str | Sequence[str]]
Normalize: TypeAlias = Literal["squad"] | None

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_normalized(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, single spaces.

    Source: the evaluation script of SQuAD 1.1, Rajpurkar et al., EMNLP 2016.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def normalizer(normalize: Normalize) -> Callable[[str], str]:
    """The function that `normalize=` names.

    Raises:
        InputError: neither None nor "squad".
    """
    if normalize is None:
        return str
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


def gold_answers(ground_truth_answers: GroundTruthAnswers, predicted_answers: Sequence[str]) -> list[Sequence[str]]:
    """The gold answers of each question, as a list even where there is one.

    Raises:
        InputError: sides that are empty, do not pair up or are no lists, an answer that is no string, a question
            without gold answers.
    """
    for name, side in (("ground_truth_answers", ground_truth_answers), ("predicted_answers", predicted_answers)):
        if not is_list(side):
            raise InputError(f"{name} must be a list of answers, got {side!r:.80}")
        if len(side) == 0:
            raise InputError(f"{name} must not be empty")
    if len(ground_truth_answers) != len(predicted_answers):
        raise InputError(
            f"ground_truth_answers has {len(ground_truth_answers)} answers and predicted_answers "
            f"{len(predicted_answers)}; they must pair up"
        )
    golds: list[Sequence[str]] = []
    for row, (gold, predicted) in enumerate(zip(ground_truth_answers, predicted_answers, strict=True)):
        if not isinstance(predicted, str):
            raise InputError(f"predicted_answers must be strings, got {predicted!r} in row {row}")
        golds.append([gold] if isinstance(gold, str) else list(gold) if is_list(gold) else [])
        if not all(isinstance(answer, str) for answer in golds[-1]) or not (golds[-1] or is_list(gold)):
            raise InputError(f"ground_truth_answers must be strings or lists of strings, got {gold!r} in row {row}")
        if not golds[-1]:
            raise InputError(f"ground_truth_answers has no answer in row {row}")
    return golds


def is_list(value: object) -> bool:
    """Whether a value holds several, in order: a list, a tuple, an array or a column of a data frame."""
    return (
        isinstance(value, Iterable)
        and isinstance(value, Sized)
        and not isinstance(value, (str, bytes, Mapping, AbstractSet))
        and getattr(value, "ndim", 1) > 0  # a NumPy array of no dimensions holds one value
    )
