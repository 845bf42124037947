"""What a row comes to: one verdict of its judgements, of which there are several with samples or a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum, isnan, nan

from llm_judges.runner import Outcome


def number(outcome: Outcome) -> float:
    """The score, NaN where there is none."""
    return nan if outcome.score is None else outcome.score


def verdict(outcomes: Sequence[Outcome], *, binary: bool) -> Outcome:
    """The mean of the scored outcomes; of yes-or-no scores what more than half of them say."""
    scored = _scored(outcomes)
    if len(scored) < 2:
        return (scored or [one for one in outcomes if one.result is not None] or outcomes)[0]
    scores = list(map(number, scored))
    if not binary:
        return replace(scored[0], score=fsum(scores) / len(scores))
    for outcome, score in zip(scored, scores, strict=True):
        if 2 * scores.count(score) > len(scores):
            return outcome
    split = f"{scores.count(1)} of {len(scores)} samples say 1"
    return Outcome(reason="no_majority", detail=split, meta=scored[0].meta)


def spread(outcomes: Sequence[Outcome]) -> float:
    """The difference of the highest and the lowest score, NaN where there is none."""
    scores = list(map(number, _scored(outcomes)))
    return max(scores) - min(scores) if scores else nan


def _scored(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if not isnan(number(one))]
