"""Columns as tables that people paste: Markdown, LaTeX and HTML, with everything that comes from data escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from numbers import Integral, Real
from typing import Any

from metrics_core.errors import InputError

_NOT_THERE = "\N{EN DASH}"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~$])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as it is to be shown.

    Attributes:
        value: text as it is; a float in `digits` decimals, NaN and None as a dash; a whole number as it is.
        bold: the best of its column.
        mark: set raised after it.
        digits: decimals of a float.
        figures: whether text is made of figures, and so belongs at the right of its column as numbers do.
    """

    value: Any
    bold: bool = False
    mark: str = ""
    digits: int = 4
    figures: bool = False

    @property
    def text(self) -> str:
        """The value, in one line."""
        if self.value is None or (isinstance(self.value, Real) and isnan(self.value)):
            return _NOT_THERE
        if isinstance(self.value, Real) and not isinstance(self.value, Integral):
            return f"{float(self.value):.{self.digits}f}"
        return " ".join(str(self.value).split())

    @property
    def is_number(self) -> bool:
        """Whether it belongs at the right of its column."""
        return self.figures or self.value is None or isinstance(self.value, Real)


def to_markdown(columns: Mapping[str, Sequence[Any]]) -> str:
    """A table in GitHub's Markdown.

    Args:
        columns: {header: values, one a row}: Cells, or values as a Cell takes them.

    Raises:
        InputError: columns of unequal length.
    """
    rows = _rows(columns)
    aligned = ["--:" if numbers else "---" for numbers in _are_numbers(columns)]
    lines = [[markdown_text(header) for header in columns], aligned, *(map(_markdown_cell, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_latex(columns: Mapping[str, Sequence[Any]]) -> str:
    """A tabular with the rules of the package booktabs; arguments and errors as of `to_markdown`."""
    rows = _rows(columns)
    aligned = "".join("r" if numbers else "l" for numbers in _are_numbers(columns))
    return "".join(
        [
            f"\\begin{{tabular}}{{{aligned}}}\n\\toprule\n",
            f"{' & '.join(map(latex_text, columns))} \\\\\n\\midrule\n",
            *(f"{_latex_line(row)} \\\\\n" for row in rows),
            "\\bottomrule\n\\end{tabular}\n",
        ]
    )


def to_html(columns: Mapping[str, Sequence[Any]]) -> str:
    """A table without style; the first column heads its rows. Arguments and errors as of `to_markdown`."""
    headers = "".join(f'<th scope="col">{html.escape(header)}</th>' for header in columns)
    lines = [f"<table>\n<thead><tr>{headers}</tr></thead>\n<tbody>\n"]
    for first, *others in _rows(columns):
        cells = f'<th scope="row">{_html_cell(first)}</th>' + "".join(f"<td>{_html_cell(each)}</td>" for each in others)
        lines.append(f"<tr>{cells}</tr>\n")
    return "".join([*lines, "</tbody>\n</table>\n"])


def markdown_text(text: str) -> str:
    """Text without any meaning to Markdown or HTML, in one line."""
    return _markdown(" ".join(text.split()))


def latex_text(text: str) -> str:
    """Text without any meaning to LaTeX, in one line."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Cell, ...]]:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns must be of one length, got {lengths}")
    return zip(*(_cells(values) for values in columns.values()), strict=True)


def _cells(values: Iterable[Any]) -> list[Cell]:
    return [value if isinstance(value, Cell) else Cell(value) for value in values]


def _are_numbers(columns: Mapping[str, Sequence[Any]]) -> list[bool]:
    return [bool(len(values)) and all(cell.is_number for cell in _cells(values)) for values in columns.values()]


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text).replace("&", "&amp;")


def _markdown_cell(cell: Cell) -> str:
    text = _markdown(cell.text)
    mark = f"<sup>{_markdown(cell.mark)}</sup>" if cell.mark else ""
    return (f"**{text}**" if cell.bold else text) + mark


def _latex_line(row: Iterable[Cell]) -> str:
    line = " & ".join(map(_latex_cell, row))
    return f"{{}}{line}" if line.startswith(("[", "*")) else line  # an argument of the \\ before it


def _latex_cell(cell: Cell) -> str:
    text = latex_text(cell.text)
    mark = f"\\textsuperscript{{{latex_text(cell.mark)}}}" if cell.mark else ""
    return (f"\\textbf{{{text}}}" if cell.bold else text) + mark


def _html_cell(cell: Cell) -> str:
    text = html.escape(cell.text)
    mark = f"<sup>{html.escape(cell.mark)}</sup>" if cell.mark else ""
    return (f"<b>{text}</b>" if cell.bold else text) + mark
