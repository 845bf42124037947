"""The command line, `llm-judges`: a file of rows in, the same rows judged out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from llm_judges.answer_judges import ContextRelevanceEvaluator, FaithfulnessEvaluator
from llm_judges.evaluators import LLMEvaluator
from llm_judges.failures import FatalError, InterruptedRun, require
from llm_judges.openai_chat import EnvVar, OpenAIChatGenerator
from llm_judges.prompt import CHARACTERS_PER_TOKEN, estimated_tokens
from llm_judges.rows import Row, check_writable, read_rows, values_of, write_jsonl, write_rows
from llm_judges.serialisation import type_from_text
from metrics_core import __version__
from metrics_core.errors import FileFormatError, InputError, MetricsError

C = TypeVar("C", bound=Callable[..., Any])

_PROGRAM = "llm-judges"
_ALL_SCORED, _SOME_UNSCORED, _BAD_INPUT, _STOPPED, _INTERRUPTED, _READER_LEFT = 0, 1, 2, 3, 130, 141
_KEY = "OPENAI_API_KEY"
_SPEC = ("instructions", "inputs", "outputs", "examples", "score")
_BY_ROW = ("status", "reason", "detail", "flags", "spread", "samples")  # of a result, where it has them
_OURS = ("score", *_BY_ROW)
_EPILOG = """\b
Examples:
  llm-judges faithfulness rows.jsonl --dry-run
  llm-judges faithfulness rows.jsonl --out judged.jsonl --store run.db --concurrency 16
  llm-judges context-relevance export.csv --columns question=query --out judged.jsonl
  llm-judges custom rows.jsonl --spec tone.yaml --model qwen3 --base-url http://localhost:8000/v1

