"""Where results go: one string, to standard output or a file; and what rich draws, as a string."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

_READER_LEFT = 141  # as the shell reports a process that SIGPIPE ended
_WIDTH_ELSEWHERE = 100  # columns of tables that go to no terminal


def on_terminal() -> bool:
    """Whether standard output is a terminal; it is None where the caller has closed it."""
    return sys.stdout is not None and sys.stdout.isatty()


def write(text: str, path: Path | None = None) -> None:
    """Writes text as UTF-8; ids that were other bytes become those again.

    Args:
        path: None: to standard output.

    Raises:
        OSError: the file cannot be written.
        click.exceptions.Exit: the reader of standard output has left.
    """
    encoded = text.encode("utf-8", "surrogateescape")
    if path is not None:
        try:
            path.write_bytes(encoded)
        except OSError as error:
            error.filename = path
            raise
        return
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(encoded)
        sys.stdout.flush()
    except OSError as error:
        # What could not be written is still in the buffer; Python would try again when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit(_READER_LEFT) from None
        error.filename = "standard output"
        raise


def drawn(*renderables: RenderableType, plain: bool = False) -> str:
    """What rich makes of tables and texts: as wide as the terminal, coloured there unless NO_COLOR is set.

    Args:
        plain: without colours wherever it goes.
    """
    from io import StringIO

    from rich.console import Console

    coloured = (on_terminal() or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR") and not plain
    console = Console(
        file=StringIO(),
        force_terminal=coloured,
        color_system="auto" if coloured else None,
        width=None if on_terminal() or os.environ.get("COLUMNS", "0") != "0" else _WIDTH_ELSEWHERE,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable, crop=False)  # a terminal breaks lines that cannot be narrower
    text = capture.get()
    return text if coloured else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def displayable(name: str) -> str:
    """A name as it can be shown: what does not print, such as a tab in a file's name, becomes a question mark."""
    return "".join(character if character.isprintable() else "?" for character in name)
