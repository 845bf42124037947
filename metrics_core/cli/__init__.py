"""The command line, `metrics-core`: one module a command; `main` is where errors become one line and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click

from metrics_core import __version__
from metrics_core.cli.compare import compare_command
from metrics_core.cli.demo import demo_command
from metrics_core.cli.evaluate import evaluate_command
from metrics_core.cli.metrics import metrics_command
from metrics_core.cli.options import for_command_line
from metrics_core.cli.report import report_command
from metrics_core.cli.sas import sas_command
from metrics_core.errors import MetricsError

_PROGRAM = "metrics-core"
_BAD_INPUT, _INTERRUPTED = 2, 130


class _Commands(click.Group):
    """Commands, and the closest of them where there is none of a name (click suggests one from 8.4 on)."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            close = get_close_matches(args[0], self.commands, n=1)
            ctx.fail(f"no such command {args[0]!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog="\b\nBegin with\n  metrics-core demo\n  metrics-core evaluate --help",
)
@click.version_option(__version__, prog_name=_PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Scores retrieval runs against relevance judgements."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (evaluate_command, compare_command, report_command, sas_command, metrics_command, demo_command):
    commands.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: without the program's name; None: those of the process.

    Returns:
        The exit code: 0; 1 where a condition of --fail-if holds; 2 for bad usage or input; both after one line on
        standard error; 130 after Ctrl-C; 141 where the reader of a pipe has left.
    """
    try:
        code: int | None = commands.main(arguments, prog_name=_PROGRAM, standalone_mode=False)
    except click.UsageError as error:
        message = error.format_message()
        path = error.ctx.command_path if error.ctx else _PROGRAM
        return _refuse(f"{message[:1].lower()}{message[1:].rstrip('.')} (see '{path} --help')")
    except MetricsError as error:
        return _refuse(for_command_line(str(error)))
    except click.ClickException as error:
        return _refuse(error.format_message())
    except ImportError as error:  # of an extra that is not installed
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except click.Abort:
        return _INTERRUPTED
    return code or 0


def _refuse(message: str) -> int:
    click.echo(f"{_PROGRAM}: error: {' '.join(message.split())}", err=True)
    return _BAD_INPUT
