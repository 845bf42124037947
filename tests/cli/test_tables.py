"""metrics-core evaluate on tables: as it takes TREC files; data sets in parts."""

from __future__ import annotations

import json

import pytest

from metrics_core import Policies, evaluate_dataset
from tests.test_dataset import FILES, METRICS, in_memory, rows

pa = pytest.importorskip("pyarrow", reason="needs the arrow extra")
parquet = pytest.importorskip("pyarrow.parquet")

OPTIONS = ("-m", "AP", "-m", "nDCG@5", "-m", "RR", "-m", "NumRel", "-m", "GMAP")


def as_table(path, value):
    fields = [line.split() for line in path.read_text().splitlines()]
    at = {"relevance": 3, "score": 4}[value]
    return pa.table(
        {
            "query_id": [row[0] for row in fields],
            "doc_id": [row[2] for row in fields],
            value: [float(row[at]) for row in fields],
        }
    )


@pytest.fixture
def tables(folder):
    """qrels.parquet, and the runs as folders of parquet files, beside the TREC files."""
    parquet.write_table(as_table(folder / "qrels.txt", "relevance"), "qrels.parquet")
    for name in ("first", "second"):
        (folder / name).mkdir()
        table = as_table(folder / f"{name}.run", "score")
        for part in range(2):
            parquet.write_table(table.slice(part * 2, 2 if part == 0 else None), folder / name / f"{part}.parquet")
    return folder


@pytest.fixture
def row_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    for number, name in enumerate(FILES):
        parquet.write_table(rows(20, number, number * 20), tmp_path / "rows" / name)
    return tmp_path / "rows"


class TestLongTables:
    @pytest.mark.parametrize("qrels", ["qrels.txt", "qrels.parquet"])
    @pytest.mark.parametrize("format_name", ["table", "tsv", "json", "trec"])
    @pytest.mark.parametrize("per_query", [(), ("-q",)], ids=["all", "per query"])
    def test_the_same_as_trec_files(self, cli, tables, qrels, format_name, per_query):
        options = ("--format", format_name, *per_query)
        expected = cli("evaluate", "qrels.txt", "first.run", *options)
        found = cli("evaluate", qrels, "first", *options)
        assert (found.code, found.err) == (0, expected.err.replace(".run", ""))
        clean = found.out.replace('"first"', '"first.run"').replace(qrels, "qrels.txt")
        if format_name == "table":
            words, expected_words = (
                text.replace(".run", "").replace("─", "").split() for text in (clean, expected.out)
            )
            assert words == expected_words
        elif format_name == "tsv":
            assert clean.replace("\tfirst", "\tfirst.run") == expected.out
        else:
            assert clean == expected.out

    def test_two_runs_in_parts(self, cli, tables):
        found = cli("evaluate", "qrels.parquet", "first", "second", "--out", "out", "--format", "table")
        assert found.code == 0
        assert "first lacks 1 query: scored as empty rankings" in found.out
        assert "second lacks" not in found.out
        assert (tables / "out" / "first" / "_summary.json").exists()
        totals = json.loads(cli("evaluate", "qrels.parquet", "first", "second", "--out", "out", "--json").out)
        expected = json.loads(cli("evaluate", "qrels.txt", "first.run", "second.run", "--json").out)
        assert [run["metrics"] for run in totals["runs"]] == [run["metrics"] for run in expected["runs"]]

    def test_patterns(self, cli, tables):
        assert (
            cli("evaluate", "qrels.txt", "first/*.parquet").out.splitlines()[1:]
            == (cli("evaluate", "qrels.txt", "first.run").out.splitlines()[1:])
        )


