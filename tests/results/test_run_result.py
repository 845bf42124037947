"""EvaluationRunResult: what it takes, what it refuses, its reports and comparisons."""

from __future__ import annotations

import csv
import logging
from math import isnan, nan

import numpy as np
import pytest

from metrics_core import Document, EvaluationRunResult, InputError, evaluate

QUESTIONS = ["Capital of France?", "Of Spain?", "Of Italy?"]


def run(name="first", inputs=None, results=None, **options):
    return EvaluationRunResult(
        name,
        {"question": QUESTIONS, "answer": ["Paris", "Madrid", "Rome"]} if inputs is None else inputs,
        {"em": {"score": 2 / 3, "individual_scores": [1, 0, 1]}} if results is None else results,
        **options,
    )


class TestWhatItTakes:
    def test_columns_of_any_kind(self):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        columns = {
            "array": np.array([1, 2]),
            "tuple": ("a", "b"),
            "pandas": pandas.Series([0.5, 1.5]),
            "arrow": pyarrow.array(["x", None]),
            "lists": [["c", "d"], []],
        }
        given = run(inputs=columns, results={"m": {"score": np.float32(0.5), "individual_scores": np.array([0, 1])}})
        assert given.inputs == {
            "array": [1, 2],
            "tuple": ["a", "b"],
            "pandas": [0.5, 1.5],
            "arrow": ["x", None],
            "lists": [["c", "d"], []],
        }
        assert {type(value) for value in (*given.inputs["array"], given.results["m"]["score"])} == {int, float}
        assert {type(score) for score in given.results["m"]["individual_scores"]} == {int}

    @pytest.mark.parametrize("absent", [{}, {"score": None}])
    def test_a_score_that_is_not_given_is_the_mean_of_the_scored_rows(self, absent):
        given = run(results={"judge": {"individual_scores": [1, None, 0.5]} | absent})
        assert given.results["judge"]["score"] == (1 + 0.5) / 2
        assert given.results["judge"]["coverage"] == {"scored": 2, "total": 3}
        assert given.coverage() == {"judge": {"scored": 2, "total": 3}}
        assert isnan(given.results["judge"]["individual_scores"][1])

    def test_without_any_scored_row_the_score_is_nan(self):
        assert isnan(run(results={"judge": {"individual_scores": [None, nan, None]}}).results["judge"]["score"])

    def test_a_score_that_is_given_is_kept(self):
        given = run(results={"judge": {"score": 0.9, "individual_scores": [1, nan, 0.5]}})
        assert given.aggregated_report() == {"metrics": ["judge"], "score": [0.9]}
        assert given.coverage() == {"judge": {"scored": 2, "total": 3}}

    def test_entries_by_row_are_kept(self):
        entries = {"status": ["evaluated", "error", "evaluated"], "usage": {"requests": 3}}
        given = run(results={"judge": {"score": 1, "individual_scores": [1, nan, 1]} | entries})
        assert given.results["judge"] | entries == given.results["judge"]
        frame = given.to_arrow().to_pydict()
        assert frame["judge_status"] == entries["status"]
        assert list(frame) == ["question", "answer", "judge", "judge_status"]

    def test_nothing_is_shared_with_the_caller(self):
        inputs, results = (
            {"contexts": [["a"], ["b"]]},
            {"m": {"score": 0.5, "individual_scores": [0, 1], "why": ["", ""]}},
        )
        given = run(inputs=inputs, results=results)
        inputs["contexts"][0].append("x")
        results["m"]["individual_scores"][0] = results["m"]["why"][0] = 9
        for report in (given.detailed_report(), given.aggregated_report()):
            for column in report.values():
                column.clear()
        given.detailed_report()["contexts"][0].append("y")
        assert given.inputs == {"contexts": [["a"], ["b"]]}
        assert given.results == {"m": {"score": 0.5, "individual_scores": [0, 1], "why": ["", ""]}}
        assert given.detailed_report() == {"contexts": [["a"], ["b"]], "m": [0, 1]}


