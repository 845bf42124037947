"""What evaluators share: construction, life cycle, dict form, warnings, progress, imports, cost."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import logging
import subprocess
import sys
import threading
import time
import tracemalloc
from contextvars import ContextVar
from math import isnan
from pathlib import Path

import pytest

from llm_judges import (
    ContextRelevanceEvaluator,
    EnvVar,
    FaithfulnessEvaluator,
    LLMEvaluator,
    OpenAIChatGenerator,
    Reply,
    ScriptedChatGenerator,
)
from llm_judges.failures import InvalidOutputError, call_error
from metrics_core.errors import InputError
from tests.judges.judging import faithfulness, generator, llm, row_of, rows, verdict
from tests.judges.server import Server, fails, says

ROOT = Path(__file__).resolve().parents[2]
EVALUATORS = [ContextRelevanceEvaluator, FaithfulnessEvaluator]


def test_the_default_generator_is_openais_in_json_mode(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    described = FaithfulnessEvaluator().to_dict()["init_parameters"]["chat_generator"]
    assert described["type"] == "llm_judges.openai_chat.OpenAIChatGenerator"
    assert described["init_parameters"]["generation_kwargs"] == {
        "response_format": {"type": "json_object"},
        "seed": 42,
    }
    assert described["init_parameters"]["api_key"] == {
        "type": "env_var",
        "env_vars": ["OPENAI_API_KEY"],
        "strict": True,
    }


def test_a_key_is_needed_at_warm_up_and_not_before(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    evaluator = FaithfulnessEvaluator(progress_bar=False)
    for call in (evaluator.warm_up, lambda: evaluator.run(**rows(1)), lambda: asyncio.run(evaluator.warm_up_async())):
        with pytest.raises(ValueError, match="OPENAI_API_KEY"):
            call()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    evaluator.warm_up()


@pytest.mark.parametrize("api_key", [EnvVar("MY_KEY"), "sk-literal"])
def test_a_key_reaches_the_server_and_no_dict(monkeypatch, api_key):
    monkeypatch.setenv("MY_KEY", "sk-literal")
    with Server([says(verdict(1))]) as server:
        evaluator = faithfulness(chat_generator=OpenAIChatGenerator("m", api_key, server.url))
        evaluator.run(**rows(1))
    assert server.requests[0].headers["authorization"] == "Bearer sk-literal"
    assert server.requests[0].path == "/v1/chat/completions"
    assert "sk-literal" not in json.dumps(evaluator.to_dict())
    assert "sk-literal" not in repr(evaluator._chat_generator)
    again = FaithfulnessEvaluator.from_dict(evaluator.to_dict())
    assert again._chat_generator._api_key == (api_key if isinstance(api_key, EnvVar) else EnvVar("OPENAI_API_KEY"))


def test_the_base_url_of_the_environment_is_one_like_any_other(monkeypatch):
    with Server([says(verdict(1))]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        generator = OpenAIChatGenerator("m", "k")
        assert faithfulness(chat_generator=generator).run(**rows(1))["score"] == 1.0
        assert generator.to_dict()["init_parameters"]["api_base_url"] == server.url  # so that a store tells them apart


@pytest.mark.parametrize("cls", EVALUATORS)
def test_the_dict_form_has_options_only_where_they_are_set(cls):
    plain = cls(chat_generator=ScriptedChatGenerator(["a"]))
    contract = {"chat_generator", "examples", "progress_bar", "raise_on_failure"}
    assert plain.to_dict()["init_parameters"].keys() == contract
    full = cls(
        chat_generator=[ScriptedChatGenerator(["a"]), ScriptedChatGenerator(["b"])],
        max_concurrency=3,
        timeout=2.5,
        max_retries=0,
        store=Path("run.db"),
        store_identity="x",
        budget_tokens=10,
        budget_requests=20,
        samples=5,
    )
    data = json.loads(json.dumps(full.to_dict()))
    again = cls.from_dict(data)
    assert again.to_dict() == data
    assert again.options.max_retries == 0
    assert again._chat_generator[1].replies == ["b"]


def test_the_dict_form_keeps_the_score_of_empty_answers():
    data = FaithfulnessEvaluator(empty_score=1.0, chat_generator=ScriptedChatGenerator([])).to_dict()
    assert FaithfulnessEvaluator.from_dict(data).empty_score == 1.0


class Starts:
    """Has a `run`, a `reply` and a `connect`, none of which asks a language model."""

    def __init__(self):
        raise AssertionError("it must not be made")

    def run(self):
        pass

    def connect(self, host):
        pass

    def reply(self, request):
        pass


@pytest.mark.parametrize(
    "name",
    [
        "subprocess.Popen",
        "no.such.Thing",
        "llm_judges.no_such.Thing",
        "Popen",
        "llm_judges.EnvVar",
        f"{__name__}.Starts",
        None,
    ],
)
def test_a_dict_brings_in_no_other_classes(name):
    data = FaithfulnessEvaluator(chat_generator=ScriptedChatGenerator([])).to_dict()
    data["init_parameters"]["chat_generator"]["type"] = name
    with pytest.raises(InputError, match="chat_generator"):
        FaithfulnessEvaluator.from_dict(data)


@pytest.mark.parametrize("kind", ["__import__('os')", "os.PathLike", "list[", "len", "list[nonsense]", "[1][0]"])
def test_a_dict_brings_in_no_other_types(kind):
    data = llm(chat_generator=ScriptedChatGenerator([])).to_dict()
    data["init_parameters"]["inputs"] = [["texts", kind]]
    with pytest.raises(InputError, match="types such as"):
        LLMEvaluator.from_dict(data)


class Shaped:
    """In Haystack's shape, with attributes of other names that mean something else there."""

    reply = "a canned one"

    def run(self, messages, **more):
        return {"replies": [Message()]}

    def connect(self):
        raise AssertionError("this is not asked")


