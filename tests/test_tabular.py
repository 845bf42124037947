"""Tables of columns, in memory: rows of lists, and long tables."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import (
    Document,
    InputError,
    Policies,
    PolicyError,
    evaluate,
    evaluate_table,
)
from metrics_core.sources import arrow as sources

pa = pytest.importorskip("pyarrow", reason="needs the arrow extra")

METRICS = ["AP", "nDCG", "RR", "Success@2", "R@3", "Judged@3", "Unj@3"]
IDS = st.sampled_from(["a", "b", "aa", "ab", "é", "twelve bytes", "twelve bytez", "a little longer than sixteen"])
INTEGERS = st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, 2**62, -(2**63)])
SCORES = st.sampled_from([0.5, 1.0, 2.0, 2.0**60])
STRING_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def rows_of(ids):
    return st.lists(
        st.tuples(
            st.lists(st.tuples(ids, st.integers(0, 3)), unique_by=lambda pair: pair[0], max_size=5),
            st.lists(st.tuples(st.none() | ids, SCORES), max_size=8),
        ),
        min_size=1,
        max_size=6,
    )


def table_of(rows, item_type, list_of=pa.list_, with_scores=False, with_grades=True):
    columns = {
        "query_id": pa.array([f"q{row}" for row in range(len(rows))]),
        "ground_truth": _lists([[key for key, _ in judged] for judged, _ in rows], item_type, list_of),
        "retrieved": _lists([[key for key, _ in retrieved] for _, retrieved in rows], item_type, list_of),
    }
    if with_grades:
        columns["relevance"] = pa.array([[grade for _, grade in judged] for judged, _ in rows], list_of(pa.int64()))
    if with_scores:
        columns["scores"] = pa.array([[score for _, score in ranked] for _, ranked in rows], list_of(pa.float64()))
    return pa.table(columns)


def _lists(lists, item_type, list_of):
    if not pa.types.is_dictionary(item_type):
        return pa.array(lists, list_of(item_type))
    plain = pa.array(lists, list_of(item_type.value_type))
    return type(plain).from_arrays(plain.offsets, plain.flatten().dictionary_encode())


def assert_same(ours, theirs):
    for name in METRICS:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


class TestRowsEqualTheSameInPython:
    @pytest.mark.parametrize("list_of", [pa.list_, pa.large_list], ids=["list", "large_list"])
    @pytest.mark.parametrize("item_type", STRING_TYPES, ids=str)
    @given(rows=rows_of(IDS), cut=st.integers(0, 5))
    def test_in_rank_order(self, item_type, list_of, rows, cut):
        table = table_of(rows, item_type, list_of).slice(min(cut, len(rows) - 1))
        rows = rows[min(cut, len(rows) - 1) :]
        documents = [
            [[Document(content=key, score=grade) for key, grade in judged] for judged, _ in rows],
            [[Document(content=key) for key, _ in retrieved] for _, retrieved in rows],
        ]
        assert_same(evaluate_table(table, METRICS), evaluate(*documents, METRICS))

    @given(rows=rows_of(INTEGERS))
    def test_integers_in_rank_order(self, rows):
        documents = [
            [[Document(meta={"id": key}, score=grade) for key, grade in judged] for judged, _ in rows],
            [[Document(meta={"id": key}) for key, _ in retrieved] for _, retrieved in rows],
        ]
        expected = evaluate(*documents, METRICS, document_comparison_field="meta.id")
        assert_same(evaluate_table(table_of(rows, pa.int64()), METRICS), expected)

    @pytest.mark.parametrize(("item_type", "judged", "rr"), [("uint64", 2**64 - 5, 1 / 2), ("int64", 3, 1 / 3)])
    def test_integers_beyond_64_bits_with_a_sign(self, item_type, judged, rr):
        ground_truth = pa.array([[judged]], pa.list_(pa.type_for_alias(item_type)))
        retrieved = pa.array([[1, 2**64 - 5, 3]], pa.list_(pa.uint64()))
        table = pa.table({"ground_truth": ground_truth, "retrieved": retrieved})
        assert evaluate_table(table, "RR").values.tolist() == [[rr]]

    def test_a_null_among_the_values_of_a_dictionary(self):
        ids = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([2**53 + 1, None], pa.int64()))
        lists = [pa.ListArray.from_arrays([0, 2], each) for each in (ids, ids[::-1])]
        scores = evaluate_table(pa.table(lists, ["ground_truth", "retrieved"]), ["RR", "NumRel"])
        assert scores.values.tolist() == [[1 / 2, 1]]

    @pytest.mark.parametrize("item_type", [pa.string(), pa.int64()], ids=str)
    @given(data=st.data())
    def test_with_scores(self, item_type, data):
        rows = data.draw(rows_of(IDS if item_type == pa.string() else INTEGERS))
        rows = [  # no document twice, as a dict could not hold it
            (judged, [*{key: (key, score) for key, score in retrieved if key is not None}.values()])
            for judged, retrieved in rows
        ]
        qrels = {f"q{row}": dict(judged) for row, (judged, _) in enumerate(rows)}
        run = {f"q{row}": dict(retrieved) for row, (_, retrieved) in enumerate(rows)}
        scores = evaluate_table(table_of(rows, item_type, with_scores=True), METRICS)
        assert_same(scores, evaluate(qrels, run, METRICS))
        assert scores.policies == Policies("trec_eval")
        assert list(scores.query_ids) == list(qrels)

    @given(rows=rows_of(IDS))
    def test_nulls_tie_behind_all_others(self, rows):
        rows = [
            (judged, [*{key or i: (key, 1.0) for i, (key, _) in enumerate(ranked)}.values()]) for judged, ranked in rows
        ]
        qrels = {f"q{row}": dict(judged) for row, (judged, _) in enumerate(rows)}
        run = {
            f"q{row}": {key or chr(i + 1): score for i, (key, score) in enumerate(retrieved)}
            for row, (_, retrieved) in enumerate(rows)
        }
        assert_same(
            evaluate_table(table_of(rows, pa.string(), with_scores=True), METRICS), evaluate(qrels, run, METRICS)
        )

    @given(rows=rows_of(IDS), n_threads=st.integers(1, 3))
    def test_whatever_the_batches(self, rows, n_threads):
        table = table_of(rows, pa.string())
        whole = evaluate_table(table, METRICS)
        for pieces in (table.to_batches(max_chunksize=2), table.to_batches(max_chunksize=1)):
            reader = pa.RecordBatchReader.from_batches(table.schema, pieces)
            parts = evaluate_table(reader, METRICS, n_threads=n_threads)
            assert_same(parts, whole)
            assert parts.query_ids == whole.query_ids
            assert parts.query_ids[len(rows) - 1] == f"q{len(rows) - 1}"

    @pytest.mark.parametrize(
        "fingerprint",
        [lambda *_: np.uint64(7), lambda blob, start, n: np.uint64(sum(blob[start : start + max(n, 0)].tolist()))],
        ids=["all equal", "all in one slot"],
    )
    @given(rows=rows_of(IDS))
    def test_equality_does_not_hang_on_fingerprints(self, fingerprint, rows):
        from metrics_core import key_matching
        from metrics_core.kernels import bytes as kernels

        table = table_of(rows, pa.string())
        expected = evaluate_table(table, METRICS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(key_matching, "_match_short", kernels.match_short)
            patch.setattr(key_matching, "_match_by_table", kernels.match_by_table)
            patch.setattr(kernels, "_fingerprint", fingerprint)
            assert_same(evaluate_table(table, METRICS), expected)


class TestRows:
    TABLE = pa.table({"ground_truth": [["a", "b"], ["c"]], "retrieved": [["b", "x", "a"], ["y"]]})

    @pytest.mark.parametrize("kind", ["reader", "pandas", "polars", "lazy", "duckdb", "datasets"])
    def test_of_other_packages(self, kind):
        pytest.importorskip({"lazy": "polars", "reader": "pyarrow"}.get(kind, kind))
        frames = {
            "reader": self.TABLE.to_reader,
            "pandas": self.TABLE.to_pandas,
            "polars": lambda: __import__("polars").from_arrow(self.TABLE),
            "lazy": lambda: __import__("polars").from_arrow(self.TABLE).lazy(),
            "duckdb": lambda: __import__("duckdb").from_arrow(self.TABLE),
            "datasets": lambda: __import__("datasets").Dataset(self.TABLE.take([1, 0, 0])).select([2, 0]),
        }
        assert evaluate_table(frames[kind](), "AP")["AP"].tolist() == [(1 + 2 / 3) / 2, 0]

    def test_rows_are_numbered_where_they_have_no_ids(self):
        assert evaluate_table(self.TABLE, "AP").query_ids == range(2)

    def test_columns_of_other_names(self):
        table = self.TABLE.rename_columns(["truth", "contexts"])
        columns = {"ground_truth": "truth", "retrieved": "contexts"}
        assert evaluate_table(table, "AP", columns=columns)["AP"].tolist() == [(1 + 2 / 3) / 2, 0]

    def test_scores_pickle(self):
        scores = evaluate_table(self.TABLE.append_column("query_id", [["p", "q"]]), "AP")
        again = pickle.loads(pickle.dumps(scores))
        assert again.to_dict() == scores.to_dict() == {"p": {"AP": (1 + 2 / 3) / 2}, "q": {"AP": 0}}
        assert scores.query_ids[-1:] == ["q"]

    def test_null_lists(self):
        table = pa.table({"ground_truth": [["a"], ["a"]], "retrieved": [["a"], None]})
        with pytest.raises(InputError, match=r"'retrieved' of query 1 is null; null_list='empty' takes that for an"):
            evaluate_table(table, "AP")
        scores = evaluate_table(table, "AP", policies=Policies("haystack", null_list="empty"))
        assert scores["AP"].tolist() == [1, 0]
        assert scores.policies.null_list == "empty"

    @pytest.mark.parametrize(("empty_key", "expected"), [("match", 1), ("ignore", 0)])
    def test_empty_strings(self, empty_key, expected):
        table = pa.table({"ground_truth": [["", "a"]], "retrieved": [[""]]})
        scores = evaluate_table(table, "Success", policies=Policies("haystack", empty_key=empty_key))
        assert scores["Success"].tolist() == [expected]

    @pytest.mark.parametrize("item_type", [pa.string(), pa.int64()], ids=str)
    def test_a_null_in_the_ground_truth_is_no_document(self, item_type):
        table = pa.table(
            {
                "ground_truth": pa.array([[None, "1", None]], pa.list_(pa.string())).cast(pa.list_(item_type)),
                "relevance": [[3, 1, 2]],
                "retrieved": pa.array([["1", None]], pa.list_(pa.string())).cast(pa.list_(item_type)),
            }
        )
        assert evaluate_table(table, ["AP", "nDCG"]).to_dict() == {0: {"AP": 1, "nDCG": 1}}

    def test_a_long_relevance_list(self):
        relevant, retrieved = [f"document {i}" for i in range(50_000)], [f"document {i}" for i in range(0, 200_000, 2)]
        table = pa.table({"ground_truth": [relevant], "retrieved": [retrieved]})
        assert evaluate_table(table, "SetR")["SetR"].tolist() == [0.5]

    @pytest.mark.parametrize(("policy", "expected"), [("max", 1.0), ("last", 1 / 2)])
    def test_a_document_judged_twice(self, policy, expected):
        table = pa.table(
            {"query_id": ["q"], "ground_truth": [["a", "b", "a"]], "relevance": [[2, 1, 0]], "retrieved": [["a", "b"]]}
        )
        policies = Policies("haystack", default_rel=1, duplicate_judgements=policy)
        assert evaluate_table(table, "RR", policies=policies)["RR"].tolist() == [expected]
        with pytest.raises(InputError, match="query 'q' judges document 'a' twice in 'ground_truth'; remove one"):
            evaluate_table(table, "RR", policies=Policies("haystack", duplicate_judgements="error"))

    def test_a_document_retrieved_twice(self):
        table = pa.table({"ground_truth": [["a"]], "retrieved": [["b", "b", "a"]]})
        assert evaluate_table(table, "RR")["RR"].tolist() == [1 / 3]
        compact = Policies("haystack", duplicates="first_compact")
        assert evaluate_table(table, "RR", policies=compact)["RR"].tolist() == [1 / 2]
        with pytest.raises(InputError, match="query 0 retrieves document 'b' twice"):
            evaluate_table(table, "RR", policies=Policies("haystack", duplicates="error"))

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"ground_truth": [["a"]]}, "there is no column 'retrieved' for retrieved; the table has 'ground_truth'"),
            ({"ground_truth": [["a"]], "retrieved": [[1]]}, "holds lists of strings, 'retrieved' lists of integers"),
            ({"ground_truth": ["a"], "retrieved": [["a"]]}, "'ground_truth' must hold lists of strings or lists of"),
            ({"ground_truth": [["a"]], "retrieved": [[1.5]]}, "'retrieved' must hold lists of strings or lists of int"),
            (
                {"ground_truth": [["a"]], "retrieved": [["a"]], "relevance": [[1, 2]]},
                "query 0: 'relevance' has 2 values for 1 documents in 'ground_truth'",
            ),
            (
                {"ground_truth": [["a"]], "retrieved": [["a"]], "scores": pa.array([[None]], pa.list_(pa.float64()))},
                "'scores' of query 0 must be a finite number, got None",
            ),
            (
                {"ground_truth": [["a"]] * 2, "retrieved": [["a"]] * 2, "scores": [[1.0], [float("nan")]]},
                "'scores' of query 1 must be a finite number, got nan",
            ),
            (
                {"ground_truth": [["a"]] * 3, "retrieved": [["a"]] * 3, "query_id": ["x", "y", "x"]},
                "query id 'x' is in rows 0 and 2; ids must be distinct",
            ),
            (
                {"ground_truth": [["a"]] * 3, "retrieved": [["a"]] * 3, "query_id": [1, None, 2]},
                "the query id in row 1 is null",
            ),
            ({"ground_truth": [["a"]], "retrieved": [["a"]], "query_id": [1.5]}, "'query_id' must hold strings or"),
        ],
    )
    def test_bad_columns(self, columns, message):
        with pytest.raises(InputError, match=message):
            evaluate_table(pa.table(columns), "AP")

    def test_bad_calls(self):
        with pytest.raises(InputError, match="columns has no role 'truth'; there are query_id, ground_truth"):
            evaluate_table(self.TABLE, "AP", columns={"truth": "x"})
        with pytest.raises(InputError, match="there is no column 'rel' for relevance"):
            evaluate_table(self.TABLE, "AP", columns={"relevance": "rel"})
        with pytest.raises(InputError, match="the table has no rows"):
            evaluate_table(self.TABLE.slice(0, 0), "AP")
        with pytest.raises(InputError, match=r"a table needs the Arrow C stream interface .*, got list"):
            evaluate_table([["a"]], "AP")
        with pytest.raises(PolicyError, match="missing='skip' cannot apply to a table with a row a query"):
            evaluate_table(self.TABLE, "AP", policies=Policies("haystack", missing="skip"))
        with pytest.raises(PolicyError, match="null_list='empty' cannot apply to ids of documents"):
            evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "AP", policies=Policies(null_list="empty"))


def long_tables(qrels, run, order):
    judged = [(query, key, grade) for query, judgements in qrels.items() for key, grade in judgements.items()]
    retrieved = [(query, key, score) for query, ranking in run.items() for key, score in ranking.items()]
    order.shuffle(judged)
    order.shuffle(retrieved)
    return (
        pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
        for names, rows in ((("query", "document", "grade"), judged), (("query", "document", "score"), retrieved))
    )


class TestLongTables:
    @pytest.mark.parametrize("ids", [IDS, INTEGERS], ids=["strings", "integers"])
    @given(data=st.data(), order=st.randoms(use_true_random=False))
    def test_equal_dicts(self, ids, data, order):
        query_ids = st.sampled_from(["q1", "q2", "q3"]) if ids is IDS else st.integers(0, 2)
        qrels = data.draw(st.dictionaries(query_ids, st.dictionaries(ids, st.integers(0, 3), min_size=1), min_size=1))
        run = data.draw(st.dictionaries(query_ids, st.dictionaries(ids, SCORES, min_size=1), min_size=1))
        scores = evaluate(*long_tables(qrels, run, order), METRICS)
        expected = evaluate(qrels, run, METRICS)
        assert scores.to_dict() == expected.to_dict()

    QRELS = pa.table({"query_id": ["q", "q", "r"], "doc_id": ["a", "b", "c"], "relevance": [1, 0, 2]})
    RUN = pa.table({"query_id": ["q", "r", "q"], "doc_id": ["b", "c", "a"], "score": [1.0, 1.0, 2.0]})

    def test_beside_dicts_and_of_other_packages(self):
        run = {"q": {"b": 1.0, "a": 2.0}, "r": {"c": 1.0}}
        assert evaluate(self.QRELS, run, "AP").mean() == {"AP": 1}
        assert evaluate({"q": {"a": 1}, "r": {"c": 2}}, self.RUN, "AP").mean() == {"AP": 1}
        pytest.importorskip("pandas")
        assert evaluate(self.QRELS.to_pandas(), self.RUN.to_pandas(), "AP").mean() == {"AP": 1}

    def test_columns_by_their_order(self):
        assert evaluate(self.QRELS.rename_columns(["x", "y", "z"]), self.RUN, "AP").mean() == {"AP": 1}
        with pytest.raises(
            InputError, match=r"the qrels table needs a column of each: query .*; got 'x', 'y', 'z', 'w'"
        ):
            evaluate(self.QRELS.append_column("v", [[1, 2, 3]]).rename_columns(["x", "y", "z", "w"]), self.RUN, "AP")

    @pytest.mark.parametrize(
        ("name", "values", "message"),
        [
            ("doc_id", [1, 2, 3], "document ids are integers in the qrels and strings in the run: they would never"),
            ("query_id", ["q", None, "r"], "column 'query_id' of the qrels is null in row 1"),
            (
                "relevance",
                [1.0, 2.0, float("inf")],
                "row 2, column 'relevance' of the qrels must be a finite number, g",
            ),
            ("relevance", ["1", "0", "2"], "column 'relevance' of the qrels must hold numbers, got .*string"),
            ("doc_id", [1.5, 2.5, 3.5], "column 'doc_id' of the qrels must hold strings or integers, got double"),
            ("doc_id", ["a", "a", "c"], "row 1 of the qrels: document 'a' is judged twice for query 'q'; remove one"),
        ],
    )
    def test_bad_columns(self, name, values, message):
        qrels = self.QRELS.set_column(self.QRELS.column_names.index(name), name, pa.array(values))
        with pytest.raises(InputError, match=message):
            evaluate(qrels, self.RUN, "AP")

    def test_a_document_judged_twice(self):
        qrels = pa.table({"query": ["q", "r", "q"], "document": ["a", "c", "a"], "grade": [0, 1, 1]})
        assert evaluate(qrels, self.RUN, "AP", policies=Policies(duplicate_judgements="max")).mean() == {"AP": 1}
        with pytest.raises(InputError, match="row 2 of the qrels: document 'a' is judged twice"):
            evaluate(qrels, self.RUN, "AP")

    def test_no_rows(self):
        with pytest.raises(InputError, match="the run table has no rows"):
            evaluate(self.QRELS, self.RUN.slice(0, 0), "AP")


def test_a_table_of_many_batches_is_cut(monkeypatch):
    table = pa.table({"ground_truth": [["a"]] * 10, "retrieved": [["b", "a"]] * 10})
    assert [batch.num_rows for batch in sources.batches_of(table, 4)] == [4, 4, 2]
