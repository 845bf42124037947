"""Haystack's results and the reports that users saved of them."""

from __future__ import annotations

import json
from math import isnan

import pytest

from metrics_core import EvaluationRunResult, FileFormatError, InputError

DETAILED = {
    "query_id": [1, 2],
    "question": ["a", "b"],
    "contexts": ["['x', 'y']", "[]"],
    "doc_mrr": ["0.5", ""],
    "sas": [1, 0.25],
}


def write_csv(path, columns):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pandas.DataFrame(columns).to_csv(path, index=False)
    return path


def check(result, name="haystack"):
    assert result.run_name == name
    assert [list(map(str, values)) for values in result.inputs.values()] == [
        ["1", "2"],
        ["a", "b"],
        ["['x', 'y']", "[]"],
    ]
    assert result.inputs["contexts"] == [["x", "y"], []]
    assert list(result.results) == ["doc_mrr", "sas"]
    assert result.results["doc_mrr"]["score"] == 0.5
    assert isnan(result.results["doc_mrr"]["individual_scores"][1])
    assert result.results["sas"]["score"] == (1 + 0.25) / 2


def test_a_dict():
    check(EvaluationRunResult.from_haystack(DETAILED))
    check(EvaluationRunResult.from_haystack(DETAILED, run_name="mine"), "mine")


def test_csv_and_json(tmp_path):
    check(EvaluationRunResult.from_haystack(write_csv(tmp_path / "run.csv", DETAILED)), "run")
    (tmp_path / "run.json").write_text(json.dumps(DETAILED))
    check(EvaluationRunResult.from_haystack(str(tmp_path / "run.json")), "run")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame(library):
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    check(
        EvaluationRunResult.from_haystack(
            frames.DataFrame(DETAILED, **({"strict": False} if library == "polars" else {}))
        )
    )


def test_the_score_report_names_the_metrics():
    report = {"metrics": ["sas"], "score": ["0.625"]}
    result = EvaluationRunResult.from_haystack(DETAILED, report)
    assert list(result.results) == ["sas"]
    assert result.results["sas"]["score"] == 0.625
    assert "doc_mrr" in result.inputs
    assert list(EvaluationRunResult.from_haystack(DETAILED, metrics=["doc_mrr", "sas"]).results) == ["doc_mrr", "sas"]


COMPARED = {
    "question": ["a", "b"],
    "my_run_answer": ["x", "y"],
    "my_run_sas": [1.0, 0.5],
    "other_run_answer": ["z", "y"],
    "other_run_sas": [0.0, 1.0],
}


def test_a_comparison():
    result = EvaluationRunResult.from_haystack(COMPARED, run_name="other_run")
    assert result.inputs == {"question": ["a", "b"], "answer": ["z", "y"]}
    assert result.detailed_report()["sas"] == [0.0, 1.0]
    with pytest.raises(InputError, match="compares 'my_run' and 'other_run'; run_name= takes one of them, got None"):
        EvaluationRunResult.from_haystack(COMPARED)


def test_a_comparison_of_ours_comes_apart():
    first, second = (
        EvaluationRunResult(name, {"q": ["a", "b"], "answer": answers}, {"m": {"individual_scores": scores}})
        for name, answers, scores in (("one", ["x", "y"], [0.5, 1]), ("two", ["z", "y"], [0, 1]))
    )
    report = first.comparative_detailed_report(second, keep_columns=["answer"])
    for run in (first, second):
        parted = EvaluationRunResult.from_haystack(report, run_name=run.run_name)
        assert parted.detailed_report() == run.detailed_report()


def test_metrics_with_similar_names_are_no_comparison():
    report = {"question": ["a"], "recall_single_hit": [1.0], "recall_multi_hit": [0.5]}
    assert list(EvaluationRunResult.from_haystack(report).results) == ["recall_single_hit", "recall_multi_hit"]


@pytest.mark.parametrize(
    ("report", "options", "message"),
    [
        ({"id": [1], "sas": [1]}, {}, "metrics= must name those"),
        (DETAILED, {"metrics": ["x"]}, "has no column 'x'"),
        (DETAILED, {"metrics": ["question"]}, "'question' is no metric: 'a' in row 0"),
        (DETAILED, {"score_report": {"sas": [1]}}, "the columns 'metrics' and 'score', got 'sas'"),
        (3, {}, "a path, a dict of lists or a data frame, got 3"),
    ],
)
def test_refused(report, options, message):
    with pytest.raises(InputError, match=message):
        EvaluationRunResult.from_haystack(report, **options)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.csv", "", "empty"),
        ("run.csv", "a,b\n1\n", "row 0: 2 cells expected, got 1"),
        ("run.csv", "a,a\n1,2\n", "two columns have one name"),
        ("run.csv", '"a', "not CSV"),
        ("run.csv", b"\xff\xfe\x00", "not CSV in UTF-8"),
        ("run.json", "{", "not JSON"),
    ],
)
def test_files_that_are_none(tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError, match=rf"{name}.*{message}"):
        EvaluationRunResult.from_haystack(tmp_path / name)


def test_real_reports(shared):
    """Reports that others published: the means come out as their score reports say."""
    folder = shared / "data/exports/haystack_eval"
    detailed = sorted(folder.glob("*/detailed*.csv"))
    assert len(detailed) == 4
    for path in detailed:
        stated = EvaluationRunResult.from_haystack(path, path.with_name(path.name.replace("detailed", "score_report")))
        ours = EvaluationRunResult.from_haystack(path)
        assert ours.aggregated_report()["metrics"] == stated.aggregated_report()["metrics"]
        assert ours.aggregated_report()["score"] == pytest.approx(stated.aggregated_report()["score"], rel=1e-12)
        assert len(ours) >= 100
    runs = [
        EvaluationRunResult.from_haystack(folder / "comparative_scores.csv", run_name=name)
        for name in ("baseline_rag", "hyde_rag")
    ]
    assert list(runs[0].inputs) == ["questions", "contexts", "ground_truth_answers", "responses"]
    assert isinstance(runs[0].inputs["contexts"][0], list)
    compared = runs[0].comparative_detailed_report(runs[1], key="questions")
    assert len(compared["hyde_rag_metric_sas"]) == len(runs[0])
