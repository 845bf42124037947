# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Metrics of what was judged and what was not; a negative grade is no judgement."""

from __future__ import annotations

from metrics_core.metrics import gains
from metrics_core.metrics.metric import Metric
from metrics_core.metrics.parameters import Number, Parameter


def total_gain(row):
    total = 0.0
    for i in range(row.size):
        total += row[i]
    return total


def gain_per_rank(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        out[q] = total_gain(grades[q, : min(cutoff, n_retrieved[q])]) / cutoff


def gain_per_document(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        row = grades[q, : min(cutoff, n_retrieved[q])]
        if row.size > 0:
            out[q] = total_gain(row) / row.size


def rank_biased_residual(grades, n_retrieved, ideal, rel, cutoff, params, out):
    p = params[0]
    for q in range(grades.shape[0]):
        row = grades[q, : n_retrieved[q]]
        weight, total = 1.0, 0.0
        for i in range(row.size):
            total += row[i] * weight
            weight *= p
        out[q] = weight + (1.0 - p) * total


Judged = Metric(
    name="Judged",
    kernel=gain_per_document,
    title="judged documents",
    definition="judged documents in the first k, / the smaller of k and documents retrieved; 0 for an empty ranking",
    source="ir_measures Judged (which counts negative grades as judged)",
    parameters=(),
    gain=gains.judged,
    expected="mean gains",
    reads="grades",
    needs_relevant=False,
)
Unj = Metric(
    name="Unj",
    kernel=gain_per_rank,
    title="unjudged documents",
    definition="unjudged documents in the first k, / k",
    source="trec_eval 10 unj",
    parameters=(),
    after="cutoff",
    gain=gains.unjudged,
    expected="mean gains",
    needs_relevant=False,
)
RBPResidual = Metric(
    name="RBPResidual",
    kernel=rank_biased_residual,
    title="residual of rank-biased precision",
    definition="p^n + (1 - p) sum of p^(rank - 1) over unjudged documents, n being the number retrieved: what RBP "
    "could still gain",
    source="Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 2008; trec_eval "
    "10 rbp_resid (which reports 0 where nothing is unjudged)",
    parameters=(Parameter("p", definition="persistence", check=Number(above=0, below=1), example=0.8),),
    after="none",
    gain=gains.unjudged,
    expected="mean gains",
    needs_relevant=False,
)