class Answering(Shaped):
    async def reply(self, text):
        raise AssertionError("this is not asked")


class AsyncShaped(Answering):
    run = None

    async def run_async(self, messages):
        return {"replies": [Message()]}


class RunsOtherwise:
    """Our own protocol, and a `run` of another purpose."""

    async def reply(self, request):
        return Reply('{"ok": 1}')

    def run(self, port=80):
        raise AssertionError("this is not asked")


class Decorated:
    @functools.wraps(RunsOtherwise.reply)
    def reply(self, request):
        return RunsOtherwise.reply(self, request)


@pytest.mark.parametrize("cls", [Shaped, Answering, AsyncShaped, RunsOtherwise, Decorated])
def test_a_generator_is_asked_by_its_protocol_whatever_else_it_has(cls):
    evaluator = llm(chat_generator=cls(), raise_on_failure=True)
    assert evaluator.run(texts=["t"])["results"] == [{"ok": 1}]
    assert asyncio.run(evaluator.run_async(texts=["t"]))["results"] == [{"ok": 1}]


class Blocking:
    def reply(self, request):
        return Reply('{"ok": 1}')


@pytest.mark.parametrize(
    ("generator", "given"),
    [
        ("gpt", "got str"),
        (Shaped, "got the class Shaped"),
        (Blocking(), "got Blocking"),
        (threading.Thread(), "got Thread"),
        (object(), "got object"),
    ],
)
def test_what_is_no_generator(generator, given):
    with pytest.raises(InputError, match=rf"must have run\(messages\), .* an asynchronous reply\(request\), {given}"):
        FaithfulnessEvaluator(chat_generator=generator)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_concurrency", 0),
        ("max_concurrency", 2.0),
        ("max_concurrency", None),
        ("max_retries", -1),
        ("samples", 0),
        ("samples", True),
        ("budget_tokens", -1),
        ("budget_requests", "9"),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("timeout", "5"),
        ("store", ""),
        ("store", 5),
        ("empty_score", None),
        ("empty_score", "0"),
    ],
)
def test_options_out_of_range(option, value):
    with pytest.raises(InputError, match=option):
        FaithfulnessEvaluator(**{option: value})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"api_key": None}, "api_key must be an EnvVar, a Secret or the key itself, got NoneType"),
        ({"generation_kwargs": {"messages": []}}, "generation_kwargs cannot have 'messages'"),
        ({"generation_kwargs": {"stream": True}}, "generation_kwargs cannot have 'stream'"),
        ({"generation_kwargs": {"response_format": "json"}}, "response_format must be None or like"),
    ],
)
def test_what_the_client_cannot_send(given, message):
    with pytest.raises(InputError, match=message):
        OpenAIChatGenerator(**given)


def test_no_response_format_is_sent_where_none_is_asked_for():
    with Server(lambda _: says(verdict(1))) as server:
        client = {"generation_kwargs": {"response_format": None}}
        assert faithfulness(server, client=client).run(**rows(1))["score"] == 1.0
    assert "response_format" not in server.requests[0].body


