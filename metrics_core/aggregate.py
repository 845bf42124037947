"""One number for many queries; NaN marks a query that was not scored, and is left out and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, fsum, log, nan, sqrt
from typing import Literal, Self

import numpy as np

from metrics_core.blocks import FloatArray

AggregateName = Literal["mean", "sum", "geometric mean"]

SMALLEST_IN_GEOMETRIC_MEAN = 1e-5  # trec_eval's MIN_GEO_MEAN: a single 0 would make the whole mean 0


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The value of a metric over the scored queries; NaN if there are none."""

    value: float
    n_scored: int
    n_total: int


def aggregate(values: FloatArray, how: AggregateName = "mean") -> Aggregate:
    """Aggregates per-query values, (n_queries,) with NaN for queries that were not scored.

    Sums are exact before their one rounding (math.fsum), so that the result does not depend on the queries' order.
    """
    scored = values[~np.isnan(values)].tolist()
    if not scored:
        value = 0.0 if how == "sum" else nan
    elif how == "sum":
        value = fsum(scored)
    elif how == "mean":
        value = mean(scored)
    else:
        value = exp(fsum(log(max(score, SMALLEST_IN_GEOMETRIC_MEAN)) for score in scored) / len(scored))
    return Aggregate(value, len(scored), values.size)


def mean(scores: Sequence[float] | FloatArray) -> float:
    """The mean of finite numbers; their sum is exact before it is rounded, so that their order does not matter."""
    try:
        return fsum(scores) / len(scores)
    except OverflowError:  # of the sum; the mean of floats is one
        return float(sum(map(Fraction, scores)) / len(scores))


@dataclass(frozen=True, slots=True)
class Moments:
    """What some queries contribute to a metric's aggregates: enough to be merged with what others contribute.

    Merged in the same order, the same parts give the same result to the last bit. It differs from that of `aggregate`
    by what its sums are rounded: relatively, far less than 1e-12.

    Source: Chan, Golub, LeVeque 1979 for the squared deviations.
    """

    n_total: int = 0
    n_scored: int = 0
    total: float = 0.0  # sum of the scores
    squares: float = 0.0  # sum of the squared deviations from the mean
    logarithms: float = 0.0  # sum of the logarithms of scores, as the geometric mean takes them

    @classmethod
    def of(cls, values: FloatArray, how: AggregateName) -> Self:
        """Those of per-query values, (n_queries,) with NaN for queries that were not scored."""
        unscored = np.isnan(values)
        scored = values[~unscored] if unscored.any() else values
        if not scored.size:
            return cls(values.size)
        total = float(scored.sum())
        squares = float(((scored - total / scored.size) ** 2).sum())
        logarithms = 0.0
        if how == "geometric mean":
            logarithms = float(np.log(np.maximum(scored, SMALLEST_IN_GEOMETRIC_MEAN)).sum())
        return cls(values.size, scored.size, total, squares, logarithms)

    def merged(self, other: Self) -> Self:
        """Those of both."""
        n = self.n_scored + other.n_scored
        between = 0.0
        if self.n_scored and other.n_scored:
            difference = self.total / self.n_scored - other.total / other.n_scored
            between = difference * difference * self.n_scored * (other.n_scored / n)
        return type(self)(
            self.n_total + other.n_total,
            n,
            self.total + other.total,
            self.squares + other.squares + between,
            self.logarithms + other.logarithms,
        )

    def aggregate(self, how: AggregateName = "mean") -> Aggregate:
        """As `aggregate` of all values."""
        if how == "sum":
            value = self.total
        elif not self.n_scored:
            value = nan
        else:
            value = exp(self.logarithms / self.n_scored) if how == "geometric mean" else self.total / self.n_scored
        return Aggregate(value, self.n_scored, self.n_total)

    @property
    def standard_deviation(self) -> float:
        """Of the scores as a sample: over n - 1; NaN for fewer than two."""
        return sqrt(self.squares / (self.n_scored - 1)) if self.n_scored > 1 else nan
