"""Kernels run as Python while they have little to do, and compiled from then on: the same scores, to the bit."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from math import inf
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import Document, IdArrays, Policies, compile as engine, evaluate, evaluate_table
from metrics_core.statistics import bootstrap_test, mean_interval, sign_flip_test, tukey_hsd_test
from tests import strategies
from tests.test_process import python
from tests.test_sources import ALL, CATALOGUE, IN_FILES, WITH_EXPECTATION, arrays, ranked, write_pair


@contextmanager
def in_python():
    """Nothing is compiled."""
    with patch.object(engine, "STEPS_IN_PYTHON", inf), patch.object(engine, "_compiled", {}):
        yield


def assert_equal_bits(score):
    """That Python and compiled kernels give the same."""
    compiled = score()
    with in_python():
        interpreted = score()
        assert engine._compiled == {}
    np.testing.assert_array_equal(np.asarray(compiled).view(np.uint64), np.asarray(interpreted).view(np.uint64))


class TestEqualBits:
    @given(ALL, st.sampled_from(["trec_eval", "beir", "ranx"]))
    def test_dicts(self, pair, profile):
        qrels, run = pair
        assert_equal_bits(lambda: evaluate(qrels, run, CATALOGUE, policies=Policies(profile, missing="zero")).values)
        assert_equal_bits(lambda: evaluate(qrels, ranked(run), CATALOGUE).values)

    @given(ALL)
    def test_expectations_over_ties(self, pair):
        qrels, run = pair
        assert_equal_bits(lambda: evaluate(qrels, run, WITH_EXPECTATION, policies=Policies(ties="expected")).values)

    @given(IN_FILES)
    def test_files(self, pair):
        with tempfile.TemporaryDirectory() as folder:
            paths = write_pair(folder, *pair)
            assert_equal_bits(lambda: evaluate(*paths, CATALOGUE).values)

    @given(
        strategies.id_arrays(repeats=True, pool=strategies.INTEGER_IDS, padding=(-2, -1, 0, 9)),
        st.sampled_from(["first_keep_rank", "first_compact"]),
        st.booleans(),
    )
    def test_integer_arrays(self, drawn, duplicates, scored):
        judged = IdArrays(drawn.judged_ids, grades=drawn.grades, lengths=drawn.n_judged)
        values = {"scores": drawn.scores} if scored else {}
        retrieved = IdArrays(drawn.retrieved_ids, lengths=drawn.n_retrieved, **values)
        policies = Policies(duplicates=duplicates)
        assert_equal_bits(lambda: evaluate(judged, retrieved, CATALOGUE, policies=policies).values)

    @pytest.mark.parametrize("width", [30, 600])  # of one comparison after the other, and of tables
    def test_longer_rankings(self, width):
        random = np.random.default_rng(5)
        judged = [random.choice(1_000, 8, replace=False) for _ in range(6)]
        retrieved = arrays([random.choice(1_000, width, replace=False) for _ in judged], dtype=np.int32)
        assert_equal_bits(lambda: evaluate(arrays(judged, grades=[range(-3, 5)] * 6), retrieved, CATALOGUE).values)

    def test_texts(self):
        """The fingerprints of ids of every length; with a repeat, and more judged than are matched without a table."""
        ids = ["x" * length + str(length % 7) for length in range(60)]
        qrels = {"few": dict.fromkeys(ids[::9], 1), "many": dict.fromkeys(ids[:40], 1), "repeat": {ids[3]: 1}}
        run = {"few": ids, "many": ids[::-1], "repeat": [ids[2], ids[2], ids[3]]}
        policies = Policies(duplicates="first_keep_rank")
        assert_equal_bits(lambda: evaluate(qrels, run, CATALOGUE, policies=policies).values)
        documents = [[Document(content=text) for text in ids]]
        assert_equal_bits(lambda: evaluate([documents[0][::5]], documents, CATALOGUE).values)

    def test_resamples(self):
        values = np.random.default_rng(6).normal(size=(21, 3))
        assert_equal_bits(lambda: sign_flip_test(values, n_resamples=50).p)
        assert_equal_bits(lambda: bootstrap_test(values, n_resamples=50).p)
        assert_equal_bits(lambda: tukey_hsd_test(values, n_resamples=50))
        assert_equal_bits(lambda: mean_interval(values, n_resamples=50).low)


def add_one(values, out):
    for i in range(values.size):
        out[i] = values[i] + 1


def of_nulls(n):
    pa = pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")
    return pa.table({"ground_truth": [["a"]] * n, "retrieved": pa.array([[None] * 100] * n, pa.list_(pa.string()))})


def of_integers(n, width):
    return np.tile(np.arange(width), (n, 1))


def of_lengths(lengths):
    return IdArrays(np.tile(np.arange(max(lengths)), (len(lengths), 1)), lengths=lengths)


def scored(n, n_judged, n_retrieved, score, prefix=""):
    documents = [f"{prefix}{d:03}" for d in range(n_retrieved)]
    qrels = {str(q): {document: d % 2 for d, document in enumerate(documents[:n_judged])} for q in range(n)}
    return qrels, {query: {document: score(d) for d, document in enumerate(documents)} for query in qrels}


class TestWhenKernelsAreCompiled:
    def test_with_many_steps_in_one_call_or_in_all(self, monkeypatch):
        monkeypatch.setattr(engine, "STEPS_IN_PYTHON", 100)
        monkeypatch.setattr(engine, "_compiled", {})
        monkeypatch.setattr(engine, "_steps", {})
        kernel = engine.compiled(add_one)
        values, out = np.ones(20), np.zeros(20)
        for _ in range(2):
            kernel(values, out)
            assert engine._compiled == {}
        kernel(values, out)
        assert [*engine._compiled] == [(add_one, False)]
        assert out.tolist() == [2.0] * 20

        engine._compiled.clear()
        engine._steps.clear()
        kernel(np.ones(101), np.zeros(101))
        assert [*engine._compiled] == [(add_one, False)]

    @pytest.mark.parametrize(
        ("kernel", "score"),
        [
            ("match_short", lambda: evaluate_table(of_nulls(400), "AP")),
            ("match_by_table", lambda: evaluate_table(of_nulls(400), "AP")),
            ("match_ids", lambda: evaluate(of_integers(40, 32), of_integers(40, 512), "AP")),
            ("match_ids", lambda: evaluate(np.full((3_000, 1), -1), of_lengths([24] + [1] * 2_999), "Unj@5")),
            ("flipped_sums", lambda: sign_flip_test(np.ones((500, 30)), n_resamples=1)),
            ("order_by_score", lambda: evaluate(*scored(100, 15, 200, lambda d: 7919 * d % 200), "AP")),
            ("order_groups_descending", lambda: evaluate(*scored(3, 15, 200, lambda d: 1, "long" * 50), "AP")),
            ("resampled_sums", lambda: mean_interval(np.arange(100.0), n_resamples=1_000)),
        ],
    )
    def test_with_few_cells_and_much_to_do_with_each(self, monkeypatch, kernel, score):
        monkeypatch.setattr(engine, "STEPS_IN_PYTHON", 200_000)
        monkeypatch.setattr(engine, "_compiled", {})
        monkeypatch.setattr(engine, "_steps", {})
        score()
        assert kernel in {function.__name__ for function, _ in engine._compiled}

    def test_a_few_queries_need_no_numba(self, tmp_path):
        write_pair(tmp_path, {"q": {"a": 1, "b": 2}}, {"q": {"x": 2.0, "a": 1.0, "b": 1.0}})
        done = python(
            "import os, sys\n"
            "from metrics_core import Document, DocumentMRREvaluator, IdArrays, evaluate\n"
            f"os.chdir({str(tmp_path)!r})\n"
            "metrics = ['AP', 'RR', 'nDCG@10', 'R@5']\n"
            "qrels = {'q': {'a': 1, 'b': 2}}\n"
            "print(float(evaluate(qrels, {'q': {'x': 2., 'a': 1., 'b': 1.}}, metrics)['RR'][0]))\n"
            "print(float(evaluate(qrels, {'q': ['x', 'b']}, metrics)['RR'][0]))\n"
            "print(float(evaluate('qrels', 'run', metrics)['RR'][0]))\n"
            "print(float(evaluate(IdArrays([[1, 2]]), IdArrays([[3, 1]]), metrics)['RR'][0]))\n"
            "lists = [[Document(content='a')]], [[Document(content='b'), Document(content='a')]]\n"
            "print(DocumentMRREvaluator().run(*lists)['score'])\n"
            "print('numba' in sys.modules)"
        )
        assert (done.stdout, done.stderr) == ("0.5\n" * 5 + "False\n", "")
