"""Packing once and scoring many times; the blocks that queries are cut into."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import Document, IdArrays, InputError, Metric, Policies, PolicyError, RankedBatch, evaluate, pack
from metrics_core.blocks import BLOCK_CELLS, cut_blocks, pad
from metrics_core.metrics import REL
from tests import strategies

METRICS = ["AP", "RR@2", "nDCG@3", "Bpref", "Judged@2", "NumRet", "Compat(p=0.8)"]


def hits_plus_one(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(out.size):
        hits = 0
        for i in range(grades.shape[0]):
            if grades[i, q] >= rel and ranks[i, q] <= cutoff:
                hits += 1
        out[q] = hits + 1


HitsPlusOne = Metric(name="HitsPlusOne", kernel=hits_plus_one, parameters=(REL,), aggregate="sum")


class TestRankedBatch:
    @given(
        strategies.qrels_and_run(), st.sampled_from([None, "beir", Policies(ties="expected"), Policies(missing="skip")])
    )
    def test_equals_evaluate(self, pair, policies):
        metrics = [name for name in METRICS if "Bpref" not in name and "Compat" not in name]
        batch = pack(*pair, policies=policies)
        scores, other = batch.evaluate(metrics), evaluate(*pair, metrics, policies=policies)
        np.testing.assert_array_equal(scores.values, other.values)
        assert (scores.metrics, scores.query_ids, scores.policies) == (other.metrics, other.query_ids, other.policies)
        for name in metrics:
            np.testing.assert_array_equal(batch.score(name), other[name])

    def test_scoring_changes_nothing(self):
        batch = pack({"q": {"a": 1, "b": 3}, "r": {"c": -1}}, {"q": ["b", "x"], "r": ["c"]})
        first = batch.evaluate(METRICS).values
        for name in reversed(METRICS):
            batch.score(name)
        np.testing.assert_array_equal(batch.evaluate(METRICS).values, first)

    def test_shape_and_description(self):
        batch = pack({"q": {"a": 1}, "r": {}}, {"q": ["a", "b"]})
        assert isinstance(batch, RankedBatch)
        assert len(batch) == 2
        assert repr(batch) == "RankedBatch(queries=2, documents=2, policies='trec_eval, order=input')"
        assert (batch.score("AP").dtype, batch.score("AP").shape) == (np.float64, (2,))
        assert batch.is_missing.tolist() == [False, True]

    def test_reads_grades(self):
        documents = [[Document(content="a", score=1), Document(content="b")]], [[Document(content="b")]]
        with pytest.raises(
            InputError, match="either none or all ground-truth documents of a question must have a score"
        ):
            pack(*documents)

    def test_errors_come_when_scoring(self):
        batch = pack({"q": {"a": 0}}, {"q": {"a": 1.0}}, policies=Policies(no_relevant="error", ties="expected"))
        with pytest.raises(InputError, match="query 'q' has no relevant document for AP"):
            batch.score("AP")
        with pytest.raises(PolicyError, match="Bpref has no exact value for ties='expected'"):
            batch.score("Bpref")


class TestOwnMetric:
    def test_in_evaluate(self):
        scores = evaluate(
            {"q": {"a": 2, "b": 1}, "r": {}}, {"q": ["x", "a", "b"]}, ["AP", HitsPlusOne, HitsPlusOne(rel=2) @ 2]
        )
        assert scores.metrics == ("AP", "HitsPlusOne", "HitsPlusOne(rel=2)@2")
        assert scores[HitsPlusOne].tolist() == [2 + 1, 0 + 1]
        assert scores[HitsPlusOne(rel=2) @ 2].tolist() == [1 + 1, 0 + 1]
        assert scores.aggregate()["HitsPlusOne"].value == 3 + 1

    def test_a_single_metric_is_enough(self):
        assert evaluate({"q": {"a": 1}}, {"q": ["a"]}, HitsPlusOne).values.tolist() == [[2]]

    def test_expected_ties_are_refused_unless_declared(self):
        with pytest.raises(PolicyError, match="HitsPlusOne has no exact value"):
            evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, HitsPlusOne, policies=Policies(ties="expected"))


class TestCutBlocks:
    lengths = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), min_size=1, max_size=60)

    @given(lengths, st.integers(1, 500))
    def test_every_query_is_in_one_block(self, lengths, block_cells):
        n_retrieved, n_judged = np.array(lengths).T
        blocks = list(cut_blocks(n_retrieved, n_judged, block_cells))
        assert sorted(np.concatenate(blocks).tolist()) == list(range(len(lengths)))
        for rows in blocks:
            cells = rows.size * (n_retrieved[rows].max() + n_judged[rows].max())
            assert cells <= block_cells or rows.size == 1

    @given(lengths)
    def test_padding_is_capped(self, lengths):
        n_retrieved, n_judged = np.array(lengths).T
        for rows in cut_blocks(n_retrieved, n_judged, 1 << 10):
            for counts in (n_retrieved[rows], n_judged[rows]):
                if n_retrieved.size * (n_retrieved.max() + n_judged.max()) > 1 << 10:
                    assert counts.size * counts.max() <= 1.25 * counts.sum() + 1e-9 * counts.sum()

    def test_no_queries(self):
        none = np.zeros(0, np.int64)
        assert list(cut_blocks(none, none)) == []

    def test_few_queries_are_one_block(self):
        assert [rows.tolist() for rows in cut_blocks(np.array([3, 90]), np.array([1, 2]))] == [[0, 1]]

    def test_one_long_ranking_among_many_short_ones(self):
        n_retrieved = np.full(100_001, 10)
        n_retrieved[500] = 100_000
        n_judged = np.full(n_retrieved.size, 3)
        flat = 8 * (n_retrieved.sum() + n_judged.sum())
        padded = sum(
            8 * rows.size * int(n_retrieved[rows].max() + n_judged[rows].max())
            for rows in cut_blocks(n_retrieved, n_judged)
        )
        assert padded <= 1.3 * flat

    def test_arrays_of_a_skewed_batch(self):
        """The same with arrays: all that a batch keeps for a query of 10 documents and the one of 100,000."""
        n_retrieved = np.full(100_001, 10)
        n_retrieved[500] = 100_000
        offsets = np.concatenate([[0], np.cumsum(n_retrieved)])
        ids = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_retrieved)
        batch = pack(IdArrays(np.tile([2, 5, 11], (n_retrieved.size, 1))), IdArrays(ids, offsets=offsets))
        cells = sum(block.grades.size + block.ideal.size for block in batch.blocks)
        assert cells <= 1.3 * (n_retrieved.sum() + 3 * n_retrieved.size)
        assert cells * 8 < 1.3 * (8 * n_retrieved.sum() + 24 * n_retrieved.size)
        assert sorted(np.concatenate([block.rows for block in batch.blocks]).tolist()) == list(range(n_retrieved.size))
        ap = batch.score("AP")
        assert ap[0] == ap[-1] == (1 / 3 + 2 / 6) / 3
        assert ap[500] == (1 / 3 + 2 / 6 + 3 / 12) / 3

    def test_blocks_are_bounded(self):
        many = np.full(100_000, 90)
        assert all(rows.size * (90 + 10) <= BLOCK_CELLS for rows in cut_blocks(many, np.full(many.size, 10)))


class TestPad:
    @given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5))
    def test_rows(self, rows):
        flat = np.array([value for row in rows for value in row], np.float64)
        padded = pad(flat, np.array([len(row) for row in rows], np.int64), np.nan)
        assert padded.shape == (len(rows), max(map(len, rows), default=0))
        assert [[value for value in row.tolist() if not np.isnan(value)] for row in padded] == rows  # NaN
