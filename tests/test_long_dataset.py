"""Long tables in files: grouped by query on disk, then scored; the same as in memory."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import (
    FileFormatError,
    InputError,
    Policies,
    PolicyError,
    evaluate,
    evaluate_dataset,
    grouping,
    read_qrels,
)
from metrics_core.grouping import Groups

pa = pytest.importorskip("pyarrow", reason="needs the arrow extra")
parquet = pytest.importorskip("pyarrow.parquet")

METRICS = ["AP", "nDCG@5", "RR", "NumRel", "Unj@5"]
N = 60


def long_tables(seed=0, n=N, kind=str):
    """Judgements and rankings of queries, their rows shuffled; some are on one side only."""
    rng = np.random.default_rng(seed)
    name = (lambda prefix, i: f"{prefix}{i}") if kind is str else (lambda _, i: i)
    qrels = {name("q", q): {name("d", d): int(rng.integers(0, 3)) for d in rng.permutation(9)[:4]} for q in range(n)}
    run = {name("q", q): {name("d", d): float(rng.random()) for d in rng.permutation(9)} for q in range(5, n + 3)}
    return qrels, run, table_of(qrels, "relevance", rng), table_of(run, "score", rng)


def table_of(nested, value, rng):
    rows = [(query, document, number) for query, inner in nested.items() for document, number in inner.items()]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(dict(zip(("query_id", "doc_id", value), columns, strict=True)))


def write(folder, table, n_files=3):
    folder.mkdir()
    step = -(-len(table) // n_files)
    for number in range(n_files):
        parquet.write_table(table.slice(number * step, step), folder / f"{number}.parquet", row_group_size=50)
    return folder


@pytest.fixture
def files(tmp_path):
    _, _, judged, retrieved = long_tables()
    return write(tmp_path / "qrels", judged), write(tmp_path / "run", retrieved)


def assert_same(found, qrels, run, **options):
    expected = evaluate(qrels, run, METRICS, **options)
    ours = found.scores().to_dict()
    assert ours.keys() == expected.to_dict().keys()
    for query, scores in expected.to_dict().items():
        np.testing.assert_array_equal(list(ours[query].values()), list(scores.values()))
    for name, total in expected.aggregate().items():
        assert found.aggregate()[name].value == pytest.approx(total.value, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("part_rows", [4, 16, 1000])
@pytest.mark.parametrize("kind", [str, int], ids=["strings", "integers"])
def test_the_same_as_in_memory(tmp_path, kind, part_rows):
    qrels, run, judged, retrieved = long_tables(kind=kind)
    paths = write(tmp_path / "run", retrieved)
    found = evaluate_dataset(
        paths, METRICS, qrels=write(tmp_path / "qrels", judged), out=tmp_path / "out", part_rows=part_rows
    )
    assert_same(found, qrels, run)
    for scores in (found, found.scores()):
        assert (len(scores), scores.n_missing, scores.n_unjudged) == (N, 5, 3)
        assert (scores.missing, scores.unjudged) == (None, None)
        assert f" of {N} queries, 5 missing in the run, 3 unjudged left out, policies " in repr(scores)
    assert (len(found.paths) > 1) == (part_rows < 1000)
    assert not (tmp_path / "out" / "_groups").exists()
    again = evaluate_dataset(paths, METRICS, qrels=tmp_path / "qrels", out=tmp_path / "out", part_rows=part_rows)
    assert again == found


@given(seed=st.integers(0, 10**6), n_threads=st.integers(1, 3), part_rows=st.integers(3, 40))
def test_whatever_the_groups(tmp_path_factory, seed, n_threads, part_rows):
    qrels, run, judged, retrieved = long_tables(seed, 9)
    paths = write(tmp_path_factory.mktemp("long") / "run", retrieved)
    found = evaluate_dataset(paths, METRICS, qrels=judged, n_threads=n_threads, part_rows=part_rows)
    expected = evaluate(qrels, run, METRICS)
    assert found.mean() == pytest.approx(expected.mean(), rel=1e-12)
    assert len(found) == len(expected)


@pytest.mark.parametrize("kind", ["dict", "Qrels", "TREC file", "pandas", "jsonl"])
def test_judgements_of_other_kinds(tmp_path, files, kind):
    qrels, run, judged, _ = long_tables()
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{query} 0 {doc} {grade}\n" for query, inner in qrels.items() for doc, grade in inner.items())
    )
    (tmp_path / "qrels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judged.to_pylist()))
    given_as = {
        "dict": lambda: qrels,
        "Qrels": lambda: read_qrels(tmp_path / "qrels.txt"),
        "TREC file": lambda: tmp_path / "qrels.txt",
        "pandas": judged.to_pandas,
        "jsonl": lambda: tmp_path / "qrels.jsonl",
    }[kind]
    if kind == "pandas":
        pytest.importorskip("pandas")
    assert_same(evaluate_dataset(files[1], METRICS, qrels=given_as(), out=tmp_path / "out", part_rows=5), qrels, run)


@pytest.mark.parametrize(
    "policies",
    [Policies(missing="skip"), Policies(no_relevant="skip"), Policies("beir"), Policies(ties="expected")],
    ids=str,
)
def test_policies(tmp_path, files, policies):
    qrels, run, *_ = long_tables()
    metrics = [metric for metric in METRICS if metric != "Unj@5"]
    found = evaluate_dataset(files[1], metrics, qrels=files[0], out=tmp_path / "out", part_rows=4, policies=policies)
    expected = evaluate(qrels, run, metrics, policies=policies).to_dict()
    ours = found.scores().to_dict()
    for query, scores in expected.items():
        np.testing.assert_array_equal(list(ours[query].values()), list(scores.values()))


def test_refusals(tmp_path, files):
    judged, retrieved = files
    with pytest.raises(InputError, match=r"qrels judge nothing of the run's quer(y|ies) 'q6"):
        evaluate_dataset(retrieved, "AP", qrels=judged, policies=Policies(unjudged_query="error"))
    with pytest.raises(InputError, match="the run lacks quer"):
        evaluate_dataset(retrieved, "AP", qrels=judged, policies=Policies(missing="error"))
    with pytest.raises(PolicyError, match="null_list='empty' cannot apply to ids of documents"):
        evaluate_dataset(retrieved, "AP", qrels=judged, policies=Policies(null_list="empty"))
    with pytest.raises(InputError, match="columns names those of tables with a row a query"):
        evaluate_dataset(retrieved, "AP", qrels=judged, columns={"retrieved": "x"})
    with pytest.raises(InputError, match="share no query"):
        evaluate_dataset(retrieved, "AP", qrels={"x": {"d": 1}}, policies=Policies(missing="skip"))
    with pytest.raises(InputError, match="query ids are integers in the qrels and strings in"):
        evaluate_dataset(retrieved, "AP", qrels=pa.table({"q": [1], "d": ["a"], "g": [1]}))
    with pytest.raises(InputError, match="the qrels: document 'd' is judged twice for query 'q'"):
        evaluate_dataset(retrieved, "AP", qrels=pa.table({"q": ["q", "q"], "d": ["d", "d"], "g": [1, 2]}))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("score", float("nan"), r"1\.parquet, row 70: 'score' must be a finite number, got nan"),
        ("score", None, r"1\.parquet, row 70: 'score' must be a finite number, got None"),
        ("query_id", None, r"1\.parquet, row 70: 'query_id' must be an id, got None"),
        ("doc_id", None, r"1\.parquet, row 70: 'doc_id' must be an id, got None"),
    ],
)
def test_rows_at_fault_are_named(tmp_path, files, column, value, message):
    path = files[1] / "1.parquet"
    table = parquet.read_table(path).to_pylist()
    table[70][column] = value
    parquet.write_table(pa.Table.from_pylist(table), path, row_group_size=50)
    with pytest.raises(InputError, match=message):
        evaluate_dataset(files[1], "AP", qrels=files[0], out=tmp_path / "out")
    assert not list((tmp_path / "out").glob("part-*"))


def test_columns_at_fault_are_named(files):
    path = files[1] / "1.parquet"
    table = parquet.read_table(path)
    numbers = pa.array(range(len(table)))
    others = {
        "column 'score' must hold integers or floats or booleans, got string": table.set_column(
            2, "score", table["doc_id"]
        ),
        "the run table needs a column of each": table.append_column("x", numbers).rename_columns(["a", "b", "c", "d"]),
        "document ids are integers, those of .*0.parquet strings; cast one": table.set_column(1, "doc_id", numbers),
    }
    for message, other in others.items():
        parquet.write_table(other, path)
        with pytest.raises(FileFormatError, match=rf"1\.parquet: {message}"):
            evaluate_dataset(files[1], "AP", qrels=files[0])
    path.unlink()
    (files[1] / "1.csv").write_text("query_id,doc_id,score\n7,d1,0.5\n")  # whose cells are texts
    with pytest.raises(
        FileFormatError, match=r"1\.csv: column 'score' must hold integers or floats or booleans, got st"
    ):
        evaluate_dataset(files[1], "AP", qrels=files[0])


def test_resuming(tmp_path, files, monkeypatch):
    options = {"qrels": files[0], "out": tmp_path / "out", "part_rows": 4}
    write_groups = Groups.write
    monkeypatch.setattr(Groups, "counts", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        evaluate_dataset(files[1], METRICS, **options)
    monkeypatch.undo()
    monkeypatch.setattr(Groups, "write", lambda *_: pytest.fail("grouped again"))
    found = evaluate_dataset(files[1], METRICS, **options)
    found.paths[2].unlink()
    monkeypatch.setattr(Groups, "write", write_groups)
    assert evaluate_dataset(files[1], METRICS, **options) == found
    with pytest.raises(InputError, match="another computation: qrels was None, now"):
        evaluate_dataset(files[1], METRICS, **options | {"qrels": {"q1": {"d1": 1}}})


def test_groups_without_judgements(tmp_path, files):
    qrels = {"q7": {"d1": 1}}
    found = evaluate_dataset(files[1], "AP", qrels=qrels, part_rows=1, out=tmp_path / "out")
    assert (found.n_queries, found.n_missing, found.n_unjudged) == (1, 0, N - 3)
    assert len(found.paths) > 10
    two = {"query_id": ["q7", *["elsewhere"] * 99], "doc_id": [f"d{i}" for i in range(100)], "score": np.arange(100.0)}
    parquet.write_table(pa.table(two), tmp_path / "two.parquet")
    assert evaluate_dataset(tmp_path / "two.parquet", "AP", qrels=qrels, part_rows=1).n_unjudged == 1
    with pytest.raises(InputError, match="qrels judge nothing of the run's query 'elsewhere'"):
        evaluate_dataset(
            tmp_path / "two.parquet", "AP", qrels=qrels, part_rows=1, policies=Policies(unjudged_query="error")
        )


@pytest.mark.parametrize("kind", ["reader", "pandas", "polars", "lazy", "duckdb", "datasets"])
def test_judgements_of_other_packages(files, kind):
    pytest.importorskip({"lazy": "polars", "reader": "pyarrow"}.get(kind, kind))
    qrels, run, judged, retrieved = long_tables()
    frames = {
        "reader": lambda table: table.to_reader(max_chunksize=7),
        "pandas": lambda table: table.to_pandas(),
        "polars": lambda table: __import__("polars").from_arrow(table),
        "lazy": lambda table: __import__("polars").from_arrow(table).lazy(),
        "duckdb": lambda table: __import__("duckdb").from_arrow(table),
        "datasets": lambda table: __import__("datasets").Dataset(table),
    }
    expected = evaluate(qrels, run, METRICS)
    found = evaluate_dataset(files[1], METRICS, qrels=frames[kind](judged), part_rows=5)
    assert found.mean() == pytest.approx(expected.mean(), rel=1e-12)
    assert evaluate(frames[kind](judged), frames[kind](retrieved), METRICS).mean() == expected.mean()


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ({"q1": {"d1": 1}, "q2": {}}, "the qrels have query 'q2' without any judgement, as no long table has"),
        ({"q\udcff": {"d1": 1}}, r"id 'q\\udcff' of the qrels is not UTF-8"),
        ({"q1": {"d\udcff": 1}}, r"id 'd\\udcff' of the qrels is not UTF-8"),
        (5, "qrels must be a long table, files of one, .*, got int"),
    ],
)
def test_judgements_that_are_no_table(files, qrels, message):
    with pytest.raises(InputError, match=message):
        evaluate_dataset(files[1], "AP", qrels=qrels)


def test_integers_beyond_64_bits(tmp_path):
    table = {"query_id": [1, 2], "doc_id": pa.array([2**63 - 1, 2**63], pa.uint64())}
    parquet.write_table(pa.table(table | {"score": [1.0, 1.0]}), tmp_path / "run.parquet")
    qrels = pa.table({"query_id": [1], "doc_id": [2**63 - 1], "grade": [1]})
    with pytest.raises(InputError, match=r"row 1: 'doc_id' must be an id, a 64-bit signed integer, got 9223372036854"):
        evaluate_dataset(tmp_path / "run.parquet", "AP", qrels=qrels)
    parquet.write_table(pa.table(table | {"score": [1.0, 1.0]}).slice(0, 1), tmp_path / "run.parquet")
    assert evaluate_dataset(tmp_path / "run.parquet", "AP", qrels=qrels).mean() == {"AP": 1}


def test_other_judgements_in_memory_are_another_computation(tmp_path, files):
    """Also where only the dictionaries of columns differ; not where only their types or batches do."""

    def of(query, kind):
        ids = pa.array(["q1", query], pa.string())
        ids = ids.dictionary_encode() if kind == "dictionary" else ids.cast(kind)
        return pa.table({"query_id": ids, "doc_id": ["d1", "d2"], "relevance": [1, 1]})

    options = {"metrics": "AP", "out": tmp_path / "out"}
    found = evaluate_dataset(files[1], qrels=of("q2", "dictionary"), **options)
    assert evaluate_dataset(files[1], qrels=of("q2", pa.large_string()), **options) == found
    with pytest.raises(InputError, match="another computation: qrels was"):
        evaluate_dataset(files[1], qrels=of("q3", "dictionary"), **options)


@pytest.mark.parametrize("hot", [0.5, 1.0])
def test_one_query_with_most_of_the_rows(tmp_path, hot):
    n = 5000
    rng = np.random.default_rng(0)
    queries = np.where(rng.random(n) < hot, 0, rng.integers(0, 2000, n))
    retrieved = {"query_id": queries, "doc_id": [f"d{'x' * (i % 300)}{i}" for i in range(n)], "score": rng.random(n)}
    parquet.write_table(pa.table(retrieved), tmp_path / "run.parquet", row_group_size=500)
    qrels = pa.table({"query_id": queries[::7], "doc_id": retrieved["doc_id"][::7], "grade": [1] * len(queries[::7])})
    found = evaluate_dataset(tmp_path / "run.parquet", METRICS, qrels=qrels, part_rows=50, out=tmp_path / "out")
    assert len(found.paths) > 20
    expected = evaluate(qrels, pa.table(retrieved), METRICS)
    assert found.scores().to_dict() == {query: expected.to_dict()[query] for query in found.scores().query_ids}
    assert len(found) == len(expected)


def test_long_ids_make_more_groups(tmp_path, files):
    _, _, judged, retrieved = long_tables()
    longer = pa.array([f"{key}{i:0500}" for i, key in enumerate(retrieved["doc_id"].to_pylist())])
    parquet.write_table(retrieved.set_column(1, "doc_id", longer), tmp_path / "long.parquet")
    parquet.write_table(retrieved, tmp_path / "short.parquet")
    n_parts = [
        len(evaluate_dataset(tmp_path / name, "AP", qrels=judged, part_rows=50, out=tmp_path / f"{name}-out").paths)
        for name in ("long.parquet", "short.parquet")
    ]
    assert n_parts[0] > 3 * n_parts[1]


def test_a_corrupt_file(tmp_path, files):
    options = {"qrels": files[0], "out": tmp_path / "out", "part_rows": 4}
    path = files[1] / "1.parquet"
    whole, times = path.read_bytes(), path.stat()
    page = parquet.read_metadata(path).row_group(2).column(1).dictionary_page_offset
    path.write_bytes(whole[:page] + b"\xff" * 40 + whole[page + 40 :])
    with pytest.raises(FileFormatError, match=r"1\.parquet: "):
        evaluate_dataset(files[1], METRICS, **options)
    assert not list((tmp_path / "out").glob("part-*"))
    assert not (tmp_path / "out" / "_summary.json").exists()
    path.write_bytes(whole)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    with pytest.raises(InputError, match=r"1\.parquet as it was before it changed"):
        evaluate_dataset(files[1], METRICS, **options)
    path.write_bytes(whole[:-20])
    with pytest.raises(FileFormatError, match=r"1\.parquet: "):
        evaluate_dataset(files[1], METRICS, qrels=files[0], out=tmp_path / "another")
    assert not (tmp_path / "another").exists()


@pytest.mark.parametrize("when", ["group", "count"])
def test_a_full_disk_while_rows_are_grouped(tmp_path, files, monkeypatch, when):
    options = {"qrels": files[0], "out": tmp_path / "out", "part_rows": 4}
    full = OSError(errno.ENOSPC, "No space left on device")
    if when == "group":
        monkeypatch.setattr(grouping, "_checked", raising(full, grouping._checked, after=3))
    else:
        monkeypatch.setattr(Path, "write_text", raising(full, Path.write_text, after=1))  # the first is the manifest's
    with pytest.raises(OSError, match="No space left on device"):
        evaluate_dataset(files[1], METRICS, **options)
    monkeypatch.undo()
    assert not list((tmp_path / "out").glob("part-*"))
    found = evaluate_dataset(files[1], METRICS, **options)
    assert found.mean() == evaluate_dataset(files[1], METRICS, qrels=files[0], part_rows=4).mean()


def raising(error, function, after):
    """The function for some calls, then the error; half a text is then written."""
    calls = iter(range(after))

    def call(*args):
        if next(calls, None) is not None:
            return function(*args)
        if isinstance(args[0], Path):
            function(args[0], args[1][: len(args[1]) // 2], *args[2:])
        raise error

    return call


def test_a_process_pool(files):
    expected = evaluate_dataset(files[1], METRICS, qrels=files[0], part_rows=20, n_threads=1)
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        found = evaluate_dataset(files[1], METRICS, qrels=files[0], part_rows=20, executor=executor)
    assert found == expected


def test_progress(files, capsys):
    evaluate_dataset(files[1], "AP", qrels=files[0], progress_bar=True)
    shown = capsys.readouterr().err
    assert "grouping" in shown
    assert "scoring: 100%" in shown
    assert "row/s" in shown
