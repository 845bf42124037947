"""One number for many queries; NaN marks a query that was not scored, and is left out and counted."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, fsum, log, nan
from typing import Literal

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
        value = fsum(scored) / len(scored)
    else:
        value = exp(fsum(log(max(score, SMALLEST_IN_GEOMETRIC_MEAN)) for score in scored) / len(scored))
    return Aggregate(value, len(scored), values.size)
