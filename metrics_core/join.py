"""The join: matched documents to grades at ranks. Order, ties and repeats are decided here and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrics_core.blocks import REPEAT, FloatArray, GradeBlock, IntArray, MatchedBlock, Source
from metrics_core.compile import compiled
from metrics_core.errors import InputError
from metrics_core.kernels import join as kernels
from metrics_core.kernels.bytes import order_groups_descending
from metrics_core.policies import Policies

_order_by_score = compiled(kernels.order_by_score)
_order_groups_descending = compiled(order_groups_descending)
_place_ties = compiled(kernels.place_ties)
_sort_descending = compiled(kernels.sort_descending)
_tie_ends = compiled(kernels.tie_ends)


def join(source: Source, rows: IntArray, policies: Policies) -> GradeBlock:
    """The grades at ranks, and the ideal order, of the queries at `rows`.

    Raises:
        InputError: a document twice in a ranking, or equal scores, where the policies refuse them.
    """
    matched = source.match(rows)
    by_score = policies.order == "score" and matched.scores is not None
    if by_score and policies.score_dtype == "float32":
        matched = replace(matched, scores=matched.scores.astype(np.float32).astype(np.float64))
    n_retrieved = matched.n_retrieved
    if matched.repeat_of is not None:
        matched, n_retrieved = _credit_once(source, matched, by_score, policies)
    _sort_descending(matched.judged)
    if not by_score:
        return GradeBlock(rows, matched.grades, n_retrieved, matched.judged)
    ends = np.zeros(matched.grades.shape, np.int64) if policies.ties in ("expected", "error") else None
    if ends is not None and not _tie_ends(matched.scores, matched.n_retrieved, ends):
        ends = None
    if ends is not None and policies.ties == "error":
        _refuse_ties(source, matched)
    return GradeBlock(rows, _by_score(matched, policies), n_retrieved, matched.judged, ends)


def _by_score(matched: MatchedBlock, policies: Policies) -> FloatArray:
    assert matched.scores is not None and matched.keys is not None
    ranked = np.full(matched.grades.shape, np.nan)
    ties = np.empty((matched.grades.size, 3), np.int64)
    members = np.empty(matched.grades.size, np.int64)
    n_ties, n_members = _order_by_score(
        matched.scores, matched.grades, matched.n_retrieved, ranked, ties, members
    )
    if n_ties:
        ties, members = ties[:n_ties], members[:n_members]
        if policies.ties == "docid_desc":
            lengths = ties[:, 2]
            keys = matched.keys(np.repeat(ties[:, 0], lengths), members)
            order = np.empty(n_members, np.int64)
            starts = np.cumsum(lengths) - lengths
            _order_groups_descending(starts, lengths, keys.blob, keys.starts, keys.lengths, order)
            members = members[order]
        _place_ties(ties, members, matched.grades, ranked)
    return ranked


def _credit_once(
    source: Source, matched: MatchedBlock, by_score: bool, policies: Policies
) -> tuple[MatchedBlock, IntArray]:
    """Leaves every document its best place: the others become REPEAT, or go behind the ranking's new length."""
    assert matched.repeat_of is not None
    repeats = matched.repeat_of >= 0
    places = np.argwhere(repeats).tolist()
    if policies.duplicates == "error":
        q, position = places[0]
        row = matched.rows[q]
        raise InputError(
            f"query {source.query_ids[row]!r} retrieves document {source.document(row, position)!r} twice; "
            "remove the repeat, or say which one counts: duplicates='first_keep_rank' or 'first_compact'"
        )
    grades, scores = matched.grades.copy(), matched.scores
    if by_score:
        assert scores is not None
        best: dict[tuple[int, int], int] = {}
        for q, position in places:
            first = int(matched.repeat_of[q, position])
            so_far = best.get((q, first), first)
            if scores[q, position] > scores[q, so_far]:
                best[q, first] = position
                repeats[q, position], repeats[q, so_far] = False, True
    if policies.duplicates == "first_keep_rank":
        grades[repeats] = REPEAT
        return replace(matched, grades=grades), matched.n_retrieved
    grades[repeats] = np.nan
    if by_score:
        scores = np.where(repeats, -np.inf, scores)
    else:
        for q in {q for q, _ in places}:
            grades[q] = np.concatenate([grades[q, ~repeats[q]], grades[q, repeats[q]]])
    return replace(matched, grades=grades, scores=scores), matched.n_retrieved - repeats.sum(axis=1)


def _refuse_ties(source: Source, matched: MatchedBlock) -> None:
    assert matched.scores is not None
    for q, row in enumerate(matched.rows):
        scores = matched.scores[q, : matched.n_retrieved[q]]
        values, counts = np.unique(scores, return_counts=True)
        tied_values = values[(counts > 1) & np.isfinite(values)]
        if tied_values.size:
            score = tied_values[-1]
            tied = [source.document(row, position) for position in np.flatnonzero(scores == score)[:3]]
            raise InputError(
                f"query {source.query_ids[row]!r} gives documents {', '.join(map(repr, tied))} the same score "
                f"{score}; ties='error' refuses that"
            )
