"""Conditions on the differences to a baseline, for jobs that have to fail when a run got worse."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from metrics_core.errors import MetricNameError

if TYPE_CHECKING:
    from metrics_core.comparison import Comparison, Difference

_DECIMALS = 12  # of a difference
_COMPARES = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_CONDITION = re.compile(
    r"\s*(?P<metric>.+?)\s*(?P<how><=|>=|<|>)\s*(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A difference of a metric to the baseline that fails a job, such as nDCG@10 < -0.02."""

    metric: str
    how: str
    limit: float

    def holds(self, difference: Difference) -> bool:
        """Whether a difference fails the job."""
        # 0.48 - 0.5 is a little below -0.02 in floats, and no reader of the condition would say so
        return bool(_COMPARES[self.how](round(difference.difference, _DECIMALS), self.limit))


def conditions_of(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> tuple[Condition, ...]:
    """Conditions as they are typed, METRIC < NUMBER, with <, <=, > or >=."""
    found = []
    for text in given:
        parts = _CONDITION.fullmatch(text)
        if parts is None:
            raise click.BadParameter(f"a condition such as 'nDCG@10 < -0.02' expected, got {text!r}")
        found.append(Condition(parts["metric"], parts["how"], float(parts["limit"])))
    return tuple(found)


def check_metrics(conditions: Sequence[Condition], metrics: Sequence[str]) -> None:
    """Refuses conditions on metrics that are not evaluated.

    Raises:
        MetricNameError: there is one.
    """
    from metrics_core.metrics import parse, parse_all

    evaluated = parse_all(metrics)
    for condition in conditions:
        if parse(condition.metric) not in evaluated:
            raise MetricNameError(f"--fail-if {condition.metric}: not among the metrics; add -m {condition.metric}")


def held(comparison: Comparison, conditions: Sequence[Condition]) -> Iterator[tuple[Difference, str]]:
    """The differences of which a condition holds, each with a sentence that says so."""
    for condition in conditions:
        metric = comparison.runs.metric_named(condition.metric)
        for each in comparison.differences:
            if each.metric == metric and condition.holds(each):
                sentence = (
                    f"{each.metric} of {each.run} is {each.mean:.4f}, {each.other}'s {each.other_mean:.4f}: the "
                    f"difference {each.difference:+.4f} is {condition.how} {condition.limit:g} (p adjusted "
                    f"{each.p_adjusted:.4f}, {comparison.method})"
                )
                yield each, sentence
