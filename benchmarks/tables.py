"""Tables with a row a query: in memory and in parquet files, against Haystack, pyarrow, duckdb and Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from shutil import rmtree, which
from tempfile import mkdtemp
from typing import Any

import numpy as np

from benchmarks.arrays import id_arrays
from benchmarks.engine import CONTRACT_METRICS, answers
from benchmarks.harness import run_command, work_directory
from benchmarks.numpy_joins import broadcast_gains, five_metrics
from benchmarks.workload import (
    Answers,
    Case,
    Contender,
    Gate,
    Prepared,
    Quantities,
    Size,
    Workload,
    growth_mb,
    times_as_fast,
    times_the_time,
)

OURS, OURS_TWO_THREADS = "metrics-core", "metrics-core, two threads"
HAYSTACK, INDEX_IN = "haystack-ai", "pyarrow index_in and NumPy"
SCANNER, SCANNER_TWO_THREADS = "pyarrow's scanner, only reading", "pyarrow's scanner, only reading, two threads"
DUCKDB_LISTS, DUCKDB_JOIN = "duckdb, list functions", "duckdb, unnest and join"
SQL_METRICS = ("SetR", "RR")
OURS_SQL_METRICS = "metrics-core, SetR and RR"
QUARTER = "metrics-core, a quarter of the rows"
PANDAS, POLARS, LONG = "metrics-core, pandas", "metrics-core, polars", "metrics-core, long tables"
SPARK_OURS, SPARK_THEIRS = "metrics-core in Spark's mapInArrow", "Spark's RankingEvaluator"
SPARK_FILES = "metrics-core in Spark's mapInArrow, files read there"
SPARK_COUNTING = "Spark's mapInArrow, only counting rows"
SPARK_COLUMNS = ["query_id", "ground_truth", "retrieved"]  # no grades, as Spark's evaluator has none
SPARK_METRICS = ("AP", "nDCG@10", "R@10")

HAYSTACK_ROWS = 50_000  # its time is scaled from as many; its answers are compared in a case of that size
FILE_ROWS = 1_000_000
GROUP_ROWS = 1 << 17
INDEX_IN_CHUNK = 1 << 15
COLUMNS = ["query_id", "ground_truth", "relevance", "retrieved"]

LISTS_SQL = """
    SELECT query_id, len(list_intersect(ground_truth, retrieved)) / len(ground_truth) AS SetR,
        coalesce(1 / list_min(list_filter(list_transform(ground_truth, lambda g: list_position(retrieved, g)),
            lambda p: p > 0)), 0) AS RR
    FROM read_parquet(?)
"""
JOIN_SQL = """
    WITH rows AS (SELECT * FROM read_parquet(?)),
        judged AS (SELECT query_id, unnest(ground_truth) AS document FROM rows),
        ranked AS (SELECT query_id, unnest(retrieved) AS document, generate_subscripts(retrieved, 1) AS rank FROM rows)
    SELECT judged.query_id, count(rank) / count(*) AS SetR, coalesce(1 / min(rank), 0) AS RR
    FROM judged LEFT JOIN ranked ON judged.query_id = ranked.query_id AND judged.document = ranked.document
    GROUP BY judged.query_id
"""


def row_table(size: Size, seed: int, first: int = 0) -> Any:
    """A table of lists of ids as strings; query ids are the rows' numbers, padded so that they sort as numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids, judged, grades = id_arrays(size, seed)
    queries = pc.utf8_lpad(pa.array(range(first, first + size.queries)).cast(pa.string()), 9, "0")
    return pa.table(
        {
            "query_id": queries,
            "ground_truth": _lists(pa.array(judged.ravel()).cast(pa.string()), size.judged),
            "relevance": _lists(pa.array(grades.astype(np.int8).ravel()), size.judged),
            "retrieved": _lists(pa.array(ids.ravel()).cast(pa.string()), size.depth),
        }
    )


def _lists(values: Any, width: int) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(np.arange(0, len(values) + 1, width, dtype=np.int32), values)


def parquet_files(size: Size, seed: int) -> list[Path]:
    """Files of a million rows or fewer, made at the first call; in the page cache as far as they fit."""
    from pyarrow import parquet

    folder = work_directory() / f"rows-{size.queries}x{size.depth}-{size.judged}-{seed}"
    folder.mkdir(exist_ok=True)
    paths = []
    for number, first in enumerate(range(0, size.queries, FILE_ROWS)):
        paths.append(folder / f"{number:03}.parquet")
        if not paths[-1].exists():
            part = Size(min(FILE_ROWS, size.queries - first), size.depth, size.judged)
            unfinished = paths[-1].with_suffix(".unfinished")
            parquet.write_table(row_table(part, seed + number, first), unfinished, row_group_size=GROUP_ROWS)
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            unfinished.rename(paths[-1])
    for path in paths:
        path.read_bytes()
    return paths


