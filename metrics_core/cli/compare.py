"""metrics-core compare: runs against each other or a baseline, and conditions on the differences that fail a job."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrics_core.cli.evaluate import DEFAULT_METRICS
from metrics_core.cli.gate import Condition, check_metrics, conditions_of, held
from metrics_core.cli.options import CommandWithPolicies, chosen_format, format_options, policy_options
from metrics_core.cli.output import displayable, drawn, write
from metrics_core.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType

    from metrics_core.cli.runs import Evaluation
    from metrics_core.comparison import Comparison
    from metrics_core.markup import Cell

_FAILED = 1
_EXPENDABLE = (
    "p",
    "d_z",
    "p perm.",
    "n",
    "left out",
    "w/t/l",
)  # columns that a narrow terminal goes without, first to last
_UNBOUNDED = 10_000  # columns of the terminal
_NARROWEST_NAME, _WIDEST_NAME = 8, 24  # columns of the terminal; a longer name is broken
_EXAMPLES = """\b
Examples:
  metrics-core compare qrels.txt bm25.run dense.run -m nDCG@10 -m AP
  metrics-core compare qrels.txt bm25.run dense.run hybrid.run --test tukey
  metrics-core compare qrels.txt bm25.run dense.run --baseline bm25.run --latex -o table.tex
  metrics-core compare qrels.txt main.run new.run --baseline main.run --fail-if 'nDCG@10 < -0.02' --significant

\b
Exit status: 0; 1 where a --fail-if holds, after a line on standard error that says which; 2 for bad usage or input."""


def comparison_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds how runs are compared; together their values are arguments of `compare`."""
    for option in reversed(
        (
            click.option("--baseline", metavar="NAME", help="compare with this RUN only; else all pairs"),
            click.option(
                "--test",
                type=click.Choice(("t", "permutation", "bootstrap", "wilcoxon", "tukey")),
                default="t",
                show_default=True,
            ),
            click.option(
                "--correction",
                type=click.Choice(("holm", "bh", "by", "none")),
                help="holm, unless given; tukey has its own",
            ),
            click.option(
                "--family",
                type=click.Choice(("metric", "all")),
                default="metric",
                show_default=True,
                help="p-values that are corrected together",
            ),
            click.option("--resamples", "n_resamples", type=click.IntRange(min=1), default=10_000, show_default=True),
            click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
            click.option(
                "--confidence",
                type=click.FloatRange(0, 1, min_open=True, max_open=True),
                default=0.95,
                show_default=True,
                help="of intervals; significant is below 1 - confidence",
            ),
        )
    ):
        command = option(command)
    return command


@click.command("compare", cls=CommandWithPolicies, epilog=_EXAMPLES)
@click.argument("qrels")
@click.argument("runs", metavar="RUN RUN [RUN]...", nargs=-1, required=True)
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
@comparison_options
@click.option(
    "--fail-if",
    "conditions",
    metavar="CONDITION",
    multiple=True,
    callback=conditions_of,
    help="exit with 1 if a difference to the baseline is such, as in 'nDCG@10 < -0.02'; may be given several times",
)
@click.option("--significant", is_flag=True, help="--fail-if counts significant differences only")
@format_options("table", "tsv", "json", "markdown", "latex", "html", flags=("json", "markdown", "latex"))
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="write there instead of to standard output"
)
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="as many as there are cores, unless given")
@policy_options
def compare_command(
    qrels: str,
    runs: tuple[str, ...],
    *,
    metrics: tuple[str, ...],
    conditions: tuple[Condition, ...],
    significant: bool,
    format_name: str | None,
    as_json: bool,
    as_markdown: bool,
    as_latex: bool,
    output: Path | None,
    threads: int | None,
    baseline: str | None,
    test: str,
    correction: str | None,
    family: str,
    n_resamples: int,
    seed: int,
    confidence: float,
    **policies: Any,
) -> int:
    """Compares RUNs by the judgements in QRELS: differences, intervals, p-values.

    All pairs of RUNs, or each against --baseline.
    """
    to_file = output is not None
    format_name = chosen_format(
        format_name, to_file=to_file, as_json=as_json, as_markdown=as_markdown, as_latex=as_latex
    )
    context = click.get_current_context()
    if len(runs) < 2:
        raise click.UsageError("compare takes two RUNs or more", context)
    if conditions and baseline is None:
        raise click.UsageError("--fail-if needs --baseline: it is about the differences to that run", context)
    if significant and not conditions:
        raise click.UsageError("--significant is for --fail-if", context)
    from metrics_core.cli.runs import evaluate_files, report_unpaired_queries

    check_metrics(conditions, metrics)
    evaluation = evaluate_files(qrels, runs, metrics, Policies(**policies), n_threads=threads)
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
    write(_text(evaluation, comparison, format_name, plain=to_file), output)
    if format_name != "table":
        report_unpaired_queries(evaluation)
    code = 0
    for difference, sentence in held(comparison, conditions):
        fails = difference.significant or not significant
        outcome = "failed" if fails else "not significant, so it may pass"
        click.echo(f"metrics-core: {outcome}: {displayable(sentence)}", err=True)
        code = _FAILED if fails else code
    return code


