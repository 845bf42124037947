"""Parquet files on the command line."""

from __future__ import annotations

import json

import pytest

from metrics_core import evaluate_table

pa = pytest.importorskip("pyarrow", reason="needs the extra: pip install 'metrics-core[arrow]'")
parquet = pytest.importorskip("pyarrow.parquet")

TABLE = pa.table(
    {
        "query_id": ["q1", "q2", "q3"],
        "ground_truth": [["a"], ["b", "c"], []],
        "retrieved": [["x", "a"], ["c", "b"], ["a"]],
    }
)


@pytest.fixture
def folder(tmp_path):
    parquet.write_table(TABLE, tmp_path / "t.parquet", row_group_size=2)
    return tmp_path


@pytest.mark.parametrize("what", ["", "t.parquet", "*.parquet"])
@pytest.mark.parametrize("options", [(), ("--executor", "processes", "--threads", "1")])
def test_aggregates_and_parts(cli, folder, what, options):
    found = cli("evaluate", str(folder / what), "-m", "RR", "-m", "AP", "--json", "--out", folder / "out", *options)
    assert found.code == 0, found.err
    shown = json.loads(found.out)
    expected = evaluate_table(TABLE, ["RR", "AP"])
    assert {name: each["value"] for name, each in shown["metrics"].items()} == pytest.approx(expected.mean())
    assert shown["policies"]["profile"] == "haystack"
    assert pa.concat_tables(map(parquet.read_table, shown["paths"])).equals(expected.to_arrow())
    assert json.loads((folder / "out" / "summary.json").read_text())["n_queries"] == 3


def test_policies_and_formats(cli, folder):
    found = cli("evaluate", folder, "-m", "RR", "--profile", "haystack", "--no-relevant", "skip", "--format", "tsv")
    assert found.out == "metric\tvalue\nRR\t0.75\n"
    assert "3 queries, policies haystack" in cli("evaluate", folder, "-m", "RR", "--format", "table").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--per-query",), "of parquet files --out has the scores of each query"),
        (("--format", "trec"), "of parquet files --out has the scores of each query"),
        (("-m", "nDGC"), "nDGC"),
    ],
)
def test_refused(cli, folder, arguments, message):
    found = cli("evaluate", folder / "t.parquet", *arguments)
    assert found.code == 2
    assert message in found.err


def test_options_of_tables_alone(cli, folder):
    (folder / "q.txt").write_text("q1 0 a 1\n")
    found = cli("evaluate", folder / "q.txt", folder / "q.txt", "--out", folder / "out")
    assert found.code == 2
    assert "--out and --executor are for parquet files" in found.err
