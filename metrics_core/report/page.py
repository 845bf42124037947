"""write_report: what there is about some runs, section by section, into the template."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from metrics_core import __version__
from metrics_core.aggregate import aggregate
from metrics_core.alignment import AlignedRuns, RunsLike, align
from metrics_core.blocks import FloatArray
from metrics_core.comparison import Comparison, MeanInterval, mean_intervals
from metrics_core.comparison_tables import differences_columns, legend, means_columns
from metrics_core.errors import InputError
from metrics_core.evaluation import pack
from metrics_core.markup import Cell
from metrics_core.policies import Policies
from metrics_core.report.charts import without_surrogates
from metrics_core.report.rankings import Documents, Judgements, Rankings
from metrics_core.report.texts import Texts, texts_of

_DETAILED = 50  # hardest queries, and as many of the largest regressions, whose ranked lists are shown
_DEPTH = 10  # documents of a ranked list that are shown
_RELEVANT = 20  # judged documents of a query that are shown
_TEXT = 300  # characters of a document that are shown
_FAILED_ROWS = 200  # of a run and metric that are listed
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_DIGITS = 5  # of the scores in the page
_PACKAGES = ("numpy", "numba", "scipy", "altair", "vl-convert-python", "Jinja2")
# What ends a script element, and what JSON allows but UTF-8 files or old parsers of JavaScript do not.
_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def write_report(
    path: str | os.PathLike[str],
    runs: RunsLike,
    *,
    comparison: Comparison | None = None,
    qrels: Any = None,
    rankings: Mapping[str, Any] | None = None,
    queries: Texts | None = None,
    documents: Texts | None = None,
    key: str | None = None,
    document_comparison_field: str = "content",
    title: str = "Evaluation",
) -> None:
    """Writes a page about some runs: one HTML file that opens anywhere, without a network.

    It has what the arguments allow, and says what is not there for want of which. All scores of all queries are in it;
    ranked lists only for the 50 hardest queries (by the mean over the runs of the first metric) and the 50 largest
    regressions against the baseline (that of the comparison, else the first run).

    Args:
        path: of the file, which is overwritten.
        runs: as for `compare`; one run will do.
        comparison: what `compare` gave for these runs: significance, and the baseline.
        qrels: the judgements, as for `evaluate`, integer arrays excepted; with rankings: metrics by cutoff, and the
            judged share.
        rankings: {run: its rankings}, by the runs' names, as for `evaluate`, integer arrays excepted. Lists of
            documents belong to the runs' queries by their place.
        queries: {query: text}, or the path of a file of JSON lines or of ids, tabs and texts. None: of
            EvaluationRunResults their first input column of strings.
        documents: {document: text}, or a path. None: of lists of documents their contents.
        key: as for `compare`, which without a comparison says what joins EvaluationRunResults.
        document_comparison_field: as for `evaluate`, of lists of documents.
        title: of the page.

    Raises:
        InputError: runs that cannot be aligned, rankings of a run that is none of them, a comparison of other runs, or
            arguments of a wrong kind.
        FileFormatError: a malformed file of texts, judgements or rankings.
        ImportError: jinja2, altair or vl-convert-python is not installed.
        OSError: a file cannot be read or written.
    """
    _check_installed()
    aligned = align(runs, key=key) if comparison is None else _compared(comparison, runs)
    lists = Documents(document_comparison_field, {query: row for row, query in enumerate(aligned.query_ids)})
    judged = None if qrels is None else Judgements.of(qrels, next(iter(aligned.policies.values()), None), lists)
    shown = {
        aligned.named(name): Rankings.of(name, run, aligned.policies.get(name), lists)
        for name, run in (rankings or {}).items()
    }
    texts = aligned.texts or None if queries is None else queries
    page = _Page(aligned, comparison, judged, shown, texts, documents, str(title))
    Path(path).write_bytes(_rendered(page.context()).encode("utf-8"))


def _check_installed() -> None:
    try:
        import altair as alt  # noqa: F401
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise ImportError(f"write_report needs {error.name}: pip install 'metrics-core[report]'") from error


def _compared(comparison: Comparison, runs: RunsLike) -> AlignedRuns:
    """The runs of a comparison, if it is of these."""
    given = list(runs) if isinstance(runs, Mapping) else [getattr(run, "run_name", None) for run in runs]
    if set(given) != set(comparison.names):
        raise InputError(f"comparison is of {', '.join(comparison.names)}, and runs are {', '.join(map(str, given))}")
    return comparison.runs


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    runs: AlignedRuns
    comparison: Comparison | None
    qrels: Judgements | None
    rankings: Mapping[str, Rankings]
    queries: Texts | None
    documents: Texts | None
    title: str

    @property
    def baseline(self) -> str | None:
        """The run whose regressions are shown; None: there is only one."""
        if len(self.runs.names) < 2:
            return None
        return self.runs.names[0] if self.comparison is None else self.comparison.baseline or self.runs.names[0]

    def context(self) -> dict[str, Any]:
        """What the template shows."""
        from metrics_core.report import charts

        absent: dict[str, str] = {}
        detailed = self._detailed_queries()
        island = _island(self._island(detailed, absent))  # first: it reads what may be malformed, the charts take time
        context = {
            "title": self.title,
            "runs": [{"name": name, "colour": charts.colour(place)} for place, name in enumerate(self.runs.names)],
            "metrics": self.runs.metrics,
            "n_queries": len(self.runs.query_ids),
            "baseline": self.baseline,
            "means": self._means_table(),
            "significance": self._significance(absent),
            "metric_charts": self._metric_charts(),
            "cutoff_charts": self._cutoff_charts(absent),
            "coverage": self._coverage(absent),
            "policies": self._policies(absent),
            "versions": _versions(),
            "island": island,
            "texts": bool(self.runs.texts),
            "n_detailed": len(detailed) if self.rankings or self.qrels is not None else 0,
            "depth": _DEPTH,
            "absent": absent,
        }
        if self.baseline is None:
            absent["Per-query differences and the scatter of two runs"] = "there is only one run"
        return context

    def _means_table(self) -> dict[str, Any]:
        if self.comparison is not None:
            return _table(means_columns(self.comparison))
        columns = {"run": [Cell(name) for name in self.runs.names]}
        for metric in self.runs.metrics:
            columns[metric] = [Cell(aggregate(self.runs.column(name, metric)).value) for name in self.runs.names]
        return _table(columns)

    def _intervals(self) -> dict[tuple[str, str], MeanInterval]:
        """{(run, metric): its mean with an interval}."""
        confidence, seed = (0.95, 0) if self.comparison is None else (self.comparison.confidence, self.comparison.seed)
        cells = list(product(self.runs.names, self.runs.metrics))
        intervals = mean_intervals([self.runs.column(*cell) for cell in cells], confidence, seed=seed)
        return dict(zip(cells, intervals, strict=True))

    def _significance(self, absent: dict[str, str]) -> dict[str, Any] | None:
        if self.comparison is None:
            absent["Significance of differences"] = "no comparison is given"
            return None
        return {"table": _table(differences_columns(self.comparison)), "legend": list(legend(self.comparison))}

    def _metric_charts(self) -> list[dict[str, Any]]:
        from metrics_core.report import charts

        intervals = self._intervals()
        shown = []
        for metric in self.runs.metrics:
            columns = {name: _scored(self.runs.column(name, metric)) for name in self.runs.names}
            columns = {name: values for name, values in columns.items() if values.size}
            if columns:
                colours = {name: self.runs.names.index(name) for name in columns}
                shown.append(
                    {
                        "metric": metric,
                        "means": charts.means_chart(
                            metric, {name: intervals[name, metric] for name in columns}, colours
                        ),
                        "distribution": charts.distribution_chart(metric, columns, colours),
                    }
                )
        return shown

    def _cutoff_charts(self, absent: dict[str, str]) -> list[dict[str, Any]]:
        if self.qrels is None or not self.rankings:
            given = (
                "qrels are" if self.rankings else "rankings are" if self.qrels is not None else "qrels and rankings are"
            )
            absent["nDCG and recall by cutoff, judged share"] = f"no {given} given"
            return []
        from metrics_core.report import charts

        field = self.qrels.documents.field
        batches = {
            name: pack(self.qrels.data, each.data, policies=each.policies, document_comparison_field=field)
            for name, each in self.rankings.items()
        }
        longest = max(int(block.n_retrieved.max(initial=1)) for batch in batches.values() for block in batch.blocks)
        cutoffs = [cutoff for cutoff in _CUTOFFS if cutoff <= longest] or [1]
        colours = {name: self.runs.names.index(name) for name in batches}
        shown = []
        for metric, heading in (("nDCG", "nDCG"), ("R", "Recall"), ("Judged", "Judged share of the retrieved")):
            lines = {
                name: [aggregate(batch.score(f"{metric}@{cutoff}")).value for cutoff in cutoffs]
                for name, batch in batches.items()
            }
            shown.append({"heading": heading, "svg": charts.cutoffs_chart(metric, cutoffs, lines, colours)})
        return shown

    def _coverage(self, absent: dict[str, str]) -> dict[str, Any] | None:
        """How many queries each run has scores for, and why a judge has none."""
        unscored = np.isnan(self.runs.values).sum(axis=0)  # (n_runs, n_metrics)
        judged = bool(self.runs.failures)
        if not judged:
            absent["Failed rows of judges"] = "no run is the result of a judge that says why it failed"
            if not unscored.any():
                return None
        n = len(self.runs.query_ids)
        rows = [
            {"run": name, "metric": metric, "scored": n - int(unscored[i, j]), "total": n}
            for i, name in enumerate(self.runs.names)
            for j, metric in enumerate(self.runs.metrics)
        ]
        failed = [
            {
                "run": name,
                "metric": metric,
                "rows": [
                    (str(query), self.runs.texts.get(query), reason)
                    for query, reason in list(reasons.items())[:_FAILED_ROWS]
                ],
                "more": max(0, len(reasons) - _FAILED_ROWS),
            }
            for name, by_metric in self.runs.failures.items()
            for metric, reasons in by_metric.items()
            if reasons
        ]
        return {"rows": rows, "failed": failed, "judged": judged}

    def _policies(self, absent: dict[str, str]) -> list[dict[str, Any]]:
        """Policies, and the runs that they made the scores of."""
        if not self.runs.policies:
            absent["Policies"] = "no run is Scores, which carry theirs"
            return []
        groups: dict[Policies, list[str]] = {}
        for name, policies in self.runs.policies.items():
            groups.setdefault(policies, []).append(name)
        return [{"runs": names, "values": policies.to_dict()} for policies, names in groups.items()]

    def _detailed_queries(self) -> list[int]:
        """The places of the queries whose ranked lists are shown."""
        scores = self.runs.values[:, :, 0]
        n_scored = (~np.isnan(scores)).sum(axis=1)
        means = np.divide(np.nansum(scores, axis=1), n_scored, out=np.full(len(scores), np.inf), where=n_scored > 0)
        chosen = np.argsort(means, kind="stable")[:_DETAILED].tolist()
        if self.baseline is not None:
            place = self.runs.names.index(self.baseline)
            differences = scores - scores[:, [place]]
            worst = np.where(np.isnan(differences), np.inf, differences).min(axis=1)
            order = np.argsort(worst, kind="stable")[:_DETAILED]
            chosen += order[worst[order] < 0].tolist()
        return list(dict.fromkeys(chosen))

    def _island(self, detailed: Sequence[int], absent: dict[str, str]) -> dict[str, Any]:
        """What the page's script works on."""
        ids = self.runs.query_ids
        values = np.round(self.runs.values, _DIGITS)
        texts = {}
        if self.queries is None:
            absent["Texts of queries"] = "no queries are given"
        else:
            texts = texts_of(self.queries, ids, "queries")
        details = self._details([ids[place] for place in detailed], absent)
        return {
            "runs": self.runs.names,
            "metrics": self.runs.metrics,
            "baseline": None if self.baseline is None else self.runs.names.index(self.baseline),
            "ids": [str(query) for query in ids],
            "texts": [texts.get(query, "") for query in ids] if texts else None,
            "scores": [  # of each run by each metric: a number a query
                [[None if np.isnan(value) else value for value in column.tolist()] for column in run.T]
                for run in values.transpose(1, 0, 2)
            ],
            "details": {str(place): detail for place, detail in zip(detailed, details["queries"], strict=True)}
            if details
            else {},
            "documents": details["documents"] if details else {},
        }

    def _details(self, queries: Sequence[Any], absent: dict[str, str]) -> dict[str, Any] | None:
        """Judged and retrieved documents of some queries."""
        if not self.rankings:
            absent["Ranked lists"] = "no rankings are given"
        if self.qrels is None:
            absent["Grades and relevant documents"] = "no qrels are given"
        if not self.rankings and self.qrels is None:
            absent["Texts of documents"] = "no documents are given"
            return None
        wanted: dict[Any, str | None] = {}  # with the texts that came along
        shown = []
        for query in queries:
            judged = [] if self.qrels is None else self.qrels.judged(query)
            grades = {each.document: each.grade for each in judged}
            relevant = sorted((each for each in judged if each.grade > 0), key=lambda each: -each.grade)
            tops = {name: each.top(query, _DEPTH) for name, each in self.rankings.items()}
            retrieved = [each for top in tops.values() for each in top]
            wanted |= {each.document: each.text for each in relevant[:_RELEVANT]}
            wanted |= {each.document: each.text for each in retrieved}
            shown.append(
                {
                    "n_relevant": len(relevant),
                    "relevant": [(_shortened(each.document), each.grade) for each in relevant[:_RELEVANT]],
                    "rankings": [
                        (
                            self.runs.names.index(name),
                            [(_shortened(each.document), grades.get(each.document), each.score) for each in top],
                        )
                        for name, top in tops.items()
                    ],
                }
            )
        texts = {each: text for each, text in wanted.items() if text is not None}
        if self.documents is not None:
            texts |= texts_of(self.documents, wanted, "documents")
        elif not texts and not any(
            isinstance(each.data, list) for each in (self.qrels, *self.rankings.values()) if each
        ):
            absent["Texts of documents"] = "no documents are given"
        return {"queries": shown, "documents": {_shortened(each): _shortened(text) for each, text in texts.items()}}


def _scored(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def _table(columns: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    return {
        "headers": [{"text": name, "number": all(cell.is_number for cell in cells)} for name, cells in columns.items()],
        "rows": list(zip(*columns.values(), strict=True)),
    }


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"


def _versions() -> dict[str, str]:
    return {"metrics-core": __version__, "Python": platform.python_version()} | {
        package: version(package) for package in _PACKAGES
    }


def _island(value: Any) -> str:
    """JSON that can stand in a script element, whatever the strings in it are."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE_IN_SCRIPT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _rendered(context: Mapping[str, Any]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = files("metrics_core.report")
    script = (folder / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=FileSystemLoader(str(folder)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("page.html").render(
        **context, style=(folder / "page.css").read_text("utf-8"), script=script, script_hash=digest
    )
    return without_surrogates(html)