def compared(evaluation: Evaluation, *, baseline: str | None, **options: Any) -> Comparison:
    """The comparison of evaluated runs; the baseline may be named by its path, too."""
    from metrics_core.comparison import compare

    names = {run.path: run.name for run in evaluation.runs}
    runs = {run.name: run.scores for run in evaluation.runs}
    named = baseline if baseline is None or baseline in runs else names.get(baseline, baseline)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what a test is about stands in the output
        return compare(runs, baseline=named, **options)


def _text(evaluation: Evaluation, comparison: Comparison, format_name: str, *, plain: bool) -> str:
    from metrics_core.cli.formats import json_of, tsv_of, unpaired

    if format_name == "json":
        queries = {run.name: unpaired(run.scores) for run in evaluation.runs}
        return json_of({"qrels": evaluation.qrels} | comparison.to_dict() | {"unpaired_queries": queries})
    if format_name == "tsv":
        columns = comparison.columns()
        return tsv_of(columns, ([_tsv_cell(value) for value in row] for row in zip(*columns.values(), strict=True)))
    if format_name == "table":
        return drawn(*_tables(evaluation, comparison), plain=plain)
    pasted: dict[str, Callable[[], str]] = {
        "markdown": comparison.to_markdown,
        "latex": comparison.to_latex,
        "html": comparison.to_html,
    }
    return pasted[format_name]()


def _tsv_cell(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


def _tables(evaluation: Evaluation, comparison: Comparison) -> list[RenderableType]:
    """The means, a table of differences for each metric, and what explains them."""
    from rich.padding import Padding
    from rich.text import Text

    from metrics_core.cli.tables import notes
    from metrics_core.comparison_tables import differences_columns, legend, means_columns

    tables = _DifferenceTables(comparison.metrics, differences_columns(comparison))
    explained = Padding(Text("\n".join(legend(comparison)), "dim"), (1, 1, 0, 1), expand=False)
    return [_drawn_table(means_columns(comparison)), tables, explained, notes(evaluation)]


@dataclass(frozen=True, slots=True)
class _DifferenceTables:
    """The table of each metric's differences, with as many columns as there is room for."""

    metrics: Sequence[str]
    columns: Mapping[str, Sequence[Cell]]  # a row each, of all metrics

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.measure import Measurement
        from rich.padding import Padding
        from rich.text import Text

        unbounded = options.update(max_width=_UNBOUNDED)
        for n_left_out in range(len(_EXPENDABLE) + 1):
            left_out = [name for name in _EXPENDABLE[:n_left_out] if name in self.columns]
            tables = [self._table(metric, left_out) for metric in self.metrics]
            if all(Measurement.get(console, unbounded, table).maximum <= options.max_width for table in tables):
                break
        for metric, table in zip(self.metrics, tables, strict=True):
            yield Padding(Text(metric, "bold cyan"), (1, 1, 0, 1), expand=False)
            yield table
        if left_out:
            text = f"No room for {', '.join(left_out)}: a wider terminal or another --format has them."
            yield Padding(Text(text, "dim"), (1, 1, 0, 1), expand=False)

    def _table(self, metric: str, left_out: Sequence[str]) -> RenderableType:
        rows = [row for row, cell in enumerate(self.columns["metric"]) if cell.value == metric]
        return _drawn_table(
            {
                name: [cells[row] for row in rows]
                for name, cells in self.columns.items()
                if name != "metric" and name not in left_out
            }
        )


def _drawn_table(columns: Mapping[str, Sequence[Cell]]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name, cells in columns.items():
        if all(cell.is_number for cell in cells):
            table.add_column(name, justify="right", overflow="fold")
        else:
            widest = max(len(cell.text) for cell in cells)
            table.add_column(name, overflow="fold", min_width=min(widest, _NARROWEST_NAME), max_width=_WIDEST_NAME)
    for row in zip(*columns.values(), strict=True):
        table.add_row(
            *(
                Text.assemble(
                    (displayable(cell.text), "bold green" if cell.bold else ""), (f" {cell.mark}".rstrip(), "bold")
                )
                for cell in row
            )
        )
    return Padding(table, (0, 1), expand=False)
