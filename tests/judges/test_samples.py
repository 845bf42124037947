"""Several replies to a row: samples, panels, and the verdict."""

from __future__ import annotations

import json
from math import isnan, nan
from types import SimpleNamespace

import pytest

from llm_judges import LLMEvaluator, ScriptedChatGenerator
from metrics_core.errors import InputError
from tests.judges.judging import Recording, faithfulness, llm, relevance, rows, verdict
from tests.judges.server import Server, says

FOUND, NOTHING = ('{"relevant_statements": ["context 0"]}', '{"relevant_statements": []}')


def relevances(*replies, **options):
    return relevance(
        chat_generator=ScriptedChatGenerator(replies), samples=len(replies), max_concurrency=1, **options
    ).run(questions=["q"], contexts=[["context 0"]])


@pytest.mark.parametrize(
    ("replies", "score"), [((FOUND, NOTHING, FOUND), 1), ((NOTHING, FOUND, NOTHING), 0), ((FOUND, FOUND), 1)]
)
def test_yes_or_no_is_decided_by_the_majority(replies, score):
    result = relevances(*replies)
    assert result["individual_scores"] == [score]
    assert bool(result["results"][0]["relevant_statements"]) == bool(score)
    assert [sample["score"] for sample in result["samples"][0]] == [int("context" in reply) for reply in replies]


def test_an_even_split_is_no_majority():
    result = relevances(FOUND, NOTHING)
    assert isnan(result["individual_scores"][0])
    assert result["reason"] == ["no_majority"]
    assert result["status"] == ["error"]
    assert result["detail"] == ["1 of 2 samples say 1"]
    assert result["results"][0]["relevant_statements"] == []
    assert result["coverage"]["scored"] == 0
    assert result["spread"] == [1]


def test_an_even_split_is_no_failure():
    assert relevances(FOUND, NOTHING, raise_on_failure=True)["reason"] == ["no_majority"]


def test_unscored_samples_have_no_vote():
    unreadable = "none"
    result = relevances(FOUND, unreadable, unreadable)  # the second is asked again, with the third reply
    assert result["individual_scores"] == [1]
    result = relevances(FOUND, unreadable, unreadable, NOTHING)
    assert result["reason"] == ["no_majority"]


def test_other_scores_are_averaged():
    replies = [verdict(1, 1), verdict(1, 0), verdict(0)]
    result = faithfulness(chat_generator=ScriptedChatGenerator(replies), samples=3, max_concurrency=1).run(**rows(1))
    assert result["individual_scores"] == [(1 + 0.5 + 0) / 3]
    assert result["results"][0]["score"] == (1 + 0.5 + 0) / 3
    assert result["results"][0]["statement_scores"] == [1, 1]
    assert [sample["score"] for sample in result["samples"][0]] == [1, 0.5, 0]
    assert result["samples"][0][1]["result"]["statement_scores"] == [1, 0]
    assert result["spread"] == [1]


def test_with_no_sample_scored_the_row_has_the_first_reason():
    generator = ScriptedChatGenerator(lambda _: RuntimeError("down"))
    result = faithfulness(chat_generator=generator, samples=2).run(**rows(1))
    assert result["reason"] == ["transport"]
    assert isnan(result["spread"][0])


def test_a_panel_judges_each_row():
    panel = [Recording(lambda _, one=one: verdict(*one)) for one in ([1], [1, 0], [1, 0, 0, 0])]
    result = faithfulness(chat_generator=panel).run(**rows(3))
    assert result["individual_scores"] == [(1 + 0.5 + 0.25) / 3] * 3
    assert [len(generator.requests) for generator in panel] == [3, 3, 3]
    assert result["usage"]["requests"] == 9


def test_samples_of_a_panel_are_numbered():
    panel = [Recording(lambda _: verdict(1)) for _ in range(2)]
    faithfulness(chat_generator=panel, samples=2, max_concurrency=1).run(**rows(2))
    for generator in panel:
        assert [request.sample for request in generator.requests] == [0, 1, 0, 1]


