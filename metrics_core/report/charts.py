"""The charts of aggregates, drawn by Altair and vl-convert into SVG when the page is written.

Drawn ahead, they cost the reader nothing: with the Vega runtime in the page (0.9 MB), two charts of 10,000 queries took
2.1 to 2.8 s to appear in headless Chromium. So what has a mark a query is drawn by the page's own script on a canvas.
Colours are the page's CSS variables, so that light and dark are a matter of style.

Names of runs go into the data of a chart and nowhere else: Vega-Lite makes expressions of what stands in its
specification, such as a sort order, and evaluates them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metrics_core.blocks import FloatArray
from metrics_core.comparison import MeanInterval

N_COLOURS = 10  # CSS variables --run-0 to --run-9
_WIDTH = 300  # pixels of a chart, of which what is left and right of its axis takes some
_NAMES = 104  # pixels left of charts by run
_NUMBERS = 40  # pixels left of others
_RIGHT = 14  # pixels, for half of the last label
_LABEL = 82  # pixels of a run's name as vl-convert measures them; the reader's font may be a fifth wider
_N_BINS = 20
_BAND = 38  # pixels of a run's histogram
_FILLED = 0.9  # of them for the longest bar
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONFIG = {
    "background": None,
    "view": {"stroke": None},
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "gridColor": "var(--grid)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": _LABEL,
    },
}


def colour(place: int) -> str:
    """The CSS colour of the run at a place."""
    return f"var(--run-{place % N_COLOURS})"


def means_chart(metric: str, means: Mapping[str, MeanInterval], places: Mapping[str, int]) -> str:
    """A point a run, with its interval; places: {run: its place among all, which decides its colour}."""
    import altair as alt

    rows = [
        {
            **_of_run(name, places),
            "mean": each.mean,
            "low": each.low if np.isfinite(each.low) else each.mean,
            "high": each.high if np.isfinite(each.high) else each.mean,
            "what": f"{name}: {metric} {each.mean:.4f}, from {each.low:.4f} to {each.high:.4f}",
        }
        for name, each in means.items()
    ]
    y = alt.Y("run:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False))
    base = alt.Chart(_data(rows)).encode(y=y, color=alt.Color("colour:N", scale=None), description="what:N")
    x = alt.X(
        "low:Q",
        title=None,
        scale=alt.Scale(zero=False, nice=True, padding=8),
        axis=alt.Axis(tickCount=4, labelOverlap=True, labelSeparation=10),
    )
    interval = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    point = base.mark_point(filled=True, size=70, opacity=1).encode(x="mean:Q")
    return _svg(alt.layer(interval, point, width=_WIDTH - _NAMES - _RIGHT, height=alt.Step(26)), _NAMES)


def distribution_chart(metric: str, columns: Mapping[str, FloatArray], places: Mapping[str, int]) -> str:
    """A histogram a run, one below the other on one axis; columns: {run: (n,) its scores}."""
    import altair as alt

    everything = np.concatenate(list(columns.values()))
    low, high = min(0.0, float(everything.min())), float(everything.max())
    high = 1.0 if low >= 0 and high <= 1 else high
    edges = np.linspace(low, high if high > low else low + 1, _N_BINS + 1)
    counts = {name: np.histogram(values, edges)[0] for name, values in columns.items()}
    most = max(int(count.max()) for count in counts.values())
    rows = [
        {
            **_of_run(name, places),
            "from": start,
            "to": end,
            "bottom": row + 1,
            "top": row + 1 - _FILLED * count / most,
            "what": f"{name}: {count} queries with {metric} from {start:.2f} to {end:.2f}",
        }
        for row, name in enumerate(columns)
        for count, start, end in zip(counts[name].tolist(), edges.tolist(), edges[1:].tolist(), strict=False)
        if count
    ]
    names = [{"run": name, "middle": row + 1 - _FILLED / 2} for row, name in enumerate(columns)]
    scale = alt.Scale(domain=[0, len(columns)], reverse=True, nice=False)
    bars = (
        alt.Chart(_data(rows))
        .mark_bar(binSpacing=0.5)
        .encode(
            x=alt.X(
                "from:Q",
                bin="binned",
                title=None,
                scale=alt.Scale(domain=[edges[0], edges[-1]]),
                axis=alt.Axis(tickCount=4),
            ),
            x2="to:Q",
            y=alt.Y("bottom:Q", scale=scale, axis=None),
            y2="top:Q",
            color=alt.Color("colour:N", scale=None),
            description="what:N",
        )
    )
    # not a facet, whose headers stand where vl-convert's font would have them end
    labels = (
        alt.Chart(_data(names))
        .mark_text(align="right", baseline="middle", fontSize=11, color="currentColor", limit=_LABEL)
        .encode(x=alt.value(-5), y=alt.Y("middle:Q", scale=scale, axis=None), text="run:N", description="run:N")
    )
    return _svg(alt.layer(bars, labels, width=_WIDTH - _NAMES - _RIGHT, height=_BAND * len(columns)), _NAMES)


def cutoffs_chart(
    metric: str, cutoffs: Sequence[int], lines: Mapping[str, Sequence[float]], places: Mapping[str, int]
) -> str:
    """A line a run over the cutoffs, on a logarithmic axis; lines: {run: a value a cutoff}."""
    import altair as alt

    rows = [
        {**_of_run(name, places), "cutoff": cutoff, "value": value, "what": f"{name}: {metric}@{cutoff} {value:.4f}"}
        for name, values in lines.items()
        for cutoff, value in zip(cutoffs, values, strict=True)
        if not np.isnan(value)
    ]
    base = alt.Chart(_data(rows), width=_WIDTH - _NUMBERS - _RIGHT, height=150).encode(
        x=alt.X(
            "cutoff:Q",
            title="cutoff",
            scale=alt.Scale(type="log", domain=[cutoffs[0], max(cutoffs[-1], cutoffs[0] + 1)]),
            axis=alt.Axis(values=list(cutoffs), grid=False, format="d", labelOverlap=True),
        ),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4)),
        color=alt.Color("colour:N", scale=None),
    )
    points = base.mark_point(filled=True, size=40, opacity=1).encode(description="what:N")
    return _svg(alt.layer(base.mark_line(strokeWidth=2), points), _NUMBERS)


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _of_run(name: str, places: Mapping[str, int]) -> dict[str, Any]:
    return {"run": name, "place": places[name], "colour": colour(places[name])}


def without_surrogates(text: str) -> str:
    """Text that can be written as UTF-8: what cannot becomes the replacement character."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _svg(chart: Any, left: int) -> str:
    """The chart as an SVG element whose size the page's style decides, with its axis at `left` in a width of _WIDTH.

    vl-convert makes room for labels as wide as they are in its own fonts, which cuts them off in others.
    """
    from vl_convert import vegalite_to_svg

    specification = json.dumps(chart.to_dict() | {"config": _CONFIG}, ensure_ascii=False)
    svg = vegalite_to_svg(without_surrogates(specification))
    opening = re.search(r'<svg\b[^>]*? height="([\d.]+)"[^>]*>(?=<g[^>]* transform="translate\(([\d.]+),)', svg)
    if opening is None:
        raise RuntimeError("this version of vl-convert-python writes SVG of another shape; take the tested one")
    height, axis = opening.groups()
    view = f"{float(axis) - left:g} 0 {_WIDTH} {height}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="marks" viewBox="{view}">{svg[opening.end() :]}'
