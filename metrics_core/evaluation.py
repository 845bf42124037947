"""evaluate and pack: from judgements and rankings of any kind to scores, or to a batch to score many times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from metrics_core.batch import RankedBatch, empty_values, finished_scores, score_block
from metrics_core.blocks import IntArray, Source, cut_blocks
from metrics_core.join import join
from metrics_core.metrics import Metric, parse_all
from metrics_core.pairing import QrelsLike, RunLike, pair
from metrics_core.policies import Policies
from metrics_core.scores import Scores
from metrics_core.threads import thread_count

R = TypeVar("R")


def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    policies: Policies | str | None = None,
    document_comparison_field: str = "content",
    query_ids: Sequence[Any] | None = None,
    n_threads: int | None = None,
) -> Scores:
    """Scores rankings against judgements: one pass over the data for all metrics.

    Args:
        qrels: the judgements: {query: {document: grade}}; the path of a TREC or BEIR file ("-": standard input); what
            `read_qrels` gives; a long table (query, document, grade), anything with the Arrow C stream interface;
            lists of ground-truth documents, one a question; or IdArrays, or an integer array (n_queries, width).
        run: the rankings: {query: {document: score}} or {query: [document, ...]}; the path of a TREC file; what
            `read_run` gives; a long table (query, document, score); lists of retrieved documents; or IdArrays, or an
            integer array (n_queries, width).
            Queries are aligned by id where both sides have ids, else by position.
        metrics: names ("nDCG@10", "ndcg_cut_10", "mrr@10"), Metric objects, or a single one.
        policies: a Policies, or the name of a profile. None: "haystack" for lists of documents, else "trec_eval".
        document_comparison_field: what makes two documents the same: "content", "id" or "meta.<key>[.<key>...]".
        query_ids: for inputs with ids, the judged queries to evaluate, in this order; for others, names of the rows.
        n_threads: None: as many as there are cores. Scores do not depend on it.

    Returns:
        Scores, one row a judged query.

    Raises:
        MetricsError: a subclass that says what came and what to do: unknown metrics, malformed files, documents or
            judgements given twice, NaN or infinite numbers, ids of mixed types, policies that cannot apply.
        OSError: a file that cannot be read.
    """
    parsed = parse_all(metrics)
    threads = thread_count(n_threads)
    pairing = pair(
        qrels,
        run,
        policies=policies,
        document_comparison_field=document_comparison_field,
        query_ids=query_ids,
        metrics=parsed,
        n_threads=threads,
    )
    for metric in parsed:
        metric.check_ties(pairing.policies)
    source = pairing.source
    values = empty_values(len(source.query_ids), len(parsed))

    def score(rows: IntArray) -> None:
        score_block(join(source, rows, pairing.policies), parsed, pairing.policies, source.query_ids, values)

    _for_each_block(score, source, threads)
    return finished_scores(values, parsed, source.query_ids, pairing.policies, pairing.is_missing, pairing.unjudged)


def pack(
    qrels: QrelsLike,
    run: RunLike,
    *,
    policies: Policies | str | None = None,
    document_comparison_field: str = "content",
    query_ids: Sequence[Any] | None = None,
    n_threads: int | None = None,
) -> RankedBatch:
    """Packs rankings and judgements for `RankedBatch.score`, for those who score the same many times.

    Args:
        qrels, run, policies, document_comparison_field, query_ids, n_threads: as for `evaluate`, which see for errors.
    """
    threads = thread_count(n_threads)
    pairing = pair(
        qrels,
        run,
        policies=policies,
        document_comparison_field=document_comparison_field,
        query_ids=query_ids,
        metrics=None,
        n_threads=threads,
    )
    source = pairing.source
    blocks = _for_each_block(lambda rows: join(source, rows, pairing.policies), source, threads)
    return RankedBatch(tuple(blocks), source.query_ids, pairing.policies, pairing.is_missing, pairing.unjudged)


def _for_each_block(work: Callable[[IntArray], R], source: Source, n_threads: int) -> list[R]:
    blocks: Iterable[IntArray] = cut_blocks(source.n_retrieved, source.n_judged, source.block_cells)
    if n_threads > 1 and source.releases_gil:
        blocks = list(blocks)
        if len(blocks) > 1:
            with ThreadPoolExecutor(n_threads) as executor:
                return list(executor.map(work, blocks))
    return [work(rows) for rows in blocks]
