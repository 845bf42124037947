"""Rows in and out: what comes back is what was written, files appear whole, and bad files are named with the line."""

from __future__ import annotations

import csv
import json
import re
import sys
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_judges.rows import check_writable, read_rows, values_of, write_rows
from metrics_core.errors import FileFormatError, InputError

text = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)


def write_csv(rows, path):
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


ODD = ' He said "{{7*7}}",\r\nthen \u2028 left; 日本 '


@given(rows=st.lists(st.dictionaries(text, values, min_size=1), max_size=5))
def test_jsonl_gives_back_what_was_written(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    write_rows(rows, path)
    assert read_rows(path) == rows


@given(data=st.data())
def test_csv_gives_back_what_was_written(data, tmp_path_factory):
    header = data.draw(st.lists(text, min_size=1, max_size=4, unique=True))
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(header, text)), min_size=1, max_size=4))
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    write_csv(rows, path)
    assert read_rows(path) == rows


@given(contexts=st.lists(text))
def test_lists_in_csv_cells_are_json_or_python_literals(contexts):
    rows = [{"contexts": json.dumps(contexts)}, {"contexts": repr(contexts)}, {"contexts": f"\n {contexts!r}\n"}]
    assert values_of(rows, "contexts", list[str]) == [contexts] * 3