class TestScores:
    def test_joined_by_query_id(self):
        scores = evaluate({"a": {"x": 1}, "b": {"y": 1}}, {"a": ["x"], "b": ["u", "y"]}, ["RR", "AP"])
        given = run(inputs={"id": ["b", "c", "a"]}, results=scores, key="id")
        assert given.detailed_report()["RR"][::2] == [1 / 2, 1]
        assert isnan(given.detailed_report()["RR"][1])
        assert given.results["AP"]["score"] == (1 + 1 / 2) / 2
        assert given.coverage()["AP"] == {"scored": 2, "total": 3}

    def test_beside_evaluators(self):
        scores = evaluate({"a": {"x": 1}}, {"a": ["x"]}, ["RR", "NumRet"])
        given = run(inputs={"id": ["a"]}, results={"em": {"individual_scores": [0]}, "any": scores}, key="id")
        assert given.aggregated_report() == {"metrics": ["em", "RR", "NumRet"], "score": [0, 1, 1]}

    def test_of_documents_by_position(self):
        scores = evaluate([[Document(content="x")], []], [[Document(content="x")], []], "AP")
        given = run(inputs={"question": ["q", "r"]}, results=scores)
        assert given.detailed_report() == {"question": ["q", "r"], "AP": [1, 0]}

    @pytest.mark.parametrize(
        ("ids", "key", "message"),
        [
            (["a", "c"], "id", r"1 of 2 queries have no row in inputs\['id'\], 'b' the first"),
            (["a", "a"], "id", "'a' is there more than once"),
            ([["a"], ["b"]], "id", "must be hashable"),
            (["a", "b"], None, "key= must name the input column"),
            (["a", "b"], "query", "key must name a column of the inputs"),
        ],
    )
    def test_refused(self, ids, key, message):
        scores = evaluate({"a": {"x": 1}, "b": {"y": 1}}, {"a": ["x"], "b": ["y"]}, "RR")
        with pytest.raises(InputError, match=message):
            run(inputs={"id": ids}, results=scores, key=key)

    def test_metrics_by_name(self):
        result = {"scores": {"RR": 0.5, "AP": 1}, "individual_scores": {"RR": [0, 1], "AP": [1, 1]}}
        given = run(inputs={"id": ["a", "b"]}, results={"documents": result})
        assert given.detailed_report() == {"id": ["a", "b"], "RR": [0, 1], "AP": [1, 1]}


@pytest.mark.parametrize(
    ("inputs", "results", "message"),
    [
        ({}, {"m": {}}, "No inputs provided"),
        ({"a": [1], "b": [1, 2]}, {"m": {}}, "Lengths of the inputs should be the same, got {'a': 1, 'b': 2}"),
        ({"a": [1]}, {"m": {}}, "Aggregate score missing for m"),
        ({"a": [1]}, {"m": {"score": 1}}, "Individual scores missing for m"),
        (
            {"a": [1]},
            {"m": {"score": 1, "individual_scores": [1, 2]}},
            "Length of individual scores for 'm' .* 1, got 2",
        ),
        ({"a": [1]}, {"a": {"score": 1, "individual_scores": [1]}}, "two columns have the name 'a'"),
        ({"m_x": [1]}, {"m": {"score": 1, "individual_scores": [1], "x": [1]}}, "two columns have the name 'm_x'"),
        ([[1]], {}, r"inputs must be a dict of columns, got \[\[1\]\]"),
        ({"a": [1]}, [{"m": [1]}], r"results must be a dict by metric, or Scores, got \["),
        ({"a": "text"}, {}, r"inputs\['a'\] must be a list"),
        ({1: [1]}, {}, "names that are strings, got 1"),
        ({"a": [1]}, {"m": [1]}, r"results\['m'\] must be a dict"),
        ({"a": [1]}, {"m": {"individual_scores": ["1"]}}, "individual_scores of 'm', row 0 must be a finite number"),
        ({"a": [1]}, {"m": {"individual_scores": [float("inf")]}}, "must be a finite number"),
        ({"a": [1]}, {"m": {"score": "x", "individual_scores": [1]}}, "score of 'm' must be a finite number"),
    ],
)
def test_refused(inputs, results, message):
    with pytest.raises(InputError, match=message):
        run(inputs=inputs, results=results)


