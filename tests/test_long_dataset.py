"""Long tables in files: grouped by query on disk, then scored; the same as in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import FileFormatError, InputError, Policies, PolicyError, evaluate, evaluate_dataset, read_qrels
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


@pytest.mark.parametrize("part_rows", [1, 4, 1000])
@pytest.mark.parametrize("kind", [str, int], ids=["strings", "integers"])
def test_the_same_as_in_memory(tmp_path, kind, part_rows):
    qrels, run, judged, retrieved = long_tables(kind=kind)
    paths = write(tmp_path / "run", retrieved)
    found = evaluate_dataset(
        paths, METRICS, qrels=write(tmp_path / "qrels", judged), out=tmp_path / "out", part_rows=part_rows
    )
    assert_same(found, qrels, run)
    assert (found.n_queries, found.n_missing, found.n_unjudged) == (N, 5, 3)
    assert (len(found.paths) > 1) == (part_rows < 1000)
    assert not (tmp_path / "out" / "_groups").exists()
    again = evaluate_dataset(paths, METRICS, qrels=tmp_path / "qrels", out=tmp_path / "out", part_rows=part_rows)
    assert again == found


@given(seed=st.integers(0, 10**6), n_threads=st.integers(1, 3), part_rows=st.integers(1, 10))
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
    found = evaluate_dataset(files[1], metrics, qrels=files[0], out=tmp_path / "out", part_rows=1, policies=policies)
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
        "column 'score' must hold integers or floats or booleans, got": table.set_column(2, "score", table["doc_id"]),
        "the run table needs a column of each": table.append_column("x", numbers).rename_columns(["a", "b", "c", "d"]),
        "document ids are integers, those of .*0.parquet strings; cast one": table.set_column(1, "doc_id", numbers),
    }
    for message, other in others.items():
        parquet.write_table(other, path)
        with pytest.raises(FileFormatError, match=rf"1\.parquet: {message}"):
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