def in_memory(size: Size, seed: int, threads: int = 1, convert: Callable[[Any], Any] = lambda table: table) -> Prepared:
    """Ours, from a table or what it is converted to."""
    from metrics_core import evaluate_table

    table = convert(row_table(size, seed))
    return Prepared(
        lambda: evaluate_table(table, CONTRACT_METRICS, policies="haystack", n_threads=threads),
        partial(answers, metrics=CONTRACT_METRICS),
    )


def _to_pandas(table: Any) -> Any:
    return table.to_pandas()


def _to_polars(table: Any) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def long_tables(size: Size, seed: int) -> Prepared:
    """Ours, from two tables with a row a document, whose scores fall with the rank."""
    import pyarrow as pa

    from metrics_core import Policies, evaluate

    table = row_table(size, seed)
    judged, retrieved = (pa.array(np.repeat(np.arange(size.queries), n)) for n in (size.judged, size.depth))
    queries = table["query_id"].combine_chunks()
    qrels = pa.table(
        {
            "query_id": queries.take(judged),
            "doc_id": table["ground_truth"].combine_chunks().flatten(),
            "relevance": table["relevance"].combine_chunks().flatten(),
        }
    )
    scores = np.tile(np.arange(size.depth, 0, -1.0), size.queries)
    documents = table["retrieved"].combine_chunks().flatten()
    run = pa.table({"query_id": queries.take(retrieved), "doc_id": documents, "score": scores})
    return Prepared(
        lambda: evaluate(qrels, run, CONTRACT_METRICS, policies=Policies("trec_eval"), n_threads=1),
        partial(answers, metrics=CONTRACT_METRICS),
    )


def haystack(size: Size, seed: int) -> Prepared:
    """Haystack's five evaluators on ready-made Documents of the first rows."""
    from haystack import Document
    from haystack.components import evaluators

    table = row_table(size, seed).slice(0, HAYSTACK_ROWS).to_pylist()
    truths = [
        [Document(content=key, score=grade) for key, grade in zip(row["ground_truth"], row["relevance"], strict=True)]
        for row in table
    ]
    retrieved = [[Document(content=key) for key in row["retrieved"]] for row in table]
    chosen: dict[str, Any] = {
        "Success": evaluators.DocumentRecallEvaluator(mode="single_hit"),
        "SetR": evaluators.DocumentRecallEvaluator(mode="multi_hit"),
        "RR": evaluators.DocumentMRREvaluator(),
        "AP": evaluators.DocumentMAPEvaluator(),
        "nDCG": evaluators.DocumentNDCGEvaluator(),
    }

    def call() -> dict[str, Any]:
        return {
            metric: each.run(ground_truth_documents=truths, retrieved_documents=retrieved)
            for metric, each in chosen.items()
        }

    def individual(results: dict[str, Any]) -> Answers:
        if size.queries > HAYSTACK_ROWS:
            return {}
        return {metric: result["individual_scores"] for metric, result in results.items()}

    return Prepared(call, individual)


def index_in(size: Size, seed: int) -> Prepared:
    """Ids numbered by pyarrow's index_in among all judged ones, then compared and scored by NumPy."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pa.set_cpu_count(1)
    table = row_table(size, seed)

    def call() -> dict[str, Any]:
        judged, retrieved = (table[name].combine_chunks().flatten() for name in ("ground_truth", "retrieved"))
        known = judged.unique()
        numbers = [pc.index_in(ids, value_set=known).fill_null(-1).to_numpy() for ids in (retrieved, judged)]
        grades = table["relevance"].combine_chunks().flatten().to_numpy().astype(np.float64)
        shapes = (size.queries, size.depth), (size.queries, size.judged)
        ids, truths = (each.reshape(shape) for each, shape in zip(numbers, shapes, strict=True))
        return five_metrics(ids, truths, grades.reshape(shapes[1]), broadcast_gains, INDEX_IN_CHUNK)

    return Prepared(call, dict)


def streamed(size: Size, seed: int, threads: int = 1, metrics: tuple[str, ...] = CONTRACT_METRICS) -> Prepared:
    """Ours, from parquet files to aggregates."""
    from metrics_core import evaluate_dataset

    paths = parquet_files(size, seed)
    return Prepared(
        lambda: evaluate_dataset(paths, metrics, policies="haystack", n_threads=threads),
        lambda found: found.mean(),
    )


def in_parts(size: Size, seed: int, share: float) -> Prepared:
    """Ours, from a share of the parquet files to parts of scores."""
    from metrics_core import evaluate_dataset

    paths = parquet_files(size, seed)
    chosen = paths[: max(1, round(len(paths) * share))]
    folder = Path(mkdtemp(prefix="parts-", dir=work_directory()))

    def call() -> Any:
        return evaluate_dataset(chosen, CONTRACT_METRICS, policies="haystack", n_threads=2, out=folder / "out")

    def quantities(_found: Any) -> Quantities:
        rmtree(folder)
        return {}

    return Prepared(call, quantities=quantities)


def scanner(size: Size, seed: int, threads: int) -> Prepared:
    """Pyarrow's scanner reading the columns, batch by batch."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    pa.set_cpu_count(threads)
    dataset = ds.dataset([str(path) for path in parquet_files(size, seed)])

    def call() -> int:
        batches = dataset.scanner(columns=COLUMNS, use_threads=threads > 1).to_batches()
        return sum(batch.num_rows for batch in batches)

    return Prepared(call)


