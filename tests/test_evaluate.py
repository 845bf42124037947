"""The call itself: what it takes, what it gives back, and what it says of bad input."""

from __future__ import annotations

import gzip
import io
import sys
from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from metrics_core import (
    Document,
    FileFormatError,
    IdArrays,
    InputError,
    MetricNameError,
    MetricsError,
    Qrels,
    Run,
    evaluate,
    pack,
    read_run,
)

QRELS = {"q": {"a": 1}, "r": {"b": 1}}
RUN = {"r": {"b": 1.0}, "q": {"x": 2.0, "a": 1.0}}
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes files into the current folder, so that messages have short names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nr 0 b 1\n")
    (tmp_path / "run.txt").write_text("r Q0 b 1 1.0 t\nq Q0 x 1 2.0 t\nq Q0 a 2 1.0 t\n")

    def write(name, content):
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


class TestCall:
    @pytest.mark.parametrize(
        ("metrics", "names"),
        [
            ("RR", ("RR",)),
            (["RR", "mrr", "recip_rank"], ("RR",)),
            ("P_1,2", ("P@1", "P@2")),
            (iter(["AP", "RR"]), ("AP", "RR")),
        ],
    )
    def test_metrics(self, metrics, names):
        scores = evaluate(QRELS, RUN, metrics)
        assert scores.metrics == names
        assert scores.values.shape == (2, len(names))

    def test_values(self):
        assert evaluate(QRELS, RUN, ["RR", "P@2"]).to_dict() == {
            "q": {"RR": 1 / 2, "P@2": 1 / 2},
            "r": {"RR": 1 / 1, "P@2": 1 / 2},
        }

    def test_query_ids_choose_and_order(self):
        assert evaluate(QRELS, RUN, "RR", query_ids=["r"]).to_dict() == {"r": {"RR": 1.0}}
        assert list(evaluate(QRELS, RUN, "RR", query_ids=("r", "q")).to_dict()) == ["r", "q"]
        prepared = Qrels.from_dict(QRELS), Run.from_dict(RUN)
        assert evaluate(*prepared, "RR", query_ids=["r", "q"])["RR"].tolist() == [1, 1 / 2]

    def test_query_ids_name_rows(self):
        scores = evaluate(np.array([[1], [2]]), np.array([[1], [1]]), "RR", query_ids=["x", "y"])
        assert scores.to_dict() == {"x": {"RR": 1.0}, "y": {"RR": 0.0}}

    def test_arguments_are_keywords(self):
        with pytest.raises(TypeError):
            evaluate(QRELS, RUN, "RR", "trec_eval")

    def test_other_mappings_and_sequences(self):
        frozen = MappingProxyType({query: MappingProxyType(judged) for query, judged in QRELS.items()})
        ordered = OrderedDict((query, OrderedDict(scored)) for query, scored in RUN.items())
        assert evaluate(frozen, ordered, "RR")["RR"].tolist() == [1 / 2, 1]

    def test_paths(self, files):
        expected = evaluate(QRELS, RUN, ["RR", "AP"]).to_dict()
        zipped = files("run.gz", gzip.compress(Path("run.txt").read_bytes()))
        beir = files("qrels.tsv", "query-id\tcorpus-id\tscore\r\nq\ta\t1\r\nr\tb\t1")
        for qrels, run in (
            ("qrels.txt", "run.txt"),
            (Path("qrels.txt"), zipped),
            (beir, Path(zipped)),
            (QRELS, zipped),
        ):
            assert evaluate(qrels, run, ["RR", "AP"]).to_dict() == expected

    @pytest.mark.parametrize("side", [0, 1])
    def test_standard_input(self, files, monkeypatch, side):
        paths = ["qrels.txt", "run.txt"]
        content = Path(paths[side]).read_bytes()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        paths[side] = "-"
        assert evaluate(*paths, "RR")["RR"].tolist() == [1 / 2, 1]

    def test_standard_input_cannot_be_both(self):
        with pytest.raises(InputError, match=r"^qrels and run cannot both be standard input \('-'\)$"):
            evaluate("-", "-", "RR")

    @pytest.mark.parametrize("n_threads", [None, 1, 2, 7, np.int64(2)])
    def test_n_threads(self, n_threads):
        assert evaluate(QRELS, RUN, "RR", n_threads=n_threads)["RR"].tolist() == [1 / 2, 1]

    def test_many_blocks_and_threads(self):
        rng = np.random.default_rng(0)
        n_queries = 3000
        lengths = rng.integers(0, 400, n_queries)
        judged, retrieved = (
            rng.integers(0, 5000, (n_queries, 1)),
            rng.permuted(np.tile(np.arange(400), (n_queries, 1)), axis=1),
        )
        arrays = IdArrays(judged % 400), IdArrays(retrieved, lengths=lengths)
        one = evaluate(*arrays, ["RR", "nDCG@10"], n_threads=1)
        several = evaluate(*arrays, ["RR", "nDCG@10"], n_threads=4)
        np.testing.assert_array_equal(one.values, several.values)
        rank = np.argmax(retrieved == judged % 400, axis=1) + 1
        np.testing.assert_array_equal(one["RR"], np.where(rank <= lengths, 1 / rank, 0))


