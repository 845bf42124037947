"""One verdict of a row from the outcomes of its samples and judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, nan
from typing import Any

from llm_judges.runner import Outcome

ScoreOf = Callable[[Mapping[str, Any]], float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a row comes to.

    Attributes:
        outcome: the one that stands for the row.
        score: NaN where the row is unscored; None where the judge gives no scores.
        scores: those of all outcomes, likewise.
    """

    outcome: Outcome
    score: float | None
    scores: list[float | None]

    @property
    def spread(self) -> float:
        """The difference of the highest and the lowest score, NaN without any."""
        scored = [score for score in self.scores if score is not None and score == score]  # noqa: PLR0124  # no NaN
        return max(scored) - min(scored) if scored else nan


def verdict(outcomes: Sequence[Outcome], score_of: ScoreOf | None, *, binary: bool) -> Verdict:
    """The mean of the scored outcomes; of yes-or-no scores what more than half of them say.

    Args:
        outcomes: at least one. Those that are unscored have no part in the verdict, unless all are.
        score_of: the score of an outcome's outputs; None: there are no scores, and the first that was read counts.
        binary: whether scores are 0 or 1.
    """
    read = [outcome for outcome in outcomes if outcome.result is not None]
    if score_of is None:
        return Verdict((read or outcomes)[0], None, [None] * len(outcomes))
    scores = [nan if outcome.result is None else score_of(outcome.result) for outcome in outcomes]
    if not read:
        return Verdict(outcomes[0], nan, list(scores))
    scored = [score_of(outcome.result) for outcome in read if outcome.result is not None]
    if len(scored) == 1 or not binary:
        mean = scored[0] if len(scored) == 1 else fsum(scored) / len(scored)
        return Verdict(read[0], mean, list(scores))
    for outcome, score in zip(read, scored, strict=True):
        if 2 * scored.count(score) > len(scored):
            return Verdict(outcome, score, list(scores))
    split = f"{scored.count(1)} of {len(scored)} samples say 1"
    return Verdict(replace(read[0], result=None, reason="no_majority", detail=split), nan, list(scores))
