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
_WIDTH = 290  # pixels, of which charts by run leave some to their names
_LABEL = 110  # pixels of a run's name
_N_BINS = 20
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
    x = alt.X("low:Q", title=None, scale=alt.Scale(zero=False, nice=True, padding=8), axis=alt.Axis(tickCount=4))
    interval = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    point = base.mark_point(filled=True, size=70, opacity=1).encode(x="mean:Q")
    return _svg(alt.layer(interval, point, width=_WIDTH - _LABEL, height=alt.Step(26)))


def distribution_chart(metric: str, columns: Mapping[str, FloatArray], places: Mapping[str, int]) -> str:
    """A histogram a run, one below the other on one axis; columns: {run: (n,) its scores}."""
    import altair as alt

    everything = np.concatenate(list(columns.values()))
    low, high = min(0.0, float(everything.min())), float(everything.max())
    high = 1.0 if low >= 0 and high <= 1 else high
    edges = np.linspace(low, high if high > low else low + 1, _N_BINS + 1)
    rows = [
        {
            **_of_run(name, places),
            "from": start,
            "to": end,
            "queries": count,
            "what": f"{name}: {count} queries with {metric} from {start:.2f} to {end:.2f}",
        }
        for name, values in columns.items()
        for count, start, end in zip(
            np.histogram(values, edges)[0].tolist(), edges.tolist(), edges[1:].tolist(), strict=False
        )
        if count
    ]
    height = 34
    chart = (
        alt.Chart(_data(rows), width=_WIDTH - _LABEL, height=height)
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
            y=alt.Y("queries:Q", title=None, axis=None),
            color=alt.Color("colour:N", scale=None),
            description="what:N",
            row=alt.Row(
                "run:N",
                sort=alt.EncodingSortField("place", op="min"),
                title=None,
                spacing=4,
                header=alt.Header(
                    labelAngle=0, labelAlign="left", labelColor="currentColor", labelLimit=_LABEL, labelFontSize=11
                ),
            ),
        )
    )
    return _svg(chart)


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
    base = alt.Chart(_data(rows), width=_WIDTH, height=150).encode(
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
    return _svg(alt.layer(base.mark_line(strokeWidth=2), points))


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _of_run(name: str, places: Mapping[str, int]) -> dict[str, Any]:
    return {"run": name, "place": places[name], "colour": colour(places[name])}


def without_surrogates(text: str) -> str:
    """Text that can be written as UTF-8: what cannot becomes the replacement character."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _svg(chart: Any) -> str:
    """The chart as an SVG element whose size the page's style decides."""
    from vl_convert import vegalite_to_svg

    specification = json.dumps(chart.to_dict() | {"config": _CONFIG}, ensure_ascii=False)
    svg = vegalite_to_svg(without_surrogates(specification))
    return re.sub(r"^.*?(<svg\b)", r"\1", svg, count=1, flags=re.DOTALL)