def refused(kind, message, *arguments, **options):
    with pytest.raises(kind) as raised:
        evaluate(*arguments, **options)
    assert str(raised.value) == message
    assert isinstance(raised.value, (MetricsError, OSError))


class TestBadMetrics:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("ndgc", "unknown metric 'ndgc'; did you mean 'nDCG'?"),
            ("xyzzy", "unknown metric 'xyzzy'; metric_names() lists those there are"),
            ("nDCG@0", "cutoff in 'nDCG@0' must be a positive integer, got '0'"),
            ("P@-1", "cutoff in 'P@-1' must be a positive integer, got '-1'"),
            ("AP@ten", "cutoff in 'AP@ten' must be a positive integer, got 'ten'"),
            (7, "a metric must be a name or a Metric, got 7"),
        ],
    )
    def test_message(self, name, message):
        refused(MetricNameError, message, QRELS, RUN, [name])

    def test_comes_before_the_data_is_read(self):
        refused(MetricNameError, "unknown metric 'ndgc'; did you mean 'nDCG'?", "no such file", "nor this", "ndgc")


class TestBadNumbers:
    @pytest.mark.parametrize("value", [NAN, INF, -INF, np.float32("nan"), None, "1.5", [1]])
    def test_in_dicts(self, value):
        shown = repr(value)
        refused(
            InputError,
            f"the score of document 'a' for query 'q' must be a finite number, got {shown}",
            *(QRELS, {"q": {"a": value, "x": 1.0}, "r": {}}, "AP"),
        )
        refused(
            InputError,
            f"the grade of document 'b' for query 'r' must be a finite number, got {shown}",
            *({"q": {"a": 1}, "r": {"b": value}}, RUN, "AP"),
        )
        refused(
            InputError,
            f"the grade of document 'b' for query 'r' must be a finite number, got {shown}",
            *({"q": {"a": 1}, "r": {"b": value}}, {"q": ["a"]}, "AP"),
        )

    def test_in_prepared_objects(self):
        with pytest.raises(
            InputError, match=r"^the score of document 'a' for query 'q' must be a finite number, got nan$"
        ):
            Run.from_dict({"q": {"a": NAN}})
        with pytest.raises(
            InputError, match=r"^the grade of document 'a' for query 'q' must be a finite number, got inf$"
        ):
            Qrels.from_dict({"q": {"a": INF}})

    @pytest.mark.parametrize("value", [NAN, INF, -INF])
    def test_in_arrays(self, value):
        with pytest.raises(InputError, match=rf"^scores of row 1 must be finite, got {value}$"):
            IdArrays([[1, 2], [3, 4]], scores=[[1, 2], [3, value]])
        with pytest.raises(InputError, match=rf"^grades of row 0 must be finite, got {value}$"):
            IdArrays([1, 2], grades=[1, value], offsets=[0, 2, 2])

    @pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "1e999", "one", "0x1p3"])
    def test_in_files(self, files, value):
        files("bad.txt", f"q Q0 x 1 2.0 t\nq Q0 a 2 {value} t\n")
        refused(
            FileFormatError, f"bad.txt, line 2: score must be a finite number, got {value!r}", QRELS, "bad.txt", "AP"
        )
        files("bad.txt", f"q 0 a {value}\n")
        with pytest.raises(FileFormatError, match=rf"^bad\.txt, line 1: .* must be a finite number, got '{value}'$"):
            evaluate("bad.txt", RUN, "AP")

    def test_of_documents(self):
        truth = [[Document(content="a", score=1)], [Document(content="b", score=NAN)]]
        retrieved = [[Document(content="a")], []]
        refused(
            InputError,
            "the score of a ground-truth document of question 1 must be a finite number, got nan",
            *(truth, retrieved, "nDCG"),
        )


