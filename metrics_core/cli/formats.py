"""An evaluation as text for programs: TSV, JSON, trec_eval's lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from metrics_core import __version__
from metrics_core.aggregate import AggregateName
from metrics_core.cli.runs import EvaluatedRun, Evaluation
from metrics_core.metrics import Metric, trec_eval_name

if TYPE_CHECKING:
    from metrics_core.dataset import DatasetScores
    from metrics_core.scores import Scores


def tsv(evaluation: Evaluation, *, per_query: bool) -> str:
    """A row a metric and a column a run; or a row for each query, metric and run. All digits; nan = not scored."""
    if per_query:
        return tsv_of(("query", "metric", "run", "value"), _long_rows(evaluation))
    aggregates = [run.scores.aggregate() for run in evaluation.runs]
    rows = ((name, *(repr(each[name].value) for each in aggregates)) for name in map(str, evaluation.metrics))
    return tsv_of(("metric", *(run.name for run in evaluation.runs)), rows)


def tsv_of(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Lines of tab-separated values."""
    return "".join("\t".join(row) + "\n" for row in (header, *rows))


def _long_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    for run in evaluation.runs:
        for query, scores in run.per_query.to_dict().items():
            for metric, value in scores.items():
                yield query, metric, run.name, repr(value)


def as_json(evaluation: Evaluation, *, per_query: bool) -> str:
    """Aggregates and what they rest on, and the scores of each query if asked for; NaN is null."""
    runs = [_run(run, per_query=per_query) for run in evaluation.runs]
    return json_of(
        {
            "version": __version__,
            "qrels": evaluation.qrels,
            "policies": evaluation.policies.to_dict(),
            "runs": runs,
        }
    )


def _run(run: EvaluatedRun, *, per_query: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": run.name, "path": run.path, "metrics": _aggregates(run)}
    shown |= unpaired(run.scores)
    if per_query:
        shown["queries"] = run.per_query.to_dict()
    return shown


def unpaired(scores: Scores | DatasetScores) -> dict[str, Any]:
    """The queries that only one side has: how many, and which if that is known."""
    counts = {"n_missing": scores.n_missing, "n_unjudged": scores.n_unjudged}
    names = {"missing": scores.missing, "unjudged": scores.unjudged}
    return counts | {name: list(ids) for name, ids in names.items() if ids is not None}


def _aggregates(run: EvaluatedRun) -> dict[str, Any]:
    return {
        name: {"value": each.value, "aggregate": how, "n_scored": each.n_scored, "n_total": each.n_total}
        for (name, each), how in zip(run.scores.aggregate().items(), run.scores.aggregates, strict=True)
    }


def json_of(value: Any) -> str:
    """A JSON text by the standard: NaN is null, an infinite policy the string "inf" or "-inf".

    Bytes of ids that are no UTF-8 are lone surrogates, escaped: Python reads the same ids again, some parsers refuse.
    """
    return json.dumps(_valid(value), indent=2, allow_nan=False) + "\n"


def _valid(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _valid(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_valid(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def trec(evaluation: Evaluation, *, per_query: bool) -> str:
    """trec_eval's output for one run, measures as asked: with -q if `per_query`, topics in the order of their bytes.

    Like trec_eval, it has no line for a topic that the run lacks, nor for NumQ and GMAP of a single topic.
    """
    (run,) = evaluation.runs
    scores = run.scores
    measures = list(zip(evaluation.metrics, scores.aggregates, strict=True))
    lines = []
    if per_query:
        missing = frozenset(run.per_query.missing or ())
        for query, row in sorted(run.per_query.to_dict().items(), key=lambda item: _bytes(item[0])):
            if query not in missing:
                lines += [
                    _trec_line(metric, query, value, how)
                    for (metric, how), value in zip(measures, row.values(), strict=True)
                    if metric.name != "NumQ" and how != "geometric mean"
                ]
    for (metric, how), total in zip(measures, scores.aggregate().values(), strict=True):
        lines.append(_trec_line(metric, "all", total.value, how))
    return "".join(lines)


def _trec_line(metric: Metric, query: str, value: float, how: AggregateName) -> str:
    return "" if isnan(value) else f"{trec_eval_name(metric):22}\t{query}\t{rounded(value, how)}\n"


def rounded(value: float, how: AggregateName) -> str:
    """A score in four decimals, or a count."""
    return f"{value:.0f}" if how == "sum" else f"{value:.4f}"


def _bytes(query: str) -> bytes:
    return query.encode("utf-8", "surrogateescape")
