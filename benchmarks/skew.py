"""One ranking of 100,000 documents among 100,000 of 10: the bytes of the packed arrays against flat ones."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine import CONTRACT_METRICS, array_bytes, batch_answers, pack_flat_ids
from benchmarks.harness import run_command
from benchmarks.numpy_joins import FloatArray, IntArray, flat_gains, flat_metrics
from benchmarks.workload import Answers, Case, Contender, Gate, Prepared, Size, Workload, times_as_fast

OURS, FLAT = "metrics-core, pack", "flat NumPy arrays"


def skewed_arrays(size: Size, seed: int) -> tuple[NDArray[np.int32], IntArray, NDArray[np.int32], FloatArray]:
    """Retrieved ids end to end and the length of each ranking; judged ids and grades 1 to 3 (n_queries, judged)."""
    rng = np.random.default_rng(seed)
    lengths = np.full(size.queries + 1, size.depth)
    lengths[size.queries // 2] = size.longest
    ids = 2 * rng.permutation(size.rows).astype(np.int32)
    judged = 2 * rng.permutation(lengths.size * size.judged).astype(np.int32).reshape(lengths.size, size.judged) + 1
    starts = np.cumsum(lengths) - lengths
    ranks = (rng.random(lengths.size) * (lengths - size.judged)).astype(np.int64)
    for column in range(size.judged):
        hit = np.flatnonzero(rng.random(lengths.size) < 0.5)
        judged[hit, column] = ids[(starts + ranks)[hit] + column]
    return ids, lengths, judged, rng.integers(1, 4, judged.shape).astype(np.float64)


def ours(size: Size, seed: int) -> Prepared:
    """Ours, packing alone."""
    arrays = skewed_arrays(size, seed)
    return Prepared(
        partial(pack_flat_ids, *arrays),
        partial(batch_answers, metrics=CONTRACT_METRICS),
        lambda batch: {"array_bytes": array_bytes(batch)},
    )


def flat(size: Size, seed: int) -> Prepared:
    """The same grades without any padding, and an offset and a row number a query as ours keeps them."""
    ids, lengths, judged, grades = skewed_arrays(size, seed)

    def answers(gains: FloatArray) -> Answers:
        return flat_metrics(gains, lengths, grades)

    return Prepared(
        lambda: flat_gains(ids, lengths, judged, grades),
        answers,
        lambda gains: {"array_bytes": gains.nbytes + grades.nbytes + 2 * lengths.nbytes},
    )


WORKLOAD = Workload(
    "skew",
    "One ranking of 100,000 documents among 100,000 of 10",
    (
        Case(
            "packing",
            Size(queries=100_000, depth=10, judged=5, longest=100_000),
            (Contender(OURS, ours), Contender(FLAT, flat)),
            (
                Gate(
                    "bytes of the packed arrays over those of flat ones",
                    lambda measured: measured[OURS]["array_bytes"] / measured[FLAT]["array_bytes"],
                    gate=1.3,
                    at_least=False,
                ),
                times_as_fast(OURS, FLAT),
            ),
        ),
    ),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
