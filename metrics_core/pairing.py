"""Which judgements and rankings came, and which source pairs them; queries are aligned here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, repeat
from operator import is_, not_
from typing import Any, TypeAlias

import numpy as np

from metrics_core.blocks import BoolArray, Source
from metrics_core.errors import InputError
from metrics_core.keys import check_one_kind
from metrics_core.lists import is_list
from metrics_core.metrics import Metric
from metrics_core.policies import Policies
from metrics_core.sources.arrays import ArraySource, IdArrays
from metrics_core.sources.arrow import is_frame, long_table
from metrics_core.sources.documents import DocumentSource, Needs
from metrics_core.sources.mappings import MappingSource, RankedListSource
from metrics_core.sources.trec import TrecSource
from metrics_core.trec import Qrels, Run, read_qrels, read_run
from metrics_core.wording import queries

QrelsLike: TypeAlias = Any  # documented in evaluation.evaluate
RunLike: TypeAlias = Any

_NO_RANKING: dict[Any, Any] = {}


@dataclass(frozen=True, slots=True)
class Pairing:
    """A source, the policies that its kind resolved, and the queries that only one side has."""

    source: Source
    policies: Policies
    is_missing: BoolArray  # (n_queries,), judged queries that the run lacks
    unjudged: tuple[Any, ...] = ()  # queries of the run that the qrels lack


def pair(
    qrels: QrelsLike,
    run: RunLike,
    *,
    policies: Policies | str | None,
    document_comparison_field: str,
    query_ids: Sequence[Any] | None,
    metrics: Sequence[Metric] | None,
    n_threads: int,
) -> Pairing:
    """Recognises the kinds of qrels and run, and pairs them query by query.

    Args:
        metrics: those that will be computed, so that documents' properties that none of them reads can be left alone;
            None: any.

    Raises:
        InputError: kinds that do not go together, or queries that do not, where the policies refuse that.
        PolicyError: a policy that cannot apply to this kind of input.
    """
    if query_ids is not None:
        _check_ids(query_ids)
    qrels, run = _arrays(qrels), _arrays(run)
    if document_comparison_field != "content" and not (_is_lists(qrels) and _is_lists(run)):
        raise InputError(
            f"document_comparison_field={document_comparison_field!r} is for lists of documents; leave it out: ids are "
            "compared"
        )
    if isinstance(qrels, IdArrays) and isinstance(run, IdArrays):
        resolved = Policies.resolve(policies, default="trec_eval")
        resolved.refuse("integer arrays", "empty_key", "null_list", "drop_identical_ids", "missing", "unjudged_query")
        return _pair_arrays(qrels, run, resolved, query_ids, metrics)
    if _is_lists(qrels) and _is_lists(run):
        resolved = Policies.resolve(policies, default="haystack").for_rankings_without_scores()
        resolved.refuse("lists of documents", "null_list", "drop_identical_ids", "missing", "unjudged_query")
        names = _positional_ids(query_ids, len(qrels), len(run))
        source = DocumentSource(names, qrels, run, document_comparison_field, resolved, _needs(metrics, resolved))
        return Pairing(source, resolved, np.zeros(len(names), np.bool_))
    resolved = Policies.resolve(policies, default="trec_eval")
    resolved.refuse("ids of documents", "empty_key", "null_list")
    if resolved.order == "input":
        resolved.refuse("rankings in input order", "ties", "score_dtype")
    if is_frame(qrels) or is_frame(run):
        qrels, run = _long_tables(qrels, run, resolved)
    elif qrels == "-" and run == "-":
        raise InputError("qrels and run cannot both be standard input ('-')")
    if isinstance(qrels, (str, os.PathLike)):
        qrels = read_qrels(qrels, duplicate_judgements=resolved.duplicate_judgements, n_threads=n_threads)
    if isinstance(run, (str, os.PathLike)):
        run = read_run(run, n_threads=n_threads)
    if not isinstance(qrels, (Mapping, Qrels)) or not isinstance(run, (Mapping, Run)):
        raise InputError(
            "qrels and run must be paths, dicts, prepared files or long tables, or both lists of lists of documents, "
            f"or both integer arrays (IdArrays, or NumPy's); got {_kind(qrels)} and {_kind(run)}"
        )
    return _pair_by_query(qrels, run, resolved, query_ids)


def _long_tables(qrels: Any, run: Any, policies: Policies) -> tuple[Any, Any]:
    """Both sides with those that are tables read; what the other side is must have ids of the same kind."""
    tables = {
        name: long_table(side, kind, policies.duplicate_judgements) if is_frame(side) else None
        for name, side, kind in (("qrels", qrels, Qrels), ("run", run, Run))
    }
    kinds = {
        name: (table.query_kind, table.document_kind) if table else ("strings", "strings")
        for name, table in tables.items()
    }
    for of, judged, retrieved in zip(("query", "document"), *kinds.values(), strict=True):
        if judged != retrieved:
            raise InputError(
                f"{of} ids are {judged} in the qrels and {retrieved} in the run: they would never match; cast one"
            )
    return tuple(
        side if table is None else table.data for side, table in zip((qrels, run), tables.values(), strict=True)
    )


def _needs(metrics: Sequence[Metric] | None, policies: Policies) -> Needs:
    if metrics is None:
        return Needs(grades=True, unjudged_repeats=True, only_first=False)
    return Needs(
        grades=any(metric.reads_grades(policies) for metric in metrics),
        unjudged_repeats=any(metric.reads_unjudged_repeats(policies) for metric in metrics),
        only_first=all(metric.reads_only_first(policies) for metric in metrics),
    )


def _pair_arrays(
    qrels: IdArrays,
    run: IdArrays,
    policies: Policies,
    query_ids: Sequence[Any] | None,
    metrics: Sequence[Metric] | None,
) -> Pairing:
    if qrels.scores is not None:
        raise InputError("qrels has scores; the values of judged ids are grades=")
    if run.grades is not None:
        raise InputError("run has grades; the values of retrieved ids are scores=")
    if run.scores is None:
        policies = policies.for_rankings_without_scores()
    names = _positional_ids(query_ids, len(qrels), len(run))
    needs = _needs(metrics, policies)
    grades = np.ones(qrels.lists.ids.size) if qrels.grades is None else qrels.grades
    source = ArraySource(names, qrels.lists, grades, run, policies, needs.unjudged_repeats)
    return Pairing(source, policies, np.zeros(len(names), np.bool_))


def _pair_by_query(
    qrels: Mapping[Any, Any] | Qrels, run: Mapping[Any, Any] | Run, policies: Policies, query_ids: Sequence[Any] | None
) -> Pairing:
    if isinstance(run, Run) and not isinstance(qrels, Qrels):
        qrels = Qrels.from_dict(qrels)
    elif isinstance(qrels, Qrels) and not isinstance(run, Run):
        qrels = qrels.nested()
    run_name = run.name if isinstance(run, Run) and run.name else "the run"
    judged = list(qrels.query_ids if isinstance(qrels, Qrels) else qrels)
    retrieved = list(run.query_ids if isinstance(run, Run) else run)
    if not judged:
        raise InputError("qrels judge no query")
    check_one_kind("query", (judged, retrieved))
    names = judged if query_ids is None else _chosen(query_ids, judged)
    in_order = names == retrieved  # then no query needs to be looked up: a third of the time
    unjudged = () if in_order else tuple(filterfalse(set(judged).__contains__, retrieved))
    if unjudged and policies.unjudged_query == "error":
        raise InputError(
            f"qrels judge nothing of {run_name}'s {_some(unjudged)}; unjudged_query='ignore' leaves such queries out"
        )
    rankings: list[Any] = []
    is_missing: BoolArray = np.zeros(len(names), np.bool_)
    if isinstance(run, Run):
        is_missing[:] = list(map(not_, map(set(retrieved).__contains__, names)))
    elif in_order:
        rankings = list(run.values())
    else:
        rankings = list(map(run.get, names, repeat(_NO_RANKING)))
        is_missing[:] = list(map(is_, rankings, repeat(_NO_RANKING)))
    if policies.missing == "error" and is_missing.any():
        lacking = [name for name, absent in zip(names, is_missing.tolist(), strict=True) if absent]
        raise InputError(
            f"{run_name} lacks {_some(lacking)}; missing='zero' scores such queries 0, missing='skip' leaves them out"
        )
    if policies.missing == "skip" and is_missing.all():
        raise InputError(f"qrels and run share no query: qrels have {_some(names)}, {run_name} {_some(retrieved)}")
    source: Source
    if isinstance(run, Run):
        assert isinstance(qrels, Qrels)
        if policies.drop_identical_ids:
            run = run.without_identical_ids()
        source = TrecSource(names, qrels, run)
    else:
        assert isinstance(qrels, Mapping)
        scored = _are_scored(run)
        if not scored:
            policies = policies.for_rankings_without_scores()
        judgements = list(qrels.values()) if names is judged else list(map(qrels.__getitem__, names))
        _check_judgements(names, judgements)
        if policies.drop_identical_ids:
            rankings = list(map(_without, rankings, names))
        source = (MappingSource if scored else RankedListSource)(names, judgements, rankings)
    return Pairing(source, policies, is_missing, unjudged)


def _are_scored(run: Mapping[Any, Any]) -> bool:
    kinds = set(map(type, run.values()))  # few: asking each ranking whether it is a Mapping takes ten times as long
    scored = {issubclass(kind, Mapping) for kind in kinds}
    if len(scored) > 1:
        raise InputError("run mixes scored documents ({document: score}) and ranked lists ([document, ...])")
    for kind in kinds:
        if not issubclass(kind, Mapping) and (issubclass(kind, (str, bytes)) or not issubclass(kind, Sequence)):
            query = next(query for query, ranking in run.items() if type(ranking) is kind)
            raise InputError(
                f"the ranking of query {query!r} must be a dict of scores or a list of documents, got {kind.__name__}"
            )
    return scored != {False}


def _without(ranking: Any, document: Any) -> Any:
    if document not in ranking:
        return ranking
    if isinstance(ranking, Mapping):
        return {other: score for other, score in ranking.items() if other != document}
    return [other for other in ranking if other != document]


def _check_judgements(names: Sequence[Any], judgements: Sequence[Any]) -> None:
    for kind in set(map(type, judgements)):
        if not issubclass(kind, Mapping):
            query, wrong = next(pair for pair in zip(names, judgements, strict=True) if type(pair[1]) is kind)
            raise InputError(f"the judgements of query {query!r} must be a dict of grades, got {_kind(wrong)}")


def _check_ids(query_ids: Sequence[Any]) -> None:
    if not is_list(query_ids):
        raise InputError(f"query_ids must be a list of ids, got {query_ids!r:.80}")
    try:
        n_distinct = len(set(query_ids))
    except TypeError as error:
        raise InputError(f"query_ids must be strings or integers: {error}") from error
    if n_distinct < len(query_ids):
        raise InputError("query_ids must be distinct")


def _chosen(query_ids: Sequence[Any], judged: Sequence[Any]) -> list[Any]:
    known = set(judged)
    names = list(query_ids)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"query_ids must be judged queries; qrels lack {_some(unknown)}")
    return names


def _positional_ids(query_ids: Sequence[Any] | None, n_qrels: int, n_run: int) -> Sequence[Any]:
    if n_qrels == 0 or n_run == 0:
        raise InputError("qrels and run must not be empty")
    if n_qrels != n_run:
        raise InputError(f"qrels have {n_qrels} queries and run {n_run}; they must pair up")
    if query_ids is None:
        return range(n_qrels)
    if len(query_ids) != n_qrels:
        raise InputError(f"query_ids must name each of the {n_qrels} queries, got {len(query_ids)}")
    return query_ids


def _some(names: Sequence[Any]) -> str:
    return queries(len(names), list(map(repr, names))) if names else "none"


def _arrays(side: Any) -> Any:
    return IdArrays(side) if isinstance(side, np.ndarray) else side


def _is_lists(side: Any) -> bool:
    return isinstance(side, Sequence) and not isinstance(side, (str, bytes))


def _kind(side: Any) -> str:
    if isinstance(side, IdArrays):
        return "integer arrays"
    return "a path" if isinstance(side, (str, os.PathLike)) else type(side).__name__
