"""TREC files, the objects read from them, and the matching of documents by their bytes."""

from __future__ import annotations

import gzip
import io
import math
import pickle
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import evaluate, key_matching, trec
from metrics_core.blocks import KeyTable
from metrics_core.compile import compiled
from metrics_core.errors import FileFormatError, InputError, PolicyError
from metrics_core.kernels import bytes as kernels
from metrics_core.keys import decode_keys, encode_keys
from metrics_core.sources.trec import TrecSource
from metrics_core.trec import (
    Qrels,
    Run,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the folder of real inputs next to the checkout")

_order_groups_descending = compiled(kernels.order_groups_descending)
_parse_number = compiled(kernels.parse_number)

# Any bytes without ASCII white space; NUL, BOM, #, invalid UTF-8 and ids that begin with one another are frequent.
ID_BYTES = st.binary(min_size=1, max_size=20).map(lambda key: b"".join(key.split())).filter(bool) | st.sampled_from(
    [
        b"a",
        b"a\0",
        b"a\0b",
        b"#1",
        b"x/y",
        b"\xef\xbb\xbfa",
        b"\xff",
        "é\ufb01".encode(),
        b"\x85",
        b"\x1f\x8ba",
        b"a" * 30,
    ]
)
IDS = ID_BYTES.map(lambda key: key.decode("utf-8", "surrogateescape"))
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(autouse=True, scope="module")
def compiled_kernels(tmp_path_factory):
    """Compiling takes longer than the deadline of an example."""
    path = tmp_path_factory.mktemp("first") / "run.txt"
    write_run(path, {"1": {"a": 1}})
    run = read_run(path)
    TrecSource(["1"], Qrels.from_dict({"1": {"a": 1}}), run).match(np.array([0]))
    one = np.array([1])
    _order_groups_descending(one - 1, one, run.keys.blob, run.keys.starts, run.keys.lengths, np.empty(1, np.int64))
    parsed("1")


@pytest.fixture
def written(tmp_path):
    def write(content: str | bytes, name: str = "data.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


class TestReading:
    @pytest.mark.parametrize(
        "content",
        [
            "1 0 a 1\n1 0 b 0\n2 0 a -1\n",
            "1 0 a 1\n1 0 b 0\n2 0 a -1",
            "1 0 a 1\r\n1 0 b 0\r\n2 0 a -1\r\n",
            "\ufeff1 0 a 1\n1 0 b 0\n2 0 a -1\n",
            "1\t0\ta\t1\n  1 \t 0  b\t\t0 \t\n2\v0\fa -1\n",
            "\n1 0 a 1\n \t\r\n1 0 b 0\n\n\n2 0 a -1\n\n",
            "1 0 a +1\n1 0 b 0.0\n2 0 a -1e0\n",
            "query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n2\ta\t-1\n",
            "\ufeffquery_id corpus_id score\r\n\r\n1\ta\t1\r\n1\tb\t0\r\n2\ta\t-1",
            "1 0 a 1\n2 0 a -1\n1 0 b 0\n",
        ],
        ids=["plain", "no-end", "crlf", "bom", "separators", "blank", "numbers", "beir", "beir-crlf", "scattered"],
    )
    def test_qrels(self, written, content):
        expected = {"1": {"a": 1, "b": 0}, "2": {"a": -1}}
        for path in (written(content), written(gzip.compress(content.encode()), "no_suffix")):
            grades = read_qrels(path).to_dict()
            assert grades == expected
            assert [list(documents) for documents in grades.values()] == [["a", "b"], ["a"]]

    @pytest.mark.parametrize("end", ["", " tag", " a tag with spaces", "\ttag\textra 5 0x\t"])
    def test_run_with_any_tag(self, written, end):
        path = written(f"1 Q0 b 1 2.5{end}\n1 Q0 a 0 3{end}\n2 Q0 a x -0.5{end}")
        scores = read_run(path).to_dict()
        assert scores == {"1": {"b": 2.5, "a": 3.0}, "2": {"a": -0.5}}
        assert list(scores["1"]) == ["b", "a"]

    def test_order_of_queries_is_that_of_their_first_lines(self, written):
        run = read_run(written("b Q0 x 1 3\n\na Q0 x 1 3\n\nb Q0 w 2 2\n\n \nc Q0 x 1 1\na Q0 v 1 9\nb Q0 u 3 1\n"))
        assert run.query_ids == ("b", "a", "c")
        assert run.to_dict() == {"b": {"x": 3, "w": 2, "u": 1}, "a": {"x": 3, "v": 9}, "c": {"x": 1}}
        assert [run.line(place) for place in range(6)] == [1, 5, 10, 3, 9, 8]
        assert run.document(2) == "u"

    def test_ids_stay_whole(self, written):
        ids = [b"#c", b"a/b", b"a\0b", b"a", b"\xff\xfe", "é\u3000x\x85".encode(), b"\x1c\x1d"]
        path = written(b"".join(b"%b Q0 %b 1 1\n" % (key, key) for key in ids))
        run = read_run(path)
        texts = [key.decode("utf-8", "surrogateescape") for key in ids]
        assert run.to_dict() == {text: {text: 1.0} for text in texts}

    def test_a_repeat_in_a_run_is_kept(self, written):
        run = read_run(written("1 Q0 a 1 3\n1 Q0 b 2 2\n1 Q0 a 3 1\n"))
        assert run.scores.tolist() == [3, 2, 1]

    @pytest.mark.parametrize(
        "content", [b"1 0 a 1\n1 0 b 0\n", gzip.compress(b"1 0 a 1\n1 0 b 0\n")], ids=["plain", "gzip"]
    )
    def test_standard_input(self, monkeypatch, content):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert read_qrels("-").to_dict() == {"1": {"a": 1, "b": 0}}
        assert not stdin.buffer.closed

    @pytest.mark.parametrize("n_threads", [1, 2, 5, None])
    def test_blocks_and_threads_change_nothing(self, written, monkeypatch, n_threads):
        lines = [f"q{i // 7 % 11} Q0 {'d' * (i % 50)}{i} {i} {i / 8} t" for i in range(2000)]
        path = written("\n\n".join(lines))
        monkeypatch.setattr(trec, "_BLOCK", 64)  # shorter than the longest line
        run = read_run(path, n_threads=n_threads)
        expected: dict[str, dict[str, float]] = {}
        for line in lines:
            query, _, document, _, score, _ = line.split()
            expected.setdefault(query, {})[document] = float(score)
        assert run.to_dict() == expected
        assert list(run.to_dict()) == list(expected)
        assert run.line(run.values.size - 1) == next(
            2 * i + 1 for i in range(1999, 0, -1) if lines[i].split()[2] == run.document(run.values.size - 1)
        )

    def test_a_line_number_counts_all_blocks(self, written, monkeypatch):
        monkeypatch.setattr(trec, "_BLOCK", 100)
        path = written("\n".join(["1 0 a 1", "", *(f"1 0 d{i} 1" for i in range(500)), "1 0 bad", "1 0 worse"]))
        with pytest.raises(FileFormatError, match=r"line 503: 4 columns expected .* got 3: '1 0 bad'"):
            read_qrels(path)

    def test_reprs(self, written):
        path = written("1 0 a 1\n1 0 b 0\n2 0 a -1\n")
        assert repr(read_qrels(path)) == f"Qrels(queries=2, documents=3, path={str(path)!r})"
        assert repr(Run.from_dict({"q": {"d": 1}})) == "Run(queries=1, documents=1)"

    def test_pickles(self, written):
        qrels = read_qrels(written("1 0 a 1\n2 0 b 0.5\n"))
        qrels.to_dict()
        again = pickle.loads(pickle.dumps(qrels))
        assert again.to_dict() == {"1": {"a": 1}, "2": {"b": 0.5}}
        assert again.name == qrels.name
        run = Run.from_dict({"1": {"a": 0.25}})
        assert pickle.loads(pickle.dumps(run)).to_dict() == run.to_dict()

    def test_whole_grades_are_ints(self):
        grades = Qrels.from_dict({"1": {"a": np.float32(1), "b": 0.5, "c": True}}).to_dict()["1"]
        assert grades == {"a": 1, "b": 0.5, "c": 1}
        assert [type(grade) for grade in grades.values()] == [int, float, int]


QRELS_COLUMNS = "4 columns expected (query, iteration, document, relevance), got "
BEIR_COLUMNS = "3 columns expected (query-id, corpus-id, score), got "
BEIR_HEADER = "query-id\tcorpus-id\tscore\n"
JUDGED_TWICE = (
    "document 'a' is judged twice for query '1'; remove one, or say which counts: duplicate_judgements='max' or "
    "duplicate_judgements='last'"
)
NO_SCORE = "score must be a finite number, got "
RUN_NAMES = "query, Q0, document, rank, score, tag"
RUN_COLUMNS = f"6 columns expected ({RUN_NAMES}), got "


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("1 0 a 1\n301 0 FT911\n", f", line 2: {QRELS_COLUMNS}3: '301 0 FT911'"),
            ("1 a 1\n", f", line 1: {QRELS_COLUMNS}3: '1 a 1'"),
            ("1 doc 0 0 1\n", f", line 1: {QRELS_COLUMNS}5: '1 doc 0 0 1'"),
            ("1 Q0 a 1 2.5 tag\r\n", f", line 1: {QRELS_COLUMNS}6: '1 Q0 a 1 2.5 tag'"),
            ("1 0 a 1\n\n1 0 b one\n", ", line 3: relevance must be a finite number, got 'one'"),
            ("1 0 a nan\n", ", line 1: relevance must be a finite number, got 'nan'"),
            (f"{BEIR_HEADER}1\ta\t1\n1\t0\tb\t1\n", f", line 3: {BEIR_COLUMNS}4: '1\\t0\\tb\\t1'"),
            ("", ": empty; lines of query, iteration, document, relevance expected"),
            ("\n \r\n\t", ": empty; lines of query, iteration, document, relevance expected"),
            (BEIR_HEADER, ": empty; lines of query-id, corpus-id, score expected"),
            (b"PK\3\4\0\0\1\n", f", line 1: {QRELS_COLUMNS}1: 'PK\\x03\\x04\\x00\\x00\\x01' (is this a text file?)"),
            ("1 0 a 1\r2 0 a 1\r", ": lines end in carriage returns only; end them in line feeds"),
            (f"1 0 {'a' * 200}\n", f", line 1: {QRELS_COLUMNS}3: '1 0 {'a' * 73}...'"),
            ("1 0 a 1\n2 0 a 1\n1 0 b 0\n\n1 0 a 2\n", f", line 5: {JUDGED_TWICE}"),
        ],
    )
    def test_qrels(self, written, content, message):
        path = written(content)
        with pytest.raises(FileFormatError) as refusal:
            read_qrels(path)
        assert str(refusal.value) == f"{path}{message}"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("1 Q0 a 1 2\n1 a 2\n", f", line 2: {RUN_COLUMNS}3: '1 a 2'"),
            ("1 Q0 a 1\n", f", line 1: {RUN_COLUMNS}4: '1 Q0 a 1'"),
            (
                "1 Q0 a 1 tag\n",
                f", line 1: {NO_SCORE}'tag', column 5 of 5; {RUN_NAMES} expected",
            ),
            ("1 Q0 a 1 inf tag\n", f", line 1: {NO_SCORE}'inf'"),
            ("1 Q0 b 1 5\n1 Q0 a 1 -1e999 tag\nx\n", f", line 2: {NO_SCORE}'-1e999'"),
            ("1 Q0 a 1 1_000 tag\n", f", line 1: {NO_SCORE}'1_000'"),
            ("1 Q0 a 1 \u0661 tag\n", f", line 1: {NO_SCORE}'\u0661'"),
            ("", ": empty; lines of query, Q0, document, rank, score, tag expected"),
        ],
    )
    def test_runs(self, written, content, message):
        path = written(content)
        with pytest.raises(FileFormatError) as refusal:
            read_run(path)
        assert str(refusal.value) == f"{path}{message}"

    def test_utf_16(self, written):
        with pytest.raises(FileFormatError, match=r"line 1: score must be .*is this a text file"):
            read_run(written("1 Q0 a 1 2.5 tag\n".encode("utf-16")))

    def test_damaged_gzip(self, written):
        whole = gzip.compress(b"1 0 a 1\n" * 1000)
        for content in (whole[:-10], whole[:15] + b"\xff" * 10 + whole[25:], whole + b"rest"):
            with pytest.raises(FileFormatError, match=r"data\.gz: damaged gzip data"):
                read_qrels(written(content, "data.gz"), duplicate_judgements="last")

    def test_what_is_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
            read_run(tmp_path / "absent.txt")
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            read_qrels(tmp_path)

    def test_arguments(self, written):
        path = written("1 0 a 1\n")
        with pytest.raises(
            PolicyError, match="duplicate_judgements must be one of 'error', 'max', 'last', got 'first'"
        ):
            read_qrels(path, duplicate_judgements="first")
        with pytest.raises(InputError, match="n_threads must be a positive integer or None, got 0"):
            read_qrels(path, n_threads=0)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ({1: {"a": 1}}, r"ids must be all str or all bytes, got int \(1\)"),
            ({"1": {"a": 1, b"b": 1}}, r"ids must be all str or all bytes, got bytes, str \('a'\)"),
            (
                {"1": {"a": math.nan}},
                r"of document 'a' for query '1' must be a finite number, got nan",
            ),
            ({"1": {"a": "2"}}, r"of document 'a' for query '1' must be a finite number, got '2'"),
            ({"1": {"a": None}}, r"of document 'a' for query '1' must be a finite number, got None"),
            ({"1": ["a"]}, r"\['1'\] must map documents to (grade|score)s, got \['a'\]"),
            ({"\ud800": {"a": 1}}, r"id '\\ud800' has no form in bytes"),
        ],
    )
    def test_dicts(self, data, message):
        for kind in (Qrels, Run):
            with pytest.raises(InputError, match=message):
                kind.from_dict(data)


