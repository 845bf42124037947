# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Metrics of relevant documents at ranks, relevant meaning a grade of at least rel.

A kernel goes down the documents of all queries of a block at once: a query's cells after its last document are NaN,
which no comparison holds for, and a step that is the same for every query is vectorised by the compiler. The i-th
document (from 0) stands at rank i + 1 or below, so that no more than `cutoff` of them can be in the first `cutoff`.
"""

from __future__ import annotations

import numpy as np

from metrics_core.blocks import REPEAT
from metrics_core.metrics import ties
from metrics_core.metrics.metric import Metric


def count_hits(grades, ranks, rel, cutoff):
    counts = np.zeros(grades.shape[1])
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(counts.size):
            hit = (grades[i, q] >= rel) & (ranks[i, q] <= cutoff)  # never for NaN, the unjudged
            counts[q] += 1.0 if hit else 0.0
    return counts


def count_relevant(ideal, rel):
    counts = np.zeros(ideal.shape[1])
    for i in range(ideal.shape[0]):
        for q in range(counts.size):
            counts[q] += 1.0 if ideal[i, q] >= rel else 0.0
    return counts


def precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits = count_hits(grades, ranks, rel, cutoff)
    for q in range(out.size):
        out[q] = hits[q] / cutoff


def recall(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits, n_relevant = count_hits(grades, ranks, rel, cutoff), count_relevant(ideal, rel)
    for q in range(out.size):
        out[q] = hits[q] / max(n_relevant[q], 1.0)


def capped_recall(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits, n_relevant = count_hits(grades, ranks, rel, cutoff), count_relevant(ideal, rel)
    for q in range(out.size):
        out[q] = hits[q] / max(min(n_relevant[q], cutoff), 1.0)


def r_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    n_relevant = count_relevant(ideal, rel)
    for i in range(min(ideal.shape[0], grades.shape[0])):
        for q in range(out.size):
            out[q] += 1.0 if (grades[i, q] >= rel) & (ranks[i, q] <= n_relevant[q]) else 0.0
    for q in range(out.size):
        out[q] /= max(n_relevant[q], 1.0)


def success(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(out.size):
            out[q] = 1.0 if (grades[i, q] >= rel) & (ranks[i, q] <= cutoff) else out[q]


def reciprocal_rank(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(out.size):
            hit = (grades[i, q] >= rel) & (ranks[i, q] <= cutoff)
            out[q] = max(out[q], 1.0 / ranks[i, q] if hit else 0.0)


def average_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    n_relevant, hits = count_relevant(ideal, rel), np.zeros(out.size)
    for i in range(min(cutoff, grades.shape[0])):
        for q in range(out.size):
            hit = 1.0 if (grades[i, q] >= rel) & (ranks[i, q] <= cutoff) else 0.0
            hits[q] += hit
            out[q] += hit * (hits[q] / ranks[i, q])
    for q in range(out.size):
        out[q] /= max(n_relevant[q], 1.0)


def interpolated_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    level = params[0]
    n_relevant, hits = count_relevant(ideal, rel), np.zeros(out.size)
    for i in range(grades.shape[0]):
        for q in range(out.size):
            if grades[i, q] >= rel:
                hits[q] += 1
                # divided, not multiplied: 3 / 10 is the number written 0.3, but 0.1 * 3 is not
                if hits[q] / n_relevant[q] >= level:
                    out[q] = max(out[q], hits[q] / ranks[i, q])


def eleven_point_average(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    hits, n_relevant = count_hits(grades, ranks, rel, cutoff), count_relevant(ideal, rel)
    tenths, best = np.full(out.size, 10), np.zeros(out.size)
    for i in range(grades.shape[0] - 1, -1, -1):
        for q in range(out.size):
            if grades[i, q] >= rel:
                while hits[q] / n_relevant[q] < tenths[q] / 10:
                    out[q] += best[q]
                    tenths[q] -= 1
                best[q] = max(best[q], hits[q] / ranks[i, q])
                hits[q] -= 1
    for q in range(out.size):
        out[q] = (out[q] + (tenths[q] + 1) * best[q]) / 11


def binary_preference(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    n_relevant, nonrelevant = count_relevant(ideal, rel), np.zeros(out.size)
    n_judged = count_relevant(ideal, 0.0)
    for i in range(grades.shape[0]):
        for q in range(out.size):
            if grades[i, q] >= rel:
                above = 0.0
                if nonrelevant[q] > 0:
                    above = min(nonrelevant[q], n_relevant[q]) / min(n_judged[q] - n_relevant[q], n_relevant[q])
                out[q] += 1.0 - above
            elif grades[i, q] >= 0:
                nonrelevant[q] += 1
    for q in range(out.size):
        out[q] /= max(n_relevant[q], 1.0)


def inferred_average_precision(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    epsilon = 1e-5
    n_relevant = count_relevant(ideal, rel)
    hits, judged, pooled = np.zeros(out.size), np.zeros(out.size), np.zeros(out.size)  # pooled: also negative grades
    for i in range(grades.shape[0]):
        for q in range(out.size):
            if grades[i, q] >= rel:
                precision_above = (hits[q] + epsilon) / (judged[q] + 2 * epsilon)
                out[q] += (1.0 + pooled[q] * precision_above) / ranks[i, q]
                hits[q] += 1
            if grades[i, q] >= min(rel, 0.0):
                judged[q] += 1
            if grades[i, q] > REPEAT:
                pooled[q] += 1
    for q in range(out.size):
        out[q] /= max(n_relevant[q], 1.0)


P = Metric(
    name="P",
    kernel=precision,
    title="precision",
    definition="relevant documents in the first k, / k; also where fewer are retrieved",
    source="trec_eval P",
    after="cutoff",
    expected=ties.precision,
    reads="relevance",
)
R = Metric(
    name="R",
    kernel=recall,
    title="recall",
    definition="relevant documents in the first k, / all relevant",
    source="trec_eval recall",
    after="cutoff",
    expected=ties.recall,
    reads="relevance",
)
R_cap = Metric(
    name="R_cap",
    kernel=capped_recall,
    title="capped recall",
    definition="relevant documents in the first k, / the smaller of k and all relevant",
    source="Thakur et al., BEIR, NeurIPS Datasets and Benchmarks 2021",
    after="cutoff",
    expected=ties.capped_recall,
    reads="relevance",
)
Success = Metric(
    name="Success",
    kernel=success,
    title="success (hit rate)",
    definition="1 if any document, or any of the first k, is relevant, else 0",
    source="trec_eval success",
    expected=ties.success,
    reads="first",
)
RR = Metric(
    name="RR",
    kernel=reciprocal_rank,
    title="reciprocal rank",
    definition="1 / the rank of the first relevant document, 0 if none is in the first k; its mean is MRR",
    source="Kantor and Voorhees, The TREC-5 Confusion Track, Information Retrieval 2000; trec_eval recip_rank",
    expected=ties.reciprocal_rank,
    reads="first",
)
AP = Metric(
    name="AP",
    kernel=average_precision,
    title="average precision",
    definition="sum of P@i over the ranks i of relevant documents in the first k, / all relevant; its mean is MAP",
    source="Harman, Evaluation issues in information retrieval, IP&M 1992; trec_eval map, map_cut",
    expected=ties.average_precision,
    reads="relevance",
)
GMAP = Metric(
    name="GMAP",
    kernel=average_precision,
    title="geometric mean average precision",
    definition="AP of each query; summed up as exp of the mean of ln max(AP, 1e-5)",
    source="Robertson, On GMAP, CIKM 2006; trec_eval gm_map",
    after="none",
    aggregate="geometric mean",
    reads="relevance",
)
Rprec = Metric(
    name="Rprec",
    kernel=r_precision,
    title="R-precision",
    definition="relevant documents in the first R, / R, where R is the number of all relevant",
    source="trec_eval Rprec",
    after="none",
    expected=ties.r_precision,
    reads="relevance",
)
IPrec = Metric(
    name="IPrec",
    kernel=interpolated_precision,
    title="interpolated precision at a recall level",
    definition="the largest precision at any rank where recall is at least the level, 0 if it is never reached",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4; trec_eval's "
    "iprec_at_recall rounds the level to a number of documents, in versions 9 and 10 differently",
    after="recall",
    reads="relevance",
)
IPrec11 = Metric(
    name="IPrec11",
    kernel=eleven_point_average,
    title="11-point interpolated average precision",
    definition="mean of IPrec at the recall levels 0, 0.1, …, 1",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4; trec_eval's "
    "11pt_avg rounds as its iprec_at_recall",
    after="none",
    reads="relevance",
)
Bpref = Metric(
    name="Bpref",
    kernel=binary_preference,
    title="binary preference",
    definition="1/R sum over retrieved relevant documents of 1 - min(n, R) / min(N, R), where n of the N judged "
    "non-relevant documents are ranked above, R is the number of all relevant, and the term is 1 where n is 0; "
    "negative grades are unjudged",
    source="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004; trec_eval bpref",
    after="none",
    reads="relevance",
)
infAP = Metric(
    name="infAP",
    kernel=inferred_average_precision,
    title="inferred average precision",
    definition="AP with each precision estimated from the judged of the pooled documents above, smoothed by 1e-5; "
    "unjudged documents are outside the pool, negative grades pooled and unjudged",
    source="Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments, CIKM 2006; "
    "trec_eval infAP",
    after="none",
    reads="relevance",
)
