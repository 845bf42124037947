"""The command line against a server on loopback: files in and out, exit codes, what is asked and what is not."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from llm_judges.cli import main
from llm_judges.rows import read_rows, write_rows
from tests.judges.judging import verdict
from tests.judges.server import Answer, Seen, Server, fails, says

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-of-the-environment-42"


@pytest.fixture
def cli(run_main, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return partial(run_main, main)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory, with three rows in rows.jsonl."""
    monkeypatch.chdir(tmp_path)
    write_rows(three_rows(), tmp_path / "rows.jsonl")
    return tmp_path


def three_rows(count: int = 3):
    return [
        {"id": row, "question": f"question <{row}>", "contexts": [f"c{row}"], "predicted_answer": f"a{row}"}
        for row in range(count)
    ]


def row_of(seen: Seen) -> int:
    return int(re.findall(r"question <(\d+)>", seen.prompt)[-1])


def by_row(*answers: Answer) -> Callable[[Seen], Answer]:
    return lambda seen: answers[row_of(seen)]


HALF = says(verdict(1, 0))


# Rows in, judged rows out


def test_faithfulness_of_jsonl(cli, folder):
    with Server(by_row(says(verdict(1, 1)), says(verdict(1, 0)), says(verdict(0)))) as server:
        result = cli("faithfulness", "rows.jsonl", "--out", "judged.jsonl", "--base-url", server.url, "--model", "m")
    assert (result.code, result.out) == (0, "")
    assert "3 of 3 rows scored, mean score 0.5000; 3 requests, 30 prompt and 60 completion tokens" in result.err
    judged = read_rows(folder / "judged.jsonl")
    assert [row["score"] for row in judged] == [1, 0.5, 0]
    assert [{name: row[name] for name in three_rows()[0]} for row in judged] == three_rows()
    assert judged[1]["statements"] == ["s0", "s1"]
    assert judged[1]["statement_scores"] == [1, 0]
    assert (judged[1]["status"], judged[1]["reason"]) == ("evaluated", None)
    assert {seen.body["model"] for seen in server.requests} == {"m"}
    assert {seen.headers["authorization"] for seen in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in result.err + (folder / "judged.jsonl").read_text()


def test_without_a_file_rows_go_to_standard_output(cli, folder):
    with Server(lambda _: HALF) as server:
        result = cli("faithfulness", "rows.jsonl", "--base-url", server.url)
    assert [json.loads(line)["score"] for line in result.out.splitlines()] == [0.5] * 3


def test_context_relevance_of_csv_with_literals_and_other_names(cli, folder):
    context = 'He said "{{7*7}}", it\'s\n日本'
    (folder / "export.csv").write_bytes(b"\xef\xbb\xbf")
    with (folder / "export.csv").open("a", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["query", "passages"], ["question <0>", repr([context, "other"])]])
    reply = says(json.dumps({"relevant_statements": [context]}))
    with Server([reply]) as server:
        options = ("--columns", "question=query", "--columns", "contexts=passages", "--base-url", server.url)
        result = cli("context-relevance", "export.csv", "-o", "judged.jsonl", *options)
    assert result.code == 0
    assert json.dumps([context, "other"], ensure_ascii=False) in server.requests[0].prompt
    (judged,) = read_rows(folder / "judged.jsonl")
    assert (judged["score"], judged["query"], judged["passages"]) == (1, "question <0>", repr([context, "other"]))
    assert judged["relevant_statements"] == [context]


def test_parquet(cli, folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(three_rows()), folder / "rows.parquet")
    with Server(lambda _: HALF) as server:
        assert cli("faithfulness", "rows.parquet", "-o", "judged.jsonl", "--base-url", server.url).code == 0
    assert [row["score"] for row in read_rows(folder / "judged.jsonl")] == [0.5] * 3


def test_haystacks_export(cli, folder, shared):
    name = "detailed_all-MiniLM-L6-v2__top_k_2__chunk_size_64.csv"
    export = shared / "data/exports/haystack_eval/aragog" / name
    with Server(lambda _: HALF) as server:
        result = cli("faithfulness", export, "--limit", 5, "-o", "judged.jsonl", "--base-url", server.url)
    assert result.code == 0
    judged, original = read_rows(folder / "judged.jsonl"), read_rows(export, 5)
    assert [{column: row[column] for column in original[0]} for row in judged] == original
    assert {row["score"] for row in judged} == {0.5}


