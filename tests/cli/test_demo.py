"""metrics-core demo: quick, true, and what it tells you to type works."""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from math import log2
from pathlib import Path

import pytest

from metrics_core import Policies, evaluate, read_qrels, read_run
from metrics_core.cli import demo

FOLDER = Path(str(files("metrics_core") / "demo"))
EXAMPLES = {"two runs": demo.TWO_RUNS, "differences": demo.DIFFERENCES, "missing": demo.MISSING, "ties": demo.TIES}


def test_it_shows_every_example_and_its_conclusions(cli):
    result = cli("demo")
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    for example in EXAMPLES.values():
        assert example.command.splitlines()[0] in result.out
    prose = " ".join(result.out.split())
    assert "Scored as an empty ranking, as by trec_eval -c, bm25.run is ahead" in prose
    assert "left out, as some tools do without a word, dense.run is." in prose
    assert "16 judged queries" in prose
    assert "15/16" in prose


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_commands_work_and_give_what_it_shows(cli, monkeypatch, name):
    monkeypatch.chdir(FOLDER)
    example = EXAMPLES[name]
    program, *arguments = shlex.split(example.command.replace("\\\n", ""))
    assert program == "metrics-core"
    (run, *_) = json.loads(cli(*arguments, "--json").out)["runs"]
    expected = example.evaluated(FOLDER).runs[0].scores.aggregate()
    assert {metric: each["value"] for metric, each in run["metrics"].items()} == {
        metric: each.value for metric, each in expected.items()
    }


def test_its_python_works():
    *statements, expression = demo.PYTHON.splitlines()
    names: dict[str, object] = {}
    exec("\n".join(statements), names)
    assert eval(expression, names) == pytest.approx((1 / log2(2) + 3 / log2(3)) / (3 / log2(2) + 1 / log2(3)))


def test_its_files_are_what_it_says():
    qrels, texts = read_qrels(FOLDER / demo.QRELS).to_dict(), json.loads((FOLDER / "documents.json").read_text())
    runs = {name: read_run(FOLDER / name).to_dict() for name in (demo.BM25, demo.DENSE)}
    assert list(qrels) == list(texts["questions"])
    assert len(qrels) == 16
    assert {grade for grades in qrels.values() for grade in grades.values()} == {0, 1, 2, 3}
    assert set(qrels) - set(runs[demo.DENSE]) == {"q11"}
    documents = {
        each for ranking in (*qrels.values(), *runs[demo.BM25].values(), *runs[demo.DENSE].values()) for each in ranking
    }
    assert documents <= set(texts["documents"])
    assert max(map(len, (*runs[demo.BM25].values(), *runs[demo.DENSE].values()))) == 10
    assert all(len(set(ranking.values())) < len(ranking) for ranking in runs[demo.BM25].values() if len(ranking) > 3)


def test_the_evaluators_agree_with_the_run_in_the_order_of_the_file():
    texts = json.loads((FOLDER / "documents.json").read_text())
    shown = demo.evaluator_scores(FOLDER, texts)
    scores = evaluate(
        FOLDER / demo.QRELS, FOLDER / demo.BM25, ["nDCG", "AP", "RR"], policies=Policies(order="input")
    ).mean()
    # q14 has no relevant document, and so is no question here.
    assert shown["DocumentNDCGEvaluator()"] == pytest.approx(scores["nDCG"] * 16 / 15)
    assert shown["DocumentMAPEvaluator()"] == pytest.approx(scores["AP"] * 16 / 15)
    assert shown["DocumentMRREvaluator()"] == pytest.approx(scores["RR"] * 16 / 15)
    assert shown["AnswerExactMatchEvaluator()"] == 2 / 6
    assert shown['AnswerExactMatchEvaluator(normalize="squad")'] == 3 / 6
