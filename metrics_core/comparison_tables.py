"""A Comparison as two tables, the means and the differences, and the lines that explain them."""

from __future__ import annotations

import html as html_escapes
from collections.abc import Callable, Iterator
from math import isnan
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from metrics_core.errors import MetricNameError
from metrics_core.markup import Cell, latex_text, markdown_text, to_html, to_latex, to_markdown
from metrics_core.metrics import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metrics_core.comparison import Comparison

_SMALLEST_P = 1e-4


def means_columns(comparison: Comparison) -> dict[str, list[Cell]]:
    """A row a run, a column a metric; the best is bold, marks name the runs that a run is significantly better than."""
    labels = letters(comparison)
    means = comparison.means()
    columns = {
        "": [Cell(labels[name]) for name in comparison.names],
        "run": [Cell(name) for name in comparison.names],
    }
    for metric in comparison.metrics:
        beaten = _beaten(comparison, metric)
        values = [means[name][metric].value for name in comparison.names]
        known = [value for value in values if not isnan(value)]
        best = max(known) if has_best(metric) and len(set(known)) > 1 else None
        columns[metric] = [
            Cell(
                value,
                bold=value == best,
                mark="".join(labels[other] for other in comparison.names if other in beaten[name]),
            )
            for name, value in zip(comparison.names, values, strict=True)
        ]
    return columns


def differences_columns(comparison: Comparison) -> dict[str, list[Cell]]:
    """A row a comparison."""
    rows = comparison.differences
    columns = {
        "metric": [Cell(row.metric) for row in rows],
        "run": [Cell(row.run) for row in rows],
        "against": [Cell(row.other) for row in rows],
        "difference": [_figures(f"{row.difference:+.4f}", bold=row.significant) for row in rows],
        f"{100 * comparison.confidence:g}% interval": [_figures(f"[{row.low:+.4f}, {row.high:+.4f}]") for row in rows],
        "d_z": [_figures(f"{row.effect_size:+.2f}") for row in rows],
        "w/t/l": [_figures(f"{row.wins}/{row.ties}/{row.losses}") for row in rows],
    }
    if comparison.correction not in (None, "none"):
        columns["p"] = [_figures(shown_p(row.p)) for row in rows]
    columns["p (HSD)" if comparison.correction is None else "p adj."] = [
        _figures(shown_p(row.p_adjusted), mark="*" if row.significant else "") for row in rows
    ]
    columns["p perm."] = [_figures(shown_p(row.p_permutation)) for row in rows]
    columns["n"] = [Cell(row.n) for row in rows]
    if any(row.n_left_out for row in rows):
        columns["left out"] = [Cell(row.n_left_out) for row in rows]
    return columns


def legend(comparison: Comparison) -> Iterator[str]:
    """What the bold figures and the marks mean, the method, and the notes."""
    yield (
        f"Bold: the best mean. Raised letters: runs that a run is significantly better than (p adj. below "
        f"{comparison.alpha:g}: *)."
    )
    yield (
        f"{_sentence(comparison.method)}. Intervals: BCa bootstrap of the mean difference, not corrected; p perm.: "
        "sign flips, not corrected; w/t/l: wins, ties and losses by query; "
        f"{comparison.n_resamples:,} resamples, seed {comparison.seed}."
    )
    for note in comparison.notes:
        yield f"Note: {note}."


def markdown(comparison: Comparison) -> str:
    """Both tables and the legend."""
    lines = [f"{markdown_text(line)}\n" for line in legend(comparison)]
    return "\n".join([to_markdown(means_columns(comparison)), to_markdown(differences_columns(comparison)), *lines])


def latex(comparison: Comparison) -> str:
    """Both tables and the legend."""
    lines = [f"{{\\footnotesize\\noindent {latex_text(line)}\\par}}\n" for line in legend(comparison)]
    head = "% needs \\usepackage{booktabs} and, in old distributions, \\usepackage[T1]{fontenc}\n"
    tables = to_latex(means_columns(comparison)), to_latex(differences_columns(comparison))
    return head + "\n".join([*tables, *lines])


def html(comparison: Comparison) -> str:
    """Both tables and the legend."""
    lines = [f"<p>{html_escapes.escape(line)}</p>\n" for line in legend(comparison)]
    return "".join([to_html(means_columns(comparison)), to_html(differences_columns(comparison)), *lines])


def text(comparison: Comparison) -> str:
    """Both tables in fixed width, and the legend."""
    parts = [_fixed(means_columns(comparison)), _fixed(differences_columns(comparison)), "\n".join(legend(comparison))]
    return "\n\n".join(parts)


def letters(comparison: Comparison) -> dict[str, str]:
    """A label for each run: a to z, then numbers in brackets."""
    return {
        name: ascii_lowercase[place] if place < len(ascii_lowercase) else f"({place + 1})"
        for place, name in enumerate(comparison.names)
    }


def has_best(metric: str) -> bool:
    """Whether more of it is better: not of a count or of what describes a run."""
    try:
        return parse(metric).needs_relevant
    except MetricNameError:
        return True  # of results that name their scores as they like


def shown_p(p: float) -> str:
    """A p-value in four decimals, or that it is smaller."""
    return f"< {_SMALLEST_P:.4f}" if p < _SMALLEST_P else f"{p:.4f}"


def _beaten(comparison: Comparison, metric: str) -> Mapping[str, set[str]]:
    """{run: the runs that it is significantly better than}."""
    beaten: dict[str, set[str]] = {name: set() for name in comparison.names}
    for row in comparison.differences:
        if row.metric == metric and row.significant and row.difference:
            better, worse = (row.run, row.other) if row.difference > 0 else (row.other, row.run)
            beaten[better].add(worse)
    return beaten


def _figures(text: str, *, bold: bool = False, mark: str = "") -> Cell:
    return Cell(text, bold, mark, figures=True)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _fixed(columns: Mapping[str, Any]) -> str:
    cells = [[header, *(f"{cell.text} {cell.mark}".rstrip() for cell in values)] for header, values in columns.items()]
    put = [str.rjust if all(cell.is_number for cell in values) else str.ljust for values in columns.values()]
    widths = [max(map(len, column)) for column in cells]
    lines = (map(_put, put, row, widths) for row in zip(*cells, strict=True))
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _put(put: Callable[[str, int], str], text: str, width: int) -> str:
    return put(text, width)
