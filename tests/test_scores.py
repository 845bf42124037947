"""What an evaluation gives: values, lookup, aggregates."""

from __future__ import annotations

import sys
from math import exp, fsum, inf, isnan, log, nan

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import Aggregate, MetricNameError, Policies, Scores, evaluate, pack, parse
from metrics_core.aggregate import aggregate
from tests import reference
from tests.test_sources import write_pair

QRELS = {"q": {"a": 1}, "r": {"b": 1, "c": 2}, "s": {"a": 0}}
RUN = {"q": ["a"], "r": ["x", "c", "b"]}


@pytest.fixture
def scores():
    return evaluate(QRELS, RUN, ["AP", "GMAP", "NumRelRet", "nDCG@10"], policies=Policies(missing="skip"))


class TestLookup:
    @pytest.mark.parametrize(
        "name", ["nDCG@10", "ndcg@10", "ndcg_cut_10", "ndcg_cut.10", "NDCG@10", parse("nDCG") @ 10]
    )
    def test_any_spelling(self, scores, name):
        np.testing.assert_array_equal(scores[name], scores.values[:, 3])

    def test_what_was_not_evaluated(self, scores):
        with pytest.raises(MetricNameError, match=r"^RR was not evaluated; there are AP, GMAP, NumRelRet, nDCG@10$"):
            scores["mrr"]
        with pytest.raises(MetricNameError, match=r"^unknown metric 'ndgc'; did you mean 'nDCG'\?$"):
            scores["ndgc"]

    def test_columns(self, scores):
        column = scores["AP"]
        assert (column.dtype, column.shape) == (np.float64, (3,))
        assert column[:2].tolist() == [1, (1 / 2 + 2 / 3) / 2]
        assert np.isnan(column[2])

    def test_an_unregistered_metric(self):
        own = parse("AP").__class__(name="Own", kernel=lambda *_: None, compiled=False)
        scores = evaluate(QRELS, RUN, [own @ 3])
        assert scores[own @ 3].tolist() == scores["Own@3"].tolist() == [0, 0, 0]


class TestAttributes:
    def test_all(self, scores):
        assert scores.metrics == ("AP", "GMAP", "NumRelRet", "nDCG@10")
        assert list(scores.query_ids) == ["q", "r", "s"]
        assert scores.policies == Policies(order="input", missing="skip")
        assert scores.aggregates == ("mean", "geometric mean", "sum", "mean")
        assert len(scores) == 3

    def test_to_dict(self, scores):
        as_dict = scores.to_dict()
        assert list(as_dict) == ["q", "r", "s"]
        assert as_dict["q"] == {"AP": 1.0, "GMAP": 1.0, "NumRelRet": 1.0, "nDCG@10": 1.0}
        assert all(map(isnan, as_dict["s"].values()))
        assert {type(value) for row in as_dict.values() for value in row.values()} == {float}

    def test_repr(self, scores):
        assert repr(scores).splitlines() == [
            "Scores of 3 queries, 1 missing in the run, policies trec_eval, order=input, missing=skip",
            f"  AP         {(1 + 7 / 12) / 2:.4f}  (mean, 2 of 3 scored)",
            f"  GMAP       {(1 * 7 / 12) ** 0.5:.4f}  (geometric mean, 2 of 3 scored)",
            "  NumRelRet  3.0000  (sum, 2 of 3 scored)",
            f"  nDCG@10    {scores.mean()['nDCG@10']:.4f}  (mean, 2 of 3 scored)",
        ]


JUDGED = {"q": {"a": 1}, "r": {"b": 1}, "s": {"a": 1}}
RETRIEVED = {"x": {"a": 1.0}, "s": {"b": 1.0}, "y": {"a": 1.0}}


