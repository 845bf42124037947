"""Run results kept in files: what comes back, who else can read them, what is refused."""

from __future__ import annotations

import json
from datetime import date
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import Document, EvaluationRunResult, FileFormatError, InputError

every_suffix = pytest.mark.parametrize("suffix", ["json", "parquet"])


@pytest.fixture(autouse=True)
def needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def result(**inputs):
    return EvaluationRunResult(
        "run",
        {"question": ["a", "é \u2028", "\0"]} | inputs,
        {
            "em": {"score": 2 / 3, "individual_scores": [1, 0, 1]},
            "judge": {
                "individual_scores": [0.1 + 0.2, nan, 1],
                "status": ["evaluated", "error", "evaluated"],
                "results": [{"statements": ["x"]}, {"statements": []}, {"other": 1}],
                "usage": {"requests": 3},
            },
            "none": {"individual_scores": [None] * 3},
        },
    )


def equal(left, right):
    """Equality by which NaN equals itself."""
    if isinstance(left, float) and isinstance(right, float) and isnan(left):
        return isnan(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return left == right


@every_suffix
def test_what_was_saved_comes_back(tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    saved = result(
        contexts=[["a", "b"], [], ["c"]], mixed=[1, "x", None], nested=[{"a": [1]}, {}, None], big=[2**70, 1, 0]
    )
    saved.save(path)
    loaded = EvaluationRunResult.load(path)
    assert loaded.run_name == "run"
    assert loaded.inputs == saved.inputs
    assert list(loaded.results) == list(saved.results)
    assert equal(loaded.results, saved.results)
    assert list(tmp_path.iterdir()) == [path]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SCORE = st.none() | st.booleans() | st.integers() | st.floats(allow_infinity=False)


@every_suffix
@given(rows=st.lists(st.tuples(JSON, SCORE, JSON), max_size=5), name=st.text())
def test_any_json_comes_back(tmp_path_factory, suffix, rows, name):
    path = tmp_path_factory.mktemp("runs") / f"run.{suffix}"
    values, scores, extras = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    saved = EvaluationRunResult(name, {"input": values}, {"m": {"individual_scores": scores, "extra": extras}})
    saved.save(path)
    loaded = EvaluationRunResult.load(path)
    assert (loaded.run_name, loaded.inputs) == (name, saved.inputs)
    assert equal(loaded.results, saved.results)


@every_suffix
def test_values_that_are_not_json(tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    document = Document(content="x", meta={"page": np.int64(3)}, score=0.5)
    values = [[document], (1, nan), {"when": date(2024, 2, 29), "array": np.arange(2)}]
    result(values=values).save(path)
    as_dict = {"id": document.id, "content": "x", "meta": {"page": 3}, "score": 0.5}
    assert EvaluationRunResult.load(path).inputs["values"] == [
        [as_dict],
        [1, None],
        {"when": "2024-02-29", "array": [0, 1]},
    ]


@every_suffix
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "has a object, which cannot be stored"),
        (b"x", "has a bytes"),
        ({1: 2}, "keys must be strings"),
        (float("inf"), "has inf"),
    ],
)
def test_values_that_cannot_be_stored_leave_what_was_there(tmp_path, suffix, value, message):
    path = tmp_path / f"run.{suffix}"
    path.write_text("before")
    with pytest.raises(InputError, match=f"'value'.* {message}"):
        result(value=[value, None, None]).save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_readable_without_us(tmp_path):
    result().save(tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text("utf-8")
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (data["version"], data["run_name"], data["inputs"]["question"][0]) == (1, "run", "a")
    assert data["results"]["judge"]["individual_scores"] == [0.1 + 0.2, None, 1]
    assert data["results"]["none"]["score"] is None
    assert "é" in text


def test_parquet_is_readable_without_us(tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    result(contexts=[["a", "b"], [], ["c"]]).save(tmp_path / "run.parquet")
    frame = polars.read_parquet(tmp_path / "run.parquet")
    assert frame.columns == ["question", "contexts", "em", "judge", "judge_status", "judge_results", "none"]
    assert frame["judge"].to_list() == [0.1 + 0.2, None, 1]
    assert frame["none"].dtype == polars.Float64
    assert frame["contexts"].to_list() == [["a", "b"], [], ["c"]]


@every_suffix
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_files_that_were_cut_off(tmp_path, suffix, kept):
    path = tmp_path / f"run.{suffix}"
    result().save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(FileFormatError, match=rf"run.{suffix}: not"):
        EvaluationRunResult.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2 of the format, and this metrics-core reads version 1"),
        ({"format": "x"}, "not a run result"),
        ({"inputs": {}}, "damaged: No inputs"),
        ({"inputs": None}, "damaged"),
        ({"results": {"m": {}}}, "damaged"),
        ({"results": {"m": {"score": 1, "individual_scores": "abc"}}}, "damaged"),
        ({"results": 3}, "damaged"),
    ],
)
def test_other_files(tmp_path, change, message):
    path = tmp_path / "run.json"
    result().save(path)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change))
    with pytest.raises(FileFormatError, match=rf"run.json: .*{message}"):
        EvaluationRunResult.load(path)


def test_parquet_of_others(tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    polars.DataFrame({"a": [1]}).write_parquet(tmp_path / "run.parquet")
    with pytest.raises(FileFormatError, match="not a run result"):
        EvaluationRunResult.load(tmp_path / "run.parquet")


def test_paths(tmp_path):
    with pytest.raises(InputError, match=r"kept as .json or .parquet, got 'run.pkl'"):
        result().save("run.pkl")
    with pytest.raises(InputError, match=r"kept as .json or .parquet"):
        EvaluationRunResult.load("run")
    for suffix in ("json", "parquet"):
        with pytest.raises(FileNotFoundError):
            EvaluationRunResult.load(tmp_path / f"absent.{suffix}")
        with pytest.raises(FileNotFoundError):
            result().save(tmp_path / "absent" / f"run.{suffix}")


class TestFrames:
    def test_pandas(self):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        frame = result(documents=[[Document(content="x")], [], []]).to_pandas()
        assert list(frame["em"]) == [1, 0, 1]
        assert pandas.isna(frame["judge"][1])
        assert frame["documents"][0] == [Document(content="x")]
        assert list(frame["judge_status"]) == ["evaluated", "error", "evaluated"]

    def test_polars(self):
        polars = pytest.importorskip("polars", reason="polars is not installed")
        frame = result(documents=[[Document(content="x", meta={"page": 1})], [], []]).to_polars()
        assert frame["em"].dtype == polars.Int64
        assert frame["judge"].to_list() == [0.1 + 0.2, None, 1]
        assert frame["documents"][0][0]["content"] == "x"
