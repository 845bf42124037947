# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Metrics of gains at ranks: the kernels add what the metric's gain has made of the grades."""

from __future__ import annotations

import math

import numpy as np

from metrics_core.metrics import gains
from metrics_core.metrics.metric import Metric
from metrics_core.metrics.parameters import REL, Choice, Number, Parameter, gain_table


def discounted_cumulative_gain(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    depth = 0
    for q in range(out.size):
        depth = max(depth, min(n_retrieved[q], cutoff))
    discounts = np.empty(depth + 1)
    discounts[0] = 1.0  # of no rank
    for rank in range(1, depth + 1):
        discounts[rank] = math.log2(rank + 1)
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(out.size):
            gain = grades[i, q] if (grades[i, q] > 0) & (ranks[i, q] <= cutoff) else 0.0
            out[q] += gain / discounts[min(ranks[i, q], depth)]


def normalised_discounted_cumulative_gain(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    best = np.empty(out.size)  # not np.zeros, which takes 0.1 s more to compile
    for q in range(out.size):
        best[q] = 0.0
    discounted_cumulative_gain(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out)
    for i in range(min(cutoff, ideal.shape[0])):
        discount = math.log2(i + 2)
        for q in range(out.size):
            best[q] += ideal[i, q] / discount if ideal[i, q] > 0 else 0.0
    for q in range(out.size):
        out[q] = out[q] / best[q] if best[q] > 0 else 0.0


def expected_reciprocal_rank(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    reaching = np.ones(out.size)
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(out.size):
            if grades[i, q] > 0 and ranks[i, q] <= cutoff:
                out[q] += grades[i, q] * reaching[q] / ranks[i, q]
                reaching[q] *= 1.0 - grades[i, q]


def rank_biased_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    p = params[0]
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(out.size):
            if grades[i, q] > 0 and ranks[i, q] <= cutoff:
                out[q] += grades[i, q] * p ** (ranks[i, q] - 1.0)
    for q in range(out.size):
        out[q] *= 1.0 - p


GAINING_REL = Parameter("rel", None, "lower grades gain nothing")
DCG_PARAMETERS = (
    Parameter("dcg", "log2", "gain grade ('log2') or 2^grade - 1 ('exp-log2')", Choice(("log2", "exp-log2"))),
    GAINING_REL,
    Parameter("gains", None, "the gain of some grades, the others being their own", gain_table),
)
MAX_REL = "the highest grade of the scale"

DCG = Metric(
    name="DCG",
    kernel=discounted_cumulative_gain,
    title="discounted cumulative gain",
    definition="sum of gain / log2(rank + 1) over the first k; negative and unjudged gain 0",
    source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 2002; exponential gain: "
    "Burges et al., Learning to rank using gradient descent, ICML 2005",
    parameters=DCG_PARAMETERS,
    exclusive=("dcg", "gains"),
    gain=gains.graded,
    expected="mean gains",
    reads="grades",
)
nDCG = Metric(
    name="nDCG",
    kernel=normalised_discounted_cumulative_gain,
    title="normalised discounted cumulative gain",
    definition="DCG@k / the DCG@k of all judged documents in descending order of gain",
    source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 2002; trec_eval ndcg, "
    "ndcg_cut; gdeval for exponential gain",
    parameters=DCG_PARAMETERS,
    exclusive=("dcg", "gains"),
    gain=gains.graded,
    gain_of_ideal=True,
    expected="mean gains",
    reads="grades",
)
ERR = Metric(
    name="ERR",
    kernel=expected_reciprocal_rank,
    title="expected reciprocal rank",
    definition="sum over ranks i <= k of s_i / i times the product of (1 - s_j) over ranks j < i, where a document of "
    "grade g satisfies with probability s = (2^g - 1) / 2^max_rel",
    source="Chapelle et al., Expected reciprocal rank for graded relevance, CIKM 2009; gdeval (max_rel=4)",
    parameters=(Parameter("max_rel", definition=MAX_REL, check=Number(above=0, below=1024), example=4.0),),
    gain=gains.stop_probability,
    reads="grades",
)
RBP = Metric(
    name="RBP",
    kernel=rank_biased_precision,
    title="rank-biased precision",
    definition="(1 - p) sum of gain p^(rank - 1) over the first k; the gain is 1 for relevant documents or, with "
    "max_rel, grade / max_rel (ranx adds raw grades, which has no equal here)",
    source="Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 2008",
    parameters=(
        Parameter("p", definition="persistence", check=Number(above=0, below=1), example=0.8),
        REL,
        Parameter("max_rel", None, f"{MAX_REL}, for graded gains", Number(above=0)),
    ),
    exclusive=("rel", "max_rel"),
    gain=gains.binary_or_scaled,
    expected="mean gains",
    reads="grades",
)
