"""Generators, servers, stores and keys that do what nobody should do: one row is lost, or the run says why it ends."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
import threading
import time

import pytest

pytest.importorskip("pydantic", reason="needs the extra: pip install 'metrics-core[judges]'")

from pydantic import BaseModel, field_validator

from llm_judges import (
    FatalError,
    InterruptedRun,
    LLMEvaluator,
    OpenAIChatGenerator,
    Reply,
    RowError,
    ScriptedChatGenerator,
)
from metrics_core.errors import InputError
from tests.judges.judging import faithfulness, llm, rows, verdict
from tests.judges.server import Answer, Server, says


class OurOwn:
    """Our protocol, by a function of the request."""

    def __init__(self, reply):
        self._reply = reply

    async def reply(self, request):
        return self._reply(request)


class Haystacks:
    """Haystack's protocol, by a function of the messages."""

    def __init__(self, run):
        self._run = run

    def run(self, messages):
        return self._run(messages)


def raises(error):
    def function(_):
        raise error

    return function


# Generators


@pytest.mark.parametrize(
    ("generator", "detail"),
    [
        (OurOwn(lambda _: None), "the generator gave a NoneType in the place of a Reply"),
        (OurOwn(lambda _: '{"ok": 1}'), "the generator gave a str in the place of a Reply"),
        (OurOwn(lambda _: Reply(5)), "text and refusal of a Reply are str or None, got 5"),
        (OurOwn(lambda _: Reply("{}", meta=None)), "meta of a Reply is a mapping, got None"),
        (OurOwn(raises(asyncio.CancelledError())), "the generator cancelled the call"),
        (OurOwn(raises(StopIteration())), "StopIteration"),
        (Haystacks(lambda _: None), "the generator gave no {'replies': [...]}, but None"),
        (Haystacks(lambda _: {"replies": None}), "the generator gave no {'replies': [...]}, but {'replies': None}"),
        (Haystacks(lambda _: {"replies": ["{}"]}), "'str' object has no attribute 'text'"),
        (Haystacks(raises(StopIteration())), "the generator raised StopIteration"),
        (Haystacks(raises(asyncio.CancelledError())), "the generator cancelled the call"),
    ],
)
def test_a_generator_that_gives_or_raises_something_odd_costs_the_row(generator, detail):
    result = llm(chat_generator=generator, timeout=20).run(texts=["a", "b"])
    assert result["reason"] == ["transport"] * 2
    assert detail in result["detail"][0]
    with pytest.raises(RowError):
        llm(chat_generator=generator, timeout=20, raise_on_failure=True).run(texts=["a"])


class Endless:
    async def reply(self, request):
        await asyncio.sleep(60)


def test_a_call_without_an_end_ends_with_the_row_s_timeout():
    released = threading.Event()
    started = time.monotonic()
    for generator in (Endless(), Haystacks(lambda _: released.wait(60))):
        assert llm(chat_generator=generator, timeout=0.2).run(texts=["a"])["reason"] == ["timeout"]
    released.set()
    assert time.monotonic() - started < 30


def test_a_generator_that_ends_the_process_ends_the_run():
    scripted = ScriptedChatGenerator(lambda prompt: verdict(1) if "<0>" in prompt else sys.exit(3))
    with pytest.raises(FatalError, match=r"row 1: the generator raised SystemExit\(3\)") as caught:
        faithfulness(chat_generator=scripted, max_concurrency=1).run(**rows(5))
    assert caught.value.result["coverage"]["scored"] == 1


def test_a_bug_of_a_checker_is_raised_as_it_is():
    class Checked(BaseModel):
        ok: int

        @field_validator("ok")
        @classmethod
        def check(cls, value):
            return value / 0

    with pytest.raises(ZeroDivisionError):
        llm(outputs=Checked, chat_generator=ScriptedChatGenerator(lambda _: '{"ok": 1}')).run(texts=["a", "b"])


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_has_what_was_finished():
    class Interrupting:
        async def reply(self, request):
            if "<2>" in request.messages[0].text:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                await asyncio.sleep(60)
            return Reply(verdict(1))

    with pytest.raises(KeyboardInterrupt) as caught:
        faithfulness(chat_generator=Interrupting(), max_concurrency=1).run(**rows(5))
    assert isinstance(caught.value, InterruptedRun)
    assert caught.value.result["reason"] == [None, None, "skipped", "skipped", "skipped"]
    assert caught.value.result["score"] == 1.0


def test_a_cancelled_run_leaves_no_task_behind():
    async def cancelled():
        task = asyncio.create_task(llm(chat_generator=Endless()).run_async(texts=["a"] * 20))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(cancelled()) == set()


# Servers


