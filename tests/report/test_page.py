"""What is in the page and what it says is not; what it takes, and what it refuses."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from math import log2
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from metrics_core import (
    Document,
    FileFormatError,
    InputError,
    Policies,
    compare,
    evaluate,
    read_qrels,
    read_run,
    write_report,
    write_run,
)
from metrics_core.cli import main

from .conftest import HOSTILE

ROOT = Path(__file__).resolve().parents[2]


class Page(HTMLParser):
    """A page as its elements, its text outside of scripts and style, and the data island."""

    def __init__(self, path):
        super().__init__()
        self.html = path.read_text("utf-8")
        self.tags, self.text, self.ids, self._within, self.scripts = [], "", set(), None, []
        self.feed(self.html)
        self.island = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids |= {value for name, value in attrs if name == "id"}
        self._within = tag if tag in ("script", "style") else None
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._within = None

    def handle_data(self, data):
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within is None:
            self.text += data


@pytest.fixture
def write(tmp_path):
    def written(*args, **arguments):
        write_report(tmp_path / "report.html", *args, **arguments)
        return Page(tmp_path / "report.html")

    return written


def test_everything(write, everything, collection):
    page = write(**everything)
    assert {"means", "significance", "cutoffs", "queries", "made", "differences", "scatter"} <= page.ids
    assert "coverage" not in page.ids
    assert page.tags.count("svg") == 2 * 2 + 3
    assert "Failed rows of judges: no run is the result of a judge" in page.text
    assert page.text.count("is given") == page.text.count("are given") == 0
    assert "paired t-test" in page.text.lower()
    for name, value in Policies().to_dict().items():
        assert name in page.text
        assert str(value) in page.text
    assert page.island["ids"] == list(collection.queries)
    assert page.island["texts"] == list(collection.queries.values())
    for run, name in enumerate(collection.scores):
        for metric in range(2):
            assert page.island["scores"][run][metric] == [
                round(value, 5) for value in collection.scores[name].values[:, metric]
            ]


def test_ranked_lists_are_those_of_the_hardest_and_the_largest_regressions(write, everything, collection):
    page = write(**everything)
    first, second = (scores["nDCG@10"] for scores in collection.scores.values())
    means, differences = (first + second) / 2, second - first
    hardest = sorted(range(120), key=lambda query: means[query])[:50]
    regressions = sorted(range(120), key=lambda query: differences[query])[:50]
    assert set(map(int, page.island["details"])) == {
        *hardest,
        *(query for query in regressions if differences[query] < 0),
    }
    place = hardest[0]
    query = page.island["ids"][place]
    detail = page.island["details"][str(place)]
    assert dict(detail["relevant"]) == collection.qrels[query]
    (_, shown), _ = detail["rankings"]
    ranked = sorted(collection.runs["bm25"][query].items(), key=lambda each: -each[1])[:10]
    assert [tuple(each) for each in shown] == [
        (document, collection.qrels[query].get(document), score) for document, score in ranked
    ]
    assert page.island["documents"][shown[0][0]] == collection.documents[shown[0][0]]


def test_hostile_text_is_text(write, everything):
    page = write(**everything)
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert f"Report {HOSTILE}" in page.text
    assert f"dense {HOSTILE}".replace("\u2028\u2029", "") in page.text.replace("\u2028\u2029", "")
    assert not re.search("[<>&\u2028\u2029]", re.search(r'type="application/json">(.*?)</script>', page.html)[1])


def test_needs_nothing_else(write, everything):
    page = write(**everything)
    assert not re.search(r"""(src|href)=["'](?!data:,|#)""", page.html.split("<script id")[0])
    assert "@import" not in page.html
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'", page.html)
    assert "default-src 'none'" in page.html


def test_the_same_input_gives_the_same_page(write, everything):
    assert write(**everything).html == write(**everything).html


def test_what_is_not_given_is_absent_and_named(write, collection):
    page = write(collection.scores)
    assert not {"significance", "cutoffs", "coverage"} & page.ids
    for absent in (
        "Significance of differences: no comparison is given",
        "nDCG and recall by cutoff, judged share: no qrels and rankings are given",
        "Texts of queries: no queries are given",
        "Ranked lists: no rankings are given",
        "Grades and relevant documents: no qrels are given",
        "Texts of documents: no documents are given",
    ):
        assert absent in page.text
    assert page.island["details"] == {}
    assert page.island["texts"] is None
    assert "no rankings are given" in write(collection.scores, qrels=collection.qrels).text
    assert "no qrels are given" in write(collection.scores, rankings=collection.runs).text


def test_one_run_has_no_differences(write, collection):
    page = write({"bm25": collection.scores["bm25"]})
    assert not {"differences", "scatter"} & page.ids
    assert "Per-query differences and the scatter of two runs: there is only one run" in page.text
    assert page.island["baseline"] is None


