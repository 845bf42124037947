"""Rows of files: the same from every format, in batches of one size, and errors that say where."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, strategies as st

from metrics_core import tables
from metrics_core.errors import FileFormatError, InputError
from metrics_core.tables import n_rows, read_rows, stream_rows, table_files

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'metrics-core[sas]'")
csv, parquet = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")

COLUMNS = {"gold": "texts", "said": "text"}
ROWS = [
    {"gold": ["Paris", "Paris, France"], "said": "Paris"},
    {"gold": ["Rome"], "said": 'with "quotes", a comma\nand a line'},
    {"gold": [""], "said": ""},
    {"gold": ["東京"], "said": "Tokyo"},
    {"gold": ["null"], "said": "NaN"},
]


def read(path, batch_rows=2, columns=COLUMNS):
    found = list(read_rows(path, columns, batch_rows))
    assert [rows.batch.num_rows for rows in found[:-1]] == [batch_rows] * (len(found) - 1)
    assert [rows.first for rows in found] == list(range(0, batch_rows * len(found), batch_rows))
    assert all(rows.batch.schema.names == list(columns) for rows in found)
    return [row for rows in found for row in rows.batch.to_pylist()]


def write_jsonl(path, rows=ROWS):
    path.write_text("".join(json.dumps({"id": 1} | row) + "\n\n" for row in rows))
    return path


def test_formats(tmp_path):
    table = pa.Table.from_pylist([{"id": 1} | row for row in ROWS])
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    assert read(tmp_path / "a.parquet") == ROWS
    assert n_rows(tmp_path / "a.parquet") == 5
    assert read(write_jsonl(tmp_path / "a.jsonl")) == ROWS
    assert n_rows(tmp_path / "a.jsonl") is None
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    assert read(tmp_path / "a.jsonl.gz") == ROWS
    one_gold = [{"gold": row["gold"][0], "said": row["said"]} for row in ROWS]
    csv.write_csv(pa.Table.from_pylist(one_gold), tmp_path / "a.csv")
    assert read(tmp_path / "a.csv") == one_gold
    listed = [{"gold": [row["gold"]], "said": row["said"]} for row in one_gold]
    assert read(write_jsonl(tmp_path / "b.jsonl", one_gold)) == listed


@pytest.mark.parametrize("largest", [0, 1 << 30])
def test_large_row_groups_are_not_read_at_once(tmp_path, monkeypatch, largest):
    opened = []
    file = parquet.ParquetFile
    monkeypatch.setattr(
        parquet, "ParquetFile", lambda *args, **options: opened.append(options) or file(*args, **options)
    )
    monkeypatch.setattr(tables, "_PRE_BUFFERED", largest)
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet", row_group_size=3)
    assert read(tmp_path / "a.parquet") == ROWS
    assert opened[0]["pre_buffer"] == (largest > 0)
    assert (opened[0]["buffer_size"] > 0) == (largest == 0)


@given(sizes=st.lists(st.integers(0, 5), max_size=6), batch_rows=st.integers(1, 7))
def test_batches_do_not_depend_on_the_stream(sizes, batch_rows):
    schema = pa.schema([("gold", pa.string()), ("said", pa.string())])
    numbers = iter(range(100))
    batches = [
        pa.RecordBatch.from_pylist([{"gold": str(next(numbers)), "said": "x"} for _ in range(size)], schema=schema)
        for size in sizes
    ]
    found = list(stream_rows(pa.RecordBatchReader.from_batches(schema, batches), COLUMNS, batch_rows))
    assert [gold for rows in found for gold in rows.batch["gold"].to_pylist()] == [str(n) for n in range(sum(sizes))]
    full, rest = divmod(sum(sizes), batch_rows)
    assert [rows.batch.num_rows for rows in found] == [batch_rows] * full + [rest] * (rest > 0)


@pytest.mark.parametrize("text", ["string", "large_string", "string_view"])
@pytest.mark.parametrize("nested", [None, "list_", "large_list", "dictionary"])
def test_types_of_text(text, nested):
    if (text, nested) == ("string_view", "dictionary"):
        pytest.skip("pyarrow makes no dictionary of string views")
    kind = getattr(pa, text)()
    values, column = ["a", "b"], kind
    if nested == "dictionary":
        column = pa.dictionary(pa.int32(), kind)
    elif nested:
        values, column = [["a"], ["b", "c"]], getattr(pa, nested)(kind)
    table = pa.table({"gold": pa.array(values, column), "said": pa.array(["a", "b"], kind)})
    (rows,) = stream_rows(table, COLUMNS, 10)
    assert rows.batch["gold"].to_pylist() == values


def test_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pandas.DataFrame(ROWS), polars.DataFrame(ROWS)):
        assert [row for rows in stream_rows(frame, COLUMNS, 2) for row in rows.batch.to_pylist()] == ROWS
    with pytest.raises(InputError, match="Arrow C stream interface is needed, got a list"):
        list(stream_rows(ROWS, COLUMNS, 2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"gold": "a", "said": "b"}\n{"gold"', "line 2: not JSON ("),
        ('{"gold": "a", "said": "b"}\n[1]', "line 2: an object expected, got [1]"),
        ('{"gold": "a", "saids": "b"}', "line 1: there is no 'said'; it has 'gold', 'saids'"),
        ('{"gold": "a", "said": null}', "line 1, 'said': a string expected, got None"),
        ('{"gold": "a", "said": ["b"]}', "line 1, 'said': a string expected, got ['b']"),
        ('\n{"gold": ["a", 1], "said": "b"}', "line 2, 'gold': a string or a list of strings expected, got ['a', 1]"),
        ('{"gold": "a", "said": "\\ud800"}', "line 1, 'said': half a surrogate pair in '\\ud800'"),
        (b"\xff", "line 1: not JSON ("),
    ],
)
def test_bad_jsonl(tmp_path, content, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, {message}")


def test_other_columns_of_a_csv_may_hold_anything(tmp_path):
    path = tmp_path / "a.csv"
    rows = ["1,a,b\n"] * 400_000  # more than the block from which pyarrow tells what a column holds
    path.write_text("".join(["number,gold,said\n", *rows, "x,a,b\n"]))
    assert sum(rows.batch.num_rows for rows in read_rows(path, {"said": "text"}, 1 << 16)) == 400_001


def test_bad_tables(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"gold": ["a"], "says": ["b"]}), path)
    with pytest.raises(FileFormatError, match=f"{path}: there is no column 'said'; it has 'gold', 'says'"):
        read(path)
    parquet.write_table(pa.table({"gold": ["a"], "said": [1]}), path)
    with pytest.raises(FileFormatError, match=f"{path}, column 'said': strings expected, got int64"):
        read(path)
    parquet.write_table(pa.table({"gold": [[1]], "said": ["b"]}), path)
    with pytest.raises(FileFormatError, match=r"column 'gold': strings or lists of strings expected, got list<"):
        read(path)
    path.write_bytes(path.read_bytes()[:-10])
    for call in (lambda: read(path), lambda: n_rows(path)):
        with pytest.raises(FileFormatError, match=f"{path}: Parquet"):
            call()
    path = tmp_path / "a.csv"
    path.write_text("gold,said\na,b\na,b,c\n")
    with pytest.raises(FileFormatError, match=f"{path}: CSV parse error.* Expected 2 columns, got 3"):
        read(path)
    path.write_text("gold\na\n")
    with pytest.raises(FileFormatError, match=f"{path}: there is no column 'said'; it has 'gold'"):
        read(path)
    path.write_text("gold,said,said\na,b,c\n")
    with pytest.raises(FileFormatError, match=f"{path}: there are 2 columns 'said'; one is needed"):
        read(path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.jsonl")


def test_paths(tmp_path):
    for name in ("b.parquet", "a.csv", "c.jsonl.gz", "_skipped.csv", ".hidden.csv", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "d.NDJSON").touch()
    all_of_them = [tmp_path / name for name in ("a.csv", "b.parquet", "c.jsonl.gz")]
    assert table_files(tmp_path) == all_of_them
    assert table_files([tmp_path / "b.parquet", tmp_path]) == [all_of_them[1], all_of_them[0], all_of_them[2]]
    assert table_files(tmp_path / "**" / "*.NDJSON") == [tmp_path / "more" / "d.NDJSON"]
    (tmp_path / "spark.parquet").mkdir()
    for name in ("_SUCCESS", "part-1.parquet", "part-0.parquet"):
        (tmp_path / "spark.parquet" / name).touch()
    parts = [tmp_path / "spark.parquet" / name for name in ("part-0.parquet", "part-1.parquet")]
    assert table_files(tmp_path / "*.parquet") == [all_of_them[1], *parts]
    assert table_files(tmp_path) == [*all_of_them[:2], all_of_them[2], *parts]
    (tmp_path / "[1].csv").touch()
    assert table_files(tmp_path / "[1].csv") == [tmp_path / "[1].csv"]
    for absent in ("absent.csv", "*.tsv", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(
            InputError, match=r"there is no (such file, nor a folder or pattern with tables in it|table in this folder)"
        ):
            table_files(tmp_path / absent)
    with pytest.raises(InputError, match=r"notes.txt: the suffix must be one of .parquet, .jsonl, .ndjson, .csv"):
        table_files(tmp_path / "notes.txt")
    with pytest.raises(InputError, match="at least one file"):
        table_files([])
