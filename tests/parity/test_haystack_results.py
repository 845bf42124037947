"""EvaluationRunResult against haystack-ai's class: the same inputs through both."""

from __future__ import annotations

import csv
import logging
import os

import pytest
from hypothesis import given, strategies as st

from metrics_core import EvaluationRunResult

NAMES = st.text("ab_ é", min_size=1, max_size=4)
SCORES = st.integers(-3, 3) | st.floats(-1, 1) | st.booleans()


@pytest.fixture(scope="module")
def theirs():
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported
    return pytest.importorskip("haystack.evaluation", reason="haystack-ai is not installed").EvaluationRunResult


@st.composite
def runs(draw, n_rows=None):
    n_rows = draw(st.integers(0, 4)) if n_rows is None else n_rows
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    n_inputs = draw(st.integers(1, len(names)))
    values = st.text('xy,"\n', max_size=3) | st.integers() | st.lists(st.text("x", max_size=1), max_size=2) | st.none()
    inputs = {name: draw(st.lists(values, min_size=n_rows, max_size=n_rows)) for name in names[:n_inputs]}
    results = {
        name: {
            "score": draw(SCORES),
            "individual_scores": draw(st.lists(SCORES, min_size=n_rows, max_size=n_rows)),
        }
        for name in names[n_inputs:]
    }
    return inputs, results


def typed(report):
    """A report with the types of its values, which == does not tell apart."""
    return {name: [(type(value), value) for value in values] for name, values in report.items()}


@given(run=runs())
def test_reports(theirs, tmp_path_factory, run):
    ours, oracle = EvaluationRunResult("run", *run), theirs("run", *run)
    assert (ours.run_name, ours.inputs, ours.results) == (oracle.run_name, oracle.inputs, oracle.results)
    for report in ("aggregated_report", "detailed_report"):
        mine, expected = getattr(ours, report)(), getattr(oracle, report)()
        assert list(mine) == list(expected)
        assert typed(mine) == typed(expected)
        folder = tmp_path_factory.mktemp("reports")
        written = []
        for name, result in (("ours", ours), ("theirs", oracle)):
            said = getattr(result, report)("csv", str(folder / name))
            assert said == f"Data successfully written to {folder / name}"
            written.append(list(csv.reader((folder / name).read_text("utf-8").splitlines(keepends=True))))
        assert written[0] == written[1]


@given(run=runs(n_rows=3), other=runs(n_rows=3), keep=st.none() | st.lists(NAMES, max_size=2))
def test_comparison_of_the_same_rows(theirs, run, other, keep):
    inputs, results = run
    other_results = {f"{name}'": result for name, result in other[1].items()}
    ours = EvaluationRunResult("one", inputs, results).comparative_detailed_report(
        EvaluationRunResult("two", inputs, other_results), keep
    )
    expected = theirs("one", inputs, results).comparative_detailed_report(theirs("two", inputs, other_results), keep)
    assert list(ours) == list(expected)
    assert typed(ours) == typed(expected)


def test_data_frame(theirs):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    arguments = "run", {"q": ["a", "b"], "c": [["x"], []]}, {"m": {"score": 1, "individual_scores": [1, 0.5]}}
    ours, oracle = (kind(*arguments) for kind in (EvaluationRunResult, theirs))
    pandas.testing.assert_frame_equal(ours.detailed_report("df"), oracle.detailed_report("df"))
    pandas.testing.assert_frame_equal(ours.aggregated_report("df"), oracle.aggregated_report("df"))


@pytest.mark.parametrize(
    ("inputs", "results"),
    [
        ({}, {}),
        ({"a": [1], "b": []}, {"m": {}}),
        ({"a": [1]}, {"m": {"score": 1}}),
        ({"a": [1]}, {"m": {}}),
        ({"a": [1]}, {"m": {"score": 1, "individual_scores": []}}),
    ],
)
def test_refuses_what_theirs_refuses(theirs, inputs, results):
    for kind in (EvaluationRunResult, theirs):
        with pytest.raises(ValueError, match=r"."):
            kind("run", inputs, results)


def test_the_order_of_refusals(theirs):
    """The first fault is named, in the order of theirs."""
    cases = [({}, {"m": {}}), ({"a": [1], "b": []}, {"m": {}}), ({"a": [1]}, {"m": {}, "n": {"score": 1}})]
    for inputs, results in cases:
        said = []
        for kind in (EvaluationRunResult, theirs):
            with pytest.raises(ValueError, match=r".") as caught:
                kind("run", inputs, results)
            said.append(str(caught.value)[:18])
        assert said[0] == said[1]


def test_other_columns_are_warned_of_and_another_class_refused(theirs, caplog):
    for kind in (EvaluationRunResult, theirs):
        first = kind("one", {"q": ["a", "b"], "c": [1, 2]}, {})
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert first.comparative_detailed_report(kind("two", {"q": ["a", "b"]}, {})) == first.inputs
        assert "differ" in caplog.text
        with pytest.raises(TypeError):
            first.comparative_detailed_report({})


@given(run=runs())
def test_their_objects_are_taken(theirs, run):
    ours = EvaluationRunResult.from_haystack(theirs("run", *run))
    assert (ours.run_name, ours.inputs, ours.results) == ("run", *run)
