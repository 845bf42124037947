"""haystack-ai's evaluators and ours, with one scripted generator on both sides."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import closing

import pytest
from hypothesis import given, settings, strategies as st

from llm_judges import ContextRelevanceEvaluator, FaithfulnessEvaluator, LLMEvaluator
from tests.judges.judging import row_of, rows

haystack = pytest.importorskip("haystack", reason="needs haystack-ai")

from haystack.components import evaluators as theirs  # noqa: E402
from haystack.components.generators.chat import OpenAIChatGenerator as TheirGenerator  # noqa: E402
from haystack.dataclasses import ChatMessage  # noqa: E402


class Scripted:
    """A chat generator in Haystack's shape; a row's reply is told by its prompt. It has no `run_async`."""

    def __init__(self, replies):
        self.replies = replies

    def run(self, messages):
        said = self.replies[row_of(messages[0].text)]
        if isinstance(said, Exception):
            raise said
        meta = {"model": "scripted", "index": 0, "finish_reason": "stop", "usage": {"total_tokens": 7}}
        return {"replies": [ChatMessage.from_assistant(said, meta=meta)]}


class ScriptedAsync(Scripted):
    async def run_async(self, messages):
        await asyncio.sleep(0)
        return self.run(messages)


LLM = {
    "instructions": "Is it so?",
    "inputs": [("questions", list[str])],
    "outputs": ["a", "b"],
    "examples": [{"inputs": {"questions": "is it?"}, "outputs": {"a": 1, "b": [2]}}],
}
CASES = {
    "LLMEvaluator": (theirs.LLMEvaluator, LLMEvaluator, LLM, ("questions",)),
    "ContextRelevanceEvaluator": (
        theirs.ContextRelevanceEvaluator,
        ContextRelevanceEvaluator,
        {},
        ("questions", "contexts"),
    ),
    "FaithfulnessEvaluator": (
        theirs.FaithfulnessEvaluator,
        FaithfulnessEvaluator,
        {},
        ("questions", "contexts", "predicted_answers"),
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def both(case, replies, *, asynchronous, generator=Scripted, **options):
    """Their result and ours, or the classes of what they raised."""
    found = []
    for cls in case[:2]:
        columns = {name: values for name, values in rows(len(replies)).items() if name in case[3]}
        evaluator = cls(**case[2], progress_bar=False, chat_generator=generator(replies), **options)
        try:
            if asynchronous:
                found.append(asyncio.run(evaluator.run_async(**columns)))
            else:
                found.append(evaluator.run(**columns))
        except ValueError as error:
            found.append(error)
    return found


def equal(theirs, ours):
    """Equal, NaN to itself, floats to the last few bits."""
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(equal(theirs[name], ours[name]) for name in theirs)
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(equal, theirs, ours))
    if isinstance(theirs, float):
        return (math.isnan(theirs) and math.isnan(ours)) or math.isclose(theirs, ours, rel_tol=1e-12)
    return theirs == ours


texts = st.text(min_size=1).filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
verdicts = st.lists(st.tuples(texts, st.integers(0, 1)), max_size=5).map(
    lambda pairs: {"statements": [text for text, _ in pairs], "statement_scores": [score for _, score in pairs]}
)
good = {
    "LLMEvaluator": st.fixed_dictionaries({"a": values, "b": values}, optional={"c": values}),
    "ContextRelevanceEvaluator": st.fixed_dictionaries(
        {"relevant_statements": st.lists(texts, max_size=3)}, optional={"why": values}
    ),
    "FaithfulnessEvaluator": verdicts,
}
# what neither can read, the latter with the keys of none
bad = st.sampled_from(["", "no", "[1]", "3", "null", "{", '{"a": 1}', '{"statements": ["s"]}', "{'a': 1, 'b': 2}"])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("generator", [Scripted, ScriptedAsync])
@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_results_equal_those_of_haystack(name, generator, asynchronous, data):
    replies = data.draw(
        st.lists(good[name].map(json.dumps) | bad | st.just(RuntimeError("boom")), min_size=1, max_size=6)
    )
    expected, found = both(CASES[name], replies, asynchronous=asynchronous, generator=generator, raise_on_failure=False)
    for key in expected.keys() - {"meta"}:
        assert equal(expected[key], found[key]), key
    # theirs has no entry for a failed call, which ours has; both are None if there is nothing at all
    assert expected["meta"] == ([meta for meta in found["meta"] or [] if meta is not None] or None)
    assert found["status"] == [
        "evaluated" if (row or {"status": "error"}).get("status", "evaluated") == "evaluated" else "error"
        for row in found["results"]
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("reply", ["", "[1]", "{}", RuntimeError("boom"), '{"a": 1'])
@every_case
def test_the_first_failure_is_a_value_error_as_haystack_has_it(case, reply, asynchronous):
    for raised in both(case, [reply], asynchronous=asynchronous):
        assert isinstance(raised, ValueError)


@every_case
def test_no_rows(case):
    expected, found = both(case, [], asynchronous=False)
    for key in expected:
        assert equal(expected[key], found[key]), key
    assert found["coverage"]["total"] == 0


INVALID_ARGUMENTS = [
    {"inputs": {("questions", list[str])}},
    {"inputs": [(list[str], "questions")]},
    {"inputs": [list[str]]},
    {"inputs": [("questions", list)]},
    {"inputs": [("questions", list[str], 1)]},
    {"inputs": None},
    {"outputs": {"a"}},
    {"outputs": "a"},
    {"outputs": [1]},
    {"examples": None},
    {"examples": {}},
    {"examples": [1]},
    {"examples": [{"inputs": {}}]},
    {"examples": [{"inputs": {}, "outputs": {}, "more": {}}]},
    {"examples": [{"inputs": [], "outputs": {}}]},
    {"examples": [{"inputs": {}, "outputs": {1: 2}}]},
]


@pytest.mark.parametrize("wrong", INVALID_ARGUMENTS, ids=str)
def test_invalid_arguments_are_refused_by_both(wrong):
    for cls in (theirs.LLMEvaluator, LLMEvaluator):
        with pytest.raises((ValueError, TypeError)) as caught:
            cls(**{**LLM, **wrong}, chat_generator=Scripted([]))
        if cls is LLMEvaluator:
            assert isinstance(caught.value, ValueError)
            came = repr(next(iter(wrong.values())))
            assert came[:20].strip("[]") in str(caught.value)


INVALID_COLUMNS = [
    {},
    {"questions": ["q"]},
    {"questions": "q", "contexts": [["c"]]},
    {"questions": ["q"], "contexts": (["c"],)},
    {"questions": ["q", "r"], "contexts": [["c"]]},
    {"questions": [], "contexts": [["c"]]},
]


@pytest.mark.parametrize("wrong", INVALID_COLUMNS, ids=str)
def test_invalid_columns_are_refused_by_both(wrong):
    for cls in (theirs.ContextRelevanceEvaluator, ContextRelevanceEvaluator):
        with pytest.raises(ValueError, match="input"):
            cls(chat_generator=Scripted([]), progress_bar=False).run(**wrong)


@pytest.mark.parametrize("examples", [LLM["examples"], [], LLM["examples"] * 3])
@pytest.mark.parametrize("inputs", [LLM["inputs"], [("a b", list[str]), ("c", list[list[str]])]])
def test_the_template_is_that_of_haystack(inputs, examples):
    arguments = LLM | {"inputs": inputs, "examples": examples}
    # theirs as a skeleton only: building the evaluator would make a Jinja template of it
    their = theirs.LLMEvaluator.__new__(theirs.LLMEvaluator)
    vars(their).update(arguments)
    assert LLMEvaluator(**arguments, chat_generator=Scripted([])).prepare_template() == their.prepare_template()


@pytest.mark.parametrize("case", list(CASES.values())[1:], ids=list(CASES)[1:])
def test_empty_examples_are_the_defaults_whose_structure_is_that_of_haystack(case):
    ours, their = (cls(chat_generator=Scripted([]), examples=[]).examples for cls in (case[1], case[0]))
    assert len(ours) == len(their) == 3
    for one, other in zip(ours, their, strict=True):
        assert one != other
        assert one["inputs"].keys() == other["inputs"].keys()
        assert one["outputs"].keys() == other["outputs"].keys()
    assert set(case[1](chat_generator=Scripted([])).prepare_template()) & set("{}")


@every_case
def test_the_dict_form_is_that_of_haystack(case, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    key = haystack.utils.Secret.from_env_var("SOME_KEY")
    generation = {"seed": 1, "response_format": {"type": "json_object"}}

    def made(cls):
        generator = TheirGenerator(api_key=key, model="m", generation_kwargs=generation)
        return cls(**case[2], chat_generator=generator, progress_bar=False, raise_on_failure=False)

    expected, found = made(case[0]).to_dict(), made(case[1]).to_dict()
    if not case[2]:  # the defaults' words are our own
        expected["init_parameters"].pop("examples")
        assert found["init_parameters"].pop("examples")
    assert found["init_parameters"] == expected["init_parameters"]
    assert "sk-secret" not in json.dumps(found)
    again = case[1].from_dict(made(case[1]).to_dict())
    assert again.to_dict() == made(case[1]).to_dict()
    assert again.inputs == made(case[1]).inputs


def test_haystacks_own_openai_generator_and_its_errors():
    from llm_judges import FatalError
    from tests.judges.server import Server, fails, says

    def evaluator(server, **options):
        generator = TheirGenerator(
            api_key=haystack.utils.Secret.from_token("k"),
            model="m",
            api_base_url=server.url,
            generation_kwargs={"seed": 42, "temperature": 1},
            max_retries=0,
        )
        return FaithfulnessEvaluator(progress_bar=False, raise_on_failure=False, chat_generator=generator, **options)

    with Server(lambda _: says('{"statements": ["s"], "statement_scores": [1]}')) as server:
        judge = evaluator(server)
        assert judge.run(**rows(5))["score"] == 1.0
        assert judge.run(**rows(5))["usage"]["total_tokens"] == 150

        async def in_a_loop():
            result = await judge.run_async(**rows(5))
            await judge.close_async()
            return result

        assert asyncio.run(in_a_loop())["score"] == asyncio.run(in_a_loop())["score"] == 1.0
        judge.close()
        server.requests.clear()
        sampled = evaluator(server, samples=2)
        assert sampled.run(**rows(1))["score"] == 1.0
        assert sorted(seen.body["seed"] for seen in server.requests) == [42, 43]
        assert {seen.body["temperature"] for seen in server.requests} == {1}
        sampled.close()
    with (
        Server(lambda _: fails(401, "invalid_api_key")) as server,
        closing(evaluator(server)) as judge,
        pytest.raises(FatalError),
    ):
        judge.run(**rows(5))
    with Server(lambda _: says(None, refusal="no")) as server, closing(evaluator(server)) as judge:
        assert judge.run(**rows(1))["reason"] == ["refused"]