def test_an_unknown_option():
    with pytest.raises(TypeError, match="max_concurency"):
        FaithfulnessEvaluator(max_concurency=4)


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}, b"bytes"])
def test_values_that_json_does_not_have_are_refused_before_anything_is_asked(value):
    generator = ScriptedChatGenerator(['{"ok": 1}'] * 2)
    with pytest.raises(InputError, match="must be JSON values"):
        llm(chat_generator=generator).run(texts=["fine", value])
    assert generator.calls == 0


def test_other_columns_are_ignored_whatever_they_are():
    result = llm(chat_generator=ScriptedChatGenerator(['{"ok": 1}'])).run(texts=["t"], ids=(1, 2, 3), other="x")
    assert result["results"] == [{"ok": 1}]


def test_the_seed_s_check_of_replies(caplog):
    strict, lenient = (
        llm(raise_on_failure=True, chat_generator=ScriptedChatGenerator([])),
        llm(chat_generator=ScriptedChatGenerator([])),
    )
    for evaluator in (strict, lenient):
        assert evaluator.is_valid_json_and_has_expected_keys(["a"], '{"a": 1, "b": 2}') is True
    for wrong in ('{"b": 2}', "no", ""):
        with pytest.raises(InvalidOutputError):
            strict.is_valid_json_and_has_expected_keys(["a"], wrong)
        caplog.clear()
        assert lenient.is_valid_json_and_has_expected_keys(["a"], wrong) is False
        assert len(caplog.records) == 1


def test_one_warning_says_how_many_rows_failed(caplog):
    def script(prompt):
        return RuntimeError("down") if row_of(prompt) < 2 else verdict(1)

    with caplog.at_level(logging.WARNING, logger="llm_judges"):
        faithfulness(chat_generator=ScriptedChatGenerator(script)).run(**rows(5))
    (record,) = caplog.records
    assert "2 of 5 rows" in record.getMessage()
    assert "transport: 2" in record.getMessage()


def test_an_error_s_words_are_kept():
    result = faithfulness(chat_generator=ScriptedChatGenerator(lambda _: RuntimeError("down"))).run(**rows(1))
    assert result["detail"] == ["RuntimeError: down"]


class Hooked:
    """A generator in Haystack's shape whose life cycle is recorded; `asynchronous` adds the hooks of that kind."""

    def __init__(self):
        self.called = []

    def run(self, messages):
        self.called.append(threading.current_thread().name)
        return {"replies": [Message()]}

    def warm_up(self):
        self.called.append("warm_up")

    def close(self):
        self.called.append("close")


class Message:
    text = '{"ok": 1}'
    meta = None


class AsyncHooked(Hooked):
    async def warm_up_async(self):
        self.called.append("warm_up_async")

    async def close_async(self):
        self.called.append("close_async")

    async def run_async(self, messages):
        self.called.append("run_async")
        return {"replies": [Message()]}


def test_the_life_cycle_goes_through_to_the_generator():
    plain, both, neither = Hooked(), AsyncHooked(), ScriptedChatGenerator([])
    for hooked, expected in ((plain, ["warm_up", "close"]), (both, ["warm_up_async", "close_async"]), (neither, [])):
        evaluator = llm(chat_generator=hooked)
        evaluator.warm_up()
        evaluator.close()
        if hooked is not neither:
            assert hooked.called == ["warm_up", "close"]
            hooked.called.clear()

        async def cycle(evaluator=evaluator):
            await evaluator.warm_up_async()
            await evaluator.close_async()

        asyncio.run(cycle())
        assert getattr(hooked, "called", []) == expected


def test_a_blocking_generator_runs_in_threads_and_an_asynchronous_one_in_the_callers_loop():
    blocking, asynchronous = Hooked(), AsyncHooked()
    for hooked in (blocking, asynchronous):
        result = llm(chat_generator=hooked).run(texts=["t"])
        assert result["meta"] is None
        assert hooked.called[-1].startswith("llm-judges")
    asyncio.run(llm(chat_generator=asynchronous).run_async(texts=["t"]))
    assert asynchronous.called[-1] == "run_async"
    asyncio.run(llm(chat_generator=blocking).run_async(texts=["t"]))
    assert blocking.called[-1].startswith("llm-judges")


def test_threads_see_the_context_of_the_caller():
    current = ContextVar("current")

    class Looking:
        def run(self, messages):
            current.get()
            return {"replies": [Message()]}

    current.set("a span")
    evaluator = llm(chat_generator=Looking(), raise_on_failure=True)
    assert evaluator.run(texts=["t"] * 3)["results"] == [{"ok": 1}] * 3
    assert asyncio.run(evaluator.run_async(texts=["t"]))["results"] == [{"ok": 1}]