SPEC = {
    "instructions": "Rate the answer.",
    "inputs": {"question": "list[str]", "predicted_answer": "list[str]"},
    "outputs": {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "rating": {"type": "integer", "minimum": 1, "maximum": 5}},
        "required": ["reason", "rating"],
    },
    "score": "rating",
}


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_custom_judge(cli, folder, suffix):
    if suffix == ".yaml":
        yaml = pytest.importorskip("yaml")
        (folder / "rate.yaml").write_text(yaml.safe_dump(SPEC))
    else:
        (folder / "rate.json").write_text(json.dumps(SPEC))
    reply = says('{"reason": "fine", "rating": 4}')
    with Server(lambda _: reply) as server:
        options = ("--spec", f"rate{suffix}", "-o", "judged.jsonl", "--base-url", server.url)
        result = cli("custom", "rows.jsonl", *options)
    assert result.code == 0
    assert "Rate the answer." in server.requests[0].prompt
    for row in read_rows(folder / "judged.jsonl"):
        assert (row["score"], row["rating"], row["output_reason"], row["reason"]) == (4, 4, "fine", None)


def test_a_judge_without_a_score(cli, folder):
    spec = SPEC | {"outputs": ["tone"], "examples": [{"inputs": {"question": "?"}, "outputs": {"tone": "curt"}}]}
    del spec["score"]
    (folder / "tone.json").write_text(json.dumps(spec))
    with Server([says('{"tone": "kind"}'), fails(400), says('{"tone": "kind"}')]) as server:
        options = ("--spec", "tone.json", "-o", "judged.jsonl", "--base-url", server.url, "--concurrency", 1)
        result = cli("custom", "rows.jsonl", *options)
    assert result.code == 1
    assert "2 of 3 rows scored;" in result.err
    judged = read_rows(folder / "judged.jsonl")
    assert [row["tone"] for row in judged] == ["kind", None, "kind"]
    assert "score" not in judged[0]


# What is asked, and what is not