BOOLEAN = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
ZERO_OR_ONE = {"type": "object", "properties": {"ok": {"enum": [0, 1]}}, "required": ["ok"]}
RATING = {"type": "object", "properties": {"ok": {"type": "integer"}}, "required": ["ok"]}


@pytest.mark.parametrize(
    ("schema", "values", "score"),
    [
        (BOOLEAN, [True, True, False], 1.0),
        (ZERO_OR_ONE, [0, 1, 0], 0.0),
        (RATING, [0, 1, 0], 1 / 3),
        ({"type": "object", "properties": {"ok": True}}, [0, 1, 0], 1 / 3),
        ({"type": "object", "properties": {"ok": {"enum": [{}, 0, 1]}}}, [0, 1, 0], 1 / 3),
        (RATING, [5, 4, 4], 13 / 3),
    ],
)
def test_a_custom_score_is_yes_or_no_if_its_schema_says_so(schema, values, score):
    replies = [json.dumps({"ok": value}) for value in values]
    evaluator = llm(
        outputs=schema, score="ok", chat_generator=ScriptedChatGenerator(replies), samples=3, max_concurrency=1
    )
    assert evaluator.run(texts=["t"])["score"] == score


def test_samples_without_a_score_keep_their_results():
    replies = ['{"ok": "a"}', '{"ok": "b"}']
    evaluator = llm(chat_generator=ScriptedChatGenerator(replies), samples=2, max_concurrency=1)
    result = evaluator.run(texts=["t"])
    assert result["results"] == [{"ok": "a"}]
    assert [sample["result"] for sample in result["samples"][0]] == [{"ok": "a"}, {"ok": "b"}]
    assert "score" not in result


def test_an_empty_panel():
    with pytest.raises(InputError, match="empty list"):
        LLMEvaluator("i", [("texts", list[str])], ["ok"], [], chat_generator=[])


def test_samples_have_seeds_of_their_own_where_there_is_one():
    with Server(lambda _: says(verdict(1))) as server:
        for parameters in ({"seed": 42}, {}):
            faithfulness(server, samples=3, client={"generation_kwargs": parameters}).run(**rows(2))
    assert sorted(seen.body["seed"] for seen in server.requests[:6]) == [42, 42, 43, 43, 44, 44]
    assert not any("seed" in seen.body for seen in server.requests[6:])


@pytest.mark.parametrize("empty_at", range(3))
def test_a_sample_that_is_left_out_has_no_part_wherever_it_stands(empty_at):
    replies = [verdict(1, 1), verdict(0)]
    replies.insert(empty_at, verdict())
    options = {"samples": 3, "max_concurrency": 1, "empty_score": nan}
    result = faithfulness(chat_generator=ScriptedChatGenerator(replies), **options).run(**rows(1))
    assert (result["individual_scores"], result["spread"]) == ([0.5], [1])
    assert result["results"][0]["statements"] == ["s0", "s1"]
    assert isnan(result["samples"][0][empty_at]["score"])


class Seeded:
    """In Haystack's shape, with parameters that a call may replace."""

    generation_kwargs = {"seed": 7, "temperature": 1}  # noqa: RUF012  # as Haystack's have it

    def __init__(self):
        self.given = []

    def run(self, messages, generation_kwargs=None):
        self.given.append(generation_kwargs)
        return {"replies": [SimpleNamespace(text=verdict(1), meta={})]}


class SeededAndClosed(Seeded):
    def run(self, messages):
        return super().run(messages)


def test_samples_of_haystack_s_generators_have_seeds_where_their_calls_take_parameters():
    replaceable, closed = Seeded(), SeededAndClosed()
    for generator in (replaceable, closed):
        result = faithfulness(chat_generator=generator, samples=3, max_concurrency=1).run(**rows(1))
        assert result["score"] == 1
    assert replaceable.given == [None, {"seed": 8}, {"seed": 9}]
    assert closed.given == [None] * 3