class TestDuplicateJudgements:
    CONTENT = "1 0 a 1\n1 0 b 1\n2 0 a 5\n1 0 a 3\n1 0 a 2\n1 0 c 0\n"

    @pytest.mark.parametrize(("policy", "grade"), [("max", 3), ("last", 2)])
    def test_policy(self, written, policy, grade):
        qrels = read_qrels(written(self.CONTENT), duplicate_judgements=policy)
        assert qrels.to_dict() == {"1": {"a": grade, "b": 1, "c": 0}, "2": {"a": 5}}
        assert qrels.line(2) == 6
        assert qrels.document(2) == "c"


class TestWriting:
    @given(st.dictionaries(IDS, st.dictionaries(IDS, FINITE, min_size=1, max_size=5), min_size=1, max_size=4))
    def test_a_run_reads_back_as_it_was(self, data):
        if next(iter(data)).encode("utf-8", "surrogateescape").startswith((b"\xef\xbb\xbf", b"\x1f\x8b")):
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.txt.gz"
            write_run(path, data)
            run = read_run(path)
            assert run.to_dict() == data
            assert [list(ranking) for ranking in run.to_dict().values()] == [list(ranking) for ranking in data.values()]
            assert list(map(math.copysign, [1] * run.scores.size, run.scores)) == [
                math.copysign(1, score) for ranking in data.values() for score in ranking.values()
            ]
            write_run(path, run)
            assert read_run(path).to_dict() == data

    @given(st.dictionaries(IDS, st.dictionaries(IDS, FINITE, min_size=1, max_size=5), min_size=1, max_size=4))
    def test_qrels_read_back_as_they_were(self, data):
        if next(iter(data)).encode("utf-8", "surrogateescape").startswith((b"\xef\xbb\xbf", b"\x1f\x8b")):
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "qrels.txt"
            write_qrels(path, data)
            assert read_qrels(path).to_dict() == data

    def test_the_file(self, tmp_path):
        path = tmp_path / "run.txt"
        write_run(path, {"1": {"a": 0.5, "b": 2, "c": 0.5}, "2": {"x": -1e-9}}, tag="mine")
        assert path.read_text() == "1 Q0 a 2 0.5 mine\n1 Q0 b 1 2.0 mine\n1 Q0 c 3 0.5 mine\n2 Q0 x 1 -1e-09 mine\n"
        write_qrels(path, {"1": {b"a": 1.0, b"b": 0.5}})
        assert path.read_text() == "1 0 a 1\n1 0 b 0.5\n"

    def test_ranked_lists_get_descending_scores(self, tmp_path):
        write_run(tmp_path / "run.txt", {"1": ["b", "a"], "2": ()})
        assert read_run(tmp_path / "run.txt").to_dict() == {"1": {"b": 2.0, "a": 1.0}}

    def test_standard_output(self, capsysbinary):
        write_qrels("-", {"1": {"a": 1}})
        assert capsysbinary.readouterr().out == b"1 0 a 1\n"

    @pytest.mark.parametrize(
        ("run", "message"),
        [
            ({"1": {"a b": 1.0}}, "document id 'a b' is empty or holds white space"),
            ({"1": {"": 1.0}}, "document id '' is empty or holds white space"),
            ({"1\n": {"a": 1.0}}, r"query id '1\\n' is empty or holds white space"),
            ({"1": {"a": math.nan}}, "the score of document 'a' for query '1' must be a finite number, got nan"),
            ({"1": ["a", "b", "a"]}, "a ranking holds document 'a' twice"),
            ({"1": "ab"}, "a ranking must be a dict of scores or a list of ids, got 'ab'"),
            ({"\ufeff1": {"a": 1}}, "the first query id begins with"),
        ],
    )
    def test_refusals(self, tmp_path, run, message):
        with pytest.raises(InputError, match=message):
            write_run(tmp_path / "run.txt", run)
        assert not (tmp_path / "run.txt").exists()

    def test_refuses_a_tag_with_white_space(self, tmp_path):
        with pytest.raises(InputError, match="tag 'my run' is empty or holds white space"):
            write_run(tmp_path / "run.txt", {"1": {"a": 1}}, tag="my run")


