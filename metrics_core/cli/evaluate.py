"""metrics-core evaluate: runs and judgements in, scores out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

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

\b
QRELS and RUN are TREC files, plain or gzip, or BEIR's .tsv (qrels); - is standard input.
'metrics-core metrics' lists the metrics."""


@click.command("evaluate", cls=CommandWithPolicies, epilog=_EXAMPLES)
@click.argument("qrels")
@click.argument("runs", metavar="RUN [RUN]...", nargs=-1, required=True)
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
    threads: int | None,
    **policies: Any,
) -> None:
    """Scores one or more RUNs against the judgements in QRELS.

    A judged query that a run lacks counts as an empty ranking (trec_eval's -c), unless --missing says otherwise.
    """
    format_name = chosen_format(format_name, as_json=as_json, to_file=output is not None)
    if format_name == "trec" and len(runs) > 1:
        raise click.UsageError("--format trec takes one RUN", click.get_current_context())
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
