"""Long tables grouped by query on disk: ours against polars and duckdb, which write partitions too."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np

from benchmarks.harness import run_command, work_directory
from benchmarks.workload import (
    Answers,
    Case,
    Contender,
    Prepared,
    Quantities,
    Size,
    Workload,
    growth_mb,
    times_as_fast,
)

OURS, POLARS, DUCKDB = "metrics-core", "polars, PartitionBy", "duckdb, PARTITION_BY"
GROUP_ROWS = 1 << 20  # as evaluate_dataset has it
FILE_ROWS = 1 << 20


def shuffled(size: Size, seed: int) -> list[Path]:
    """Files of a long table, its rows in no order."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(seed)
    folder = work_directory() / f"shuffled-{size.queries}x{size.depth}-{seed}"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:03}.parquet" for number in range(-(-size.rows // FILE_ROWS))]
    rows = rng.permutation(size.rows)
    for path, start in zip(paths, range(0, size.rows, FILE_ROWS), strict=True):
        queries = rows[start : start + FILE_ROWS] // size.depth
        if not path.exists():
            documents = rng.integers(0, 10_000_000, queries.size)
            names = {"query_id": queries, "doc_id": documents}
            table = {name: pa.array(ids).cast(pa.string()) for name, ids in names.items()}
            parquet.write_table(pa.table(table | {"score": rng.random(queries.size)}), path, row_group_size=1 << 17)
        path.read_bytes()
    return paths


def grouped(paths: list[Path], group: Callable[[list[Path], Path], Any], read: Callable[[Path], Any]) -> Prepared:
    """A contender that writes groups of `paths` to a folder, which `read` gives as tables."""
    folder = Path(mkdtemp(prefix="groups-", dir=work_directory()))

    def values(_result: Any) -> Answers:
        tables = [read(path) for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".json"]
        n_queries = [len(table["query_id"].unique()) for table in tables]  # a query in two groups would count twice
        return {"rows": sum(map(len, tables)), "queries": sum(n_queries)}

    def quantities(_result: Any) -> Quantities:
        rmtree(folder)
        return {}

    return Prepared(lambda: group(paths, folder), values, quantities)


def _n_groups(size: Size) -> int:
    return 1 + size.rows // GROUP_ROWS


def ours(size: Size, seed: int) -> Prepared:
    """The step of evaluate_dataset before anything is scored; the judgements are a row."""
    import pyarrow as pa
    from pyarrow import ipc

    from metrics_core.grouping import Groups, long_files, named
    from metrics_core.trec import Run

    def group(paths: list[Path], folder: Path) -> None:
        judged = pa.record_batch({"query_id": ["none"], "doc_id": ["none"], "relevance": [1.0]})
        forms = zip(long_files(paths, Run), paths, strict=True)
        rows = chain.from_iterable(form.read(path) for form, path in forms)
        Groups(folder, _n_groups(size)).write(named("the qrels", [judged]), rows, lambda _: None)

    def read(path: Path) -> Any:
        table = ipc.open_file(path).read_all()
        return table if "score" in table.column_names else table.slice(0, 0)

    return grouped(shuffled(size, seed), group, read)


def _parquet(path: Path) -> Any:
    from pyarrow import parquet

    with path.open("rb") as file:
        return parquet.read_table(file)


def polars(size: Size, seed: int) -> Prepared:
    """Its streaming engine."""
    import polars as pl

    def group(paths: list[Path], folder: Path) -> None:
        key = (pl.col("query_id").hash() % _n_groups(size)).alias("group")
        pl.scan_parquet(paths).sink_parquet(pl.PartitionBy(folder, key=key, include_key=False), compression="lz4")

    return grouped(shuffled(size, seed), group, _parquet)


def duckdb(size: Size, seed: int) -> Prepared:
    """Its COPY."""
    import duckdb as package

    connection = package.connect()
    connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")

    def group(paths: list[Path], folder: Path) -> None:
        connection.execute(
            f"COPY (SELECT *, hash(query_id) % {_n_groups(size)} AS group_number FROM read_parquet(?)) TO '{folder}' "
            "(FORMAT parquet, PARTITION_BY (group_number), COMPRESSION lz4_raw, OVERWRITE_OR_IGNORE)",
            [[str(path) for path in paths]],
        )

    return grouped(shuffled(size, seed), group, _parquet)


def _case(queries: int) -> Case:
    size = Size(queries=queries, depth=10, judged=0)
    setups = {OURS: ours, POLARS: polars, DUCKDB: duckdb}
    contenders = tuple(Contender(name, setup, threads=2) for name, setup in setups.items())
    gates = (times_as_fast(OURS, POLARS, DUCKDB, aim=1), growth_mb(OURS, gate=500))
    return Case(
        f"{size.rows // 1_000_000}M shuffled rows", size, contenders, gates, rounds=3, smoke=queries > 1_000_000
    )


WORKLOAD = Workload(
    "grouping",
    "Long tables (query, document, score) grouped by query on disk, a group a million rows",
    (_case(500_000), _case(2_000_000)),
    ("pyarrow", "polars", "duckdb"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
