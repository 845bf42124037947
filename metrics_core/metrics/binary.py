# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: ANN001, ANN201, ARG001, D103 (kernels share the signature that Metric documents)
"""Metrics of relevant documents at ranks, relevant meaning a grade of at least rel."""

from __future__ import annotations

from metrics_core.blocks import REPEAT
from metrics_core.metrics import ties
from metrics_core.metrics.metric import Metric


def count_relevant(grades, rel):
    n_relevant = 0
    for i in range(grades.size):
        if grades[i] >= rel:  # never for NaN, the unjudged
            n_relevant += 1
    return n_relevant


def precision(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        out[q] = count_relevant(grades[q, : min(cutoff, n_retrieved[q])], rel) / cutoff


def recall(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        if n_relevant > 0:
            out[q] = count_relevant(grades[q, : min(cutoff, n_retrieved[q])], rel) / n_relevant


def capped_recall(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        most = min(count_relevant(ideal[q], rel), cutoff)
        if most > 0:
            out[q] = count_relevant(grades[q, : min(cutoff, n_retrieved[q])], rel) / most


def r_precision(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        if n_relevant > 0:
            out[q] = count_relevant(grades[q, : min(n_relevant, n_retrieved[q])], rel) / n_relevant


def success(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        row = grades[q, : min(cutoff, n_retrieved[q])]
        for i in range(row.size):
            if row[i] >= rel:
                out[q] = 1.0
                break


def reciprocal_rank(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        row = grades[q, : min(cutoff, n_retrieved[q])]
        for i in range(row.size):
            if row[i] >= rel:
                out[q] = 1.0 / (i + 1)
                break


def average_precision(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        row = grades[q, : min(cutoff, n_retrieved[q])]
        hits, total = 0, 0.0
        for i in range(row.size):
            if row[i] >= rel:
                hits += 1
                total += hits / (i + 1)
        out[q] = total / n_relevant if n_relevant else 0.0


def interpolated_precision(grades, n_retrieved, ideal, rel, cutoff, params, out):
    level = params[0]
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        row = grades[q, : n_retrieved[q]]
        hits = 0
        for i in range(row.size):
            if row[i] >= rel:
                hits += 1
                # divided, not multiplied: 3 / 10 is the number written 0.3, but 0.1 * 3 is not
                if hits / n_relevant >= level:
                    out[q] = max(out[q], hits / (i + 1))


def eleven_point_average(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        row = grades[q, : n_retrieved[q]]
        hits, tenths, best, total = count_relevant(row, rel), 10, 0.0, 0.0
        for i in range(row.size - 1, -1, -1):
            if row[i] >= rel:
                while hits / n_relevant < tenths / 10:
                    total += best
                    tenths -= 1
                best = max(best, hits / (i + 1))
                hits -= 1
        out[q] = (total + (tenths + 1) * best) / 11


def binary_preference(grades, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        n_nonrelevant = max(count_relevant(ideal[q], 0.0) - n_relevant, 0)
        row = grades[q, : n_retrieved[q]]
        nonrelevant, total = 0, 0.0
        for i in range(row.size):
            if row[i] >= rel:
                above = min(nonrelevant, n_relevant) / min(n_nonrelevant, n_relevant) if nonrelevant else 0.0
                total += 1.0 - above
            elif row[i] >= 0:
                nonrelevant += 1
        out[q] = total / n_relevant if n_relevant else 0.0


def inferred_average_precision(grades, n_retrieved, ideal, rel, cutoff, params, out):
    epsilon = 1e-5
    for q in range(grades.shape[0]):
        n_relevant = count_relevant(ideal[q], rel)
        row = grades[q, : n_retrieved[q]]
        hits, judged, pooled, total = 0, 0, 0, 0.0  # the pooled are the judged and those with negative grades
        for i in range(row.size):
            if row[i] >= rel:
                precision_above = (hits + epsilon) / (judged + 2 * epsilon)
                total += (1.0 + pooled * precision_above) / (i + 1)
                hits += 1
            if row[i] >= min(rel, 0.0):
                judged += 1
            if row[i] > REPEAT:
                pooled += 1
        out[q] = total / n_relevant if n_relevant else 0.0


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
    reads="relevance",
)
RR = Metric(
    name="RR",
    kernel=reciprocal_rank,
    title="reciprocal rank",
    definition="1 / the rank of the first relevant document, 0 if none is in the first k; its mean is MRR",
    source="Kantor and Voorhees, The TREC-5 Confusion Track, Information Retrieval 2000; trec_eval recip_rank",
    expected=ties.reciprocal_rank,
    reads="relevance",
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