class TestRows:
    @pytest.mark.parametrize(
        "extra", [(), ("-q",), ("--out", "out"), ("--executor", "processes", "--threads", "1")], ids=str
    )
    def test_aggregates(self, cli, row_files, extra):
        found = cli("evaluate", "rows", *OPTIONS, "--json", *extra)
        assert found.code == 0, found.err
        report = json.loads(found.out)
        expected = in_memory(row_files)
        assert report["policies"]["profile"] == "haystack"
        (run,) = report["runs"]
        for name, total in expected.aggregate().items():
            assert run["metrics"][name]["value"] == pytest.approx(total.value, rel=1e-12)
        if extra == ("-q",):
            assert run["queries"] == expected.to_dict()
        if "--out" in extra:
            assert evaluate_dataset("rows", METRICS, out="out").scores().to_dict() == expected.to_dict()

    def test_several_files_are_one_data_set(self, cli, row_files):
        files = [f"rows/{name}" for name in FILES]
        found, expected = (json.loads(cli("evaluate", *paths, *OPTIONS, "--json").out) for paths in (files, ["rows"]))
        assert found["runs"][0].pop("name") == f"{FILES[0]} and {len(FILES) - 1} more"
        assert expected["runs"][0].pop("name") == "rows"
        assert found["runs"][0].pop("path") == found.pop("qrels") == files[0]
        assert expected["runs"][0].pop("path") == expected.pop("qrels") == "rows"
        assert found == expected

    def test_columns_of_other_names(self, cli, row_files):
        expected = cli("evaluate", "rows", "-m", "AP").out
        for path in row_files.iterdir():
            table = parquet.read_table(path)
            parquet.write_table(table.rename_columns(["query_id", "gold", "relevance", "contexts"]), path)
        columns = ("--column", "ground_truth=gold", "--column", "retrieved=contexts")
        assert cli("evaluate", "rows", "-m", "AP", *columns).out == expected

    def test_policies(self, cli, row_files):
        report = json.loads(cli("evaluate", "rows", "-m", "AP", "--json", "--empty-key", "ignore").out)
        assert report["policies"] == Policies("haystack", empty_key="ignore").to_dict() | {"default_rel": "-inf"}

    def test_resumed(self, cli, row_files):
        first = cli("evaluate", "rows", "-m", "AP", "--out", "out").out
        part = next((row_files.parent / "out").glob("part-00001*"))
        part.unlink()
        assert cli("evaluate", "rows", "-m", "AP", "--out", "out").out == first
        assert part.exists()
        refused = cli("evaluate", "rows", "-m", "RR", "--out", "out")
        assert refused.code == 2
        assert "another computation: metrics was ['AP'], now ['RR']" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rows", "-q", "--out", "out"), "--per-query shows what --out writes"),
        (("qrels.txt", "first.run", "--out", "out"), "--out and --executor are for tables, which 'first.run' is not"),
        (("qrels.txt", "first.run", "--column", "a=b"), "--column is for tables with a row a query"),
        (("rows", "--column", "a"), "--column takes ROLE=NAME, got 'a'"),
        (("rows", "--column", "a=b"), "columns has no role 'a'"),
        (("qrels.txt",), "missing"),
        (
            ("rows", "--column", "ground_truth=gold"),
            "without RUN, a table has a row a query, but rows has no column 'gold', only 'query_id', 'ground_truth', ",
        ),
        (("rows", "--column", "relevance=grades"), "no column 'grades' for relevance; the table has 'query_id', "),
        (("rows", "--column", "relevance=grades"), "(--column maps roles)"),
        (("rows", "--null-list", "x"), "'x' is not one of"),
        (("qrels.txt", "first.run", "--null-list", "empty"), "--null-list empty cannot apply to ids of documents"),
    ],
)
def test_refusals(cli, row_files, folder, arguments, message):
    result = cli("evaluate", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err.lower() if message == "missing" else message in result.err


def test_without_the_extra(cli, row_files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    result = cli("evaluate", "rows")
    assert (result.code, result.err) == (
        2,
        "metrics-core: error: this needs pyarrow: pip install 'metrics-core[arrow]'\n",
    )
