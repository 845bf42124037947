"""Judges against a server on loopback, next to haystack-ai's, and what a row costs with the store on.

    python -m benchmarks.judges            # writes results/judges.json
    python -m benchmarks.judges --quick    # a smoke test: few rows, no gate judged

The server answers each request after 50 ms, in a process of its own; each contender runs in a fresh process, warmed on
other rows, in turn on the same server. The overhead is that of a scripted generator: no HTTP, no SDK. What the
SDK costs is reported apart: its client alone with as many workers, and the CPU time of all.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import anonymous_bytes

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
DELAY = 0.05  # seconds a reply
AT_ONCE = 32
REPLY = '{"statements": ["a", "b"], "statement_scores": [1, 0]}'
CONTENDERS = ("llm_judges run", "llm_judges run_async", "haystack-ai run", "haystack-ai run_async", "openai alone")


def columns(count: int, start: int = 0) -> dict[str, list[Any]]:
    """Rows of the judge of faithfulness, about a page of context each."""
    rows = range(start, start + count)
    return {
        "questions": [f"What is said of number {row}?" for row in rows],
        "contexts": [[f"Number {row} is said to be {'very ' * 20}large."] * 10 for row in rows],
        "predicted_answers": [f"That {row} is large." for row in rows],
    }


async def sdk_alone(url: str, rows: int) -> dict[str, float]:
    """Times what the SDK itself takes: its client, its own method, as many workers."""
    import openai

    from llm_judges import FaithfulnessEvaluator

    prompts = [request.messages[0].text for request in FaithfulnessEvaluator().requests(**columns(rows))]
    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def ask(todo: Iterator[str]) -> None:
            for prompt in todo:
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])

        for todo in (iter(prompts[:5]), iter(prompts)):  # the former warms up
            began, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*(ask(todo) for _ in range(AT_ONCE)))
    return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}


def contender(name: str, url: str, rows: int) -> dict[str, float]:
    """Times one contender in this process."""
    package, _, method = name.partition(" ")
    if package == "openai":
        return asyncio.run(sdk_alone(url, rows))
    evaluator: Any
    if package == "llm_judges":
        import llm_judges

        ours = llm_judges.OpenAIChatGenerator("loopback", "none", url)
        evaluator = llm_judges.FaithfulnessEvaluator(progress_bar=False, chat_generator=ours, max_concurrency=AT_ONCE)
    else:
        from haystack.components.evaluators import FaithfulnessEvaluator
        from haystack.components.generators.chat import OpenAIChatGenerator
        from haystack.utils import Secret

        theirs = OpenAIChatGenerator(api_key=Secret.from_token("none"), model="loopback", api_base_url=url)
        evaluator = FaithfulnessEvaluator(progress_bar=False, chat_generator=theirs)

    def run(count: int, start: int) -> dict[str, Any]:
        given = columns(count, start)
        found: dict[str, Any] = (
            asyncio.run(_closed(evaluator, given)) if method == "run_async" else evaluator.run(**given)
        )
        return found

    run(5, rows)
    began, cpu = time.perf_counter(), time.process_time()
    result = run(rows, 0)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert result["individual_scores"] == [0.5] * rows
    return {"seconds": seconds, "cpu_seconds": cpu}


async def _closed(evaluator: Any, given: dict[str, list[Any]]) -> Any:
    try:
        return await evaluator.run_async(**given)
    finally:
        await evaluator.close_async()  # Haystack's client belongs to this loop


def overhead(rows: int, store: str | None) -> dict[str, float]:
    """Time and memory of a scripted run in this process; growth is counted from a tenth of the rows on."""
    from llm_judges import FaithfulnessEvaluator, Reply, ScriptedChatGenerator

    before: list[int] = []
    asked = 0

    def script(_: str) -> Reply:
        nonlocal asked
        asked += 1
        if asked == rows // 10:
            gc.collect()
            before.append(anonymous_bytes(os.getpid()))
        return Reply(REPLY, meta={"finish_reason": "stop", "usage": {"total_tokens": 30}})

    scripted = ScriptedChatGenerator(script)
    evaluator = FaithfulnessEvaluator(
        progress_bar=False, chat_generator=scripted, store=store, store_identity="benchmark"
    )
    given = columns(rows)
    began = time.perf_counter()
    result = evaluator.run(**given)
    seconds = time.perf_counter() - began
    assert result["coverage"] == {"scored": rows, "total": rows, "empty": 0}
    gc.collect()
    with_results = anonymous_bytes(os.getpid())
    del result
    gc.collect()
    return {
        "ms_a_row": 1e3 * seconds / rows,
        "growth_mb": (with_results - before[0]) / 1e6,
        "growth_without_results_mb": (anonymous_bytes(os.getpid()) - before[0]) / 1e6,
    }


@contextmanager
def server() -> Iterator[str]:
    """The loopback server in a process of its own; its URL."""
    command = [sys.executable, "-m", "tests.judges.server", "--delay", str(DELAY), "--text", REPLY]
    command += ["--max-requests", "50000", "--max-seconds", "900"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
        process.wait(10)


def in_process(*arguments: str) -> dict[str, float]:
    """What this module reports, asked in a fresh process."""
    environment = os.environ | {"HAYSTACK_TELEMETRY_ENABLED": "False"}
    command = [sys.executable, "-m", "benchmarks.judges", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    """Runs all, prints it, and writes the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judges")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", nargs=3, metavar=("NAME", "URL", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--overhead", nargs=2, metavar=("ROWS", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        name, url, rows = options.contender
        print(json.dumps(contender(name, url, int(rows))))
        return 0
    if options.overhead:
        rows, store = options.overhead
        print(json.dumps(overhead(int(rows), store or None)))
        return 0

    rows, many, rounds = (40, 1_000, 1) if options.quick else (200, 10_000, options.rounds)
    ideal = -(-rows // AT_ONCE) * DELAY
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    with server() as url:
        for _ in range(rounds):
            for name in CONTENDERS:
                runs[name].append(in_process("--contender", name, url, str(rows)))
    seconds = {name: median(run["seconds"] for run in found) for name, found in runs.items()}
    cpu = {name: median(run["cpu_seconds"] for run in found) for name, found in runs.items()}
    print(f"{rows} rows, {DELAY * 1e3:.0f} ms a reply, {AT_ONCE} at once; ideal {ideal:.3f} s; median of {rounds}")
    for name in CONTENDERS:
        print(f"  {name:<24}{seconds[name]:8.3f} s   CPU {1e3 * cpu[name] / rows:6.2f} ms a row")

    with tempfile.TemporaryDirectory() as folder:
        with_store = in_process("--overhead", str(many), str(Path(folder) / "run.db"))
        again = in_process("--overhead", str(many), "")
    print(
        f"{many:,} rows, scripted: {with_store['ms_a_row']:.3f} ms a row with a store, {again['ms_a_row']:.3f} without"
    )
    print(
        f"  memory from row {many // 10:,} on: {with_store['growth_mb']:.1f} MB with the results, "
        f"{with_store['growth_without_results_mb']:.1f} MB without"
    )
    gates = [
        _gate("wall time over the ideal", max(seconds[n] for n in CONTENDERS[:2]) / ideal, most=2),
        _gate("times faster than haystack-ai run", seconds["haystack-ai run"] / seconds["llm_judges run"], least=12),
        _gate(
            "times faster than haystack-ai run_async",
            seconds["haystack-ai run_async"] / seconds["llm_judges run_async"],
            least=12,
        ),
        _gate("ms a row with a store", with_store["ms_a_row"], most=2),
        _gate("MB beyond the results", with_store["growth_without_results_mb"], most=20),
    ]
    if not options.quick:
        for gate in gates:
            print("  " + gate["line"])
        RESULTS.mkdir(parents=True, exist_ok=True)
        report = {"rows": rows, "ideal_seconds": ideal, "runs": runs, "overhead": with_store, "gates": gates}
        (RESULTS / "judges.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _gate(text: str, value: float, *, least: float | None = None, most: float | None = None) -> dict[str, Any]:
    met = (least is None or value >= least) and (most is None or value <= most)
    bound = f"at least {least:g}" if least is not None else f"at most {most:g}"
    return {
        "text": text,
        "value": value,
        "met": met,
        "line": f"{'met' if met else 'MISSED'}: {text} {value:.2f} ({bound})",
    }


if __name__ == "__main__":
    sys.exit(main())
