"""Evaluation sets that are too large for memory, or for one machine: parquet in, parquet out.

evaluate_dataset(paths, metrics)            rows with lists: a row a query
evaluate_dataset(run, metrics, qrels=...)   long tables: a row a document
evaluate_dataset(...)                       threads of this process
evaluate_dataset(..., executor=pool)        any Executor of concurrent.futures: a ProcessPoolExecutor,
                                            client.get_executor() of Dask
evaluate_dataset(..., executor="ray")       the Ray cluster that this process is connected to, or a local one
batch_scorer(metrics)                       what an engine maps over record batches; spark.py is the guide to Spark
"""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from metrics_core import batch_scorer, evaluate, evaluate_dataset, score_schema

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
    """Rows in parts; again, after a part was lost; by an executor; as an engine that maps batches does; long tables."""
    write_rows(Path("rows"))
    scores = evaluate_dataset("rows/*.parquet", METRICS, out="scores")
    print(scores)
    print(len(scores.paths), "parts of", parquet.read_schema(scores.paths[0]).names)

    scores.paths[2].unlink()  # as if interrupted: what is there is not computed again
    again = evaluate_dataset("rows/*.parquet", METRICS, out="scores")
    assert again.aggregate() == scores.aggregate()

    with ThreadPoolExecutor(2) as pool:  # or another executor: the scores are the same to the last bit
        assert evaluate_dataset("rows/*.parquet", METRICS, executor=pool).moments == scores.moments

    batches = parquet.ParquetFile("rows/0.parquet").iter_batches()
    mapped = pa.Table.from_batches(batch_scorer(METRICS)(batches), score_schema(METRICS))
    assert mapped.to_pylist() == parquet.read_table(scores.paths[0]).to_pylist()

    # Long tables, a row a document, in any order: the rankings in files, the judgements in files, too, or in memory
    run = pa.table({"query_id": ["q1", "q2", "q1"], "doc_id": ["d2", "d3", "d1"], "score": [0.5, 2.0, 1.5]})
    parquet.write_table(run, "run.parquet")
    qrels = {"q1": {"d1": 1}, "q2": {"d9": 1}}
    long = evaluate_dataset("run.parquet", METRICS, qrels=qrels, out="long-scores.parquet")
    assert long.scores().mean() == evaluate(qrels, run, METRICS).mean()
    print(long)


if __name__ == "__main__":
    main()