class TestUnpairedQueries:
    """Queries that only one side has are named, whatever the sides are."""

    @pytest.mark.parametrize("kind", ["dicts", "lists", "files", "tables"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_are_named(self, kind, packed, tmp_path):
        sides = JUDGED, RETRIEVED
        if kind == "lists":
            sides = JUDGED, {query: list(ranking) for query, ranking in RETRIEVED.items()}
        elif kind == "files":
            sides = write_pair(tmp_path, *sides)
        elif kind == "tables":
            pa = pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")
            sides = (
                pa.table({"query_id": [*side], "doc_id": ["".join(each) for each in side.values()], name: [1] * 3})
                for name, side in zip(("relevance", "score"), sides, strict=True)
            )
        scores = pack(*sides).evaluate("RR") if packed else evaluate(*sides, "RR")
        assert scores.missing == ("q", "r")
        assert scores.unjudged == ("x", "y")
        assert repr(scores).startswith(
            "Scores of 3 queries, 2 missing in the run, 2 unjudged left out, policies trec_eval"
        )

    def test_queries_that_are_not_chosen_are_neither(self):
        scores = evaluate(JUDGED, RETRIEVED, "RR", query_ids=["r"])
        assert (scores.missing, scores.unjudged) == (("r",), ("x", "y"))

    def test_there_are_none(self):
        for scores in (evaluate(JUDGED, JUDGED, "RR"), evaluate(np.array([[1]]), np.array([[1]]), "RR")):
            assert (scores.missing, scores.unjudged) == ((), ())
            assert "missing" not in repr(scores)


class TestAggregates:
    def test_of_each_metric_s_own_kind(self, scores):
        assert scores.aggregate() == {
            "AP": Aggregate(pytest.approx((1 + 7 / 12) / 2), 2, 3),
            "GMAP": Aggregate(pytest.approx((1 * 7 / 12) ** 0.5), 2, 3),
            "NumRelRet": Aggregate(1 + 2, 2, 3),
            "nDCG@10": Aggregate(scores.mean()["nDCG@10"], 2, 3),
        }

    def test_mean_is_the_arithmetic_one_of_all(self, scores):
        assert scores.mean() == pytest.approx(
            {"AP": 19 / 24, "GMAP": 19 / 24, "NumRelRet": 3 / 2, "nDCG@10": np.nanmean(scores["nDCG@10"])}
        )
        assert {type(value) for value in scores.mean().values()} == {float}

    def test_nothing_scored(self):
        values = np.array([nan, nan])
        assert isnan(aggregate(values).value)
        assert isnan(aggregate(values, "geometric mean").value)
        assert aggregate(values, "sum") == Aggregate(0.0, 0, 2)
        skipped = evaluate({"q": {"a": 0}}, {"q": ["a"]}, "AP", policies=Policies(no_relevant="skip"))
        assert isnan(skipped.mean()["AP"])
        assert "0 of 1 scored" in repr(skipped)

    def test_geometric_mean_has_a_floor(self):
        assert aggregate(np.array([0.0, 1.0]), "geometric mean").value == pytest.approx(exp((log(1e-5) + log(1)) / 2))

    def test_mean_rounds_once(self):
        values = np.array([1.0, 1e-16, 1e-16, 1e-16, 1e-16])
        assert sum(values.tolist()) / 5 != fsum(values) / 5
        assert aggregate(values).value == fsum(values) / 5

    def test_mean_of_what_sums_beyond_the_floats(self):
        largest = 1.7976931348623157e308
        assert aggregate(np.array([largest, largest, nan])) == Aggregate(largest, 2, 3)
        assert aggregate(np.array([largest, -largest, largest, -largest])).value == 0

    @given(st.lists(st.floats(0, 1) | st.just(nan), max_size=30), st.randoms(use_true_random=False))
    def test_equal_the_twins_in_any_order(self, values, random):
        shuffled = random.sample(values, len(values))
        for how in ("mean", "sum", "geometric mean"):
            result = aggregate(np.array(shuffled), how)
            assert result.value == pytest.approx(reference.aggregate(values, how), rel=1e-14, nan_ok=True)
            assert result.n_total == len(values)
            assert result.n_scored == sum(not isnan(value) for value in values)
            assert result.value == aggregate(np.array(values), how).value or isnan(result.value)


def test_made_by_hand():
    scores = Scores(np.array([[0.5, 2], [1, 3]]), ("AP", "NumRet"), [7, 8], Policies(), ("mean", "sum"))
    assert scores.mean() == {"AP": (0.5 + 1) / 2, "NumRet": (2 + 3) / 2}
    assert scores.aggregate()["NumRet"].value == 2 + 3
    assert scores.to_dict()[8] == {"AP": 1.0, "NumRet": 3.0}
    assert max(scores["AP"], default=-inf) == 1


class TestTables:
    def test_arrow_and_parquet(self, scores, tmp_path):
        pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")
        from pyarrow import parquet

        table = scores.to_arrow()
        assert table.column_names == ["query_id", "AP", "GMAP", "NumRelRet", "nDCG@10"]
        assert table["query_id"].to_pylist() == ["q", "r", "s"]
        assert table["AP"].to_pylist() == [1.0, pytest.approx((1 / 2 + 2 / 3) / 2), None]
        scores.write_parquet(tmp_path / "scores.parquet")
        assert parquet.read_table(tmp_path / "scores.parquet").equals(table)

    def test_data_frames(self, scores):
        pandas = pytest.importorskip("pandas", reason="needs the extra: pip install 'metrics-core[frames]'")
        polars = pytest.importorskip("polars", reason="needs the extra: pip install 'metrics-core[frames]'")
        frame = scores.to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        assert frame["query_id"].tolist() == ["q", "r", "s"]
        np.testing.assert_array_equal(frame["nDCG@10"], scores["nDCG@10"])
        frame = scores.to_polars()
        assert isinstance(frame, polars.DataFrame)
        assert frame["AP"].null_count() == 1

    @pytest.mark.parametrize(
        ("module", "extra", "export"),
        [
            ("pyarrow", "arrow", Scores.to_arrow),
            ("pandas", "frames", Scores.to_pandas),
            ("polars", "frames", Scores.to_polars),
        ],
    )
    def test_without_the_package(self, scores, monkeypatch, module, extra, export):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"^this needs {module}: pip install 'metrics-core\[{extra}\]'$"):
            export(scores)

    def test_rows_without_ids_are_numbered(self):
        pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")
        scores = evaluate(np.array([[1], [2]]), np.array([[1], [3]]), "RR")
        assert scores.to_arrow().to_pydict() == {"query_id": [0, 1], "RR": [1.0, 0.0]}
