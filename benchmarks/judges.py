"""Judges against a server on loopback, next to haystack-ai's and the SDK alone; and a scripted run with a store.

The server is a process of its own, one for each contender's process, and answers each request after 50 ms. The SDK
alone sends the same prompts by its own method from as many workers, and neither reads nor checks what comes. A scripted
generator has no HTTP and no SDK: what is left is the cost of a row.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from typing import Any

from benchmarks.harness import ROOT, run_command, work_directory
from benchmarks.measure import TIMED_SEED, anonymous_bytes
from benchmarks.workload import Answers, Case, Contender, Gate, Prepared, Quantities, Size, Workload, times_as_fast

DELAY = 0.05  # seconds a reply
AT_ONCE = 32
WARM_ROWS = 8
REPLY = '{"statements": ["a", "b", "c"], "statement_scores": [1, 0, 1]}'
RUN, RUN_ASYNC = "metrics-core, run", "metrics-core, run_async"
THEIR_RUN, THEIR_RUN_ASYNC = "haystack-ai, run", "haystack-ai, run_async"
SDK = "openai, its own method"
STORED, UNSTORED = "metrics-core, with a store", "metrics-core, without"


def columns(size: Size, seed: int) -> dict[str, list[Any]]:
    """Rows of the judge of faithfulness, about a page of context each; few rows to warm up."""
    rows = range(1_000 * seed, 1_000 * seed + (size.queries if seed == TIMED_SEED else WARM_ROWS))
    return {
        "questions": [f"What is said of number {row}?" for row in rows],
        "contexts": [[f"Number {row} is said to be {'very ' * 20}large."] * 10 for row in rows],
        "predicted_answers": [f"That {row} is large." for row in rows],
    }


@cache
def server_url() -> str:
    """The URL of this process's server, which ends with it."""
    command = [sys.executable, "-m", "tests.judges.server", "--delay", str(DELAY), "--text", REPLY]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    server_url.process = process  # type: ignore[attr-defined]  # keeps its standard input open
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ours(size: Size, seed: int, *, asynchronous: bool) -> Prepared:
    from llm_judges import FaithfulnessEvaluator, OpenAIChatGenerator

    generator = OpenAIChatGenerator("loopback", "none", server_url())
    evaluator = FaithfulnessEvaluator(progress_bar=False, chat_generator=generator, max_concurrency=AT_ONCE)
    return _prepared(evaluator, columns(size, seed), asynchronous)


def haystacks(size: Size, seed: int, *, asynchronous: bool) -> Prepared:
    from haystack.components.evaluators import FaithfulnessEvaluator
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.utils import Secret

    key = Secret.from_token("none")
    generator = OpenAIChatGenerator(api_key=key, model="loopback", api_base_url=server_url())
    evaluator = FaithfulnessEvaluator(progress_bar=False, chat_generator=generator)
    return _prepared(evaluator, columns(size, seed), asynchronous)


def _prepared(evaluator: Any, given: dict[str, list[Any]], asynchronous: bool) -> Prepared:
    async def run_and_close() -> Any:
        try:
            return await evaluator.run_async(**given)
        finally:
            await evaluator.close_async()  # Haystack's client belongs to this loop

    call = (lambda: asyncio.run(run_and_close())) if asynchronous else partial(evaluator.run, **given)
    return Prepared(call, _answers)


def sdk_alone(size: Size, seed: int) -> Prepared:
    import openai

    from llm_judges import FaithfulnessEvaluator

    requests = FaithfulnessEvaluator(progress_bar=False).requests(**columns(size, seed))
    url = server_url()

    async def all_prompts() -> None:
        async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

            async def ask(prompts: Iterator[str]) -> None:
                for prompt in prompts:
                    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])

            prompts = (request.messages[0].text for request in requests)
            await asyncio.gather(*(ask(prompts) for _ in range(AT_ONCE)))

    return Prepared(lambda: asyncio.run(all_prompts()))


def scripted(size: Size, seed: int, *, stored: bool) -> Prepared:
    from llm_judges import FaithfulnessEvaluator, Reply, ScriptedChatGenerator

    given, calls, early = columns(size, seed), count(1), [0]

    def script(_: str) -> Reply:
        if next(calls) == len(given["questions"]) // 10:
            gc.collect()
            early[0] = anonymous_bytes(os.getpid())
        return Reply(REPLY, meta={"finish_reason": "stop", "usage": {"total_tokens": 30}})

    def quantities(result: dict[str, Any]) -> Quantities:
        result.clear()
        gc.collect()
        return {"growth_beyond_results_mb": (anonymous_bytes(os.getpid()) - early[0]) / 1e6}

    evaluator = FaithfulnessEvaluator(
        progress_bar=False,
        chat_generator=ScriptedChatGenerator(script),
        store=work_directory() / f"{os.getpid()}-{seed}.db" if stored else None,
        store_identity="benchmark",
    )
    return Prepared(partial(evaluator.run, **given), _answers, quantities)


def _answers(result: dict[str, Any]) -> Answers:
    return {"faithfulness": result["individual_scores"]}


def _over_ideal(ours: str, rows: int) -> Gate:
    ideal = -(-rows // AT_ONCE) * DELAY
    text = f"{ours}: times the ideal of {ideal * 1e3:.0f} ms"
    return Gate(text, lambda measured: measured[ours]["seconds"] / ideal, 2, 1.7, at_least=False)


ROWS, MANY_ROWS = 200, 10_000
WORKLOAD = Workload(
    "judges",
    f"Judges: a server that replies after {DELAY * 1e3:.0f} ms, {AT_ONCE} calls at once",
    (
        Case(
            f"{ROWS} rows",
            Size(ROWS, 1, 1),
            (
                Contender(RUN, partial(ours, asynchronous=False), threads=2, reads_rows=False),
                Contender(RUN_ASYNC, partial(ours, asynchronous=True), threads=2, reads_rows=False),
                Contender(THEIR_RUN, partial(haystacks, asynchronous=False), threads=2, reads_rows=False),
                Contender(THEIR_RUN_ASYNC, partial(haystacks, asynchronous=True), threads=2, reads_rows=False),
                Contender(SDK, sdk_alone, threads=2, reads_rows=False),
            ),
            (
                _over_ideal(RUN, ROWS),
                _over_ideal(RUN_ASYNC, ROWS),
                times_as_fast(RUN, THEIR_RUN, gate=12, aim=25),
                times_as_fast(RUN_ASYNC, THEIR_RUN_ASYNC, gate=12, aim=25),
            ),
        ),
        Case(
            f"{MANY_ROWS:,} rows, scripted",
            Size(MANY_ROWS, 1, 1),
            (
                Contender(STORED, partial(scripted, stored=True), reads_rows=False),
                Contender(UNSTORED, partial(scripted, stored=False), reads_rows=False),
            ),
            (
                Gate(
                    f"{STORED}: ms a row",
                    lambda measured: measured[STORED]["seconds"] * 1e3 / MANY_ROWS,
                    2,
                    at_least=False,
                ),
                Gate(
                    f"{STORED}: memory growth from row {MANY_ROWS // 10:,} on, beyond the results, MB",
                    lambda measured: measured[STORED]["growth_beyond_results_mb"],
                    20,
                    at_least=False,
                ),
            ),
            rounds=3,
        ),
    ),
    ("openai", "haystack-ai"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