def test_a_dry_run_asks_nothing_and_needs_no_key(cli, folder, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with Server([]) as server:
        options = ("--base-url", server.url, "--samples", 2, "--out", "judged.jsonl", "--store", "run.db")
        result = cli("faithfulness", "rows.jsonl", "--dry-run", *options)
    assert result.code == 0
    assert server.requests == []
    prompt, _, counts = result.out.partition("\nrows: ")
    assert prompt.startswith("Instructions:\n")
    assert '{"questions": "question <0>", "contexts": ["c0"], "predicted_answers": "a0"}\nOutputs:\n' in prompt
    assert "<1>" not in result.out
    rows, requests, tokens = counts.splitlines()
    assert (rows, requests) == ("3", "requests: 6")
    estimate = int(re.search(r"about ([\d,]+)", tokens)[1].replace(",", ""))
    assert estimate == pytest.approx(6 * len(prompt) / 3, rel=0.02)
    assert sorted(path.name for path in folder.iterdir()) == ["rows.jsonl"]


def test_a_dry_run_counts_only_what_the_store_lacks(cli, folder):
    with Server(by_row(HALF, fails(400), HALF)) as server:
        options = ("--base-url", server.url, "--store", "run.db", "--concurrency", 1)
        cli("faithfulness", "rows.jsonl", *options, "-o", "judged.jsonl")
        n_asked = len(server.requests)
        result = cli("faithfulness", "rows.jsonl", *options, "--dry-run", "--budget-tokens", 1)
        assert len(server.requests) == n_asked
        assert '"question <1>"' in result.out
        assert "rows: 3\nrequests: 1\n" in result.out
        server._script = lambda _: HALF
        cli("faithfulness", "rows.jsonl", *options, "-o", "judged.jsonl")
        result = cli("faithfulness", "rows.jsonl", *options, "--dry-run")
    assert result.out == "rows: 3\nrequests: 0\nprompt tokens: about 0 (3 characters each), and the replies'\n"


def test_a_row_has_as_many_seconds_as_it_is_given(cli, folder):
    slow = says(verdict(1), delay=30)
    with Server(by_row(HALF, slow, HALF)) as server:
        result = cli("faithfulness", "rows.jsonl", "--base-url", server.url, "--timeout", 3)
    assert result.code == 1
    assert [json.loads(line)["reason"] for line in result.out.splitlines()] == [None, "timeout", None]


def test_a_limit_is_the_first_rows(cli, folder):
    with Server(lambda _: HALF) as server:
        result = cli("faithfulness", "rows.jsonl", "--limit", 2, "--base-url", server.url)
    assert len(result.out.splitlines()) == len(server.requests) == 2
    assert sorted(map(row_of, server.requests)) == [0, 1]


def test_concurrency_bounds_what_is_under_way(cli, folder):
    write_rows(three_rows(12), folder / "rows.jsonl")
    slow = says(verdict(1), delay=0.05)
    with Server(lambda _: slow) as server:
        assert cli("faithfulness", "rows.jsonl", "--concurrency", 3, "--base-url", server.url).code == 0
    assert server.most_under_way == 3


def test_parameters_of_the_requests(cli, folder):
    with Server(lambda _: HALF) as server:
        options = ("--parameter", "temperature=0", "--parameter", "stop=END", "--base-url", server.url)
        cli("faithfulness", "rows.jsonl", "--limit", 1, *options)
    (seen,) = server.requests
    assert (seen.body["temperature"], seen.body["stop"], seen.body["seed"]) == (0, "END", 42)


def test_the_key_comes_from_the_variable_that_is_named(cli, folder, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-mine-123456")
    with Server(lambda _: HALF) as server:
        cli("faithfulness", "rows.jsonl", "--limit", 1, "--base-url", server.url, "--api-key-env", "MY_KEY")
    assert server.requests[0].headers["authorization"] == "Bearer sk-mine-123456"


def test_a_server_of_ones_own_needs_no_key(cli, folder, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with Server(lambda _: HALF) as server:
        assert cli("faithfulness", "rows.jsonl", "--base-url", server.url).code == 0


def test_samples_vote_and_are_kept(cli, folder):
    with Server(lambda _: HALF) as server:
        result = cli("faithfulness", "rows.jsonl", "--limit", 1, "--samples", 3, "--base-url", server.url)
    assert len(server.requests) == 3
    row = json.loads(result.out)
    assert (row["score"], row["spread"], [each["score"] for each in row["samples"]]) == (0.5, 0, [0.5] * 3)


def test_a_second_call_asks_only_for_what_is_missing(cli, folder):
    options = ("--out", "judged.jsonl", "--store", "run.db")
    with Server(by_row(HALF, fails(400), HALF)) as server:
        first = cli("faithfulness", "rows.jsonl", *options, "--base-url", server.url)
        assert first.code == 1
        url = server.url
        assert [row["status"] for row in read_rows(folder / "judged.jsonl")] == ["evaluated", "error", "evaluated"]
        server.requests.clear()
        server._script = lambda _: HALF
        second = cli("faithfulness", "rows.jsonl", *options, "--base-url", url)
    assert second.code == 0
    assert [row_of(seen) for seen in server.requests] == [1]
    assert "3 of 3 rows scored" in second.err
    assert "1 requests" in second.err
    assert "2 replies from the store" in second.err
    assert [row["score"] for row in read_rows(folder / "judged.jsonl")] == [0.5] * 3


# Exit codes


def test_1_where_rows_are_unscored_and_the_warning_says_why(cli, folder):
    with Server(by_row(HALF, says(None, refusal="no"), HALF)) as server:
        result = cli("faithfulness", "rows.jsonl", "-o", "judged.jsonl", "--base-url", server.url)
    assert result.code == 1
    assert "2 of 3 rows scored, mean score 0.5000" in result.err
    row = read_rows(folder / "judged.jsonl")[1]
    assert (row["score"], row["status"], row["reason"], row["statements"]) == (None, "error", "refused", [])


def test_1_where_the_budget_is_used_up(cli, folder):
    with Server(lambda _: HALF) as server:
        options = ("--budget-requests", 2, "--concurrency", 1, "-o", "judged.jsonl", "--base-url", server.url)
        assert cli("faithfulness", "rows.jsonl", *options).code == 1
        assert len(server.requests) == 2
        options = ("--budget-tokens", 1, "-o", "none.jsonl", "--base-url", server.url)
        assert cli("faithfulness", "rows.jsonl", *options).code == 1
        assert len(server.requests) == 2
    assert [row["reason"] for row in read_rows(folder / "judged.jsonl")] == [None, None, "skipped"]


def test_3_where_no_row_can_be_judged_and_an_earlier_file_stays(cli, folder):
    (folder / "judged.jsonl").write_text("earlier")
    with Server(lambda _: fails(401, "invalid_api_key", f"wrong key {KEY}")) as server:
        options = ("--base-url", server.url, "--concurrency", 1)
        result = cli("faithfulness", "rows.jsonl", "-o", "judged.jsonl", *options)
    assert (result.code, result.out, len(server.requests)) == (3, "", 1)
    assert result.err.startswith("llm-judges: error: ")
    assert result.err.count("\n") == 1
    assert KEY not in result.err
    assert (folder / "judged.jsonl").read_text() == "earlier"


def test_3_keeps_what_has_been_paid_for(cli, folder):
    with Server([HALF, fails(429, "insufficient_quota")]) as server:
        options = ("--base-url", server.url, "--concurrency", 1)
        result = cli("faithfulness", "rows.jsonl", "-o", "judged.jsonl", *options)
    assert result.code == 3
    assert "1 of 3 rows scored" in result.err
    assert [row["reason"] for row in read_rows(folder / "judged.jsonl")] == [None, "skipped", "skipped"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("faithfulnes", "rows.jsonl"), "no such command 'faithfulnes'"),
        (("faithfulness",), "missing argument 'ROWS' (see 'llm-judges faithfulness --help')"),
        (("faithfulness", "absent.jsonl"), "absent.jsonl: No such file or directory"),
        (("faithfulness", "rows.json"), "rows.json: the suffix must be one of .jsonl"),
        (("faithfulness", "torn.jsonl"), "torn.jsonl, line 2: not JSON"),
        (("faithfulness", "empty.jsonl"), "empty.jsonl has no rows"),
        (("faithfulness", "rows.jsonl", "--concurrency", "0"), "'--concurrency'"),
        (("faithfulness", "rows.jsonl", "--columns", "question"), "NAME=VALUE expected, got 'question'"),
        (("faithfulness", "rows.jsonl", "--columns", "answer=a"), "--columns: 'answer' is no input of this judge"),
        (("faithfulness", "rows.jsonl", "--columns", "question=query"), "has no column 'query'; it has 'id', 'quest"),
        (("faithfulness", "queries.jsonl"), "has no column 'questions' or 'question'; it has 'query'; --columns"),
        (("faithfulness", "judged.jsonl"), "judged.jsonl has a column 'score' already; rename it"),
        (("faithfulness", "rows.jsonl", "-o", "absent/judged.jsonl"), "there is no folder absent"),
        (("faithfulness", "rows.jsonl", "-o", "judged.txt"), "judged.txt: judged rows are JSONL"),
        (("faithfulness", "rows.jsonl", "--api-key-env", "NOT_SET_7"), "NOT_SET_7"),
        (("faithfulness", "rows.jsonl", "--store", "absent/run.db"), "absent/run.db"),
        (("faithfulness", "rows.jsonl", "--store", "rows.jsonl"), "rows.jsonl cannot be used as a store"),
        (("custom", "rows.jsonl"), "missing option '--spec'"),
        (("custom", "rows.jsonl", "--spec", "absent.json"), "absent.json: No such file or directory"),
        (("custom", "rows.jsonl", "--spec", "torn.jsonl"), "torn.jsonl: not JSON"),
    ],
)
def test_2_and_one_line_before_anything_is_asked(cli, folder, arguments, message):
    (folder / "torn.jsonl").write_text('{"a": 1}\n{"a')
    (folder / "empty.jsonl").write_text("\n")
    (folder / "queries.jsonl").write_text('{"query": "why?"}\n')
    write_rows([row | {"score": 1} for row in three_rows()], folder / "judged.jsonl")
    with Server([]) as server:
        result = cli(*arguments, *(() if arguments == ("faithfulness",) else ("--base-url", server.url)))
    assert server.requests == []
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("llm-judges: error: ")
    assert (result.err.count("\n"), result.err[-1]) == (1, "\n")
    assert message in result.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instruction": "x"}, "'instruction' means nothing here; there are instructions, inputs"),
        ({"inputs": ["question"]}, "an object expected whose inputs are names with types, got {"),
        ({"inputs": {"question": "open('x')"}}, "inputs must have types such as 'list[str]', got \"open('x')\""),
        ({"inputs": {"question": "str"}}, "a type of list"),
        ({"score": "grade"}, "score must be one of the outputs"),
        ({"outputs": ["tone"], "score": "tone"}, "examples must be a list of dictionaries"),
    ],
)
def test_2_where_a_spec_makes_no_sense(cli, folder, change, message):
    (folder / "spec.json").write_text(json.dumps(SPEC | change))
    result = cli("custom", "rows.jsonl", "--spec", "spec.json")
    assert result.code == 2
    assert message in result.err