class TestReports:
    def test_floats_where_any_value_is_one(self):
        report = run(results={"m": {"score": 1, "individual_scores": [1, 0.5, 0]}}).detailed_report()
        assert [type(score) for score in report["m"]] == [float] * 3

    def test_csv(self, tmp_path):
        path = tmp_path / "report.csv"
        said = run().detailed_report("csv", str(path))
        assert said == f"Data successfully written to {path}"
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
        assert rows == [["question", "answer", "em"], *([q, a, e] for q, a, e in zip(*csv_columns(), strict=True))]

    def test_csv_that_cannot_be_written(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            run().aggregated_report("csv", str(tmp_path / "absent" / "report.csv"))

    def test_formulas_are_escaped_on_request(self, tmp_path):
        given = run(inputs={"text": ["=1+1", "-", "@x"]}, results={"m": {"score": -1, "individual_scores": [-1, 0, 1]}})
        for escape, expected in ((True, ["'=1+1", "'-", "'@x"]), (False, ["=1+1", "-", "@x"])):
            given.detailed_report("csv", tmp_path / "report.csv", escape_formulas=escape)
            with (tmp_path / "report.csv").open(newline="") as file:
                _, *rows = csv.reader(file)
            assert rows == [[text, score] for text, score in zip(expected, ["-1", "0", "1"], strict=True)]

    def test_lone_surrogates_are_written(self, tmp_path):
        run(inputs={"text": ["\udfff", "é", ""]}).detailed_report("csv", tmp_path / "report.csv")
        assert (tmp_path / "report.csv").read_bytes() == "text,em\r\n\\udfff,1\r\né,0\r\n,1\r\n".encode()

    @pytest.mark.parametrize("report", ["aggregated_report", "detailed_report"])
    def test_refused(self, report):
        with pytest.raises(InputError, match="needs csv_file"):
            getattr(run(), report)("csv")
        with pytest.raises(InputError, match="must be 'json', 'csv' or 'df', got 'xml'"):
            getattr(run(), report)("xml")


def csv_columns():
    return QUESTIONS, ["Paris", "Madrid", "Rome"], ["1", "0", "1"]


class TestComparison:
    def test_columns(self):
        report = run().comparative_detailed_report(run("second", results={"em": {"individual_scores": [0, 0, 1]}}))
        assert list(report) == ["question", "answer", "first_em", "second_em"]
        assert (report["first_em"], report["second_em"]) == ([1, 0, 1], [0, 0, 1])

    def test_rows_in_another_order(self):
        order = [2, 0, 1]
        other = run(
            "second",
            inputs={"question": [QUESTIONS[row] for row in order], "answer": ["Rom", "Paris", "Madrid"]},
            results={"em": {"individual_scores": [0.2, 0.0, 0.1]}},
        )
        with pytest.raises(InputError, match="the same 'question' as 'first' in another order"):
            run().comparative_detailed_report(other)
        report = run().comparative_detailed_report(other, keep_columns=["answer"], key="question")
        assert report["second_em"] == [0.0, 0.1, 0.2]
        assert report["second_answer"] == ["Paris", "Madrid", "Rom"]
        assert report["question"] == QUESTIONS

    def test_answers_may_be_the_others_in_another_order(self, caplog):
        other = run("second", inputs={"question": QUESTIONS, "answer": ["Rome", "Paris", "Madrid"]})
        assert len(run().comparative_detailed_report(other)["first_em"]) == 3
        assert "'second' has the same 'answer' as 'first' in another order, and the same 'question'" in caplog.text

    def test_columns_that_tell_rows_apart_only_together_show_the_order(self, caplog):
        same = {"subject": ["a", "a", "b", "b"], "part": [1, 2, 1, 2]}
        first, second = (
            run(name, inputs=same | {"answer": answers}, results={"m": {"individual_scores": [1, 1, 0, 0]}})
            for name, answers in (("first", ["yes", "no", "no", "no"]), ("second", ["no", "no", "no", "yes"]))
        )
        assert first.comparative_detailed_report(second)["second_m"] == [1, 1, 0, 0]
        assert not caplog.text

    def test_equal_gold_answers_do_not_hide_another_order(self):
        first = run(inputs={"question": QUESTIONS, "gold": ["yes", "yes", "no"]})
        second = run("second", inputs={"question": [*QUESTIONS[1::-1], QUESTIONS[2]], "gold": ["yes", "yes", "no"]})
        with pytest.raises(InputError, match="'question'"):
            first.comparative_detailed_report(second)

    @pytest.mark.parametrize("inputs", [{"other": QUESTIONS}, {"question": ["x", "y", "z"], "answer": ["", "", ""]}])
    def test_a_warning_where_the_order_cannot_be_told(self, caplog, inputs):
        with caplog.at_level(logging.WARNING):
            run().comparative_detailed_report(run("second", inputs=inputs))
        assert "paired by position" in caplog.text

    def test_a_warning_where_columns_differ(self, caplog):
        with caplog.at_level(logging.WARNING):
            run().comparative_detailed_report(run("second", inputs={"question": QUESTIONS}))
        assert "the input columns of 'first' and 'second' differ" in caplog.text
        assert "paired by position" not in caplog.text

    @pytest.mark.parametrize("output_format", ["json", "csv", "df"])
    def test_unequal_lengths(self, tmp_path, output_format):
        other = run("second", inputs={"question": QUESTIONS[:2]}, results={})
        with pytest.raises(InputError, match="'first' has 3 rows and 'second' 2"):
            run().comparative_detailed_report(other, None, output_format, tmp_path / "report.csv")

    @pytest.mark.parametrize(
        ("other", "options", "message"),
        [
            (run(), {}, "both runs are named 'first'"),
            (run("second"), {"keep_columns": "question"}, "keep_columns must be a list of names, got 'question'"),
            (run("second", inputs={"id": [1, 2, 3]}), {"key": "id"}, "'first' has no 'id'"),
            (
                run("second", inputs={"question": ["x", *QUESTIONS[1:]]}),
                {"key": "question"},
                "1 rows of 'first' are not in",
            ),
            (run("second", inputs={"question": ["x", "x", "y"]}), {"key": "question"}, "'x' is there more than once"),
            (
                run("x", results={"first_em": {"individual_scores": [1, 1, 1]}}),
                {"keep_columns": []},
                None,
            ),
        ],
    )
    def test_refused(self, other, options, message):
        if message is None:
            assert "x_first_em" in run().comparative_detailed_report(other, **options)
            return
        with pytest.raises(InputError, match=message):
            run().comparative_detailed_report(other, **options)

    def test_names_that_would_collide(self):
        first = run("a", results={"b_m": {"individual_scores": [1, 1, 1]}})
        second = run("a_b", results={"m": {"individual_scores": [1, 1, 1]}})
        with pytest.raises(InputError, match="two columns named 'a_b_m'"):
            first.comparative_detailed_report(second)

    def test_another_class(self):
        with pytest.raises(TypeError, match=r"such as from_haystack\(\) returns; got builtins.dict"):
            run().comparative_detailed_report({})

    def test_arrays_among_the_inputs(self):
        first, second = (run(name, inputs={"vector": [np.arange(2)] * 3}) for name in ("first", "second"))
        assert len(first.comparative_detailed_report(second)["vector"]) == 3


def test_repr():
    results = {"em": {"score": 2 / 3, "individual_scores": [1, 0, 1]}, "judge": {"individual_scores": [1, None, 0.5]}}
    assert repr(run(results=results)).splitlines() == [
        "EvaluationRunResult 'first': 3 rows of question, answer",
        "  em     0.6667",
        "  judge  0.7500  (2 of 3 scored)",
    ]


def test_html_is_escaped():
    html = run("<b>", results={"<m>": {"individual_scores": [1, None, 0.5]}})._repr_html_()
    assert "&lt;b&gt;: 3 rows" in html
    assert '<th scope="row">&lt;m&gt;</th><td>0.7500</td><td>2 of 3</td>' in html