def test_parquet_gives_back_what_was_written(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"question": ODD, "contexts": ["a", ODD], "score": 1.0}, {"question": "", "contexts": [], "score": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    assert read_rows(tmp_path / "rows.parquet") == rows
    assert read_rows(tmp_path / "rows.parquet", 1) == rows[:1]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    for name, content in (("rows.csv", "question,n\r\nwhy?,1\r\n"), ("rows.jsonl", '{"question": "why?", "n": "1"}')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.encode())
        assert read_rows(tmp_path / name) == [{"question": "why?", "n": "1"}]


def test_a_limit_reads_no_further(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n\n{"n": 2}\n{"n": ')
    assert read_rows(path, 2) == [{"n": 1}, {"n": 2}]
    with pytest.raises(FileFormatError, match=r"rows.jsonl, line 4: not JSON .*'\{\"n\":'"):
        read_rows(path)


def test_csv_cells_may_be_long_and_the_limit_of_the_process_stays(tmp_path):
    before = csv.field_size_limit()
    long = "x" * (before + 1)
    write_csv([{"context": long}], tmp_path / "rows.csv")
    assert read_rows(tmp_path / "rows.csv") == [{"context": long}]
    assert csv.field_size_limit() == before


def test_haystacks_exports_have_lists_as_python_literals(shared):
    folder = shared / "data/exports/haystack_eval/aragog"
    rows = read_rows(folder / "detailed_all-MiniLM-L6-v2__top_k_2__chunk_size_64.csv")
    contexts = values_of(rows, "contexts", list[str])
    assert all(len(each) == 2 and all(isinstance(context, str) for context in each) for each in contexts)
    assert contexts[0][0].startswith("steps in our\nframework: pre-training and ﬁne-tuning")


# What is written


def test_what_json_cannot_say_is_null(tmp_path):
    write_rows([{"score": nan, "values": [inf, 1], "inner": {"x": nan}}], tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == '{"score": null, "values": [null, 1], "inner": {"x": null}}\n'


def test_half_a_surrogate_pair_survives(tmp_path):
    write_rows([{"reply": "a\ud83d"}], tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == rb'{"reply": "a\ud83d"}' + b"\n"
    assert read_rows(tmp_path / "out.jsonl") == [{"reply": "a\ud83d"}]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    class Unwritable:
        def __str__(self) -> str:
            raise OSError("no")

    path = tmp_path / "out.jsonl"
    path.write_text("old")
    with pytest.raises(OSError, match="no"):
        write_rows([{"a": 1}, {"a": Unwritable()}], path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_torn_file_of_an_earlier_run_is_replaced_and_links_stay(tmp_path):
    target, link = tmp_path / "target.jsonl", tmp_path / "out.jsonl"
    target.write_text('{"a": 1}\n{"a')
    link.symlink_to(target)
    write_rows([{"a": 1}, {"a": 2}], link)
    assert link.is_symlink()
    assert read_rows(target) == [{"a": 1}, {"a": 2}]


def test_where_nothing_can_be_written_is_told_beforehand(tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    for name, message in (
        ("absent/out.jsonl", "there is no folder"),
        ("folder.jsonl", "is a folder; name a file"),
        ("out.csv", "judged rows are JSONL; name a file with the suffix .jsonl"),
        ("out", "judged rows are JSONL"),
    ):
        with pytest.raises(InputError, match=message):
            check_writable(tmp_path / name)
    check_writable(tmp_path / "out.JSONL")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.jsonl"]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="parquet files need pyarrow: pip install pyarrow"):
        read_rows(tmp_path / "rows.parquet")


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.jsonl", b'{"a": 1}\n[1]\n', "rows.jsonl, line 2: an object expected, got '[1]'"),
        ("rows.jsonl", b"[" * 100_000, "rows.jsonl, line 1: not JSON"),
        ("rows.jsonl", b'{"a": "\xe9"}', "rows.jsonl is not UTF-8"),
        ("rows.csv", b"a,b\n1,2\n\n1\n", "rows.csv, line 4: 2 columns expected"),
        ("rows.csv", b"a,b\n1,2,3\n", "rows.csv, line 2: 2 columns expected"),
        (
            "rows.csv",
            b"a,b,a\n1,2,3\n",
            "rows.csv: a header of different names expected in its first line, got ['a', 'b', 'a']",
        ),
        ("rows.csv", b"", "rows.csv: a header of different names expected in its first line, got []"),
        ("rows.csv", b'a,b\n1,"2\n', "rows.csv, line 2: unexpected end of data"),
        ("rows.csv", b"a\n\xff\n", "rows.csv is not UTF-8"),
        ("rows.json", b"[]", "rows.json: the suffix must be one of .jsonl, .ndjson, .csv, .parquet"),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_rows(tmp_path / name)


def test_what_is_no_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.parquet").write_bytes(b"question\nwhy?\n")
    with pytest.raises(FileFormatError, match=r"rows\.parquet: "):
        read_rows(tmp_path / "rows.parquet")


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (None, str, "row 2, 'x': a str expected, got None"),
        (3, str, "row 2, 'x': a str expected, got 3"),
        ("one context", list[str], "row 2, 'x': neither JSON nor a Python literal: 'one context'"),
        ("'one context'", list[str], "row 2, 'x': a list expected, got 'one context'"),
        ("['a'\n 'b']", list[str], "row 2, 'x': strings without a comma between them, as NumPy prints arrays"),
        ("[1, __import__('os')]", list[str], "row 2, 'x': neither JSON nor a Python literal"),
        ("", list[str], "row 2, 'x': neither JSON nor a Python literal: ''"),
        ({"a": 1}, list[str], "row 2, 'x': a list expected, got {'a': 1}"),
    ],
)
def test_a_value_of_another_kind_names_row_and_column(value, kind, message):
    first = "a" if kind is str else ["a"]
    with pytest.raises(InputError, match=re.escape(message)):
        values_of([{"x": first}, {"x": value}], "x", kind)


def test_a_row_without_the_column_names_those_it_has():
    with pytest.raises(InputError, match=re.escape("row 2 has no 'x'; it has 'y', 'z'")):
        values_of([{"x": "a"}, {"y": 1, "z": 2}], "x", str)


def test_text_stays_text_and_anything_is_anything():
    assert values_of([{"x": "[1]"}, {"x": "{{ 7*7 }}"}], "x", str) == ["[1]", "{{ 7*7 }}"]
    assert values_of([{"x": "[1]"}, {"x": None}], "x", Any) == ["[1]", None]
    assert values_of([{"x": '{"a": 1}'}], "x", dict[str, int]) == [{"a": 1}]
    assert values_of([{"x": "4"}, {"x": 5}], "x", int) == [4, 5]
