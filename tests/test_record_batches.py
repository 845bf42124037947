"""Record batches scored by a function; the guide to Spark, which tests/test_recipes.py runs, has Spark call it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from metrics_core import InputError, batch_scorer, evaluate_table, score_schema

pa = pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")

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