def test_2_where_a_spec_lacks_something(cli, folder):
    (folder / "spec.json").write_text(json.dumps({"instructions": "x"}))
    assert "spec.json lacks 'inputs'" in cli("custom", "rows.jsonl", "--spec", "spec.json").err
    (folder / "spec.yaml").write_text("a: [")
    pytest.importorskip("yaml")
    assert "spec.yaml: not YAML" in cli("custom", "rows.jsonl", "--spec", "spec.yaml").err


def test_2_where_the_extra_is_not_installed(cli, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    result = cli("faithfulness", "rows.jsonl")
    assert result.code == 2
    assert result.err == "llm-judges: error: llm_judges needs openai: pip install 'metrics-core[judges]'\n"
    assert cli("faithfulness", "rows.jsonl", "--dry-run").code == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help(cli, arguments):
    result = cli(*arguments)
    assert result.code == 0
    assert all(command in result.out for command in ("faithfulness", "context-relevance", "custom", "Exit status"))


def test_version(cli):
    assert re.fullmatch(r"llm-judges \d+\.\d+\S*\n", cli("--version").out)


# As a process, where it must be one: a start takes longer than most tests


def start(folder: Path, *arguments: object, **options) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY, "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-m", "llm_judges", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)


def test_after_kill_9_the_same_command_finishes_what_is_missing(cli, folder):
    n_rows, n_before, concurrency = 100, 40, 8
    write_rows(three_rows(n_rows), folder / "rows.jsonl")
    killed = []

    def answer(seen: Seen) -> Answer:
        if killed and len(server.requests) == n_before:
            killed[0].send_signal(signal.SIGKILL)
        return says(verdict(*[1] * (row_of(seen) % 3), 0), delay=0.02)

    with Server(answer) as server:
        command = ("faithfulness", "rows.jsonl", "--concurrency", concurrency, "--base-url", server.url)
        assert cli(*command, "--out", "undisturbed.jsonl").code == 0

        server.requests.clear()
        command += ("--out", "judged.jsonl", "--store", "run.db")
        killed.append(start(folder, *command))
        killed[0].communicate(timeout=60)
        assert killed.pop().returncode == -signal.SIGKILL
        n_asked = len(server.requests)
        assert n_before <= n_asked < n_rows
        assert not (folder / "judged.jsonl").exists()

        (folder / "judged.jsonl").write_text('{"id": 0, "question": "ques')
        server.requests.clear()
        assert cli(*command).code == 0
    assert n_rows - n_asked <= len(server.requests) <= n_rows - n_asked + concurrency
    assert (folder / "judged.jsonl").read_bytes() == (folder / "undisturbed.jsonl").read_bytes()


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_ends_with_130_and_keeps_what_is_done(cli, folder):
    write_rows(three_rows(10), folder / "rows.jsonl")
    interrupted = []

    def answer(seen: Seen) -> Answer:
        if interrupted and len(server.requests) == 7:  # three rows are done, and four under way
            interrupted[0].send_signal(signal.SIGINT)
        return says(verdict(1), delay=30.0 if interrupted and row_of(seen) > 2 else 0.0)

    with Server(answer) as server:
        command = ("faithfulness", "rows.jsonl", "--concurrency", 4, "--base-url", server.url, "--store", "run.db")
        interrupted.append(start(folder, *command))
        out, err = interrupted[0].communicate(timeout=60)
        assert interrupted.pop().returncode == 130
        assert [json.loads(line)["reason"] for line in out.splitlines()] == [None] * 3 + ["skipped"] * 7
        assert "3 of 10 rows scored" in err
        assert "Traceback" not in err
        server.requests.clear()
        assert cli(*command).code == 0
    assert sorted(map(row_of, server.requests)) == [*range(3, 10)]


