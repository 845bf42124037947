"""metrics-core metrics: the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from metrics_core.cli.options import chosen_format, format_options
from metrics_core.cli.output import drawn, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from metrics_core.metrics import Metric, Parameter

_AFTER = {"none": "", "optional cutoff": "[@k]", "cutoff": "@k", "recall": "@recall"}
_EXAMPLES = """\b
Examples:
  metrics-core metrics
  metrics-core metrics nDCG
  metrics-core metrics --json"""


@click.command("metrics", epilog=_EXAMPLES)
@click.argument("name", required=False)
@format_options("table", "tsv", "json")
def metrics_command(name: str | None, *, format_name: str | None, as_json: bool) -> None:
    """Lists the metrics, or describes the one of NAME.

    NAME may be in any spelling that evaluate reads, such as ndcg_cut_10.
    """
    format_name = chosen_format(format_name, as_json=as_json)
    from metrics_core.cli.formats import json_of, tsv_of
    from metrics_core.metrics import registered_metrics

    chosen = registered_metrics() if name is None else (definition_of(name),)
    entries = [_entry(metric) for metric in chosen]
    if format_name == "json":
        write(json_of(entries if name is None else entries[0]))
    elif format_name == "tsv":
        rows = ([_cell(value) for value in entry.values()] for entry in entries)
        write(tsv_of(entries[0], rows))
    else:
        write(drawn(_listed(entries) if name is None else _in_full(entries[0])))


def definition_of(name: str) -> Metric:
    """The metric of a name, without what may be bound to it.

    Raises:
        MetricNameError: there is none.
    """
    from metrics_core.metrics import parse, registered_metrics

    definitions = {metric.name.lower(): metric for metric in registered_metrics()}
    if name.lower() in definitions:  # complete or not: P is precision here, though P without a cutoff is set precision
        return definitions[name.lower()]
    return definitions[parse(name).name.lower()]


def _entry(metric: Metric) -> dict[str, Any]:
    arguments = ", ".join(parameter.name for parameter in metric.parameters)
    return {
        "name": metric.name,
        "form": metric.name + (f"({arguments})" if arguments else "") + _AFTER[metric.after],
        "title": metric.title,
        "definition": metric.definition,
        "parameters": {parameter.name: _parameter(parameter) for parameter in metric.parameters},
        "aggregate": metric.aggregate,
        "trec_eval": _trec_eval_names(metric),
        "source": metric.source,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    from metrics_core.metrics import REQUIRED

    required = parameter.default is REQUIRED
    return {
        "definition": parameter.definition,
        "required": required,
        "default": None if required else parameter.default,
    }


def _trec_eval_names(metric: Metric) -> list[str]:
    from metrics_core.metrics import trec_eval_name

    example = metric if metric.after == "none" else metric @ (0.1 if metric.after == "recall" else 10)
    return [name for each in dict.fromkeys((metric, example)) if (name := trec_eval_name(each)) != str(each)]


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}{_default(each, '=')}: {each['definition']}" for name, each in value.items())
    return ", ".join(value) if isinstance(value, list) else value


def _default(parameter: dict[str, Any], sign: str) -> str:
    if parameter["required"]:
        return " (required)"
    return "" if parameter["default"] is None else f"{sign}{parameter['default']}"


def _listed(entries: Sequence[dict[str, Any]]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold")
    table.add_column("metric", style="cyan", max_width=24)
    table.add_column("definition")
    for i, entry in enumerate(entries):
        how = "" if entry["aggregate"] == "mean" else f"; aggregated as {entry['aggregate']}"
        text = Text.assemble((entry["title"], "bold"), "\n", entry["definition"], how, "\n", (entry["source"], "dim"))
        table.add_row(entry["form"], text, end_section=i < len(entries) - 1)
    return table


def _in_full(entry: dict[str, Any]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_row(Text(entry["form"], "bold cyan"), Text(entry["title"], "bold"))
    table.add_row("definition", entry["definition"])
    for name, parameter in entry["parameters"].items():
        table.add_row(
            Text.assemble("  ", (name, "cyan")), f"{parameter['definition']}{_default(parameter, '; default ')}"
        )
    table.add_row("aggregate", entry["aggregate"])
    if entry["trec_eval"]:
        table.add_row("trec_eval", _cell(entry["trec_eval"]))
    table.add_row("source", entry["source"])
    return table
