"""Judges of one's own: outputs by a pydantic model or a JSON schema, and their score."""

from __future__ import annotations

import json
import typing
from enum import Enum
from math import isnan
from typing import Literal

import pytest
from hypothesis import given, settings, strategies as st

from llm_judges import FatalError, LLMEvaluator, ScriptedChatGenerator
from llm_judges.outputs import InvalidOutputError, json_object
from metrics_core.errors import InputError
from tests.judges.judging import Recording, llm

pytest.importorskip("pydantic", reason="needs the extra: pip install 'metrics-core[judges]'")

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model


class Grade(Enum):
    GOOD = "good"
    BAD = "bad"


class Point(BaseModel):
    text: str = Field(min_length=1)
    weight: float = 1.0


class Rating(BaseModel):
    reason: str = Field(description="in a sentence, before the rating")
    rating: int = Field(ge=1, le=5)
    grade: Grade | None = None
    kind: Literal["a", "b"] = "a"
    points: list[Point] = []
    others: dict[str, int] = {}


GOOD = {"reason": "so", "rating": 4}


def judge(*replies, outputs=Rating, **options):
    return llm(outputs=outputs, chat_generator=Recording(replies), max_concurrency=1, **options)


@pytest.mark.parametrize("outputs", [Rating, Rating.model_json_schema()], ids=["model", "schema"])
def test_what_conforms_is_read_and_scored(outputs):
    replies = [json.dumps(GOOD | {"extra": 1}), json.dumps(GOOD | {"rating": 2, "points": [{"text": "p"}]})]
    result = judge(*replies, outputs=outputs, score="rating").run(texts=["a", "b"])
    assert result["individual_scores"] == [4.0, 2.0]
    assert result["score"] == 3.0
    assert result["coverage"] == {"scored": 2, "total": 2}
    assert result["results"][0]["extra"] == 1
    assert result["results"][0]["reason"] == "so"
    assert result["results"][1]["points"][0]["text"] == "p"


@pytest.mark.parametrize("outputs", [Rating, Rating.model_json_schema()], ids=["model", "schema"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"rating": 6},
        {"rating": "high"},
        {"rating": None},
        {"rating": 4.5},
        {"reason": 3},
        {"grade": "fair"},
        {"kind": "c"},
        {"points": [{"text": ""}]},
        {"points": [{}]},
        {"others": {"a": "b"}},
    ],
    ids=str,
)
def test_what_does_not_conform_is_asked_for_again_and_told_why(outputs, wrong):
    evaluator = judge(json.dumps(GOOD | wrong), json.dumps(GOOD), outputs=outputs)
    assert evaluator.run(texts=["t"])["status"] == ["evaluated"]
    asked = evaluator._chat_generator.requests
    assert len(asked) == 2
    assert next(iter(wrong)) in asked[1].messages[-1].text
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("outputs", [Rating, Rating.model_json_schema()], ids=["model", "schema"])
def test_a_whole_number_is_an_integer_however_it_is_written(outputs):
    result = judge('{"reason": "so", "rating": 4.0}', outputs=outputs, score="rating").run(texts=["t"])
    assert result["results"][0]["rating"] == 4


def test_the_schema_is_shown_and_examples_may_be_left_out():
    (request,) = judge().requests(texts=["t"])
    prompt = request.messages[0].text
    assert "in a sentence, before the rating" in prompt
    assert '["reason", "rating", "grade", "kind", "points", "others"]' in prompt
    assert "Examples" not in prompt


@pytest.mark.parametrize("value", ["high", None, [1], True])
def test_a_score_must_be_a_number(value):
    reply = json.dumps({"ok": value})
    result = llm(score="ok", chat_generator=ScriptedChatGenerator([reply] * 2)).run(texts=["t"])
    if value is True:
        assert result["individual_scores"] == [1.0]
    else:
        assert result["reason"] == ["invalid_output"]
        assert isnan(result["score"])