\b
With --store, the same command again asks only for what is missing.
Exit status: 0 all rows scored, 1 some unscored, 2 bad usage or input, 3 stopped (key, quota, model)."""


def _pairs(_context: click.Context, _parameter: click.Parameter, given: Iterable[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for name, _, value in pairs:
        if not (name and value):
            raise click.BadParameter(f"NAME=VALUE expected, got {name!r}")
    return {name: value for name, _, value in pairs}


_PAIRS: Any = {"metavar": "NAME=VALUE", "multiple": True, "callback": _pairs}


def _judge_options(command: C) -> C:
    """Adds what all judges take."""
    file = click.Path(path_type=Path)
    count = click.IntRange(min=1)
    options = (
        click.argument("rows", type=file),
        click.option("-o", "--out", metavar="FILE", type=file, help="judged rows, as JSONL; unless given, to stdout"),
        click.option("--columns", **_PAIRS, help="where an input has another name in ROWS, as in question=query"),
        click.option("--limit", metavar="N", type=count, help="only the first N rows"),
        click.option(
            "--dry-run", is_flag=True, help="show the first prompt and count what is not in the store; ask nothing"
        ),
        click.option("--model", default="gpt-5-mini", show_default=True),
        click.option("--base-url", metavar="URL", help="of a server that speaks OpenAI's protocol"),
        click.option("--api-key-env", metavar="NAME", help=f"the variable that has the API key  [default: {_KEY}]"),
        click.option("--parameter", "parameters", **_PAIRS, help="of the requests, as in temperature=0"),
        click.option("--store", metavar="FILE", type=file, help="keeps replies; what it has is not asked again"),
        click.option("--concurrency", metavar="N", type=count, default=8, show_default=True, help="calls at once"),
        click.option(
            "--timeout", metavar="SECONDS", type=float, help="for a row, retries and all  [default: no limit]"
        ),
        click.option("--samples", metavar="N", type=count, default=1, show_default=True, help="replies a row"),
        click.option("--budget-tokens", metavar="N", type=count, help="begin no call that could exceed as many"),
        click.option("--budget-requests", metavar="N", type=count, help="make no more calls"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name=_PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Has a language model judge the rows of a JSONL, CSV or parquet file."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@commands.command("faithfulness")
@_judge_options
def faithfulness_command(**options: Any) -> int:
    """Do the contexts support the answer?

    The score is the share of its statements that follow from them.

    ROWS has the columns question, contexts and predicted_answer, or questions and predicted_answers.
    """
    return _judge(FaithfulnessEvaluator, {}, **options)


@commands.command("context-relevance")
@_judge_options
def context_relevance_command(**options: Any) -> int:
    """Do the contexts answer the question?

    The score is 1 where they hold anything that is needed for it, else 0.

    ROWS has the columns question, or questions, and contexts.
    """
    return _judge(ContextRelevanceEvaluator, {}, **options)


@commands.command("custom")
@_judge_options
@click.option("--spec", metavar="FILE", type=click.Path(path_type=Path), required=True, help=".json or .yaml")
def custom_command(spec: Path, **options: Any) -> int:
    """Whatever --spec asks of ROWS.

    The file has instructions, inputs ({name: "list[str]"}: a list for the rows) and outputs (names, or the JSON schema
    of an object); examples, unless outputs is a schema; and score, the output that is the row's score, if one is. An
    output named like a column of ours, such as reason, is written as output_reason.
    """
    return _judge(LLMEvaluator, _spec(spec), **options)


def _spec(path: Path) -> dict[str, Any]:
    """What the file of a custom judge holds, as arguments of LLMEvaluator."""
    yaml = require("yaml")
    read, fault = (
        (yaml.safe_load, yaml.YAMLError) if path.suffix.lower() in {".yaml", ".yml"} else (json.loads, ValueError)
    )
    try:
        spec = read(path.read_text("utf-8-sig"))
    except fault as error:
        raise FileFormatError(f"{path}: not {'YAML' if read is yaml.safe_load else 'JSON'} ({error})") from None
    if not isinstance(spec, dict) or not isinstance(spec.get("inputs", {}), dict):
        raise FileFormatError(f"{path}: an object expected whose inputs are names with types, got {spec!r:.200}")
    if unknown := [name for name in spec if name not in _SPEC]:
        raise FileFormatError(f"{path}: {unknown[0]!r} means nothing here; there are {', '.join(_SPEC)}")
    if missing := [name for name in ("instructions", "inputs", "outputs") if name not in spec]:
        raise FileFormatError(f"{path} lacks {missing[0]!r}")
    return spec | {"inputs": [(name, type_from_text(str(kind))) for name, kind in spec["inputs"].items()]}


def _judge(
    kind: Callable[..., LLMEvaluator],
    arguments: Mapping[str, Any],
    *,
    rows: Path,
    out: Path | None,
    columns: Mapping[str, str],
    limit: int | None,
    dry_run: bool,
    concurrency: int,
    model: str,
    base_url: str | None,
    api_key_env: str | None,
    parameters: Mapping[str, str],
    **run_options: Any,
) -> int:
    if out is not None:
        check_writable(out)
    evaluator = kind(
        **arguments,
        chat_generator=_generator(model, base_url, api_key_env, parameters),
        progress_bar=sys.stderr.isatty(),
        raise_on_failure=False,
        max_concurrency=concurrency,
        **run_options,
    )
    table = read_rows(rows, limit)
    if not table:
        raise InputError(f"{rows} has no rows")
    inputs = _inputs(table, rows, dict(evaluator.inputs), columns)
    present = {name for row in table for name in row}
    if taken := [name for name in (*map(_column, evaluator.output_keys), *_OURS) if name in present]:
        raise InputError(f"{rows} has a column {taken[0]!r} already; rename it")
    if dry_run:
        _show(evaluator, inputs)
        return _ALL_SCORED
    stopped: FatalError | InterruptedRun | None = None
    try:
        result = evaluator.run(**inputs)
    except (FatalError, InterruptedRun) as error:
        stopped, result = error, error.result or {}
    if stopped is None or result["coverage"]["scored"]:  # else what an earlier run has written stays
        judged = _judged(table, result, evaluator.output_keys)
        if out is None:
            _print(judged)
        else:
            write_rows(judged, out)
        click.echo(_summary(result), err=True)
    if stopped is not None:
        raise stopped
    return _ALL_SCORED if result["coverage"]["scored"] == len(table) else _SOME_UNSCORED


def _generator(
    model: str, base_url: str | None, api_key_env: str | None, parameters: Mapping[str, str]
) -> OpenAIChatGenerator:
    # A server of one's own asks for no key; one that does answers 401, and the run stops
    keyless = base_url is not None and api_key_env is None and not os.environ.get(_KEY)
    asked = {"seed": 42} | {name: _value(text) for name, text in parameters.items()}
    return OpenAIChatGenerator(model, "none" if keyless else EnvVar(api_key_env or _KEY), base_url, asked)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _inputs(
    table: Sequence[Row], path: Path, kinds: Mapping[str, Any], columns: Mapping[str, str]
) -> dict[str, list[Any]]:
    """The columns that the judge takes, under its names: a row has a question, the judge takes questions."""
    unused, inputs = set(columns), {}
    for name, kind in kinds.items():
        names = dict.fromkeys((name, name.removesuffix("s")))
        candidates = [columns[each] for each in names if each in columns] or list(names)
        column = next((each for each in candidates if each in table[0]), None)
        if column is None:
            raise InputError(
                f"{path} has no column {' or '.join(map(repr, candidates))}; it has {', '.join(map(repr, table[0]))}; "
                f"--columns {min(names, key=len)}=NAME tells which it is"
            )
        inputs[name] = values_of(table, column, *get_args(kind))
        unused -= set(names)
    if unused:
        raise InputError(f"--columns: {min(unused)!r} is no input of this judge; it takes {', '.join(kinds)}")
    return inputs


def _column(output: str) -> str:
    """The column of an output: a judge's own "reason" is not why a row is unscored."""
    return f"output_{output}" if output in _OURS else output


