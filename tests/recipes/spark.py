"""Evaluation sets in Spark: scores of every query, as a frame.

rows.mapInArrow(scorer, schema)            rows that Spark has, from wherever it reads them
names.mapInArrow(score_files, schema)      rows in parquet files: Spark hands out their names, each worker reads its own

Spark takes longer to hand lists of strings to Python than Python takes to read and score them: where the rows are in
files that the workers see, the second is the faster (`python -m benchmarks tables --case Spark`).
"""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from metrics_core import batch_scorer, evaluate_table, score_schema

METRICS = ["SetR", "RR", "nDCG@10"]
COLUMNS = ["query_id", "ground_truth", "retrieved"]


def write_rows(folder: Path) -> None:
    """A row a query: what is relevant, and what was retrieved, in rank order."""
    random.seed(0)
    folder.mkdir()
    documents = [f"d{i}" for i in range(20)]
    for number in range(2):
        queries = range(number * 100, (number + 1) * 100)
        rows = [(f"q{query}", random.sample(documents, 2), random.sample(documents, 10)) for query in queries]
        columns = map(list, zip(*rows, strict=True))
        parquet.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), folder / f"{number}.parquet")


def score_files(names: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The scores of the rows in files, whose names come in a column `path`."""
    for batch in names:
        for path in batch["path"].to_pylist():
            yield from batch_scorer(METRICS)(parquet.ParquetFile(path).iter_batches(columns=COLUMNS))


def main() -> None:
    """Both ways, and the same scores in memory."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    write_rows(Path("rows"))
    paths = sorted(Path("rows").resolve().glob("*.parquet"))
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    spark = session.getOrCreate()
    schema = from_arrow_schema(score_schema(METRICS))

    rows = spark.read.parquet(*map(str, paths))
    scores = rows.mapInArrow(batch_scorer(METRICS), schema)
    scores.describe(*METRICS).show()

    names = spark.createDataFrame([(str(path),) for path in paths], "path string").repartition(len(paths), "path")
    of_files = names.mapInArrow(score_files, schema)

    in_memory = evaluate_table(pa.concat_tables(map(parquet.read_table, paths)), METRICS).to_arrow()
    for frame in (scores, of_files):
        assert frame.toArrow().sort_by("query_id").to_pydict() == in_memory.sort_by("query_id").to_pydict()
    spark.stop()


if __name__ == "__main__":
    main()