def test_cutoffs_are_of_the_policies_that_scored_the_run(write):
    qrels = {"q": {"a": 1}, "r": {"b": 1}}
    run = {"q": {"x": 1, "a": 1}}
    for policies, value in ((Policies(missing="skip"), 1 / log2(3)), (Policies(), 1 / log2(3) / 2)):
        scores = evaluate(qrels, run, "nDCG", policies=policies)
        page = write({"run": scores}, qrels=qrels, rankings={"run": run})
        assert f"nDCG@2 {value:.4f}" in page.html


def test_judges_have_coverage_and_reasons(write):
    def result(name, reasons):
        scores = [0.5 if reason is None else None for reason in reasons]
        outcome = {
            "score": 0.5,
            "individual_scores": scores,
            "reason": reasons,
            "detail": ["<b>refused</b>" if reason else None for reason in reasons],
        }
        return SimpleNamespace(run_name=name, inputs={"question": list("abcd")}, results={"faithfulness": outcome})

    page = write([result("one", [None, "refusal", None, None]), result("two", [None] * 4)])
    assert "coverage" in page.ids
    assert "one, faithfulness: 1 failed row" in page.text
    assert "refusal: <b>refused</b>" in page.text
    assert re.search(r"one\s*faithfulness\s*3\s*4", page.text)
    assert re.search(r"two\s*faithfulness\s*4\s*4", page.text)
    assert "Policies: no run is Scores" in page.text
    assert "No row failed" in write([result("two", [None] * 4)]).text


def test_rows_of_results_have_the_texts_of_their_inputs(write):
    def result(name, order):
        questions = [f"Who is {letter}?" for letter in order]
        outcome = {"individual_scores": [0.5, None, 1], "reason": [None, "refusal", None]}
        inputs = {"id": list(order), "contexts": [["c"]] * 3, "question": questions}
        return SimpleNamespace(run_name=name, inputs=inputs, results={"faithfulness": outcome})

    page = write([result("one", "abc"), result("two", "cba")], key="id")
    assert page.island["ids"] == ["a", "b", "c"]
    assert page.island["texts"] == ["Who is a?", "Who is b?", "Who is c?"]
    assert re.search(r"b\s*Who is b\?\s*refusal", page.text)
    assert "Texts of queries" not in page.text
    runs = [result("one", "abc")]
    assert write(runs).island["texts"] == ["a", "b", "c"]  # the first column of strings
    assert write(runs, queries={0: "given"}).island["texts"] == ["given", "", ""]


class TestLists:
    """Rankings and judgements as lists of documents, as the evaluators take them."""

    TRUTH: ClassVar = [
        [Document(content="yes", score=2.0, meta={"url": "/y"}), Document(content=None)],
        [Document(content="maybe", meta={"url": "/m"}, score=1.0)],
    ]
    FOUND: ClassVar = [
        [Document(content="no", score=0.9, meta={"url": "/n"}), Document(content="yes", meta={"url": "/y"}, score=0.8)],
        [],
    ]

    def test_documents_are_their_contents(self, write):
        scores = evaluate([[self.TRUTH[0][0]], self.TRUTH[1]], self.FOUND, ["nDCG", "AP"], query_ids=["q", "r"])
        page = write({"run": scores}, qrels=[[self.TRUTH[0][0]], self.TRUTH[1]], rankings={"run": self.FOUND})
        assert page.island["details"] == {
            "0": {"n_relevant": 1, "relevant": [["yes", 2]], "rankings": [[0, [["no", None, 0.9], ["yes", 2, 0.8]]]]},
            "1": {"n_relevant": 1, "relevant": [["maybe", 1]], "rankings": [[0, []]]},
        }
        assert f"nDCG@2 {1 / log2(3) / 2:.4f}" in page.html
        assert "Texts of documents" not in page.text

    def test_or_what_they_are_compared_by_with_their_contents(self, write):
        field = "meta.url"
        truth = [[self.TRUTH[0][0]], self.TRUTH[1]]
        scores = evaluate(truth, self.FOUND, "AP", document_comparison_field=field)
        page = write({"run": scores}, qrels=truth, rankings={"run": self.FOUND}, document_comparison_field=field)
        assert page.island["details"]["0"]["relevant"] == [["/y", 2]]
        assert page.island["documents"] == {"/y": "yes", "/n": "no", "/m": "maybe"}

    def test_what_matches_nothing_is_not_judged(self, write):
        scores = evaluate([[Document(content=None)], self.TRUTH[1]], self.FOUND, "AP")
        page = write({"run": scores}, qrels=[[Document(content=None)], self.TRUTH[1]])
        assert page.island["details"]["0"]["n_relevant"] == 0

    def test_as_many_as_queries(self, write):
        scores = evaluate([self.TRUTH[1]] * 2, self.FOUND, "AP")
        with pytest.raises(
            InputError, match=r"rankings\['run'\] has 1 lists of documents, and the runs have 2 queries"
        ):
            write({"run": scores}, rankings={"run": self.FOUND[:1]})
        with pytest.raises(InputError, match="qrels has 3 lists of documents"):
            write({"run": scores}, qrels=[[]] * 3)