def _judged(table: Sequence[Row], result: Mapping[str, Any], outputs: Sequence[str]) -> list[Row]:
    """The rows with the judge's columns after their own."""
    results = result["results"]
    added = {_column(name): [None if found is None else found[name] for found in results] for name in outputs}
    if "individual_scores" in result:
        added["score"] = result["individual_scores"]
    added |= {name: result[name] for name in _BY_ROW if name in result}
    return [row | dict(zip(added, values, strict=True)) for row, *values in zip(table, *added.values(), strict=True)]


def _print(judged: Sequence[Row]) -> None:
    try:
        write_jsonl(judged, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # What could not be written is still in the buffer; Python would try again when it ends, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(_READER_LEFT) from None


def _show(evaluator: LLMEvaluator, inputs: Mapping[str, list[Any]]) -> None:
    requests = evaluator.requests(**inputs)
    tokens = sum(map(estimated_tokens, requests))
    if requests:
        click.echo(requests[0].messages[0].text)
    click.echo(f"rows: {len(next(iter(inputs.values()))):,}")
    click.echo(f"requests: {len(requests):,}")
    click.echo(f"prompt tokens: about {tokens:,} ({CHARACTERS_PER_TOKEN} characters each), and the replies'")


def _summary(result: Mapping[str, Any]) -> str:
    coverage, usage = result["coverage"], result["usage"]
    mean = f", mean score {result['score']:.4f}" if "score" in result and coverage["scored"] else ""
    return (
        f"{coverage['scored']:,} of {coverage['total']:,} rows scored{mean}; {usage['requests']:,} requests, "
        f"{usage['prompt_tokens']:,} prompt and {usage['completion_tokens']:,} completion tokens; "
        f"{usage['stored']:,} replies from the store"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: without the program's name; None: those of the process.

    Returns:
        The exit code: 0 where all rows are scored; 1 where some are not; 2 for bad usage or input; 3 where the run was
        stopped by what no row can do without, such as a valid key; 130 after Ctrl-C; 141 where the reader of a pipe
        has left. 2 and 3 come after one line on standard error.
    """
    try:
        code: int | None = commands.main(arguments, prog_name=_PROGRAM, standalone_mode=False)
    except click.UsageError as error:
        message = error.format_message()
        path = error.ctx.command_path if error.ctx else _PROGRAM
        return _refuse(f"{message[:1].lower()}{message[1:].rstrip('.')} (see '{path} --help')")
    except FatalError as error:
        return _refuse(str(error), _STOPPED)
    except (MetricsError, ImportError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except click.Abort:
        return _INTERRUPTED
    return code or _ALL_SCORED


def _refuse(message: str, code: int = _BAD_INPUT) -> int:
    click.echo(f"{_PROGRAM}: error: {' '.join(message.split())}", err=True)
    return code
