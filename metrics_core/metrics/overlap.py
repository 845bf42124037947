# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Compatibility: how far a ranking agrees with the ideal one, from the top."""

from __future__ import annotations

import numpy as np

from metrics_core.metrics import gains
from metrics_core.metrics.metric import Metric
from metrics_core.metrics.parameters import Number, Parameter, flag


def compatibility(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    p, normalize = params[0], params[1] > 0
    for q in range(out.size):
        n_ideal = 0
        while n_ideal < ideal.shape[0] and ideal[n_ideal, q] > 0:
            n_ideal += 1
        if n_ideal == 0:
            continue
        depth = max(n_retrieved[q], n_ideal)
        joins = np.zeros(depth, np.int64)  # documents at the first depth by which both rankings hold them
        taken = np.zeros(n_ideal, np.int64)  # at the first place of each grade: how many of that grade came before
        for i in range(grades.shape[0]):
            if grades[i, q] > 0:
                first = place_of(grades[i, q], ideal[:n_ideal, q])
                joins[max(ranks[i, q] - 1, first + taken[first])] += 1
                taken[first] += 1
        weight, overlap, score, best, total = 1.0, 0, 0.0, 0.0, 0.0
        for i in range(depth):
            overlap += joins[i]
            score += weight * overlap / (i + 1)
            best += weight * min(i + 1, n_ideal) / (i + 1)
            total += weight
            weight *= p
        out[q] = score / best if normalize else score / total


def place_of(grade, descending):
    low, high = 0, descending.size - 1
    while low < high:
        middle = (low + high) // 2
        if descending[middle] > grade:
            low = middle + 1
        else:
            high = middle
    return low


Compat = Metric(
    name="Compat",
    kernel=compatibility,
    title="compatibility",
    definition="rank-biased overlap of the ranking with the ideal one (grades above 0, descending; equal grades in the "
    "ranking's order, what it lacks last) to the depth of the longer, / that of the ideal with itself unless "
    "normalize=False",
    source="Clarke, Vtyurina and Smucker, Assessing top-k preferences, TOIS 2021; ir_measures Compat",
    parameters=(
        Parameter("p", 0.95, "persistence", Number(above=0, below=1)),
        Parameter("normalize", True, "divide by the best overlap that the ideal allows", flag),
    ),
    after="none",
    gain=gains.own_grade,
    reads="grades",
)
