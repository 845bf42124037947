"""Evaluation sets that are too large for memory, or for one machine: parquet in, parquet out.

evaluate_dataset(...)                       threads of this process
evaluate_dataset(..., executor=pool)        any Executor of concurrent.futures: a ProcessPoolExecutor,
                                            client.get_executor() of Dask
evaluate_dataset(..., executor="ray")       the Ray cluster that this process is connected to, or a local one
frame.mapInArrow(batch_scorer(metrics), from_arrow_schema(score_schema(metrics)))    Spark (pyspark.sql.pandas.types)
"""

import random
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from metrics_core import batch_scorer, evaluate_dataset, score_schema

METRICS = ["SetR", "RR", "nDCG@10"]


def write_rows(folder: Path) -> None:
    """A row a query: what is relevant, and what was retrieved, in rank order; lists of ids or of contents."""
    random.seed(0)
    folder.mkdir()
    for number in range(4):
        queries = range(number * 1000, (number + 1) * 1000)
        table = pa.table(
            {
                "query_id": [f"q{query}" for query in queries],
                "ground_truth": [random.sample([f"d{i}" for i in range(20)], 2) for _ in queries],
                "retrieved": [random.sample([f"d{i}" for i in range(20)], 10) for _ in queries],
            }
        )
        parquet.write_table(table, folder / f"{number}.parquet")


def main() -> None:
    """Scores the rows in parts; again, after a part was lost; then as an engine that maps batches would."""
    write_rows(Path("rows"))
    scores = evaluate_dataset("rows/*.parquet", METRICS, out="scores")
    print(scores)
    print(len(scores.paths), "parts of", parquet.read_schema(scores.paths[0]).names)

    scores.paths[2].unlink()  # as if interrupted: what is there is not computed again
    again = evaluate_dataset("rows/*.parquet", METRICS, out="scores")
    assert again.aggregate() == scores.aggregate()

    batches = parquet.ParquetFile("rows/0.parquet").iter_batches()
    mapped = pa.Table.from_batches(batch_scorer(METRICS)(batches), score_schema(METRICS))
    assert mapped.to_pylist() == parquet.read_table(scores.paths[0]).to_pylist()


if __name__ == "__main__":
    main()
