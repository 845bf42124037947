"""metrics-core evaluate: runs and judgements in, scores out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

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
  metrics-core evaluate 'queries/*.parquet' --out scores/ --executor processes

\b
QRELS and RUN are TREC files, plain or gzip, or BEIR's .tsv (qrels); - is standard input.
Instead of them all, parquet files, folders of them or patterns: a row a query, with lists in the columns ground_truth
and retrieved. --out DIR holds the scores of each query; after an interruption the same command goes on where it was.
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
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="of parquet files: each query's scores")
@click.option(
    "--executor", type=click.Choice(("processes", "ray")), help="of parquet files: who scores them, if not this process"
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
    executor: Literal["processes", "ray"] | None,
    threads: int | None,
    **policies: Any,
) -> None:
    """Scores one or more RUNs against the judgements in QRELS, or the rows of parquet files.

    A judged query that a run lacks counts as an empty ranking (trec_eval's -c), unless --missing says otherwise.
    """
    format_name = chosen_format(format_name, as_json=as_json, to_file=output is not None)
    context = click.get_current_context()
    from metrics_core.cli import datasets

    if datasets.are_tables((qrels, *runs)):
        if per_query or format_name == "trec":
            raise click.UsageError("of parquet files --out has the scores of each query, as parquet", context)
        chosen = Policies(**policies) if any(map(partial(_is_given, context), policies)) else None
        scores = datasets.evaluate_tables(
            (qrels, *runs), metrics, chosen, out=out, executor=executor, n_threads=threads
        )
        write(datasets.text_of(scores, format_name, plain=output is not None), output)
        return
    if out is not None or executor is not None:
        raise click.UsageError("--out and --executor are for parquet files", context)
    if not runs:
        raise click.UsageError("Missing argument 'RUN [RUN]...'.", context)
    if format_name == "trec" and len(runs) > 1:
        raise click.UsageError("--format trec takes one RUN", context)
    from metrics_core.cli import formats
    from metrics_core.cli.runs import evaluate_files

    evaluation = evaluate_files(qrels, runs, metrics, Policies(**policies), n_threads=threads)
    if format_name == "table":
        from metrics_core.cli.tables import table

        text = table(evaluation, per_query=per_query, plain=output is not None)
    else:
        text_of = {"tsv": formats.tsv, "json": formats.as_json, "trec": formats.trec}[format_name]
        text = text_of(evaluation, per_query=per_query)
    write(text, output)


def _is_given(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) is not ParameterSource.DEFAULT
