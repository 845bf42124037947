"""metrics-core report: runs and judgements in, one HTML page out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from metrics_core.cli.compare import compared, comparison_options
from metrics_core.cli.evaluate import DEFAULT_METRICS
from metrics_core.cli.options import CommandWithPolicies, policy_options
from metrics_core.policies import Policies

_EXAMPLES = """\b
Examples:
  metrics-core report qrels.txt bm25.run dense.run -o report.html
  metrics-core report qrels.txt bm25.run dense.run --baseline bm25.run --queries queries.tsv \\
      --documents corpus.jsonl.gz -o report.html

\b
The page opens without a network. Texts are lines of an id, a tab and a text, or of JSON (BEIR's), plain or gzip."""


@click.command("report", cls=CommandWithPolicies, epilog=_EXAMPLES)
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
    help="a metric, as for evaluate; may be given several times",
)
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), required=True, help="the page")
@click.option("--queries", metavar="FILE", type=click.Path(path_type=Path), help="the queries' texts")
@click.option("--documents", metavar="FILE", type=click.Path(path_type=Path), help="the documents' texts")
@click.option("--title", default="Evaluation", show_default=True)
@comparison_options
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="as many as there are cores, unless given")
@policy_options
def report_command(
    qrels: str,
    runs: tuple[str, ...],
    *,
    metrics: tuple[str, ...],
    output: Path,
    queries: Path | None,
    documents: Path | None,
    title: str,
    threads: int | None,
    baseline: str | None,
    test: str,
    correction: str | None,
    family: str,
    n_resamples: int,
    seed: int,
    confidence: float,
    **policies: Any,
) -> None:
    """Writes a page about RUNs by the judgements in QRELS.

    Means, significance, distributions, the hardest queries and largest regressions with their documents.
    """
    from metrics_core.cli.runs import evaluate_files, report_unpaired_queries
    from metrics_core.report import write_report

    if len(runs) == 1 and baseline is not None:
        raise click.UsageError("--baseline is for two RUNs or more", click.get_current_context())
    evaluation = evaluate_files(qrels, runs, metrics, Policies(**policies), n_threads=threads, keep=True)
    comparison = None
    if len(evaluation.runs) > 1:
        comparison = compared(
            evaluation,
            baseline=baseline,
            test=test,
            correction=correction,
            family=family,
            n_resamples=n_resamples,
            seed=seed,
            confidence=confidence,
            n_threads=threads,
        )
    write_report(
        output,
        {run.name: run.scores for run in evaluation.runs},
        comparison=comparison,
        qrels=evaluation.judgements,
        rankings={run.name: run.ranking for run in evaluation.runs},
        queries=queries,
        documents=documents,
        title=title,
    )
    report_unpaired_queries(evaluation)
