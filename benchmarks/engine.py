"""How the benchmarks ask metrics-core: names of metrics and the shape of its answers, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.workload import Answers

CONTRACT_METRICS = ("Success", "SetR", "RR", "AP", "nDCG")  # the five Haystack evaluators' metrics


def answers(scores: Any, metrics: Sequence[str]) -> Answers:
    """The values of Scores whose queries stand in the order of the input."""
    return {metric: scores[metric] for metric in metrics}


def answers_by_query(scores: Any, metrics: Sequence[str]) -> Answers:
    """The values of Scores in the order of the query ids."""
    order = np.argsort(np.asarray(scores.query_ids))
    return {metric: scores[metric][order] for metric in metrics}


def evaluate_id_arrays(
    ids: NDArray[np.int32], judged: NDArray[np.int32], grades: NDArray[np.float64], n_threads: int
) -> Any:
    """Scores of rankings (n_queries, depth) in rank order against judgements (n_queries, n_judged)."""
    from metrics_core import IdArrays, evaluate

    return evaluate(
        IdArrays(judged, grades=grades), IdArrays(ids), CONTRACT_METRICS, policies="haystack", n_threads=n_threads
    )


def pack_flat_ids(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], judged: NDArray[np.int32], grades: NDArray[np.float64]
) -> Any:
    """A RankedBatch of rankings end to end, of these lengths, against judgements (n_queries, n_judged)."""
    from metrics_core import IdArrays, pack

    rankings = IdArrays(ids, offsets=np.append(0, np.cumsum(lengths)))
    return pack(IdArrays(judged, grades=grades), rankings, policies="haystack", n_threads=1)


def batch_answers(batch: Any, metrics: Sequence[str]) -> Answers:
    """The values of a RankedBatch, in the order of the input."""
    return {metric: batch.score(metric) for metric in metrics}


def array_bytes(batch: Any) -> int:
    """Bytes of all arrays of a RankedBatch's blocks."""
    blocks = ((getattr(block, name) for name in block.__slots__) for block in batch.blocks)
    return sum(value.nbytes for block in blocks for value in block if isinstance(value, np.ndarray))
