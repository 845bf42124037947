"""Record batches scored by a function, as Spark calls it."""

from __future__ import annotations

import os
import pickle
import shutil
import sys

import numpy as np
import pytest

from metrics_core import InputError, batch_scorer, evaluate_table, score_schema

pa = pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")
parquet = pytest.importorskip("pyarrow.parquet")

METRICS = ["AP", "nDCG@5", "RR", "gm_map", "num_rel_ret"]


def table_of(n, first=0, seed=0, **others):
    random = np.random.default_rng(seed)

    def lists(width):
        keys = pa.array([f"document {key}" for key in random.integers(0, 40, n * width)])
        return pa.ListArray.from_arrays(pa.array(np.arange(0, n * width + 1, width, dtype=np.int32)), keys)

    columns = {"query_id": [f"q{first + i}" for i in range(n)], "ground_truth": lists(4), "retrieved": lists(6)}
    return pa.table(columns | others)


class TestBatchScorer:
    def test_batches_of_scores(self):
        table = table_of(50)
        scorer = pickle.loads(pickle.dumps(batch_scorer(METRICS)))
        scored = pa.Table.from_batches(scorer(table.to_batches(20)), score_schema(METRICS))
        assert scored.equals(evaluate_table(table, METRICS).to_arrow())
        assert list(scorer([])) == []

    def test_needs_ids(self):
        with pytest.raises(InputError, match="there is no column for query_id"):
            list(batch_scorer("AP")(table_of(2).drop_columns("query_id").to_batches()))

    @pytest.mark.filterwarnings("default")  # of Spark's own
    def test_spark(self, tmp_path, monkeypatch):
        sql = pytest.importorskip("pyspark.sql", reason="needs the extra: pip install 'metrics-core[spark]'")
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java")
        table = table_of(100)
        for number in range(2):
            parquet.write_table(table.slice(50 * number, 50), tmp_path / f"{number}.parquet")
        from pyspark.sql.pandas.types import from_arrow_schema

        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        session = (
            sql.SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        try:
            rows = session.read.parquet(str(tmp_path / "*.parquet"))
            scored = rows.mapInArrow(batch_scorer(METRICS), from_arrow_schema(score_schema(METRICS))).toArrow()
        finally:
            session.stop()
        expected = evaluate_table(table, METRICS).to_arrow()
        assert scored.sort_by("query_id").to_pydict() == expected.sort_by("query_id").to_pydict()