def test_long_tables(write):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; the extra arrow brings it")
    qrels = pa.table({"query_id": [1, 1, 2], "doc_id": [10, 11, 20], "relevance": [1, 2, 1]})
    run = pa.table({"query_id": [1, 1], "doc_id": [12, 11], "score": [0.5, 0.25]})
    page = write({"run": evaluate(qrels, run, "AP")}, qrels=qrels, rankings={"run": run})
    assert page.island["details"]["0"]["rankings"] == [[0, [["12", None, 0.5], ["11", 2, 0.25]]]]
    assert page.island["details"]["0"]["relevant"] == [["11", 2], ["10", 1]]
    assert f"R@2 {(1 / 2 + 0) / 2:.4f}" in page.html


def test_order_is_that_of_the_scored_ranking(write):
    qrels, run = {"q": {"b": 1}}, {"q": {"a": 0.1 + 1e-12, "b": 0.1, "q": 0.9}}
    for policies, order in (
        (Policies(), ["q", "a", "b"]),
        (Policies(score_dtype="float32"), ["q", "b", "a"]),
        (Policies(score_dtype="float32", ties="input", drop_identical_ids=True), ["a", "b"]),
    ):
        page = write({"run": evaluate(qrels, run, "AP", policies=policies)}, rankings={"run": run})
        ((_, shown),) = page.island["details"]["0"]["rankings"]
        assert [document for document, _, _ in shown] == order


def test_queries_without_scores(write):
    runs = {"a": {"x": 0.5, "y": None, "z": 1}, "b": {"x": 0.25, "y": None}}
    page = write(runs)
    assert page.island["scores"] == [[[0.5, None, 1]], [[0.25, None, None]]]
    assert re.search(r"b\s*score\s*1\s*3", page.text)
    assert write({"a": {"x": None, "y": None}, "b": {"x": None, "y": None}}).island["scores"] == [[[None, None]]] * 2