def test_progress_on_a_terminal_has_rows_failures_and_tokens(cli, folder, monkeypatch):
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    terminal, its_end = pty.openpty()
    termios.tcsetwinsize(its_end, (24, 120))
    with Server(by_row(HALF, says(None, refusal="no"), HALF)) as server, os.fdopen(its_end, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        assert cli("faithfulness", "rows.jsonl", "--base-url", server.url).code == 1
        stderr.flush()
        shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert re.search(r"3/3 .*failed=1, tokens=90", shown)


def test_retries_say_nothing_and_a_reader_that_leaves_gets_no_traceback(folder):
    reading, writing = os.pipe()
    os.close(reading)
    answers = iter([fails(500), HALF])
    with Server(lambda _: next(answers)) as server:
        options = ("--limit", 1, "--base-url", server.url)
        process = start(folder, "faithfulness", "rows.jsonl", *options, stdout=writing)
        os.close(writing)
        _, err = process.communicate(timeout=60)
    assert len(server.requests) == 2
    assert (process.returncode, err) == (141, "")


def test_help_imports_neither_openai_nor_numpy():
    code = (
        "import sys; from llm_judges.cli import main; main(['faithfulness', '--help']); "
        "heavy = {'openai', 'pydantic', 'numpy', 'pyarrow', 'torch', 'numba', 'yaml', 'tqdm'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