def test_the_bound_holds_for_threads():
    under_way, most, lock = 0, 0, threading.Lock()

    class Blocking:
        def run(self, messages):
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.02)
            with lock:
                under_way -= 1
            return {"replies": [Message()]}

    llm(chat_generator=Blocking(), max_concurrency=3).run(texts=["t"] * 12)
    assert most == 3


def test_our_own_protocol():
    class Own:
        async def reply(self, request):
            assert request.messages[0].role == "user"
            return Reply('{"ok": 1}', meta={"usage": {"total_tokens": 5, "details": {"cached": 1}}})

    result = llm(chat_generator=Own()).run(texts=["a", "b"])
    assert result["results"] == [{"ok": 1}] * 2
    assert result["usage"]["total_tokens"] == 10


def test_an_empty_reply_list_is_retried():
    class Empty:
        calls = 0

        def run(self, messages):
            self.calls += 1
            return {"replies": []}

    empty = Empty()
    result = llm(chat_generator=empty, max_retries=2).run(texts=["t"])
    assert result["reason"] == ["transport"]
    assert empty.calls == 3


@pytest.mark.parametrize(
    ("error", "reason", "retry"),
    [
        (TimeoutError(), "timeout", True),
        (ConnectionResetError("reset"), "transport", True),
        (ValueError("bug"), "transport", False),
    ],
)
def test_errors_without_a_status(error, reason, retry):
    understood = call_error(error)
    assert (understood.reason, understood.retry, understood.fatal) == (reason, retry, False)


def test_retry_after_as_nonsense():
    from llm_judges.failures import status_error

    for nonsense in ("soon", "nan", "inf", ""):
        assert status_error(503, set(), "m", {"retry-after": nonsense}).retry_after is None
    assert status_error(429, set(), "m", {"retry-after": "-5"}).retry_after == 0


def test_the_progress_bar_shows_rows_failures_and_tokens(capsys):
    def script(prompt):
        failed = row_of(prompt) == 0
        return RuntimeError("down") if failed else Reply(verdict(1), meta={"usage": {"total_tokens": 7}})

    faithfulness(chat_generator=ScriptedChatGenerator(script), progress_bar=True).run(**rows(4))
    shown = capsys.readouterr()
    assert shown.out == ""
    last = shown.err.rpartition("\r")[2]
    assert "4/4" in last
    assert "failed=1" in last
    assert "tokens=21" in last


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from llm_judges import FaithfulnessEvaluator, ScriptedChatGenerator as S;"
        "early = set(sys.modules) & {'openai', 'pydantic', 'stamina', 'tqdm', 'haystack'}; assert not early, early;"
        'FaithfulnessEvaluator(chat_generator=S([\'{"statements": [], "statement_scores": []}\'])).run('
        "questions=['q'], contexts=[['c']], predicted_answers=['a']);"
        "heavy = set(sys.modules) & {'torch', 'numba', 'numpy', 'sentence_transformers', 'openai', 'haystack'};"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ImportError, match=r"llm_judges needs openai: pip install 'metrics-core\[judges\]'"):
        OpenAIChatGenerator("m", "k").warm_up()


def test_many_rows_cost_little_time_and_memory_beyond_their_results(tmp_path):
    count, before = 1_500, []

    def script(_):
        if generator.calls == 500:
            gc.collect()
            before.append(tracemalloc.get_traced_memory()[0])
        return Reply(verdict(1, 0), meta={"finish_reason": "stop"})

    generator = ScriptedChatGenerator(script)
    evaluator = faithfulness(chat_generator=generator, store=tmp_path / "run.db", store_identity="x")
    given = rows(count)
    given["contexts"] = [["a page " * 300] for _ in range(count)]  # 2 kB a prompt: prompts kept would show
    tracemalloc.start()
    try:
        result = evaluator.run(**given)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before[0]
    finally:
        tracemalloc.stop()
    assert result["coverage"]["scored"] == count
    assert grown < 1_000 * 2_000  # the results of 1,000 rows take half of that, their prompts more

    began = time.process_time()
    faithfulness(chat_generator=generator, store=tmp_path / "other.db", store_identity="x").run(**given)
    assert (time.process_time() - began) / count < 0.002


def test_a_hopeless_row_costs_no_other_row_anything():
    with Server(lambda seen: fails(500) if row_of(seen.prompt) == 1 else says(verdict(1))) as server:
        result = faithfulness(chat_generator=generator(server), max_retries=3, max_concurrency=2).run(**rows(6))
    assert result["reason"] == [None, "transport", None, None, None, None]
    assert len(server.requests) == 5 + 4
    assert isnan(result["individual_scores"][1])
