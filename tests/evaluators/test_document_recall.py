"""RecallMode, and the warning of DocumentRecallEvaluator."""

from __future__ import annotations

from typing import Any

import pytest

from metrics_core.documents import Document
from metrics_core.evaluators import DocumentRecallEvaluator, RecallMode

A, B, EMPTY, NONE = (Document(content=content) for content in ("a", "b", "", None))


def test_modes_and_their_names() -> None:
    assert {mode: str(mode) for mode in RecallMode} == {
        RecallMode.SINGLE_HIT: "single_hit",
        RecallMode.MULTI_HIT: "multi_hit",
    }
    assert all(RecallMode.from_str(str(mode)) is mode for mode in RecallMode)


def test_mode_is_given_as_itself_or_by_name() -> None:
    assert DocumentRecallEvaluator().mode is RecallMode.SINGLE_HIT
    for mode in RecallMode:
        assert DocumentRecallEvaluator(mode).mode is DocumentRecallEvaluator(str(mode)).mode is mode
        assert DocumentRecallEvaluator(mode) == DocumentRecallEvaluator(mode=str(mode))


def test_modes_count_differently() -> None:
    lists = [[A, B, A, NONE], [A, B]], [[B, B, EMPTY], [EMPTY]]
    assert DocumentRecallEvaluator("single_hit").run(*lists)["individual_scores"] == [1, 0]
    assert DocumentRecallEvaluator("multi_hit").run(*lists)["individual_scores"] == [1 / 2, 0]


def test_a_mode_set_later_counts() -> None:
    evaluator = DocumentRecallEvaluator()
    evaluator.mode = RecallMode.MULTI_HIT
    assert evaluator.run([[A, B]], [[A]])["score"] == 1 / 2


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("metrics_core")]


@pytest.mark.parametrize("mode", list(RecallMode))
def test_questions_without_a_value_are_warned_of_in_one_line(mode: RecallMode, caplog: Any) -> None:
    truths = [[A], [], [NONE, EMPTY], [A], [A]]
    retrieved = [[A], [A], [A], [EMPTY, NONE], []]
    assert DocumentRecallEvaluator(mode).run(truths, retrieved)["individual_scores"] == [1, 0, 0, 0, 0]
    (warning,) = warnings(caplog)
    assert warning == (
        "4 of 5 questions score 0 because their ground truth or their retrieved documents have no content to compare, "
        "question 1 the first"
    )


def test_the_warning_names_the_field(caplog: Any) -> None:
    evaluator = DocumentRecallEvaluator(document_comparison_field="meta.file.id")
    found = Document(meta={"file": {"id": [1]}})
    evaluator.run([[found], [A]], [[found], [found]])
    (warning,) = warnings(caplog)
    assert "no meta.file.id to compare, question 1 the first" in warning


def test_no_warning_where_values_are_there_but_do_not_match(caplog: Any) -> None:
    DocumentRecallEvaluator().run([[A], [NONE, B]], [[B], [EMPTY, A]])
    falsy = [Document(meta={"key": value}) for value in (0, False, [], 0.0)]
    DocumentRecallEvaluator("multi_hit", "meta.key").run([falsy[:1], falsy[2:3]], [falsy[2:3], falsy[:1]])
    assert warnings(caplog) == []
