"""Options that commands share; those of the policies come from the fields of Policies and their documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import getdoc
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from metrics_core.cli.output import on_terminal
from metrics_core.policies import Policies

C = TypeVar("C", bound=Callable[..., Any])

# What has one value only.
_NOT_FOR_FILES = ("nan",)


def policy_options(command: C) -> C:
    """Adds an option for each policy that can apply to files; together their values are the arguments of Policies."""
    documentation = _documentation_of_arguments(Policies)
    for name in reversed(policy_names()):
        option = f"--{name.replace('_', '-')}"
        kind: Any = get_type_hints(Policies)[name]
        if kind is bool:
            option = f"{option}/--keep{option.removeprefix('--drop')}"
        command = click.option(
            option,
            name,
            type=click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind,
            default="trec_eval" if name == "profile" else None,
            show_default=name == "profile",
            help=documentation.get(name),
        )(command)
    return command


def policy_names() -> list[str]:
    """The policies that can apply to files, the profile first."""
    return [name for name in Policies().to_dict() if name not in _NOT_FOR_FILES]


def for_command_line(message: str) -> str:
    """A message to those who call functions, for those who type commands: missing='zero' is --missing zero."""
    policy = re.compile(rf"\b({'|'.join(policy_names())})='(\w+)'")
    message = policy.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2]}", message)
    message = message.replace("(columns= maps roles)", "(--column maps roles)")
    return message.replace("metric_names() lists", "'metrics-core metrics' lists")


def format_options(*formats: str, flags: Sequence[str] = ("json",)) -> Callable[[C], C]:
    """Adds --format, and an option of its own for some formats; `chosen_format` takes their values."""

    def add(command: C) -> C:
        for name in reversed(flags):
            command = click.option(f"--{name}", f"as_{name}", is_flag=True, help=f"the same as --format {name}")(
                command
            )
        return click.option(
            "--format",
            "format_name",
            type=click.Choice(formats),
            help="table on a terminal, tsv elsewhere, unless given",
        )(command)

    return add


def chosen_format(format_name: str | None, *, to_file: bool = False, **flags: bool) -> str:
    """The format that the options ask for, or the one that suits where the output goes.

    Args:
        format_name: of --format.
        to_file: whether the output goes to a file.
        flags: as_json=True where --json was given, and so on.

    Raises:
        click.UsageError: options that ask for different formats.
    """
    asked = [name.removeprefix("as_") for name, given in flags.items() if given]
    first = asked[0] if asked else format_name
    for other in (*asked[1:], format_name):
        if other not in (None, first):
            second = f"--{other}" if other in asked else f"--format {other}"
            raise click.UsageError(f"--{first} and {second} exclude each other", click.get_current_context())
    return first or ("table" if on_terminal() and not to_file else "tsv")


class CommandWithPolicies(click.Command):
    """A command whose help lists the policies apart from its other options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes both lists."""
        policies = policy_names()
        for title, chosen in (("Options", False), ("Policies", True)):
            records = [
                record
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option)
                and (parameter.name in policies) == chosen
                and (record := parameter.get_help_record(ctx))
            ]
            with formatter.section(title):
                formatter.write_dl(records)


def _documentation_of_arguments(of: type) -> dict[str, str]:
    """{argument: text} from the Args section of a docstring in Google style."""
    found = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", getdoc(of) or "", re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}