@pytest.mark.parametrize("number", ["1e999", "9" * 400])
def test_what_no_float_holds_is_no_score(number):
    result = llm(score="ok", chat_generator=ScriptedChatGenerator([f'{{"ok": {number}}}'] * 2)).run(texts=["t"])
    assert result["reason"] == ["invalid_output"]


def test_a_score_must_be_one_of_the_outputs():
    with pytest.raises(InputError, match="score must be one of the outputs"):
        judge(score="rateing")


def test_aliases_and_defaults_of_a_model():
    class Aliased(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        value: int = Field(alias="the value")
        weight: float = 0.5

    result = judge('{"the value": 3}', outputs=Aliased, score="weight").run(texts=["t"])
    assert result["results"] == [{"the value": 3, "weight": 0.5}]
    assert result["score"] == 0.5


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object"},
        {"properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {"a": {}}, "required": "a"},
    ],
    ids=str,
)
def test_what_is_no_schema_of_an_object_is_refused(schema):
    with pytest.raises(InputError, match="outputs"):
        judge(outputs=schema)


class Node(BaseModel):
    rating: int
    children: list[Node] = []


def test_a_model_may_be_recursive():
    replies = ['{"rating": 1, "children": [{"rating": "none"}]}', '{"rating": 1, "children": [{"rating": 2}]}']
    evaluator = judge(*replies, outputs=Node, score="rating")
    assert evaluator.run(texts=["t"])["individual_scores"] == [1]
    assert "children.0.rating" in evaluator._chat_generator.requests[1].messages[-1].text
    again = LLMEvaluator.from_dict(LLMEvaluator("Rate.", [("texts", list[str])], Node, score="rating").to_dict())
    assert again.output_keys == ["rating", "children"]


@pytest.mark.parametrize("outputs", [RootModel[list[int]], RootModel[dict[str, int]], create_model("Nothing")])
def test_a_model_without_fields_is_refused(outputs):
    with pytest.raises(InputError, match="must describe an object with properties"):
        judge(outputs=outputs)


@pytest.mark.parametrize("kind", [list[str | None], list[typing.Any], list[tuple[str, int]], list[Literal["a", 1]]])
def test_types_of_inputs_survive_the_dict_form(kind):
    evaluator = LLMEvaluator("Rate.", [("texts", kind)], ["ok"], [])
    data = json.loads(json.dumps(evaluator.to_dict()))
    assert LLMEvaluator.from_dict(data).inputs == [("texts", kind)]


@pytest.mark.parametrize("ref", ["#/$defs/a", "http://127.0.0.1:9/schema.json"])
def test_a_schema_that_refers_to_nothing_stops_the_run_and_fetches_nothing(ref):
    schema = {"type": "object", "properties": {"ok": {"$ref": ref}}}
    with pytest.raises(FatalError, match="refers to"):
        judge('{"ok": 1}', outputs=schema).run(texts=["t"])


def test_a_judge_by_schema_survives_its_dict_form():
    evaluator = LLMEvaluator(
        "Rate.", [("texts", list[str]), ("many", list[dict[str, list[int]]])], Rating, score="rating", samples=3
    )
    data = json.loads(json.dumps(evaluator.to_dict()))
    again = LLMEvaluator.from_dict(data)
    assert again.to_dict() == data
    assert again.inputs == evaluator.inputs
    assert again.options.samples == 3
    assert again.score == "rating"


instances = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2.0, 0.5, -1, "", "a", "abcd", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "model_b c", "c"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), instances, min_size=1, max_size=3), st.text("{}<think/>\n` abc", max_size=30))
def test_an_object_among_prose_is_read_whole_or_not_at_all(value, prose):
    text = json.dumps(value)
    assert json_object(f"```json\n{text}\n```") == value
    for among in (f"{prose} {text}", f"{text} {prose}"):
        try:
            assert json_object(among) == value
        except InvalidOutputError:
            assert set(prose) & set("{<")