def parsed(token: str) -> float | None:
    """The kernel's value of a number, NaN where it leaves it to Python; None if it is none."""
    text = np.frombuffer(bytearray(token.encode() + b" \n"), np.uint8)
    end, value = _parse_number(text, 0)
    assert end in (-1, len(token.encode()))
    return None if end < 0 else value


def read_score(token: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.txt"
        path.write_text(f"1 Q0 a 1 {token} tag\n", encoding="utf-8")
        return float(read_run(path).scores[0])


def same_float(a: float, b: float) -> bool:
    return a == b and math.copysign(1, a) == math.copysign(1, b)


class TestNumbers:
    @given(st.from_regex(r"\A[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?\Z"))
    def test_equal_python_s(self, token):
        value = parsed(token)
        assert value is not None
        assert math.isnan(value) or same_float(value, float(token))

    @given(st.floats(1e-30, 1e30) | st.floats(-1e3, 1e3))
    def test_repr_is_read_without_python(self, number):
        value = parsed(repr(number))
        assert same_float(value, number) or (math.isnan(value) and abs(number) < 1e-30)

    @given(st.integers(2**52, 2**53 - 1), st.integers(-60, 60))
    def test_halfway_cases_are_never_wrong(self, digits, power):
        halfway = Fraction(2 * digits + 1) * Fraction(2) ** power
        numerator, denominator = (halfway * 10**70).as_integer_ratio()
        assert denominator == 1
        for token in (f"{digits}.5", f"{numerator}e-70", f"{numerator}1e-71", f"{numerator - 1}9e-71"):
            value = parsed(token)
            assert math.isnan(value) or value == float(token)
            assert read_score(token) == float(token)

    @pytest.mark.parametrize(
        "token",
        ["1", "+1", "-0", "-0.0", ".5", "1.", "-.5e1", "1e5", "1E-05", "1e+05", "007", "9007199254740993", "5e-324",
         "2.2250738585072011e-308", "1.7976931348623157e308", "0e999999999999", "1e-400", "0." + "0" * 100 + "1",
         "123456789012345678901234567890", "0.1000000000000000055511151231257827021181583404541015625",
         "9007199254740992.5", "9007199254740993.0000000000000000000000000000001", "1" + "0" * 300],
    )  # fmt: skip
    def test_a_file_gives_the_float(self, token):
        assert same_float(read_score(token), float(token))

    @pytest.mark.parametrize(
        "token", ["", "+", "-", ".", "e5", ".e5", "1e", "1e+", "1.2.3", "--1", "1-", "0x10", "1,5", "1f", "1e5.0"]
    )
    def test_refuses(self, token):
        assert parsed(token) is None


KEYS = st.sampled_from([b"a", b"b", b"a\0", b"a\0b", b"ab", b"", b"\xff", b"abcdefgh", b"abcdefgh\0", b"abcdefghi"])


def some_rankings(keys: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[tuple[list[bytes], list[bytes]]]]:
    """A list of queries: different judged documents, and a ranking that may repeat itself."""
    return st.lists(st.tuples(st.lists(keys, unique=True, max_size=8), st.lists(keys, max_size=12)), max_size=5)


def stacked(rows: list[list[bytes]], kind: type[Qrels | Run]) -> Qrels | Run:
    keys = encode_keys([key for row in rows for key in row])
    offsets = np.cumsum([0, *map(len, rows)])
    return kind(tuple(map(str, range(len(rows)))), offsets, keys, np.arange(offsets[-1], dtype=np.float64))


def check_matching(queries: list[tuple[list[bytes], list[bytes]]]) -> None:
    """Compares a block with lookups in a dict."""
    qrels = stacked([judged for judged, _ in queries], Qrels)
    run = stacked([ranking for _, ranking in queries], Run)
    rows = np.arange(len(queries))[::-1].copy()
    source = TrecSource(qrels.query_ids, qrels, run)
    block = source.match(rows)
    for q, row in enumerate(rows):
        judged, ranking = queries[row]
        n = len(ranking)
        grade_of = dict(zip(judged, range(qrels.offsets[row], qrels.offsets[row + 1]), strict=True))
        np.testing.assert_array_equal(block.grades[q, :n], [grade_of.get(key, np.nan) for key in ranking])
        np.testing.assert_array_equal(block.judged[q, : len(judged)], list(grade_of.values()))
        np.testing.assert_array_equal(block.scores[q, :n], np.arange(run.offsets[row], run.offsets[row + 1]))
        assert np.isnan(block.grades[q, n:]).all()
        assert np.isnan(block.scores[q, n:]).all()
        assert np.isnan(block.judged[q, len(judged) :]).all()
        first = {key: ranking.index(key) for key in ranking}
        repeat_of = [-1 if first[key] == i else first[key] for i, key in enumerate(ranking)]
        if block.repeat_of is None:
            assert repeat_of == [-1] * n
        else:
            assert block.repeat_of[q, :n].tolist() == repeat_of
        keys = block.keys(np.full(n, q), np.arange(n))
        assert decode_keys(keys) == [key.decode("utf-8", "surrogateescape") for key in ranking]
        assert [source.describe(row, i) for i in range(n)] == [repr(key) for key in decode_keys(keys)]


class TestMatching:
    @given(some_rankings(KEYS | ID_BYTES))
    def test_equals_lookups_in_a_dict(self, queries):
        check_matching(queries)

    @given(some_rankings(KEYS))
    def test_equality_does_not_hang_on_fingerprints(self, queries):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(key_matching, "_match_short", kernels.match_short)
            patch.setattr(key_matching, "_match_by_table", kernels.match_by_table)
            patch.setattr(kernels, "_fingerprint", lambda *_: np.uint64(7))
            check_matching(queries)

    def test_by_query_id_in_the_order_asked_for(self):
        qrels = Qrels.from_dict({"1": {"a": 1}, "2": {"a": 2, "b": 0}, "3": {"c": 3}})
        run = Run.from_dict({"9": {"a": 1}, "2": {"x": 3, "a": 2}, "1": {"a": 0.5}})
        source = TrecSource(["3", "2", "1"], qrels, run)
        assert source.n_judged.tolist() == [1, 2, 1]
        assert source.n_retrieved.tolist() == [0, 2, 1]
        block = source.match(np.array([0, 1, 2]))
        np.testing.assert_array_equal(block.grades, [[np.nan, np.nan], [np.nan, 2], [1, np.nan]])
        np.testing.assert_array_equal(block.judged, [[3, np.nan], [2, 0], [1, np.nan]])
        assert block.repeat_of is None

    def test_a_repeat_has_a_place_in_its_file(self, written):
        run = read_run(written("9 Q0 a 1 3\n\n1 Q0 b 1 2\n1 Q0 b 2 1\n", "run.txt"))
        source = TrecSource(["1"], Qrels.from_dict({"1": {"b": 1}}), run)
        assert source.match(np.array([0])).repeat_of.tolist() == [[-1, 0]]
        assert source.describe(0, 1) == f"'b' ({run.name}, line 4)"
        in_memory = TrecSource(["1"], Qrels.from_dict({"1": {"b": 1}}), Run.from_dict({"1": {"b": 1}}))
        assert in_memory.describe(0, 0) == "'b'"

    def test_dicts_are_the_callers_own(self):
        qrels = Qrels.from_dict({"q": {"d": 1}})
        qrels.to_dict()["q"]["d"] = 0
        assert evaluate(qrels, {"q": {"d": 1.0}}, "AP").mean() == {"AP": 1}

    def test_many_documents(self):
        judged = {f"d{i}": float(i) for i in range(50_000)}
        ranking = {f"d{i}": float(-i) for i in range(25_000, 125_000)}
        block = TrecSource(["1"], Qrels.from_dict({"1": judged}), Run.from_dict({"1": ranking})).match(np.array([0]))
        np.testing.assert_array_equal(block.grades[0, :25_000], np.arange(25_000, 50_000))
        assert np.isnan(block.grades[0, 25_000:]).all()

    def test_without_identical_ids(self):
        run = Run.from_dict({"ab": {"a": 1, "ab": 2, "abc": 3, "ba": 4}, "é": {"é": 1}, "x": {"y": 1}})
        assert run.without_identical_ids().to_dict() == {"ab": {"a": 1, "abc": 3, "ba": 4}, "é": {}, "x": {"y": 1}}
        assert run.to_dict()["é"] == {"é": 1}


class TestKeys:
    @given(st.lists(st.lists(KEYS | ID_BYTES, max_size=40), max_size=5))
    def test_groups_are_ordered_as_bytes_descending(self, groups):
        keys = encode_keys([key for group in groups for key in group])
        lengths = np.array([len(group) for group in groups], np.int64)
        starts = np.cumsum(lengths) - lengths
        order = np.empty(keys.starts.size, np.int64)
        _order_groups_descending(starts, lengths, keys.blob, keys.starts, keys.lengths, order)
        for start, group in zip(starts.tolist(), groups, strict=True):
            stable = sorted(
                range(len(group)), key=lambda i: group[i], reverse=True
            )  # reverse keeps equal ones in order
            assert order[start : start + len(group)].tolist() == [start + i for i in stable]

    @given(st.lists(st.text()) | st.lists(IDS) | st.lists(st.integers()))
    def test_encoding_keeps_order_and_equality(self, keys):
        table = encode_keys(keys)
        encoded = [
            table.blob[start : start + length].tobytes()
            for start, length in zip(table.starts, table.lengths, strict=True)
        ]
        if all(isinstance(key, str) for key in keys):
            assert decode_keys(table) == keys
        for a, b in zip(keys, encoded, strict=True):
            for c, d in zip(keys, encoded, strict=True):
                assert (a == c) == (b == d)
                if isinstance(a, int):  # as their text in a file
                    assert (str(a) < str(c)) == (b < d)

    def test_lone_surrogates_have_keys(self):
        table = encode_keys(["\ud800", "é", "\udcff"])
        assert table.blob.tobytes() == b"\xed\xa0\x80\xc3\xa9\xff"

    def test_refuses_mixed_types(self):
        with pytest.raises(InputError, match="ids of mixed types have no order: int, str"):
            encode_keys(["1", 1])

    def test_no_keys(self):
        assert decode_keys(encode_keys([])) == []
        assert isinstance(encode_keys([]), KeyTable)


@needs_shared
class TestRealFiles:
    @pytest.mark.parametrize(
        ("pair", "qrels", "run"),
        [line.split("\t")[:3] for line in (SHARED / "pairs.tsv").read_text().splitlines()[1:]]
        if SHARED.is_dir()
        else [],
    )
    def test_pairs(self, pair, qrels, run):
        if pair == "te-123":
            with pytest.raises(
                FileFormatError, match=r"qrels\.123, line \d+: document '\S+' is judged twice for query"
            ):
                read_qrels(SHARED / qrels)
        else:
            assert read_qrels(SHARED / qrels).to_dict() == by_split(SHARED / qrels, 2, 3)
        assert read_run(SHARED / run).to_dict() == by_split(SHARED / run, 2, 4)

    @pytest.mark.parametrize(
        ("name", "document", "skipped"),
        [
            ("beir_nq_test_crlf.tsv.gz", 1, 1),
            ("beir_scifact_test.tsv.gz", 1, 1),
            ("qrels.beir-v1.0.0-climate-fever.test.txt.gz", 2, 0),
            ("qrels.bright-theoremqa-questions.txt.gz", 2, 0),
            ("qrels.ciral-v1.0-ha-dev.tsv.gz", 2, 0),
            ("qrels.msmarco-doc.dev.txt.gz", 2, 0),
            ("trectools_qrel1.txt.gz", 2, 0),
            ("umbrela_sample.qrels.gz", 2, 0),
        ],
    )
    def test_odd_qrels(self, name, document, skipped):
        path = SHARED / "oddities" / name
        assert read_qrels(path).to_dict() == by_split(path, document, document + 1, skipped)

    @pytest.mark.parametrize("name", ["trectools_r1.run.gz", "trectools_r2.run.gz", "umbrela_sample.run.gz"])
    def test_odd_runs(self, name):
        path = SHARED / "oddities" / name
        assert read_run(path).to_dict() == by_split(path, 2, 4)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (
                "prels.web.1-50.head500.txt.gz",
                "line 1: 4 columns expected .* got 5: '1 clueweb09-en0003-55-31884 0 0 1'",
            ),
            ("nq_open_sas_low_scores_annotated.csv.gz", "line 1: 4 columns expected"),
            (
                "qrels.web.201-250.ndeval.head2000.txt.gz",
                r"line \d+: document 'clueweb12-\S+' is judged twice for query",
            ),
        ],
    )
    def test_refused_qrels(self, name, message):
        with pytest.raises(FileFormatError, match=message):
            read_qrels(SHARED / "oddities" / name)


def by_split(path: Path, document: int, value: int, skipped: int = 0) -> dict[str, dict[str, float]]:
    """The file by Python's split and float; of two values of one document the last."""
    content = path.read_bytes()
    text = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    result: dict[str, dict[str, float]] = {}
    for line in text.decode("utf-8", "surrogateescape").split("\n")[skipped:]:
        if fields := line.split():
            result.setdefault(fields[0], {})[fields[document]] = float(fields[value])
    return result
