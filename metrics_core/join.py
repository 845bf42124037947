"""The join: matched documents to grades at ranks. Order, ties and repeats are decided here and nowhere else."""

from __future__ import annotations

import numpy as np

from metrics_core.blocks import REPEAT, BoolArray, FloatArray, GradeBlock, Int32Array, IntArray, MatchedBlock, Source
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
    _sort_descending(matched.judged)
    grades, n_retrieved = matched.grades, matched.n_retrieved
    scores = matched.scores if policies.order == "score" else None
    if scores is not None and policies.score_dtype == "float32":
        with np.errstate(over="ignore", under="ignore"):  # beyond its range scores are equal, and stay where they were
            scores = scores.astype(np.float32).astype(np.float64)
    if matched.repeat_of is not None:
        repeats = _repeats(source, matched, matched.repeat_of, scores, policies)
        if policies.duplicates == "first_keep_rank":
            grades = np.where(repeats, REPEAT, grades)
        else:
            grades, scores = _without_repeats(grades, scores, repeats)
            n_retrieved = n_retrieved - repeats.sum(axis=1)
    if scores is None:
        return GradeBlock(rows, grades, n_retrieved, matched.judged)
    ends = None
    if policies.ties in ("expected", "error"):
        ends = np.zeros(grades.shape, np.int64)
        if not _tie_ends(scores, n_retrieved, ends):
            ends = None
        elif policies.ties == "error":
            raise _tie_error(source, rows, scores, n_retrieved)
    ranked = _rank(matched, grades, scores, policies)
    return GradeBlock(rows, ranked, n_retrieved, matched.judged, ends)


def _rank(matched: MatchedBlock, grades: FloatArray, scores: FloatArray, policies: Policies) -> FloatArray:
    """(n_queries, width) the grade at each rank, by descending score."""
    assert matched.keys is not None
    ranked = np.full(grades.shape, np.nan)
    ties = np.empty((grades.size, 3), np.int64)
    members = np.empty(grades.size, np.int64)
    n_ties, n_members = _order_by_score(scores, grades, matched.n_retrieved, ranked, ties, members)
    if n_ties:
        ties, members = ties[:n_ties], members[:n_members]
        if policies.ties == "docid_desc":
            lengths = ties[:, 2]
            keys = matched.keys(np.repeat(ties[:, 0], lengths), members)
            order = np.empty(n_members, np.int64)
            starts = np.cumsum(lengths) - lengths
            _order_groups_descending(starts, lengths, keys.blob, keys.starts, keys.lengths, order)
            members = members[order]
        _place_ties(ties, members, grades, ranked)
    return ranked


def _repeats(
    source: Source, matched: MatchedBlock, repeat_of: Int32Array, scores: FloatArray | None, policies: Policies
) -> BoolArray:
    """(n_queries, width) the places of documents that stand at a better one as well."""
    repeats: BoolArray = repeat_of >= 0
    places = np.argwhere(repeats).tolist()
    if policies.duplicates == "error":
        q, position = places[0]
        raise InputError(
            f"{_named(source, matched.rows[q], position)} twice; remove the repeat, or say which one counts: "
            "duplicates='first_keep_rank' or 'first_compact'"
        )
    if scores is not None:
        best: dict[tuple[int, int], int] = {}
        for q, position in places:
            first = int(repeat_of[q, position])
            so_far = best.get((q, first), first)
            if policies.ties == "expected" and scores[q, position] == scores[q, so_far]:
                raise InputError(
                    f"{_named(source, matched.rows[q], position)} twice with one score, for which ties='expected' has "
                    "no exact value; remove the repeat"
                )
            if scores[q, position] > scores[q, so_far]:
                best[q, first] = position
                repeats[q, position], repeats[q, so_far] = False, True
    return repeats


def _named(source: Source, row: int, position: int) -> str:
    location = source.location(row, position)
    return (
        f"{f'{location}: ' if location else ''}query {source.query_ids[row]!r} retrieves document "
        f"{source.document(row, position)!r}"
    )


def _without_repeats(
    grades: FloatArray, scores: FloatArray | None, repeats: BoolArray
) -> tuple[FloatArray, FloatArray | None]:
    """The rankings with repeats behind all other documents, and unjudged: beyond the ranking's new length."""
    grades = np.where(repeats, np.nan, grades)
    if scores is not None:
        return grades, np.where(repeats, -np.inf, scores)
    order = np.argsort(repeats, axis=1, kind="stable")
    return np.take_along_axis(grades, order, axis=1), None


def _tie_error(source: Source, rows: IntArray, scores: FloatArray, n_retrieved: IntArray) -> InputError:
    for row, row_scores, n in zip(rows, scores, n_retrieved, strict=True):
        ordered = -np.sort(-row_scores)[:n]
        equal = np.flatnonzero(ordered[1:] == ordered[:-1])
        if equal.size:
            score = ordered[equal[0]]
            tied = [source.document(row, position) for position in np.flatnonzero(row_scores == score)[:2]]
            return InputError(
                f"query {source.query_ids[row]!r} gives documents {tied[0]!r} and {tied[1]!r} the same score {score}; "
                "ties='error' refuses that"
            )
    raise AssertionError("there are ties")
