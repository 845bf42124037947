"""The store: what hits, what misses, what is kept, and what survives."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from llm_judges import (
    EnvVar,
    FatalError,
    LLMEvaluator,
    Message,
    OpenAIChatGenerator,
    Reply,
    Request,
    ScriptedChatGenerator,
)
from llm_judges.store import Store, request_key
from metrics_core.errors import InputError
from tests.judges.judging import KEY, faithfulness, llm, row_of, rows, verdict
from tests.judges.server import Answer, Seen, Server, fails, says

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "run.db"


def asked(server: Server, evaluator, count=4) -> int:
    """How many requests a run makes."""
    before = len(server.requests)
    evaluator.run(**rows(count))
    return len(server.requests) - before


def test_a_rerun_asks_nothing_and_equals_the_first(store):
    with Server(lambda seen: says(verdict(1, row_of(seen.prompt) % 2))) as server:
        first = faithfulness(server, store=store).run(**rows(6))
        again = faithfulness(server, store=store, max_concurrency=2).run(**rows(6))
    assert len(server.requests) == 6
    assert first["usage"] == {
        "prompt_tokens": 60,
        "completion_tokens": 120,
        "total_tokens": 180,
        "requests": 6,
        "stored": 0,
    }
    assert again["usage"] == dict.fromkeys(first["usage"], 0) | {"stored": 6}
    del first["usage"], again["usage"]
    assert again == first


def test_what_hits_and_what_misses(store, monkeypatch):
    monkeypatch.setenv("ANOTHER_KEY", KEY)
    kwargs = {"temperature": 0, "seed": 1}
    with Server(lambda _: says(verdict(1))) as server, Server(lambda _: says(verdict(1))) as other:

        def made(**options):
            client = {"generation_kwargs": kwargs} | options.pop("client", {})
            return faithfulness(server, store=store, client=client, **options)

        assert asked(server, made()) == 4
        hits = [
            made(max_concurrency=1, timeout=50, max_retries=1, progress_bar=False),
            made(client={"generation_kwargs": dict(reversed(kwargs.items()))}),
            made(client={"api_key": "sk-another-key", "timeout": 7.0}),
            made(client={"api_key": EnvVar("ANOTHER_KEY")}),
            made(empty_score=1.0),
        ]
        assert [asked(server, evaluator) for evaluator in hits] == [0] * len(hits)
        model = OpenAIChatGenerator("another", KEY, server.url, kwargs)
        misses = [
            faithfulness(store=store, chat_generator=model),
            made(client={"generation_kwargs": kwargs | {"seed": 2}}),
            made(examples=[{"inputs": {"questions": "q"}, "outputs": {"statements": [], "statement_scores": []}}]),
            made(store_identity="second"),
        ]
        assert [asked(server, evaluator) for evaluator in misses] == [4] * len(misses)
        elsewhere = OpenAIChatGenerator("loopback", KEY, other.url, kwargs)
        assert asked(other, faithfulness(store=store, chat_generator=elsewhere)) == 4
        assert asked(server, made(samples=3)) == 8  # the first sample was there
        assert asked(server, made(samples=2)) == 0


def test_a_changed_schema_misses(store):
    one, two = {"type": "integer", "minimum": 0}, {"type": "string"}

    def asks(**properties):
        schema = {"type": "object", "properties": properties, "required": ["ok", "why"]}
        return llm(server, outputs=schema, store=store).run(texts=["t"])["usage"]["requests"]

    with Server(lambda _: says('{"ok": 1, "why": "so"}')) as server:
        assert asks(ok=one, why=two) == 1
        assert asks(ok=one | {"minimum": 1}, why=two) == 1
        assert asks(ok=one, why=two) == 0


def test_the_schema_is_part_of_the_key_and_its_order_is_not():
    one, two = {"type": "object", "properties": {}}, {"type": "object", "required": []}
    keys = [
        request_key(Request((Message("user", "p"),), schema), "generator")
        for schema in (None, one, two, dict(reversed(one.items())))
    ]
    assert len(set(keys)) == 3
    assert keys[3] == keys[1]


def test_changed_instructions_miss(store):
    def asks(instructions):
        scripted = ScriptedChatGenerator(['{"ok": 1}'])
        outputs = {"type": "object", "properties": {"ok": {"type": "integer"}}}
        evaluator = LLMEvaluator(
            instructions, [("texts", list[str])], outputs, chat_generator=scripted, store=store, progress_bar=False
        )
        return evaluator.run(texts=["t"])["usage"]["requests"]

    assert [asks("one"), asks("two"), asks("one")] == [1, 1, 0]


def test_an_unreadable_reply_is_kept_and_read_anew(store, monkeypatch):
    with Server([says("It is fine."), says("Fine, I said.")]) as server:
        evaluator = llm(server, store=store)
        assert evaluator.run(texts=["t"])["reason"] == ["invalid_output"]
        assert evaluator.run(texts=["t"])["reason"] == ["invalid_output"]
        assert len(server.requests) == 2
        # a better reader rescores for free
        monkeypatch.setattr("llm_judges.outputs.json_object", lambda text: {"ok": int("fine" in text)})
        assert evaluator.run(texts=["t"])["results"] == [{"ok": 1}]
    assert len(server.requests) == 2
    with sqlite3.connect(store) as database:
        kept = database.execute("SELECT attempt, reply FROM replies ORDER BY attempt").fetchall()
    database.close()
    assert [attempt for attempt, _ in kept] == [0, 1]
    reply = json.loads(kept[0][1])
    assert reply["text"] == "It is fine."
    assert reply["meta"]["finish_reason"] == "stop"
    assert reply["meta"]["usage"]["total_tokens"] == 30


def test_failed_calls_are_not_kept(store):
    answers = [fails(500), fails(400, message="no"), Answer(200, "<html>"), says(verdict(1))]
    with Server(answers) as server:
        assert faithfulness(server, store=store, max_retries=1).run(**rows(1))["reason"] == ["transport"]
        assert faithfulness(server, store=store, max_retries=1).run(**rows(1))["score"] == 1.0
    assert len(server.requests) == 4


def test_what_was_finished_before_a_fatal_stop_is_kept(store):
    broke = True

    def script(seen: Seen) -> Answer:
        if broke and row_of(seen.prompt) >= 2:
            return fails(429, "insufficient_quota")
        return says(verdict(1))

    with Server(script) as server:
        with pytest.raises(FatalError):
            faithfulness(server, store=store, max_concurrency=1).run(**rows(5))
        broke = False
        assert asked(server, faithfulness(server, store=store), 5) == 3


def test_what_the_store_has_costs_no_budget(store):
    with Server(lambda _: says(verdict(1))) as server:
        assert asked(server, faithfulness(server, store=store), 4) == 4
        result = faithfulness(server, store=store, budget_requests=1).run(**rows(6))
        assert result["coverage"]["scored"] == 5
        assert result["reason"].count("skipped") == 1
        assert faithfulness(server, store=store, budget_tokens=0).run(**rows(6))["coverage"]["scored"] == 5


def test_a_store_that_fails_stops_the_run(store):
    def script(prompt):
        if row_of(prompt) == 2:
            database = sqlite3.connect(store)
            database.execute("DROP TABLE replies")
            database.close()
        return verdict(1)

    generator = ScriptedChatGenerator(script)
    evaluator = faithfulness(chat_generator=generator, store=store, store_identity="x", max_concurrency=1)
    with pytest.raises(FatalError, match=r"the store .*run\.db failed: no such table") as caught:
        evaluator.run(**rows(10))
    assert caught.value.result["coverage"]["scored"] == 2
    assert generator.calls == 3


def test_lone_surrogates_survive(store):
    with Server(lambda _: says('{"ok": "\\ud83d"}\n\ud83d')) as server:
        for _ in range(2):
            result = llm(server, store=store).run(texts=["\ud83d"])
            assert result["results"] == [{"ok": "\ud83d"}]
    assert len(server.requests) == 1


def test_a_key_is_nowhere(store, caplog):
    caplog.set_level("DEBUG")
    message = f"Incorrect API key provided: {KEY}."
    with Server(
        [says(verdict(1)), fails(400, message=message), Answer(200, f"<{KEY}>"), fails(401, message=message)]
    ) as server:
        evaluator = faithfulness(server, store=store, max_concurrency=1, max_retries=0)
        result = evaluator.run(**rows(3))
        with pytest.raises(FatalError) as caught:
            evaluator.run(**rows(2))
    assert result["reason"] == [None, "transport", "transport"]
    error, chain = caught.value, []
    while error is not None:
        chain.append(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    shown = [*chain, str(result), caplog.text, json.dumps(evaluator.to_dict()), repr(evaluator._chat_generator)]
    shown += [path.read_bytes().decode("latin-1") for path in store.parent.iterdir()]
    assert all(KEY not in text for text in shown)
    assert "***" in chain[0]


def test_a_generator_without_a_description_needs_an_identity(store):
    class Nameless:
        async def reply(self, request):
            return Reply(verdict(1))

    with pytest.raises(InputError, match="store_identity"):
        faithfulness(chat_generator=Nameless(), store=store).run(**rows(1))
    first = faithfulness(chat_generator=Nameless(), store=store, store_identity="a").run(**rows(1))
    assert first["usage"]["requests"] == 1
    second = faithfulness(chat_generator=Nameless(), store=store, store_identity="a").run(**rows(1))
    assert second["usage"] | {"stored": 1, "requests": 0} == second["usage"]
    assert faithfulness(chat_generator=Nameless(), store=store, store_identity="b").run(**rows(1))["usage"]["requests"]


def test_two_of_a_panel_must_differ(store):
    twins = [ScriptedChatGenerator([verdict(1)]), ScriptedChatGenerator([verdict(1)])]
    with pytest.raises(InputError, match="samples"):
        faithfulness(chat_generator=twins, store=store).run(**rows(1))


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be read as one" * 9, None])
def test_what_is_no_store(tmp_path, content):
    path = tmp_path / "file"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be used as a store"):
        faithfulness(chat_generator=ScriptedChatGenerator([]), store=path).run(**rows(1))
    if content:
        assert path.read_bytes() == content


def test_the_first_of_two_replies_counts(store):
    with Store(store) as one, Store(store) as other:
        assert one.put("key", Reply("first"), 0).text == "first"
        assert other.put("key", Reply("second"), 0).text == "first"


_RUN = """
import sys
from llm_judges import OpenAIChatGenerator
from tests.judges.judging import faithfulness, rows
url, store = sys.argv[1:]
faithfulness(chat_generator=OpenAIChatGenerator("loopback", "none", url), store=store).run(**rows(60))
"""


def test_two_processes_share_a_store(store):
    begun = threading.Event()

    def script(seen: Seen) -> Answer:
        begun.set()
        return says(verdict(1, row_of(seen.prompt) % 2), delay=0.02)

    with Server(script) as server:
        other = subprocess.Popen([sys.executable, "-c", _RUN, server.url, str(store)], cwd=ROOT)
        assert begun.wait(60)
        result = faithfulness(server, store=store).run(**rows(60))
        assert other.wait(60) == 0
        assert 60 <= len(server.requests) <= 120
        server.requests.clear()
        again = faithfulness(server, store=store).run(**rows(60))
        assert server.requests == []
    assert result["results"] == again["results"]
    assert [row["statement_scores"] for row in result["results"]] == [[1, row % 2] for row in range(60)]
    database = sqlite3.connect(store)
    assert database.execute("SELECT count(*) FROM replies").fetchone() == (60,)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
