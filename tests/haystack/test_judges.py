"""Judges as components: what they put out, whom they ask, how many at once, what a tracer sees."""

from __future__ import annotations

import asyncio
import threading
from math import isnan

import pytest

from tests.haystack.components import LLM

ROWS = {"questions": ["q"] * 4, "contexts": [["c"]] * 4, "predicted_answers": ["a"] * 4}
VERDICT = '{"statements": ["s", "t"], "statement_scores": [1, 0]}'


class OnlyRun:
    """A chat generator that has nothing but run, and waits until as many calls are under way."""

    def __init__(self, at_once=1, text=VERDICT):
        self.text = text
        self.at_once = at_once
        self._barrier = threading.Barrier(at_once, timeout=30)

    def run(self, messages):
        from haystack.dataclasses import ChatMessage

        self._barrier.wait()
        return {"replies": [ChatMessage.from_assistant(self.text)]}


def faithfulness(**arguments):
    from metrics_core.haystack import FaithfulnessEvaluator

    return FaithfulnessEvaluator(**{"progress_bar": False, "chat_generator": OnlyRun()} | arguments)


def test_put_out_is_what_haystack_s_puts_out():
    from haystack.components.evaluators import FaithfulnessEvaluator

    theirs = FaithfulnessEvaluator(progress_bar=False, chat_generator=OnlyRun()).run(**ROWS)
    assert faithfulness().run(**ROWS) == theirs
    assert asyncio.run(faithfulness().run_async(**ROWS)) == theirs


def test_details_are_put_out_on_request():
    judge = faithfulness(details=True, raise_on_failure=False, chat_generator=OnlyRun(text="no"))
    result = judge.run(**ROWS)
    assert result["reason"] == ["invalid_output"] * 4
    assert result["coverage"]["scored"] == 0
    assert isnan(result["score"])
    assert set(result) < set(judge.__haystack_output__._sockets_dict)
    assert result["flags"] == [[]] * 4
    assert judge.to_dict()["init_parameters"]["details"] is True
    assert "details" not in faithfulness().to_dict()["init_parameters"]


def test_a_score_of_one_s_own_has_sockets():
    from metrics_core.haystack import LLMEvaluator

    judge = LLMEvaluator(**LLM, score="polite", chat_generator=OnlyRun(text='{"polite": 1}'), progress_bar=False)
    assert judge.run(answers=["a", "b"])["individual_scores"] == [1, 1]
    assert {"score", "individual_scores"} < set(judge.__haystack_output__._sockets_dict)


@pytest.mark.parametrize("in_loop", [False, True])
def test_rows_are_judged_at_once_in_a_pipeline(in_loop):
    from haystack import Pipeline

    pipeline = Pipeline()
    pipeline.add_component("judge", faithfulness(chat_generator=OnlyRun(at_once=4), max_concurrency=4))
    asked = {"judge": ROWS}
    result = asyncio.run(pipeline.run_async(asked)) if in_loop else pipeline.run(asked)
    assert result["judge"]["individual_scores"] == [0.5] * 4


def test_a_generator_that_is_put_in_place_of_another_is_asked_and_saved():
    judge = faithfulness()
    judge._chat_generator = OnlyRun(text='{"statements": ["s"], "statement_scores": [1]}')
    assert judge.run(**ROWS)["score"] == 1
    assert judge.to_dict()["init_parameters"]["chat_generator"]["init_parameters"]["text"] == judge._chat_generator.text


def test_a_generator_without_to_dict_is_saved_by_its_arguments():
    data = faithfulness().to_dict()["init_parameters"]["chat_generator"]
    assert data == {"type": f"{__name__}.OnlyRun", "init_parameters": {"at_once": 1, "text": VERDICT}}


@pytest.mark.parametrize("panel", [False, True])
def test_generators_of_ours_are_saved_and_loaded(panel):
    from haystack import Pipeline

    from llm_judges import ScriptedChatGenerator

    scripted = ScriptedChatGenerator([VERDICT])
    pipeline = Pipeline()
    generator = [scripted, scripted] if panel else scripted
    pipeline.add_component("judge", faithfulness(chat_generator=generator, max_concurrency=2))
    loaded = Pipeline.loads(pipeline.dumps())
    assert loaded == pipeline
    found = loaded.get_component("judge")._chat_generator
    assert [type(one) for one in (found if panel else [found])] == [ScriptedChatGenerator] * (1 + panel)


def test_a_generator_of_a_package_that_is_not_allowed():
    from haystack.core.errors import DeserializationError

    data = faithfulness().to_dict()
    data["init_parameters"]["chat_generator"] = {"type": "subprocess.Popen", "init_parameters": {"args": ["true"]}}
    with pytest.raises(DeserializationError, match="subprocess"):
        type(faithfulness()).from_dict(data)


def test_the_key_is_asked_for_at_warm_up(monkeypatch):
    from metrics_core.haystack import FaithfulnessEvaluator

    monkeypatch.delenv("OPENAI_API_KEY")
    judge = FaithfulnessEvaluator()
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        judge.warm_up()


def test_a_tracer_sees_each_call():
    from contextlib import contextmanager

    from haystack import tracing

    class Span(tracing.Span):
        def __init__(self, tags):
            self.tags = dict(tags or {})

        def set_tag(self, key, value):
            self.tags[key] = value

    spans = []

    class Tracer(tracing.Tracer):
        @contextmanager
        def trace(self, operation_name, tags=None, parent_span=None):
            spans.append((operation_name, Span(tags)))
            yield spans[-1][1]

        def current_span(self):
            return None

    tracing.enable_tracing(Tracer())
    try:
        faithfulness().run(**ROWS)
    finally:
        tracing.disable_tracing()
    assert [name for name, _ in spans] == ["haystack.chat_generator.run"] * 4
    assert spans[0][1].tags["haystack.component.type"] == "OnlyRun"
