"""Pairing, normalisation and token F1 of answers, and both measures on real answers."""

from __future__ import annotations

import gzip
import json
import string
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from metrics_core.answers import gold_answers, normalizer, squad_normalized, token_f1
from metrics_core.errors import InputError
from metrics_core.evaluators import AnswerExactMatchEvaluator, AnswerF1Evaluator

if TYPE_CHECKING:
    from pathlib import Path


def normalized(text: str) -> str:
    """SQuAD's rules one after the other: lower case, no ASCII punctuation, no articles, single spaces."""
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    words = ["".join(letters) for _, letters in groupby(text, str.isalnum)]
    return " ".join("".join(" " if word in ("a", "an", "the") else word for word in words).split())


TEXTS = st.text("aAnN tThHe.,'-_\u2019\u2013 \n\té1") | st.text()
ANSWERS = TEXTS | st.lists(st.sampled_from(("a", "The", "an", "anthem", "b", "B", "b.", "-", " "))).map(" ".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("The Beatles", "beatles"),
        ("the  U.S.A.\n", "usa"),
        ("an apple, a day", "apple day"),
        ("Anthem", "anthem"),
        ("theatre of the absurd", "theatre of absurd"),
        ("a-b", "ab"),  # punctuation goes before the articles do, and leaves no space
        ("a b", "b"),
        ("The", ""),
        ("?!", ""),
        ("ÉTÉ\u00a01", "été 1"),
        ("the\u2013end", "\u2013end"),  # a dash outside ASCII stays, and ends a word
        ("l\u2019a", "l\u2019"),
        ("snake_case", "snakecase"),
    ],
)
def test_squad_normalisation_by_hand(text: str, expected: str) -> None:
    assert squad_normalized(text) == expected
    assert normalized(text) == expected


@given(text=ANSWERS)
def test_squad_normalisation_follows_its_rules(text: str) -> None:
    assert squad_normalized(text) == normalized(text)


@given(text=ANSWERS)
def test_squad_normalisation_ignores_case_and_outer_spaces(text: str) -> None:
    assert squad_normalized(f" \t{text.lower()}\n") == squad_normalized(text)


def test_normalizer() -> None:
    assert normalizer(None)(" The A. ") == " The A. "
    assert normalizer("squad")(" The A. b") == "b"


@pytest.mark.parametrize("normalize", ["", "SQuAD", "lower", False, 1, ["squad"], str.lower])
def test_unknown_normalisation(normalize: Any) -> None:
    for make in (normalizer, AnswerExactMatchEvaluator, AnswerF1Evaluator):
        with pytest.raises(InputError) as caught:
            make(normalize=normalize)
        assert str(caught.value) == f"normalize must be None or 'squad', got {normalize!r}"


@pytest.mark.parametrize(
    ("gold", "predicted", "precision", "recall"),
    [
        ("a b c", "a b c", 3 / 3, 3 / 3),
        ("a b c", "c a", 2 / 2, 2 / 3),
        ("a b", "a x y z", 1 / 4, 1 / 2),
        ("a a b", "a a a", 2 / 3, 2 / 3),
        ("a", "a a", 1 / 2, 1 / 1),
        (" a\tb\n", "b\u00a0c", 1 / 2, 1 / 2),
    ],
)
def test_token_f1_by_hand(gold: str, predicted: str, precision: float, recall: float) -> None:
    expected = 2 * precision * recall / (precision + recall)
    assert token_f1(gold, predicted) == pytest.approx(expected, rel=1e-15)
    assert token_f1(predicted, gold) == token_f1(gold, predicted)


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"), [("", "", 1), (" ", "\n", 1), ("", "a", 0), ("a", "", 0), ("a", "b", 0)]
)
def test_token_f1_without_common_tokens(gold: str, predicted: str, expected: float) -> None:
    score = token_f1(gold, predicted)
    assert score == expected
    assert type(score) is float


@given(gold=ANSWERS, predicted=ANSWERS)
def test_token_f1_is_one_for_the_same_tokens_only(gold: str, predicted: str) -> None:
    score = token_f1(gold, predicted)
    assert 0 <= score <= 1
    assert (score == 1) == (sorted(gold.split()) == sorted(predicted.split()))
    assert (score == 0) == (not set(gold.split()) & set(predicted.split()) and score != 1)


def test_gold_answers_are_lists() -> None:
    predicted = ["a", "b", "c"]
    assert gold_answers(["a", ["b", "c"], ("d",)], predicted) == ([["a"], ["b", "c"], ["d"]], predicted)


def human_verdicts(shared: Path) -> list[tuple[list[str], str, bool]]:
    """Gold answers, a system's answer and people's verdict of it, where there are both."""
    rows = json.loads(gzip.decompress((shared / "data" / "qa" / "evouna" / "NQ.json.gz").read_bytes()))
    systems = ("fid", "chatgpt")
    return [
        (row["golden_answer"].split("/"), row[f"answer_{system}"], row[f"judge_{system}"])
        for row in rows
        for system in systems
        if not row["improper"] and None not in (row[f"answer_{system}"], row[f"judge_{system}"])
    ]


def test_measures_of_real_answers(shared: Path) -> None:
    golds, predicted, verdicts = map(list, zip(*human_verdicts(shared), strict=True))
    assert len(golds) > 5_000
    assert max(map(len, golds)) > 1

    def f1(gold: str, answer: str) -> float:
        gold_tokens, tokens = normalized(gold).split(), normalized(answer).split()
        common = sum((Counter(gold_tokens) & Counter(tokens)).values())
        if not common:
            return float(gold_tokens == tokens)
        precision, recall = common / len(tokens), common / len(gold_tokens)
        return 2 * precision * recall / (precision + recall)

    pairs = list(zip(golds, predicted, strict=True))
    exact = [normalized(answer) in {normalized(gold) for gold in several} for several, answer in pairs]
    overlap = [max(f1(gold, answer) for gold in several) for several, answer in pairs]

    by_match = AnswerExactMatchEvaluator(normalize="squad").run(golds, predicted)
    assert by_match == {"individual_scores": exact, "score": sum(exact) / len(exact)}
    by_tokens = AnswerF1Evaluator().run(golds, predicted)
    assert by_tokens["individual_scores"] == pytest.approx(overlap, rel=1e-14)
    assert by_tokens["score"] == pytest.approx(sum(overlap) / len(overlap), rel=1e-12)

    matched = [verdict for verdict, score in zip(verdicts, by_match["individual_scores"], strict=True) if score]
    assert sum(matched) / len(matched) > 0.97  # people agree with nearly every match
    assert by_match["score"] < sum(verdicts) / len(verdicts)  # and accept many an answer that is none
    letter_by_letter = AnswerExactMatchEvaluator().run(golds, predicted)
    first_only = AnswerExactMatchEvaluator(normalize="squad").run([gold[0] for gold in golds], predicted)
    assert max(letter_by_letter["score"], first_only["score"]) < by_match["score"] < by_tokens["score"]