def test_a_comparison_field_is_for_documents():
    message = r"^document_comparison_field='id' is for lists of documents; leave it out"
    for qrels, run in ((QRELS, RUN), (np.array([[1]]), np.array([[1]]))):
        with pytest.raises(InputError, match=message):
            evaluate(qrels, run, "AP", document_comparison_field="id")


class TestBadIds:
    def test_duplicate_documents(self, files):
        advice = (
            "twice; remove the repeat, or say which one counts: duplicates='first_keep_rank' or "
            "duplicates='first_compact'"
        )
        refused(InputError, f"query 'q' retrieves document 'a' {advice}", QRELS, {"q": ["a", "x", "a"], "r": []}, "AP")
        refused(
            InputError, f"query 1 retrieves document 5 {advice}", np.array([[1], [2]]), np.array([[1, 2], [5, 5]]), "AP"
        )

    def test_duplicate_documents_in_a_file_are_named_by_file_and_line(self, files):
        files("twice.txt", "q Q0 x 1 3 t\nq Q0 a 2 2 t\nr Q0 a 1 1 t\nq Q0 a 3 1 t\n")
        for run in ("twice.txt", read_run("twice.txt")):
            with pytest.raises(
                InputError, match=r"query 'q' retrieves document 'a' \(twice\.txt, line 4\) twice; remove"
            ):
                evaluate(QRELS, run, "AP")

    def test_duplicate_judgements(self, files):
        advice = "remove one, or say which counts: duplicate_judgements='max' or duplicate_judgements='last'"
        files("twice.txt", "q 0 a 1\nq 0 b 1\nq 0 a 0\n")
        message = f"twice.txt, line 3: document 'a' is judged twice for query 'q'; {advice}"
        refused(FileFormatError, message, "twice.txt", RUN, "AP")
        refused(InputError, f"query 0 judges document 3 twice; {advice}", IdArrays([[3, 3]]), IdArrays([[1]]), "AP")

    @pytest.mark.parametrize(
        ("qrels", "run", "shown"),
        [
            (
                {"q": {"1": 1}},
                {"q": {1: 1.0}},
                "document ids are of mixed types and would never match: '1' (str) and 1 (int)",
            ),
            (
                {"q": {1: 1}},
                {"q": ["1"]},
                "document ids are of mixed types and would never match: 1 (int) and '1' (str)",
            ),
            (
                {"q": {b"a": 1}},
                {"q": ["a"]},
                "document ids are of mixed types and would never match: b'a' (bytes) and 'a' (str)",
            ),
            ({"1": {"a": 1}}, {1: ["a"]}, "query ids are of mixed types and would never match: '1' (str) and 1 (int)"),
        ],
    )
    def test_mixed_types(self, qrels, run, shown):
        refused(InputError, f"{shown}; make them one type", qrels, run, "RR")

    def test_types_mixed_within_a_ranking(self):
        """1 would never match "1", wherever it stands."""
        with pytest.raises(
            InputError, match=r"ids are of mixed types and would never match: '.' \(str\) and 1 \(int\)"
        ):
            evaluate({"q": {"1": 1}}, {"q": ["x", 1]}, "RR")
        with pytest.raises(InputError, match="mixed types"):
            evaluate({"q": {"a": 1, 1: 1}}, {"q": {"x": 2.0, "1": 1.0}}, "RR")

    def test_types_that_are_no_ids(self):
        refused(
            InputError, "document ids must be str, int or bytes, got 1.5 (float)", {"q": {1.5: 1}}, {"q": [1.5]}, "RR"
        )
        message = "document ids must be str, int or bytes, got ('a', 1.5) (tuple); documents and scores are a dict, "
        refused(InputError, message + "{document: score}", {"q": {"a": 1}}, {"q": [("a", 1.5)]}, "RR")
        refused(InputError, "query ids must be str, int or bytes, got None (NoneType)", {None: {}}, {None: []}, "RR")

    def test_numpy_ids_are_ids(self):
        assert evaluate({np.str_("q"): {np.int32(3): 1}}, {"q": [3]}, "RR")["RR"].tolist() == [1]

    def test_query_ids(self):
        refused(
            InputError, "query_ids must be judged queries; qrels lack query 'z'", QRELS, RUN, "RR", query_ids=["q", "z"]
        )
        refused(InputError, "query_ids must be distinct", QRELS, RUN, "RR", query_ids=["q", "q"])
        arrays = np.array([[1], [2]]), np.array([[1], [2]])
        refused(InputError, "query_ids must name each of the 2 queries, got 1", *arrays, "RR", query_ids=["q"])
        refused(InputError, "query_ids must be distinct", *arrays, "RR", query_ids=["q", "q"])
        unhashable = "query_ids must be strings or integers: unhashable type: 'list'"
        for sides in ((QRELS, RUN), arrays):
            refused(InputError, unhashable, *sides, "RR", query_ids=["q", ["q"]])


