# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Metrics of what was judged and what was not; a negative grade is no judgement, a repeat neither."""

from __future__ import annotations

from metrics_core.metrics import gains
from metrics_core.metrics.metric import Metric
from metrics_core.metrics.parameters import Number, Parameter


def add_gains(gains, ranks, cutoff, totals):
    for i in range(min(cutoff, gains.shape[0])):
        for q in range(totals.size):
            totals[q] += gains[i, q] if ranks[i, q] <= cutoff else 0.0


def share_of_documents(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    add_gains(grades, ranks, cutoff, out)
    for q in range(out.size):
        out[q] /= max(min(cutoff, n_retrieved[q]), 1)


def rest_per_rank(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    add_gains(grades, ranks, cutoff, out)
    for q in range(out.size):
        out[q] = (min(cutoff, n_retrieved[q]) - out[q]) / cutoff


def rank_biased_residual(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    p = params[0]
    for i in range(grades.shape[0]):
        for q in range(out.size):
            if grades[i, q] > 0:
                out[q] += grades[i, q] * p ** (ranks[i, q] - 1.0)
    for q in range(out.size):
        out[q] = 1.0 - (1.0 - p) * out[q]


Judged = Metric(
    name="Judged",
    kernel=share_of_documents,
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
    kernel=rest_per_rank,
    title="unjudged documents",
    definition="unjudged documents in the first k, / k",
    source="trec_eval 10 unj",
    parameters=(),
    after="cutoff",
    gain=gains.known,
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
    gain=gains.known,
    expected="mean gains",
    needs_relevant=False,
)
