"""Inputs that broke an earlier version: each gives its right value, or is refused in words."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum
from functools import partial
from math import inf, log2, nan
from pathlib import Path

import numpy as np
import pytest

from metrics_core import (
    AnswerExactMatchEvaluator,
    AnswerF1Evaluator,
    Document,
    DocumentMRREvaluator,
    DocumentNDCGEvaluator,
    DocumentRecallEvaluator,
    IdArrays,
    Policies,
    Qrels,
    Run,
    evaluate,
    pack,
    parse,
    parse_all,
    read_qrels,
)
from metrics_core.cli import main
from metrics_core.cli.runs import run_names
from metrics_core.errors import InputError, MetricNameError, PolicyError

ROOT = Path(__file__).resolve().parents[1]


class Text(str, Enum):  # noqa: UP042 (StrEnum has the str that this one has not)
    X = "x"


def documents(*values):
    return [Document(meta={"k": value}) for value in values]


def test_a_text_may_have_a_str_of_its_own():
    for evaluator in (AnswerExactMatchEvaluator(), AnswerF1Evaluator(normalize=None)):
        assert evaluator.run(["x", Text.X], [Text.X, "x"])["individual_scores"] == [1, 1]


def test_views_of_questions_are_lists():
    truth, retrieved = {1: [Document(content="a")]}.values(), {1: [Document(content="z")]}.values()
    for evaluator in (DocumentRecallEvaluator(), DocumentMRREvaluator()):
        assert evaluator.run(truth, retrieved)["individual_scores"] == [0]


def test_the_mask_of_an_array_is_not_lost():
    masked = np.ma.masked_array([[1, 2, 99]], mask=[[0, 0, 1]])
    for qrels, run in ((masked, np.array([[99, 1, 2]])), (np.array([[1]]), masked)):
        with pytest.raises(InputError, match="ids is a masked array; give plain values, and say with lengths="):
            evaluate(qrels, run, "RR")


def test_rows_of_different_lengths_are_no_array():
    with pytest.raises(
        InputError, match="ids must be an array, rows of one length: pad the shorter ones, and give lengths="
    ):
        IdArrays([[1, 2], [3]])
    with pytest.raises(InputError, match="grades must be an array, rows of one length"):
        IdArrays([[1, 2], [3, 4]], grades=[[1, 2], [3]])


@pytest.mark.parametrize("n_judged", [3, 60, 70, 400])
def test_many_judgements_of_a_long_ranking(n_judged):
    rng = np.random.default_rng(n_judged)
    qrels = {"q": {f"d{i}": int(rng.integers(3)) for i in range(n_judged)}}
    run = {"q": {f"d{i}": float(rng.integers(50)) for i in rng.permutation(500).tolist()}}
    from_files = evaluate(Qrels.from_dict(qrels), Run.from_dict(run), ["AP", "nDCG@20", "Bpref"])
    np.testing.assert_array_equal(evaluate(qrels, run, ["AP", "nDCG@20", "Bpref"]).values, from_files.values)


@pytest.mark.parametrize("shift", [0, 16, 32, 40])
def test_ids_that_are_multiples_of_a_power_of_two(shift):
    ids = np.arange(100_000) << shift  # 6 s with a hash of their low bits
    scores = evaluate(ids[None, ::1000], ids[None, ::-1], ["SetR", "RR"])
    assert scores.mean() == {"SetR": 1.0, "RR": 1 / 1000}


def test_blank_lines_before_the_first(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_bytes(b"\n" * (1 << 20) + b"q 0 d 1\n")  # 40 s when each was searched to the end of the block
    assert read_qrels(path).to_dict() == {"q": {"d": 1}}
    assert read_qrels(path).line(0) == (1 << 20) + 1


@pytest.mark.parametrize("odd", [nan, inf, -inf])
def test_padding_may_hold_anything(odd):
    scores = np.full((2000, 500), odd)
    scores[:, 0] = 1
    ids = np.zeros((2000, 500), int)
    run = IdArrays(ids, scores=scores, lengths=np.ones(2000, int))
    assert evaluate(IdArrays(ids[:, :1]), run, "RR").mean() == {"RR": 1}
    with pytest.raises(InputError, match=f"scores of row 1999 must be finite, got {odd}"):
        IdArrays(ids, scores=scores, lengths=[1] * 1999 + [2])


def test_huge_grades_are_refused():
    message = r"a grade of query 'q' is above 1e\+300: its sums would overflow"
    for metric in ("DCG", "nDCG"):
        with pytest.raises(InputError, match=message):
            evaluate({"p": {"a": 1}, "q": {"a": 1e308, "b": 1e308}}, {"q": {"a": 3, "b": 2}}, metric)
    with pytest.raises(InputError, match="a grade of query 0 is above"):
        DocumentNDCGEvaluator().run([[Document(content="a", score=1.7e308)]], [[Document(content="a")]])
    assert evaluate({"q": {"a": 1e299}}, {"q": {"a": 1}}, "nDCG").mean() == {"nDCG": 1}


def test_policies_that_cannot_apply():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    for given in ({"ties": "error"}, {"ties": "expected"}, {"score_dtype": "float32"}):
        with pytest.raises(PolicyError, match="cannot apply to rankings in input order"):
            evaluate(qrels, run, "RR", policies=Policies(order="input", **given))
    assert evaluate(qrels, run, "RR", policies=Policies("beir", order="input")).mean() == {"RR": 1}
    for given in ({"missing": "skip"}, {"unjudged_query": "error"}):
        for lists in (([[1]], [[1]]), ([documents("a")], [documents("a")])):
            sides = map(np.array, lists) if lists[0] == [[1]] else lists
            with pytest.raises(PolicyError, match="cannot apply to"):
                evaluate(*sides, "RR", policies=Policies(**given))


def test_values_whose_equality_is_no_bool():
    truth, retrieved = [documents(np.int64(5))], [documents((1, 2), np.int64(5))]
    result = DocumentNDCGEvaluator("meta.k").run(truth, retrieved)
    assert result["individual_scores"] == [pytest.approx(1 / log2(3), abs=1e-15)]
    one_way, other = (
        evaluate([documents(np.float64(1))], [documents((1,), 1.0)], metrics, document_comparison_field="meta.k")["RR"]
        for metrics in ("RR", ["RR", "Unj@2"])
    )
    assert one_way.tolist() == other.tolist() == [1 / 2]
    with pytest.raises(InputError, match="comparison values must be equal or not"):
        evaluate([documents(np.array([1, 2]))], [documents(np.array([1, 2]))], "RR", document_comparison_field="meta.k")
    with pytest.raises(InputError, match="the score of a ground-truth document of question 0 must be a finite number"):
        DocumentNDCGEvaluator().run([[Document(content="a", score=np.array([1, 2]))]], [[Document(content="a")]])


def test_text_that_spells_a_grade_is_no_grade():
    for grade in ("2", b"1"):
        with pytest.raises(InputError, match="the grade of document 'b' for query 'q' must be a finite number"):
            evaluate({"q": {"a": 1, "b": grade}}, {"q": {"b": 1.0}}, "AP")


@pytest.mark.parametrize("metrics", [None, 5])
def test_what_is_no_metric(metrics):
    with pytest.raises(MetricNameError, match="metrics must be names or Metric objects"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, metrics)


def test_no_metric_at_all():
    batch = pack(np.array([[1]]), np.array([[1]]))
    for call in (batch.evaluate, partial(evaluate, {"q": {"a": 1}}, {"q": {"a": 1.0}}), parse_all):
        for metrics in ([], (), iter([])):
            with pytest.raises(MetricNameError, match=r"^metrics must not be empty$"):
                call(metrics)


def test_parameters_given_twice_or_beyond_a_float():
    for name in ("SetF(beta=1, x=2)", "nDCG(gains={1: 2, 1.0: 3})"):
        with pytest.raises(MetricNameError, match=r"not both|given twice"):
            parse(name)
    with pytest.raises(MetricNameError, match="must be a number"):
        parse("AP")(rel=10**400)
    with pytest.raises(InputError, match="the score of document 'd' for query 'q' must be a finite number"):
        Run.from_dict({"q": {"d": 10**400}})


def test_query_ids_are_a_list():
    for qrels, run in (({"q": {"a": 1}}, {"q": {"a": 1.0}}), (np.array([[1]]), np.array([[1]]))):
        with pytest.raises(InputError, match="query_ids must be a list of ids, got 5"):
            evaluate(qrels, run, "AP", query_ids=5)


def test_names_of_runs_are_different():
    names = run_names(["r", "r", "r (2)", "r"])
    assert len(set(names)) == 4
    assert names[:2] == ["r", "r (2)"]


def test_no_columns_are_as_many_as_there_are_elsewhere(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "0")
    assert main(["metrics", "RR", "--format", "table"]) == 0
    assert "reciprocal rank" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("closed", "arguments", "what"),
    [(">&-", "q.txt r.txt", "standard output"), ("<&-", "q.txt -", "standard input")],
)
def test_closed_streams(tmp_path, closed, arguments, what):
    (tmp_path / "q.txt").write_text("q 0 a 1\n")
    (tmp_path / "r.txt").write_text("q Q0 a 1 1 t\n")
    command = f"{sys.executable} -m metrics_core evaluate {arguments} -m RR {closed}"
    result = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (2, f"metrics-core: error: {what}: Bad file descriptor\n")