class TestBadFiles:
    def test_three_columns(self, files):
        files("three.txt", "q Q0 a 1 1.0 t\nq a 1.0\n")
        message = "three.txt, line 2: 6 columns expected (query, Q0, document, rank, score, tag), got 3: 'q a 1.0'"
        refused(FileFormatError, message, QRELS, "three.txt", "AP")

    @pytest.mark.parametrize("content", [bytes(range(256)) * 20, b"\x89PNG\r\n\x1a\n\0\0\0", b"\0" * 5000])
    def test_binary(self, files, content):
        files("binary", content)
        for arguments in ((QRELS, "binary"), ("binary", RUN)):
            with pytest.raises(FileFormatError, match=r"^binary, line \d+: \d columns expected "):
                evaluate(*arguments, "AP")

    def test_parquet(self, files):
        files("run.parquet", b"PAR1\0\1\2\3")
        message = (
            "run.parquet is a parquet file: give evaluate its table (pyarrow.parquet.read_table), or evaluate_dataset "
            "the path"
        )
        refused(FileFormatError, message, QRELS, "run.parquet", "AP")

    def test_a_query_called_like_parquet(self, files):
        files("text.run", "PAR1 Q0 a 1 1.0 t\n")
        assert evaluate({"PAR1": {"a": 1}}, "text.run", "RR")["RR"].tolist() == [1]
        files("text.run", "PAR1 a 1.0\n")
        message = "text.run, line 1: 6 columns expected (query, Q0, document, rank, score, tag), got 3: 'PAR1 a 1.0'"
        refused(FileFormatError, message, QRELS, "text.run", "AP")

    def test_binary_says_so(self, files):
        files("binary", bytes(range(256)) * 20)
        with pytest.raises(FileFormatError, match=r"\(is this a text file\?\)$"):
            evaluate(QRELS, "binary", "AP")

    def test_damaged_gzip(self, files):
        files("half.gz", gzip.compress(b"q Q0 a 1 1.0 t\n" * 100)[:40])
        with pytest.raises(FileFormatError, match=r"^half\.gz: damaged gzip data: "):
            evaluate(QRELS, "half.gz", "AP")

    @pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "query-id\tcorpus-id\tscore\n"])
    def test_empty(self, files, content):
        files("empty", content)
        with pytest.raises(FileFormatError, match=r"^empty: empty; lines of query.* expected$"):
            evaluate("empty", RUN, "AP")

    def test_missing_file_and_directory(self, files):
        for arguments in ((QRELS, "none.txt"), ("none.txt", RUN)):
            with pytest.raises(FileNotFoundError, match=r"none\.txt"):
                evaluate(*arguments, "AP")
        Path("folder").mkdir()
        with pytest.raises(IsADirectoryError, match="folder"):
            evaluate(QRELS, "folder", "AP")

    def test_oddities(self, shared):
        folder = shared / "data/oddities"
        with pytest.raises(FileFormatError, match=r"prels\.web.*, line 1: 4 columns expected"):
            evaluate(folder / "prels.web.1-50.head500.txt.gz", RUN, "AP")
        qrels = folder / "beir_scifact_test.tsv.gz"
        assert evaluate(qrels, {"1": {"31715818": 1.0}}, "RR").to_dict()["1"] == {"RR": 1.0}
        umbrela = evaluate(folder / "umbrela_sample.qrels.gz", folder / "umbrela_sample.run.gz", "nDCG@10")
        assert 0 < umbrela.mean()["nDCG@10"] <= 1


