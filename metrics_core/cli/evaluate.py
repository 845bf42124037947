"""metrics-core evaluate: runs and judgements in, scores out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from metrics_core.cli.options import CommandWithPolicies, chosen_format, format_options, policy_options
from metrics_core.cli.output import write
from metrics_core.policies import Policies

if TYPE_CHECKING:
    from metrics_core.cli.runs import Evaluation

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
@click.option("-q", "--per-query", is_flag=True, help="the scores of each query")
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
    from metrics_core.cli.runs import row_columns

    roles = _roles(columns, context)
    try:
        rows = row_columns(qrels, roles)
        if rows is None and not runs:
            raise click.MissingParameter(ctx=context, param=context.command.params[1])
        if format_name == "trec" and rows is None and len(runs) > 1:
            raise click.UsageError("--format trec takes one RUN", context)
        if rows is not None:
            by_default = context.get_parameter_source("profile") is ParameterSource.DEFAULT
            if by_default and roles.get("scores", "scores") not in rows:
                policies["profile"] = "haystack"
        evaluation = _evaluated(
            qrels, runs, metrics, Policies(**policies), rows is not None, per_query, roles, out, executor, threads
        )
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    from metrics_core.cli import formats

    if format_name == "table":
        from metrics_core.cli.tables import table

        text = table(evaluation, per_query=per_query, plain=output is not None)
    else:
        text_of = {"tsv": formats.tsv, "json": formats.as_json, "trec": formats.trec}[format_name]
        text = text_of(evaluation, per_query=per_query)
    write(text, output)


def _evaluated(
    qrels: str,
    runs: tuple[str, ...],
    metrics: tuple[str, ...],
    policies: Policies,
    are_rows: bool,
    per_query: bool,
    columns: Mapping[str, str],
    out: Path | None,
    executor: str | None,
    threads: int | None,
) -> Evaluation:
    from metrics_core.cli import runs as evaluations
    from metrics_core.tables import means_tables

    context = click.get_current_context()
    in_parts = out is not None or executor is not None
    if in_parts and per_query:
        raise click.UsageError("--per-query shows what --out writes; leave one out", context)
    if columns and not are_rows:
        raise click.UsageError("--column is for tables with a row a query", context)
    if are_rows and per_query:
        return evaluations.evaluate_rows([qrels, *runs], metrics, policies, columns=columns, n_threads=threads)
    if are_rows or in_parts:
        for path in () if are_rows else runs:
            if not means_tables(path):
                raise click.UsageError(f"--out and --executor are for tables, which {path!r} is not", context)
        return evaluations.evaluate_datasets(
            None if are_rows else qrels,
            [qrels, *runs] if are_rows else runs,
            metrics,
            policies,
            columns=columns,
            out=out,
            executor=executor,
            n_threads=threads,
        )
    return evaluations.evaluate_files(qrels, runs, metrics, policies, n_threads=threads)


def _roles(columns: tuple[str, ...], context: click.Context) -> dict[str, str]:
    pairs = [column.partition("=") for column in columns]
    for role, equals, name in pairs:
        if not (role and equals and name):
            raise click.UsageError(f"--column takes ROLE=NAME, got {role + equals + name!r}", context)
    return {role: name for role, _, name in pairs}
