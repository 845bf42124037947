"""metrics-core sas: answers in files, compared by a model."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metrics_core.cli.options import chosen_format, format_options
from metrics_core.cli.output import write

_EXAMPLES = """\b
Examples:
  metrics-core sas answers.jsonl
  metrics-core sas answers.csv --model sentence-transformers/all-MiniLM-L6-v2 -o scores.parquet
  metrics-core sas 'answers/*.parquet' --model ./my-cross-encoder --dtype bfloat16 --device cuda -o scores/

\b
A row is an object of a .jsonl, a line of a .csv with a header, or a row of a .parquet; its gold answer may be a list.
-o FILE.parquet holds the score of each row; -o FOLDER the same in parts, as they are computed. After an interruption
the same command goes on where it was. Models that need a token take it from HF_API_TOKEN or HF_TOKEN."""


@click.command("sas", epilog=_EXAMPLES)
@click.argument("paths", metavar="FILE [FILE]...", nargs=-1, required=True)
@click.option("--model", metavar="NAME", help="a folder, or a name on the Hugging Face hub")
@click.option("-o", "--output", "out", metavar="PATH", type=click.Path(path_type=Path), help="the scores of all rows")
@click.option("--ground-truth-column", metavar="NAME", help="ground_truth_answers unless given")
@click.option("--predicted-column", metavar="NAME", help="predicted_answers unless given")
@click.option("--kind", type=click.Choice(("auto", "bi", "cross")), help="what the model is, if it does not say so")
@click.option("--device", metavar="NAME", multiple=True, help="as torch names it; several: a process on each")
@click.option("--dtype", type=click.Choice(("float32", "bfloat16", "float16")), help="of the weights")
@click.option("--batch-size", metavar="N", type=click.IntRange(min=1), help="scales how much is computed at once")
@click.option("--token-budget", metavar="N", type=click.IntRange(min=1), help="tokens that are computed at once")
@click.option("--label", metavar="NAME", help="of a cross-encoder with several labels, the one that is the score")
@click.option("--prompt", metavar="TEXT", help="put before every text, instead of the model's own")
@click.option("--truncate-dim", metavar="N", type=click.IntRange(min=1), help="leading dimensions that count")
@click.option(
    "--on-truncation", type=click.Choice(("warn", "raise", "ignore")), help="texts longer than the model reads"
)
@click.option("--empty", type=click.Choice(("encode", "zero", "raise")), help="answers without characters")
@click.option("--fast-fp32", is_flag=True, default=None, help="oneDNN's fast float32 products on a CPU")
@click.option("--revision", metavar="NAME", help="branch, tag or commit of the model")
@click.option("--trust-remote-code", is_flag=True, default=None, help="let code that comes with the model run")
@click.option("--local-files-only", is_flag=True, default=None, help="do not ask the hub")
@format_options("table", "tsv", "json")
def sas_command(
    paths: tuple[str, ...],
    *,
    device: tuple[str, ...],
    model: str | None,
    format_name: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Semantic answer similarity of the predicted and the gold answers in FILEs, and its mean."""
    format_name = chosen_format(format_name, as_json=as_json)
    from metrics_core.similarity import sas_dataset
    from metrics_core.similarity.settings import DEFAULT_MODEL

    given = {name: value for name, value in options.items() if value is not None}
    if device:
        given["device"] = device[0] if len(device) == 1 else list(device)
    try:
        found = sas_dataset(paths, model or DEFAULT_MODEL, progress_bar=sys.stderr.isatty(), **given)
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    shown = asdict(found) | {"paths": list(map(str, found.paths))}
    write(_text(shown, format_name))


def _text(shown: dict[str, Any], format_name: str) -> str:
    from metrics_core.cli import formats

    if format_name == "json":
        return formats.json_of(shown)
    rows = [
        ("SAS", repr(shown["score"])),
        *((name, str(shown[name])) for name in ("n_rows", "kind", "dtype", "device")),
    ]
    rows += [(name, "unknown" if shown[name] is None else str(shown[name])) for name in ("n_unique", "n_truncated")]
    rows += [("scores", path) for path in shown["paths"]]
    if format_name == "tsv":
        return formats.tsv_of(("metric", "value"), rows)
    from metrics_core.cli.output import drawn
    from metrics_core.cli.tables import empty_table

    table = empty_table("metric", ["value"])
    for name, value in [("SAS", f"{shown['score']:.4f}"), *rows[1:]]:
        table.add_row(name, value)
    return drawn(table)
