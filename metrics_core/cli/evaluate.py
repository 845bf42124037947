"""metrics-core evaluate: runs and judgements in, scores out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from metrics_core.cli.options import CommandWithPolicies, chosen_format, format_options, policy_options
from metrics_core.cli.output import write
from metrics_core.policies import Policies

DEFAULT_METRICS = ("nDCG@10", "AP", "RR", "P@10", "R@100")

_EXAMPLES = """\b
Examples:
  metrics-core evaluate qrels.txt bm25.run dense.run
  metrics-core evaluate qrels.txt bm25.run -m nDCG@10 -m 'AP(rel=2)' -m P_5,10
  metrics-core evaluate qrels.txt bm25.run -m map -m ndcg_cut_10 --format trec --per-query
  zcat bm25.run.gz | metrics-core evaluate qrels.tsv - --json -o scores.json
  metrics-core evaluate qrels.txt bm25.run --missing skip --no-relevant skip
  metrics-core evaluate 'rows/*.parquet' -m SetR -m RR --out scores
  metrics-core evaluate qrels.parquet runs/bm25/ --out scores --executor processes

\b
QRELS and RUN are TREC files, plain or gzip, or BEIR's .tsv (qrels); - is standard input. Both may be tables with a row
a document (query, document, number): parquet or JSONL files, folders or quoted patterns. Without RUN, tables have a
row a query, with lists in the columns ground_truth and retrieved (query_id, relevance and scores may be there, too).
'metrics-core metrics' lists the metrics."""


@click.command("evaluate", cls=CommandWithPolicies, epilog=_EXAMPLES)
@click.argument("qrels")
@click.argument("runs", metavar="RUN [RUN]...", nargs=-1)
@click.option(
    "-m",
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    default=DEFAULT_METRICS,
    show_default=", ".join(DEFAULT_METRICS),
    help="a metric, as in nDCG@10, ndcg_cut_10, 'AP(rel=2)' or P_5,10 (two); may be given several times",
)
@click.option("-q", "--per-query", is_flag=True, help="the scores of each query; with --format trec, of those in RUN")
@format_options("table", "tsv", "json", "trec")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="write there instead of to standard output"
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="of tables: write the scores of each query there, in parts, and go on there after an interruption",
)
@click.option(
    "--executor", type=click.Choice(("processes", "ray")), help="of tables: score their parts there; else in threads"
)
@click.option(
    "--column",
    "columns",
    metavar="ROLE=NAME",
    multiple=True,
    help="of tables with a row a query: a column that is not named as its role, as in ground_truth=gold",
)
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="as many as there are cores, unless given")
@policy_options
def evaluate_command(
    qrels: str,
    runs: tuple[str, ...],
    *,
    metrics: tuple[str, ...],
    per_query: bool,
    format_name: str | None,
    as_json: bool,
    output: Path | None,
    out: Path | None,
    executor: str | None,
    columns: tuple[str, ...],
    threads: int | None,
    **policies: Any,
) -> None:
    """Scores one or more RUNs against the judgements in QRELS, or tables whose rows have both.

    A judged query that a run lacks counts as an empty ranking (trec_eval's -c), unless --missing says otherwise.
    """
    context = click.get_current_context()
    format_name = chosen_format(format_name, as_json=as_json, to_file=output is not None)
    roles = _roles(columns, context)
    if per_query and (out is not None or executor is not None):
        raise click.UsageError("--per-query shows what --out writes; leave one out", context)
    try:
        from metrics_core.tables import means_tables, schema_of, table_files

        found = schema_of(table_files(qrels)[0]).names if means_tables(qrels) else None
        if found is not None and _are_rows(qrels, found, runs, roles, context):
            from metrics_core.cli import datasets

            paths, workers = [qrels, *runs], datasets.Workers(executor, threads)
            by_default = context.get_parameter_source("profile") is ParameterSource.DEFAULT
            if by_default and roles.get("scores", "scores") not in found:
                policies["profile"] = "haystack"
            if per_query:
                evaluation = datasets.evaluate_rows_in_memory(paths, metrics, Policies(**policies), roles, workers)
            else:
                evaluation = datasets.evaluate_rows(paths, metrics, Policies(**policies), roles, out, workers)
        elif not runs:
            if qrels != "-":
                Path(qrels).stat()  # an absent path is the error to report, not the lack of a RUN
            raise click.MissingParameter(ctx=context, param=context.command.params[1])
        elif roles:
            raise click.UsageError("--column is for tables with a row a query", context)
        elif format_name == "trec" and len(runs) > 1:
            raise click.UsageError("--format trec takes one RUN", context)
        elif out is not None or executor is not None:
            if others := [path for path in runs if not means_tables(path)]:
                raise click.UsageError(f"--out and --executor are for tables, which {others[0]!r} is not", context)
            from metrics_core.cli.datasets import Workers, evaluate_long_tables

            workers = Workers(executor, threads)
            evaluation = evaluate_long_tables(qrels, runs, metrics, Policies(**policies), out, workers)
        else:
            from metrics_core.cli.runs import evaluate_files

            evaluation = evaluate_files(qrels, runs, metrics, Policies(**policies), n_threads=threads)
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    if format_name == "table":
        from metrics_core.cli.tables import table

        write(table(evaluation, per_query=per_query, plain=output is not None), output)
    else:
        from metrics_core.cli import formats
        from metrics_core.cli.runs import report_unpaired_queries

        text_of = {"tsv": formats.tsv, "json": formats.as_json, "trec": formats.trec}[format_name]
        write(text_of(evaluation, per_query=per_query), output)
        report_unpaired_queries(evaluation)


def _are_rows(
    qrels: str, found: Sequence[str], runs: Sequence[str], columns: Mapping[str, str], context: click.Context
) -> bool:
    """Whether a table with these columns has a row a query; without runs, it must."""
    lacking = [
        name for name in (columns.get(role, role) for role in ("ground_truth", "retrieved")) if name not in found
    ]
    if lacking and not runs:
        there = ", ".join(map(repr, found))
        raise click.UsageError(
            f"without RUN, a table has a row a query, but {qrels} has no column {lacking[0]!r}, only {there} "
            "(--column maps roles)",
            context,
        )
    return not lacking


def _roles(columns: tuple[str, ...], context: click.Context) -> dict[str, str]:
    pairs = [column.partition("=") for column in columns]
    for role, equals, name in pairs:
        if not (role and equals and name):
            raise click.UsageError(f"--column takes ROLE=NAME, got {role + equals + name!r}", context)
    return {role: name for role, _, name in pairs}