def test_ids_may_be_numbers_or_bytes_that_are_no_utf8(write):
    qrels = {1: {10: 1}, 2: {20: 1}}
    page = write({"run": evaluate(qrels, {1: {10: 1}}, "AP")}, qrels=qrels, rankings={"run": {1: {10: 1}}})
    assert page.island["ids"] == ["1", "2"]
    assert page.island["details"]["1"]["rankings"] == [[0, []]]
    assert page.island["details"]["0"]["rankings"] == [[0, [["10", 1, 1.0]]]]
    qrels = {"caf\udce9": {"d": 1}, "q": {"d": 1}}
    assert write({"caf\udce9": evaluate(qrels, {"q": ["d"]}, "AP")}, title="\ud800").island["ids"] == ["caf\udce9", "q"]


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path, collection, monkeypatch):
        monkeypatch.chdir(tmp_path)
        qrels = {query.replace(HOSTILE, "evil"): grades for query, grades in collection.qrels.items()}
        lines = (
            f"{query} 0 {document} {grade}\n"
            for query, grades in qrels.items()
            for document, grade in grades.items()
            if " " not in document
        )
        Path("qrels.txt").write_text("".join(lines))
        for name, run in zip(("bm25.run", "dense.run"), collection.runs.values(), strict=True):
            kept = {
                query: {document: score for document, score in ranking.items() if " " not in document}
                for query, ranking in run.items()
                if " " not in query
            }
            write_run(name, {query: ranking for query, ranking in kept.items() if ranking})
        Path("queries.tsv").write_text("".join(f"q{i}\tthe text\tof {i}\n" for i in range(119)))
        with gzip.open("corpus.jsonl.gz", "wt") as file:
            file.writelines(
                json.dumps({"_id": f"d{i}", "title": f"Title {i}", "text": f"body {i}"}) + "\n" for i in range(200)
            )
        return tmp_path

    def test_command(self, folder):
        options = [
            "--baseline",
            "bm25.run",
            "--queries",
            "queries.tsv",
            "--documents",
            "corpus.jsonl.gz",
            "--resamples",
            "200",
        ]
        assert (
            main(
                [
                    "report",
                    "qrels.txt",
                    "bm25.run",
                    "dense.run",
                    "-m",
                    "nDCG@10",
                    "-o",
                    "page.html",
                    "--title",
                    "Ours",
                    *options,
                ]
            )
            == 0
        )
        page = Page(folder / "page.html")
        assert {"significance", "cutoffs"} <= page.ids
        assert "the text of 3" in page.island["texts"]
        assert page.island["documents"]["d7"] == "Title 7 — body 7"
        assert page.island["runs"] == ["bm25.run", "dense.run"]
        assert main(["report", "qrels.txt", "bm25.run", "-o", "page.html"]) == 0
        assert Page(folder / "page.html").island["runs"] == ["bm25.run"]

    def test_what_can_be_read_only_once(self, folder, monkeypatch):
        options = ["dense.run", "-m", "AP", "-o", "page.html"]
        assert main(["report", "qrels.txt", "bm25.run", *options]) == 0
        expected = Page(folder / "page.html").island
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(Path("bm25.run").read_bytes())))
        assert main(["report", "qrels.txt", "-", *options]) == 0
        assert Page(folder / "page.html").island == expected | {"runs": ["stdin", "dense.run"]}

    def test_tables(self, folder):
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; the extra arrow brings it")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {"query_id": [1, 2], "doc_id": ["a", "b"]}
        parquet.write_table(pa.table(columns | {"relevance": [1, 1]}), "qrels.parquet")
        parquet.write_table(pa.table(columns | {"score": [0.5, 0.25]}), "run.parquet")
        Path("texts.tsv").write_text("1\tthe first\n")
        command = ["report", "qrels.parquet", "run.parquet", "-m", "AP", "-o", "page.html", "--queries", "texts.tsv"]
        assert main(command) == 0
        page = Page(folder / "page.html")
        assert page.island["texts"] == ["the first", ""]
        assert page.island["details"]["0"]["rankings"] == [[0, [["a", 1, 0.5]]]]

    def test_paths_and_what_was_read_of_them_give_the_same(self, folder, write):
        scores = {"bm25": evaluate("qrels.txt", "bm25.run", "AP")}
        page = write(scores, qrels="qrels.txt", rankings={"bm25": "bm25.run"})
        assert write(scores, qrels=read_qrels("qrels.txt"), rankings={"bm25": read_run("bm25.run")}).html == page.html
        mappings = {"qrels": read_qrels("qrels.txt").to_dict(), "rankings": {"bm25": read_run("bm25.run").to_dict()}}
        assert write(scores, **mappings).island == page.island

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("-", "-", "-o", "page.html"), "only one of the files can be standard input"),
            (("qrels.txt", "bm25.run"), "missing option '-o'"),
            (
                ("qrels.txt", "bm25.run", "-o", "page.html", "--baseline", "bm25.run"),
                "--baseline is for two RUNs or more",
            ),
            (("qrels.txt", "bm25.run", "-o", "absent/page.html"), "absent/page.html: No such file or directory"),
            (("qrels.txt", "bm25.run", "-o", "page.html", "--queries", "absent"), "absent: No such file or directory"),
        ],
    )
    def test_refusals_of_the_command(self, folder, capsys, arguments, message):
        assert main(["report", *arguments]) == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("q1 the text", "texts, line 1: an id, a tab and a text expected, got 'q1 the text'"),
            ('{"_id": "q1", "text": "a"}\n\n{"_id": 1', "texts, line 3: not JSON"),
            ('{"name": "q1", "text": "a"}', r"texts, line 1: an id \(_id, .* expected, got name, text"),
        ],
    )
    def test_malformed_texts(self, folder, write, text, message):
        Path("texts").write_text(text)
        with pytest.raises(FileFormatError, match=message):
            write({"bm25": evaluate("qrels.txt", "bm25.run", "AP")}, queries="texts")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rankings": {"bm52": {}}}, "no run is named 'bm52'; there are 'bm25', "),
        (
            {"rankings": {"bm25": [["a"]]}},
            "rankings['bm25'] must be {query: {document: score}}, {query: [document]}, a Run, a path, a long table",
        ),
        (
            {"qrels": [["a"]]},
            "qrels must be {query: {document: grade}}, Qrels, a path, a long table or lists of documents, got [['a']]",
        ),
        ({"queries": ["a"]}, "queries must be {id: text} or the path of a file, got ['a']"),
        ({"queries": {"q1": 7}}, "queries: the text of 'q1' must be a string, got 7"),
    ],
)
def test_refusals(write, collection, arguments, message):
    with pytest.raises(InputError) as error:
        write(collection.scores, **arguments)
    assert message in str(error.value)


def test_a_comparison_of_other_runs(write, collection):
    other = compare({"x": collection.scores["bm25"], "bm25": collection.scores["bm25"]}, n_resamples=10)
    with pytest.raises(InputError, match="comparison is of x, bm25, and runs are bm25, dense"):
        write(collection.scores, comparison=other)


def test_a_missing_package_names_the_extra():
    code = (
        "import sys; sys.modules['altair'] = None\n"
        "from metrics_core import write_report\n"
        "try: write_report('page.html', {'a': {1: 1}})\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "write_report needs altair: pip install 'metrics-core[report]'\n"