@pytest.mark.parametrize("usage", [{"total_tokens": 1e30}, {"total_tokens": "9", "prompt_tokens": None}])
@pytest.mark.parametrize("error", [None, "", {}, False])
def test_empty_errors_and_odd_counts_are_no_reason_to_lose_a_reply(usage, error):
    body = says('{"ok": 1}').body | {"usage": usage, "error": error}
    with Server([Answer(body=body)]) as server:
        assert llm(server).run(texts=["a"])["results"] == [{"ok": 1}]


def test_tokens_that_come_without_a_total_are_added_up():
    body = says('{"ok": 1}').body | {"usage": {"prompt_tokens": 7, "completion_tokens": 5}}
    with Server([Answer(body=body)]) as server:
        assert llm(server).run(texts=["a"])["usage"]["total_tokens"] == 12


@pytest.mark.parametrize(
    "answer",
    [
        Answer(204),
        Answer(200, "abc", {"content-encoding": "gzip"}),
        Answer(200, "abc", {"content-type": "application/json; charset=nonsense"}),
        Answer(302, headers={"location": "/elsewhere"}),
        Answer(200, {"choices": {"0": 1}}),
        Answer(200, {"choices": [{"message": {"content": None, "refusal": 5}}]}),
        Answer(200, '{"choices": NaN}'),
    ],
)
def test_garbage_is_a_row_error(answer):
    with Server(lambda _: answer) as server:
        result = llm(server, max_retries=0).run(texts=["a"])
    assert result["reason"] == ["transport"]
    assert result["detail"][0]


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:1/v1", "not a url", "localhost:8000/v1"])
def test_a_server_that_is_not_there(base_url):
    result = llm(chat_generator=OpenAIChatGenerator("m", "k", base_url), max_retries=0).run(texts=["a"])
    assert result["reason"] == ["transport"]


# Keys


def test_a_key_with_a_line_end_works():
    with Server([says('{"ok": 1}')]) as server:
        llm(chat_generator=OpenAIChatGenerator("m", "sk-of-a-file\n", server.url)).run(texts=["a"])
    assert server.requests[0].headers["authorization"] == "Bearer sk-of-a-file"


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-ключ"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key):
    with pytest.raises(InputError, match="api_key has characters") as caught:
        llm(chat_generator=OpenAIChatGenerator("m", key, "http://127.0.0.1:1/v1")).run(texts=["a"])
    assert "sk-" not in str(caught.value)


# Stores


@pytest.mark.parametrize("kept", ['{"a": 1}', "{torn", "[1]", '{"text": 5}'])
def test_a_store_that_holds_something_else_stops_the_run(tmp_path, kept):
    path = tmp_path / "run.db"

    def evaluator():
        scripted = ScriptedChatGenerator(['{"ok": 1}'])
        return llm(chat_generator=scripted, store=path)

    assert evaluator().run(texts=["a"])["coverage"]["scored"] == 1
    database = sqlite3.connect(path)
    database.execute("UPDATE replies SET reply = ?", (kept,))
    database.commit()
    database.close()
    with pytest.raises(FatalError, match=r"the store .*run\.db failed"):
        evaluator().run(texts=["a"])


def test_a_damaged_file_and_a_table_of_another_form_stop_the_run(tmp_path):
    damaged, other = tmp_path / "damaged.db", tmp_path / "other.db"
    faithfulness(chat_generator=ScriptedChatGenerator([verdict(1)] * 200), store=damaged).run(**rows(200))
    content = bytearray(damaged.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    damaged.write_bytes(content)
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, words TEXT)")
    database.close()
    for path in (damaged, other):
        with pytest.raises(FatalError, match=r"the store .* failed"):
            faithfulness(chat_generator=ScriptedChatGenerator([verdict(1)] * 200), store=path).run(**rows(1))


def test_equal_rows_are_judged_each():
    scripted = ScriptedChatGenerator(['{"ok": 1}'] * 3)
    assert llm(chat_generator=scripted).run(texts=["same"] * 3)["results"] == [{"ok": 1}] * 3
    assert scripted.calls == 3


# Equality


def test_evaluators_are_equal_if_they_are_described_alike():
    def made(**options):
        return faithfulness(chat_generator=ScriptedChatGenerator(["a"]), **options)

    assert made() == made() == type(made()).from_dict(made().to_dict())
    assert hash(made()) == hash(made())
    assert made() != made(samples=2)
    assert made() != llm(chat_generator=ScriptedChatGenerator(["a"]))
    nameless = llm(chat_generator=OurOwn(None))
    assert nameless == nameless
    assert nameless != llm(chat_generator=OurOwn(None))
    assert isinstance(nameless, LLMEvaluator)
