"""An evaluation as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from rich.box import SIMPLE_HEAD
from rich.console import ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from metrics_core.aggregate import Aggregate, AggregateName
from metrics_core.cli.formats import rounded
from metrics_core.cli.output import displayable, drawn
from metrics_core.cli.runs import EvaluatedRun, Evaluation, unpaired_queries
from metrics_core.wording import counted

_BEST = "bold green"
_VALUE_WIDTH = len("(43/50)")  # or 0.1234: long names of runs are folded instead


def table(evaluation: Evaluation, *, per_query: bool, plain: bool = False) -> str:
    """The evaluation, drawn: a column a run, or a table of queries for each run."""
    tables = [queries_table(run) for run in evaluation.runs] if per_query else [runs_table(evaluation)]
    return drawn(*tables, notes(evaluation), plain=plain)


def runs_table(evaluation: Evaluation) -> Table:
    """A row a metric, a column a run; the best is marked, where there is a best."""
    result = empty_table("metric", [run.name for run in evaluation.runs])
    aggregates = [list(run.scores.aggregate().values()) for run in evaluation.runs]
    hows = evaluation.runs[0].scores.aggregates
    for metric, how, *totals in zip(evaluation.metrics, hows, *aggregates, strict=True):
        values = [total.value for total in totals if not isnan(total.value)]
        # A metric that needs no relevant documents counts or describes: more of it is not better.
        best = max(values) if metric.needs_relevant and len(set(values)) > 1 else None
        cells = [aggregate_cell(total, how, best=total.value == best) for total in totals]
        result.add_row(_metric_cell(str(metric), how), *cells)
    return result


def queries_table(run: EvaluatedRun) -> ConsoleRenderable:
    """A row a query, a column a metric, the aggregates below."""
    scores = run.per_query
    result = empty_table("query", list(scores.metrics))
    for query, row in scores.to_dict().items():
        cells = [value_cell(value, how) for value, how in zip(row.values(), scores.aggregates, strict=True)]
        result.add_row(Text(displayable(query)), *cells)
    result.add_section()
    totals = zip(scores.aggregate().values(), scores.aggregates, strict=True)
    result.add_row(Text("all", "bold"), *(aggregate_cell(total, how) for total, how in totals), style="bold")
    return Group(Padding(Text(run.name, "bold"), (1, 1, 0, 1), expand=False), result)


def notes(evaluation: Evaluation) -> ConsoleRenderable:
    """The policies, which judged queries the runs lack, and which of theirs are not judged."""
    judged = counted(len(evaluation.runs[0].scores), "judged query", "judged queries")
    summary = f"{judged}; policies {evaluation.policies}"
    return Padding(Text("\n".join((summary, *unpaired_queries(evaluation))), "dim"), (0, 1), expand=False)


def empty_table(first: str, others: Sequence[str]) -> Table:
    """A table of figures: a column of names, and columns of numbers."""
    result = Table(box=SIMPLE_HEAD, header_style="bold")
    result.add_column(first, overflow="fold")
    for name in others:
        result.add_column(name, justify="right", overflow="fold", min_width=_VALUE_WIDTH)
    return result


def _metric_cell(name: str, how: AggregateName) -> Text:
    return Text.assemble((name, "cyan"), ("" if how == "mean" else f" ({how})", "dim"))


def aggregate_cell(total: Aggregate, how: AggregateName, *, best: bool = False) -> Text:
    """An aggregate, and how many queries it rests on if that is not all."""
    cell = value_cell(total.value, how, best=best)
    if total.n_scored < total.n_total:
        cell.append(f" ({total.n_scored}/{total.n_total})", "dim")
    return cell


def value_cell(value: float, how: AggregateName, *, best: bool = False) -> Text:
    """A score; a dash where none was given."""
    text, style = ("-", "dim") if isnan(value) else (rounded(value, how), _BEST if best else "")
    return Text(text, style)