class TestBadPairs:
    KINDS = (
        "qrels and run must be paths, dicts, prepared files or long tables, or both lists of lists of documents, or "
        "both integer arrays (IdArrays, or NumPy's); got "
    )

    @pytest.mark.parametrize(
        ("qrels", "run", "kinds"),
        [
            (QRELS, [[Document()]], "dict and list"),
            ([[Document()]], RUN, "list and dict"),
            (IdArrays([[1]]), RUN, "integer arrays and dict"),
            (QRELS, np.array([[1]]), "dict and integer arrays"),
            (QRELS, None, "dict and NoneType"),
            (7, RUN, "int and dict"),
            (Run.from_dict(RUN), RUN, "Run and dict"),
            (QRELS, Qrels.from_dict(QRELS), "dict and Qrels"),
        ],
    )
    def test_kinds_that_do_not_go_together(self, qrels, run, kinds):
        refused(InputError, self.KINDS + kinds, qrels, run, "AP")

    def test_unequal_lengths(self):
        message = "qrels have 2 queries and run 1; they must pair up"
        refused(InputError, message, [[], []], [[]], "AP")
        refused(InputError, message, np.array([[1], [2]]), np.array([[1]]), "AP")

    def test_empty(self):
        refused(InputError, "qrels judge no query", {}, RUN, "AP")
        refused(InputError, "qrels and run must not be empty", [], [], "AP")
        refused(InputError, "qrels and run must not be empty", np.zeros((0, 3), int), np.zeros((0, 3), int), "AP")

    def test_judgements_that_are_no_dict(self):
        message = "the judgements of query 'q' must be a dict of grades, got list"
        refused(InputError, message, {"q": ["a"]}, RUN, "AP")

    @pytest.mark.parametrize(
        ("ranking", "kind"), [("ab", "str"), (b"ab", "bytes"), (None, "NoneType"), ({"a"}, "set"), (3, "int")]
    )
    def test_rankings_that_are_no_list(self, ranking, kind):
        message = f"the ranking of query 'q' must be a dict of scores or a list of documents, got {kind}"
        refused(InputError, message, QRELS, {"q": ranking}, "AP")

    def test_scored_and_unscored_rankings(self):
        message = "run mixes scored documents ({document: score}) and ranked lists ([document, ...])"
        refused(InputError, message, QRELS, {"q": ["a"], "r": {"b": 1.0}}, "AP")

    def test_lists_that_hold_no_documents(self):
        for lists in ([["a"]], [[1]], ["a"]):
            with pytest.raises(InputError):
                evaluate(lists, lists, "AP")

    @pytest.mark.parametrize("n_threads", [0, -1, True, 1.5, "2"])
    def test_n_threads(self, n_threads):
        message = f"n_threads must be a positive integer or None, got {n_threads!r}"
        refused(MetricsError, message, QRELS, RUN, "AP", n_threads=n_threads)
        with pytest.raises(MetricsError, match=r"^n_threads must be a positive integer or None, got "):
            pack(QRELS, RUN, n_threads=n_threads)

    def test_comparison_field(self):
        message = "document_comparison_field must be 'content', 'id' or 'meta.<key>[.<key>...]', got 'text'"
        refused(InputError, message, [[]], [[]], "AP", document_comparison_field="text")

    def test_arrays(self):
        for arguments, message in (
            (([[1.5]],), "ids must be integers, got an array of float64"),
            (([1, 2],), "ids must be (n_queries, width), or (n,) with offsets; got 1 dimensions without offsets"),
        ):
            with pytest.raises(InputError) as raised:
                IdArrays(*arguments)
            assert str(raised.value) == message
        for options, message in (
            ({"lengths": [3]}, "lengths must be between 0 and the width 2, got 3 in row 0"),
            ({"lengths": [1, 1]}, "lengths must have one value a query: 1, got shape (2,)"),
            ({"scores": [[1.0]]}, "scores must have the shape of ids, (1, 2), got (1, 1)"),
            ({"grades": [["a", "b"]]}, "grades must be numbers, got an array of <U1"),
        ):
            with pytest.raises(InputError) as raised:
                IdArrays([[1, 2]], **options)
            assert str(raised.value) == message
        with pytest.raises(InputError, match=r"^offsets must rise from 0 to the number of ids, 2, got "):
            IdArrays([1, 2], offsets=[0, 1])
        scored = IdArrays([[1]], scores=[[1.0]])
        refused(InputError, "qrels has scores; the values of judged ids are grades=", scored, scored, "AP")
        graded = IdArrays([[1]], grades=[[1.0]])
        refused(InputError, "run has grades; the values of retrieved ids are scores=", graded, graded, "AP")