def duckdb(size: Size, seed: int, sql: str) -> Prepared:
    """Recall and reciprocal rank of each query in SQL."""
    import duckdb as package

    paths = [str(path) for path in parquet_files(size, seed)]
    connection = package.connect()
    connection.execute("SET threads = 1")

    def values(found: Mapping[str, Any]) -> Answers:
        order = np.argsort(found["query_id"].astype("U"))
        return {metric: found[metric][order].mean() for metric in SQL_METRICS}

    return Prepared(lambda: connection.execute(sql, [paths]).fetchnumpy(), values)


def _spark() -> Any:
    from pyspark.sql import SparkSession

    if which("java") is None:
        raise ImportError("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "localhost")
    return builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "4g").getOrCreate()


def spark_ours(size: Size, seed: int, files: bool) -> Prepared:
    """Our scores of every query by mapInArrow, written to nowhere, and their means.

    Args:
        files: whether the function gets the names of files, and reads them; if not, it gets rows that Spark reads.
    """
    from pyspark.sql import Observation, functions
    from pyspark.sql.pandas.types import from_arrow_schema

    from metrics_core import batch_scorer, score_schema

    rows = (_spark_files if files else _spark_rows)(size, seed)
    scorer = batch_scorer(SPARK_METRICS, policies="haystack")
    schema = from_arrow_schema(score_schema(SPARK_METRICS))

    def score(batches: Iterator[Any]) -> Iterator[Any]:
        return scorer(_read_there(batches) if files else batches)

    def call() -> dict[str, float]:
        observed = Observation("means")
        means = (functions.mean(functions.col(f"`{metric}`")).alias(metric) for metric in SPARK_METRICS)
        scores = rows.mapInArrow(score, schema).observe(observed, *means)
        scores.write.format("noop").mode("overwrite").save()
        found: dict[str, float] = observed.get
        return found

    return Prepared(call, dict)


def spark_counting(size: Size, seed: int) -> Prepared:
    """What Spark itself takes to hand the rows to a Python function."""
    frame = _spark_rows(size, seed)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"n": [batch.num_rows]})

    return Prepared(lambda: frame.mapInArrow(count, "n long").write.format("noop").mode("overwrite").save())


def _spark_rows(size: Size, seed: int) -> Any:
    """The rows, as Spark reads them."""
    session = _spark()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 1 << 16)
    rows = session.read.parquet(*map(str, parquet_files(size, seed)))
    return rows.select(*SPARK_COLUMNS)


def _spark_files(size: Size, seed: int) -> Any:
    """The names of the files, one a partition."""
    paths = parquet_files(size, seed)
    return _spark().createDataFrame([(str(path),) for path in paths], "path string").repartition(len(paths), "path")


def _read_there(names: Iterator[Any]) -> Iterator[Any]:
    from pyarrow import parquet

    for batch in names:
        for path in batch["path"].to_pylist():
            yield from parquet.ParquetFile(path).iter_batches(1 << 16, columns=SPARK_COLUMNS, use_threads=False)


def spark_theirs(size: Size, seed: int) -> Prepared:
    """Spark's evaluator on ids as doubles, as it needs them: means only."""
    from pyspark.ml.evaluation import RankingEvaluator
    from pyspark.sql import functions

    frame = _spark().read.parquet(*map(str, parquet_files(size, seed)))
    doubles = work_directory() / f"doubles-{size.queries}-{seed}"
    if not doubles.exists():
        columns = {name: functions.col(name).cast("array<double>") for name in ("ground_truth", "retrieved")}
        frame.select(*(column.alias(name) for name, column in columns.items())).write.parquet(str(doubles))
    ready = _spark().read.parquet(str(doubles))
    names = {"AP": "meanAveragePrecision", "nDCG@10": "ndcgAtK", "R@10": "recallAtK"}

    def call() -> dict[str, float]:
        found = {}
        for metric, name in names.items():
            evaluator = RankingEvaluator(predictionCol="retrieved", labelCol="ground_truth", metricName=name, k=10)
            found[metric] = evaluator.evaluate(ready)
        return found

    return Prepared(call, lambda found: {metric: found[metric] for metric in ("AP", "R@10")})


