"""Integer arrays: join and the five contract metrics, against NumPy; one thread, and what a second one gains."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine import CONTRACT_METRICS, answers, evaluate_id_arrays
from benchmarks.harness import run_command
from benchmarks.numpy_joins import Join, broadcast_gains, column_gains, five_metrics, sorted_gains, sparse_metrics
from benchmarks.workload import (
    Case,
    Contender,
    Gate,
    Prepared,
    Quantities,
    Size,
    Workload,
    times_as_fast,
    times_the_time,
)

OURS, OURS_TWO_THREADS = "metrics-core", "metrics-core, two threads"
BROADCAST, COLUMNS, SORTED = "NumPy broadcast", "NumPy broadcast, column by column", "NumPy sort-based join"
SPARSE, READING = "NumPy, hits only", "only reading the ids"
ONE_LOOP, TWO_LOOPS = "one busy loop", "two busy loops"
JOINS: dict[str, tuple[Join, int]] = {  # and the retrieved documents a chunk, the fastest of 2**13 to 2**20
    BROADCAST: (broadcast_gains, 1 << 15),
    COLUMNS: (column_gains, 1 << 15),
    SORTED: (sorted_gains, 1 << 16),
}
SPARSE_CELLS = 1 << 18
BUSY_TURNS = 30_000_000  # about a second


def id_arrays(size: Size, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Retrieved ids (queries, depth), judged ids and grades 1 to 3 (queries, judged); half of the judged retrieved."""
    rng = np.random.default_rng(seed)
    # Even and distinct in a row where retrieved; odd where only judged.
    ids = rng.integers(0, 1 << 20, (size.queries, size.depth), dtype=np.int32)
    ids *= size.depth
    ids += np.arange(size.depth, dtype=np.int32)
    ids *= 2
    judged = rng.integers(0, 1 << 20, (size.queries, size.judged), dtype=np.int32) * size.judged
    judged += np.arange(size.judged, dtype=np.int32)
    judged *= 2
    judged += 1
    first = rng.integers(0, size.depth, size.queries)
    rows = np.arange(size.queries)
    for column in range(size.judged):
        hit = rows[rng.random(size.queries) < 0.5]
        judged[hit, column] = ids[hit, (first[hit] + column * max(1, size.depth // size.judged)) % size.depth]
    return ids, judged, rng.integers(1, 4, judged.shape).astype(np.float64)


def ours(size: Size, seed: int, threads: int) -> Prepared:
    """Ours, from the bare arrays, the rankings in their order."""
    arrays = id_arrays(size, seed)
    return Prepared(partial(evaluate_id_arrays, *arrays, n_threads=threads), partial(answers, metrics=CONTRACT_METRICS))


def numpy_join(size: Size, seed: int, join: Join, chunk_cells: int) -> Prepared:
    """A join that gives the gain at each rank, and metrics of those."""
    arrays = id_arrays(size, seed)
    return Prepared(lambda: five_metrics(*arrays, join=join, chunk_cells=chunk_cells), dict)


def numpy_sparse(size: Size, seed: int) -> Prepared:
    """Comparison column by column, and metrics of the hits alone."""
    arrays = id_arrays(size, seed)
    return Prepared(lambda: sparse_metrics(*arrays, chunk_cells=SPARSE_CELLS), dict)


def reading(size: Size, seed: int) -> Prepared:
    """One pass over the retrieved ids."""
    ids, _, _ = id_arrays(size, seed)
    return Prepared(ids.max)


def busy_loops(size: Size, _seed: int, loops: int) -> Prepared:
    """Processes that only count, side by side: what this machine gains from a second thread today."""
    turns = min(BUSY_TURNS, 10 * size.rows)

    def call() -> Any:
        command = [sys.executable, "-S", "-c", f"for _ in range({turns}): pass"]
        processes = [subprocess.Popen(command) for _ in range(loops)]
        return [process.wait() for process in processes]

    return Prepared(call)


def _share_of_gain(measured: Mapping[str, Quantities]) -> float:
    gain = measured[OURS]["seconds"] / measured[OURS_TWO_THREADS]["seconds"]
    possible = 2 * measured[ONE_LOOP]["seconds"] / measured[TWO_LOOPS]["seconds"]
    return gain / possible


def _case(depth: int, gate: float) -> Case:
    return Case(
        f"1M x {depth}, 5 judged",
        Size(1_000_000, depth, 5),
        (
            Contender(OURS, partial(ours, threads=1)),
            Contender(OURS_TWO_THREADS, partial(ours, threads=2), threads=2),
            *(
                Contender(name, partial(numpy_join, join=join, chunk_cells=cells))
                for name, (join, cells) in JOINS.items()
            ),
            Contender(SPARSE, numpy_sparse),
            Contender(READING, reading),
            Contender(ONE_LOOP, partial(busy_loops, loops=1), reads_rows=False),
            Contender(TWO_LOOPS, partial(busy_loops, loops=2), threads=2, reads_rows=False),
        ),
        (
            times_as_fast(OURS, BROADCAST, SORTED, gate=gate),
            times_as_fast(OURS, COLUMNS),
            times_as_fast(OURS, SPARSE),
            times_the_time(OURS, READING, aim=2),
            Gate("gain of a second thread, as a share of what two busy loops gain", _share_of_gain, gate=0.8),
        ),
    )


WORKLOAD = Workload(
    "arrays",
    "Integer arrays: join and the five contract metrics",
    (_case(10, gate=6), _case(100, gate=20)),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
