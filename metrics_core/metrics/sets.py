# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Metrics of a ranking as a set, and counts."""

from __future__ import annotations

import math

import numpy as np

from metrics_core.metrics.metric import Metric
from metrics_core.metrics.parameters import REL, Number, Parameter


def count_relevant(grades, rel):  # as in binary.py: numba's cache watches one file a kernel, see compile.compiled
    counts = np.zeros(grades.shape[1])
    for i in range(grades.shape[0]):
        for q in range(counts.size):
            counts[q] += 1.0 if grades[i, q] >= rel else 0.0  # never for NaN, the unjudged
    return counts


def set_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits = count_relevant(grades, rel)
    for q in range(out.size):
        out[q] = hits[q] / max(n_retrieved[q], 1)


def set_recall(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits, n_relevant = count_relevant(grades, rel), count_relevant(ideal, rel)
    for q in range(out.size):
        out[q] = hits[q] / max(n_relevant[q], 1.0)


def set_f(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    beta, x = params[0], params[1]
    weight = beta * beta if math.isnan(x) else x
    hits, n_relevant = count_relevant(grades, rel), count_relevant(ideal, rel)
    for q in range(out.size):
        if hits[q] > 0:
            precision, recall = hits[q] / n_retrieved[q], hits[q] / n_relevant[q]
            out[q] = (weight + 1.0) * precision * recall / (weight * precision + recall)


def set_average_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits, n_relevant = count_relevant(grades, rel), count_relevant(ideal, rel)
    for q in range(out.size):
        out[q] = hits[q] * hits[q] / max(n_retrieved[q] * n_relevant[q], 1.0)


def set_relative_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits, n_relevant = count_relevant(grades, rel), count_relevant(ideal, rel)
    for q in range(out.size):
        out[q] = hits[q] / max(min(n_retrieved[q], n_relevant[q]), 1.0)


def number_retrieved(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(out.size):
        out[q] = n_retrieved[q]


def number_relevant(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    n_relevant = count_relevant(ideal, rel)
    for q in range(out.size):
        out[q] = n_relevant[q]


def number_relevant_retrieved(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits = count_relevant(grades, rel)
    for q in range(out.size):
        out[q] = hits[q]


def number_queries(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(out.size):
        out[q] = 1.0


SetP = Metric(
    name="SetP",
    kernel=set_precision,
    title="set precision",
    definition="relevant documents retrieved, / documents retrieved",
    source="trec_eval set_P",
    after="none",
    expected="same",
    reads="relevance",
)
SetR = Metric(
    name="SetR",
    kernel=set_recall,
    title="set recall",
    definition="relevant documents retrieved, / all relevant",
    source="trec_eval set_recall",
    after="none",
    expected="same",
    reads="relevance",
)
SetF = Metric(
    name="SetF",
    kernel=set_f,
    title="set F-measure",
    definition="(1 + beta^2) P R / (beta^2 P + R) of SetP and SetR; trec_eval's set_F.x, which ir_measures calls "
    "beta, has x in place of beta^2",
    source="van Rijsbergen, Information Retrieval, 1979; trec_eval set_F (as x)",
    parameters=(
        REL,
        Parameter("beta", 1.0, "how much more recall counts than precision", Number(above=0, below=1e150)),
        Parameter("x", None, "trec_eval's parameter, beta^2", Number(above=0)),
    ),
    exclusive=("beta", "x"),
    after="none",
    expected="same",
    reads="relevance",
)
SetAP = Metric(
    name="SetAP",
    kernel=set_average_precision,
    title="set average precision",
    definition="SetP times SetR",
    source="trec_eval set_map",
    after="none",
    expected="same",
    reads="relevance",
)
SetRelP = Metric(
    name="SetRelP",
    kernel=set_relative_precision,
    title="relative set precision",
    definition="relevant documents retrieved, / the smaller of documents retrieved and all relevant",
    source="trec_eval set_relative_P",
    after="none",
    expected="same",
    reads="relevance",
)
NumRet = Metric(
    name="NumRet",
    kernel=number_retrieved,
    title="number of documents retrieved",
    definition="the length of the ranking",
    source="trec_eval num_ret",
    parameters=(),
    after="none",
    aggregate="sum",
    expected="same",
    needs_relevant=False,
    reads="relevance",
)
NumRel = Metric(
    name="NumRel",
    kernel=number_relevant,
    title="number of relevant documents",
    definition="judged documents with a grade of at least rel",
    source="trec_eval num_rel",
    after="none",
    aggregate="sum",
    expected="same",
    needs_relevant=False,
    reads="relevance",
)
NumRelRet = Metric(
    name="NumRelRet",
    kernel=number_relevant_retrieved,
    title="number of relevant documents retrieved",
    definition="retrieved documents with a grade of at least rel",
    source="trec_eval num_rel_ret",
    after="none",
    aggregate="sum",
    expected="same",
    needs_relevant=False,
    reads="relevance",
)
NumQ = Metric(
    name="NumQ",
    kernel=number_queries,
    title="number of queries",
    definition="1 for each query",
    source="trec_eval num_q",
    parameters=(),
    after="none",
    aggregate="sum",
    expected="same",
    needs_relevant=False,
    reads="relevance",
)