def _scaled_haystack(size: Size, gate: float) -> Gate:
    def value(measured: Mapping[str, Quantities]) -> float:
        rows = min(size.queries, HAYSTACK_ROWS)
        return measured[HAYSTACK]["seconds"] * size.queries / rows / measured[OURS]["seconds"]

    return Gate(f"{OURS}: times as fast as {HAYSTACK}, scaled from {HAYSTACK_ROWS // 1000}k rows", value, gate)


def _growth_of_four_times(gate: float) -> Gate:
    return Gate(
        "memory growth over that of a quarter of the rows",
        lambda measured: measured[OURS]["growth_mb"] / measured[QUARTER]["growth_mb"],
        gate,
        at_least=False,
    )


LISTS = Size(queries=1_000_000, depth=10, judged=2)
COMPARED = Size(queries=HAYSTACK_ROWS, depth=10, judged=2)
LARGE = Size(queries=20_000_000, depth=10, judged=2)
SPARK = Size(queries=2_000_000, depth=10, judged=2)

WORKLOAD = Workload(
    "tables",
    "Tables of lists of ids as strings, a row a query: the five contract metrics",
    (
        Case(
            "Arrow, 1M x 10",
            LISTS,
            (
                Contender(OURS, in_memory),
                Contender(OURS_TWO_THREADS, partial(in_memory, threads=2), threads=2),
                Contender(INDEX_IN, index_in),
                Contender(HAYSTACK, haystack, reads_rows=False),
            ),
            (
                _scaled_haystack(LISTS, 35),
                times_as_fast(OURS, INDEX_IN, gate=7),
                times_as_fast(OURS_TWO_THREADS, OURS, aim=1.9),
            ),
            rounds=3,
            smoke=False,
        ),
        Case(
            "Arrow, 50k x 10",
            COMPARED,
            (Contender(OURS, in_memory), Contender(INDEX_IN, index_in), Contender(HAYSTACK, haystack)),
            rounds=3,
        ),
        Case(
            "parquet, streamed, 1M x 10",
            LISTS,
            (
                Contender(OURS, streamed),
                Contender(OURS_TWO_THREADS, partial(streamed, threads=2), threads=2),
                Contender(SCANNER, partial(scanner, threads=1)),
                Contender(SCANNER_TWO_THREADS, partial(scanner, threads=2), threads=2),
                Contender(OURS_SQL_METRICS, partial(streamed, metrics=SQL_METRICS)),
                Contender(DUCKDB_LISTS, partial(duckdb, sql=LISTS_SQL)),
                Contender(DUCKDB_JOIN, partial(duckdb, sql=JOIN_SQL)),
            ),
            (
                times_the_time(OURS, SCANNER, gate=1.6, aim=1.2),
                times_the_time(OURS_TWO_THREADS, SCANNER_TWO_THREADS, gate=1.6, aim=1.2),
                times_as_fast(OURS, DUCKDB_LISTS, DUCKDB_JOIN, gate=1),
            ),
            rounds=7,
        ),
        Case(
            "parquet to parts, 20M x 10",
            LARGE,
            (
                Contender(OURS, partial(in_parts, share=1), threads=2),
                Contender(QUARTER, partial(in_parts, share=0.25), threads=2, reads_rows=False),
            ),
            (growth_mb(OURS, gate=500), _growth_of_four_times(1.1)),
            rounds=1,
        ),
        Case(
            "other tables, 1M x 10",
            LISTS,
            (
                Contender(PANDAS, partial(in_memory, convert=_to_pandas)),
                Contender(POLARS, partial(in_memory, convert=_to_polars)),
                Contender(LONG, long_tables),
            ),
            rounds=3,
        ),
        Case(
            "Spark, 2M x 10: AP, nDCG@10 and R@10",
            SPARK,
            (
                Contender(SPARK_OURS, partial(spark_ours, files=False), threads=2),
                Contender(SPARK_FILES, partial(spark_ours, files=True), threads=2),
                Contender(SPARK_COUNTING, spark_counting, threads=2),
                Contender(SPARK_THEIRS, spark_theirs, threads=2),
            ),
            (times_as_fast(SPARK_FILES, SPARK_THEIRS, gate=1, aim=2),),
            rounds=3,
            smoke=False,
        ),
    ),
    ("pyarrow", "haystack-ai", "duckdb", "pandas", "polars", "pyspark"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
