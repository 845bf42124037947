"""The join: matched documents to grades at ranks. Order, ties and repeats are decided here and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics_core.blocks import (
    LARGEST_GRADE,
    NO_RANK,
    REPEAT,
    BoolArray,
    FloatArray,
    GradeBlock,
    Int32Array,
    IntArray,
    RankedBlock,
    ScoredBlock,
    Source,
)
from metrics_core.compile import compiled
from metrics_core.errors import InputError
from metrics_core.kernels import join as kernels
from metrics_core.kernels.bytes import order_groups_descending
from metrics_core.policies import Policies
from metrics_core.ranks import judged_ranks, ranked_block


def _order_steps(scores: FloatArray, grades: FloatArray, *_: Any) -> int:
    """Of comparing the score of each judged document with all of its ranking."""
    n_judged, width = np.count_nonzero(~np.isnan(grades)), grades.shape[1]
    return scores.size + int(n_judged * width)


def _group_steps(_starts: IntArray, sizes: IntArray, _blob: Any, _key_starts: Any, lengths: Int32Array, _: Any) -> int:
    """Of a merge sort by the first eight bytes, and of the others, which it may have to read at each of its levels."""
    further = int(np.maximum(lengths - 8, 0).sum())
    return 8 * lengths.size + (lengths.size + further) * int(sizes.max()).bit_length()


_order_by_score = compiled(kernels.order_by_score, _order_steps)
_order_groups_descending = compiled(order_groups_descending, _group_steps)
_place_ties = compiled(kernels.place_ties)
_sort_descending = compiled(kernels.sort_descending, lambda values: values.size * len(values))
_tie_ends = compiled(kernels.tie_ends)


def join(source: Source, rows: IntArray, policies: Policies) -> GradeBlock:
    """The grades at ranks, and the ideal order, of the queries at `rows`.

    Raises:
        InputError: a document twice in a ranking, or equal scores, where the policies refuse them; a huge grade.
    """
    matched = source.match(rows)
    ideal = _ideal(matched.judged)
    if len(ideal) and np.fmax.reduce(ideal[0], initial=0) > LARGEST_GRADE:
        query = source.query_ids[rows[np.nanargmax(ideal[0])]]
        raise InputError(f"a grade of query {query!r} is above {LARGEST_GRADE:g}: its sums would overflow")
    if isinstance(matched, ScoredBlock):
        if policies.order == "score":
            return _by_score(source, matched, ideal, policies)
        matched = ranked_block(rows, matched.grades, matched.n_retrieved, matched.judged, matched.repeat_of)
    return _as_ranked(source, matched, ideal, policies)


def _as_ranked(source: Source, matched: RankedBlock, ideal: FloatArray, policies: Policies) -> GradeBlock:
    rows, grades, ranks, n_retrieved = matched.rows, matched.grades, matched.ranks, matched.n_retrieved
    if matched.has_repeats and policies.duplicates != "first_keep_rank":
        repeats: BoolArray = grades == REPEAT
        if policies.duplicates == "error":
            q, number = np.argwhere(repeats.T)[0]
            raise _repeat_error(source, rows[q], int(ranks[number, q]) - 1)
        moved = ranks - np.cumsum(repeats, axis=0, dtype=np.int32)
        ranks = np.where(repeats | (ranks == NO_RANK), np.int32(NO_RANK), moved)
        order = np.argsort(repeats, axis=0, kind="stable")  # repeats last, as if they were not there
        ranks = np.take_along_axis(ranks, order, axis=0)
        grades = np.take_along_axis(np.where(repeats, np.nan, grades), order, axis=0)
        n_retrieved = n_retrieved - repeats.sum(axis=0)
    return GradeBlock(rows, grades, ranks, n_retrieved, ideal)


def _by_score(source: Source, matched: ScoredBlock, ideal: FloatArray, policies: Policies) -> GradeBlock:
    rows, grades, n_retrieved, scores = matched.rows, matched.grades, matched.n_retrieved, matched.scores
    if policies.score_dtype == "float32":
        with np.errstate(over="ignore", under="ignore"):  # beyond its range scores are equal, and stay where they were
            scores = scores.astype(np.float32).astype(np.float64)
    if matched.repeat_of is not None:
        repeats = _repeats(source, matched, matched.repeat_of, scores, policies)
        if policies.duplicates == "first_keep_rank":
            grades = np.where(repeats, REPEAT, grades)
        else:  # behind all other documents, without grade or score: beyond the new length
            grades, scores = np.where(repeats, np.nan, grades), np.where(repeats, np.nan, scores)
            n_retrieved = n_retrieved - repeats.sum(axis=1)
    if policies.ties in ("expected", "error"):
        ends = np.zeros(grades.shape[::-1], np.int64)
        ordered = -np.sort(-scores, axis=1)
        if _tie_ends(ordered, matched.n_retrieved, ends):
            if policies.ties == "error":
                raise _tie_error(source, rows, scores, ordered)
            ranked = np.ascontiguousarray(_rank(matched, grades, scores, policies).T)
            ranks = np.repeat(np.arange(1, len(ranked) + 1, dtype=np.int32)[:, None], rows.size, axis=1)
            ranks[ranks > n_retrieved] = NO_RANK
            return GradeBlock(rows, ranked, ranks, n_retrieved, ideal, ends)
    ranked, ranks = judged_ranks(_rank(matched, grades, scores, policies), matched.judged.shape[1])
    return GradeBlock(rows, ranked, ranks, n_retrieved, ideal)


def _ideal(judged: FloatArray) -> FloatArray:
    """(n_judged, n_queries) the grades of each row of (n_queries, n_judged), descending; `judged` is used up."""
    if judged.shape[1] > kernels.NARROW:
        judged = -np.sort(-judged, axis=1)
    ideal = np.ascontiguousarray(judged.T)
    if len(ideal) <= kernels.NARROW:
        _sort_descending(ideal)
    return ideal


def _rank(matched: ScoredBlock, grades: FloatArray, scores: FloatArray, policies: Policies) -> FloatArray:
    """(n_queries, width) the grade at each rank, by descending score."""
    ranked = np.full(grades.shape, np.nan)
    ties, members, unordered = _order(scores, grades, matched.n_retrieved, ranked)
    if unordered.size:
        order = np.argsort(-scores[unordered], axis=1, kind="stable")
        ordered = np.full(order.shape, np.nan)
        more_ties, more_members, _ = _order(
            np.take_along_axis(scores[unordered], order, axis=1),
            np.take_along_axis(grades[unordered], order, axis=1),
            matched.n_retrieved[unordered],
            ordered,
        )
        ranked[unordered] = ordered
        more_members = order[np.repeat(more_ties[:, 0], more_ties[:, 2]), more_members]
        more_ties[:, 0] = unordered[more_ties[:, 0]]
        ties, members = np.concatenate((ties, more_ties)), np.concatenate((members, more_members))
    if ties.size:
        if policies.ties == "docid_desc":
            lengths = ties[:, 2]
            keys = matched.keys(np.repeat(ties[:, 0], lengths), members)
            order = np.empty(members.size, np.int64)
            starts = np.cumsum(lengths) - lengths
            _order_groups_descending(starts, lengths, keys.blob, keys.starts, keys.lengths, order)
            members = members[order]
        _place_ties(ties, members, grades, ranked)
    return ranked


def _order(
    scores: FloatArray, grades: FloatArray, n_retrieved: IntArray, ranked: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Fills `ranked`; the open ties, their members and the rankings left out: see `kernels.order_by_score`."""
    ties = np.empty((grades.size, 3), np.int64)
    members = np.empty(grades.size, np.int64)
    unordered = np.empty(len(grades), np.int64)
    n_ties, n_members, n_unordered = _order_by_score(scores, grades, n_retrieved, ranked, ties, members, unordered)
    return ties[:n_ties], members[:n_members], unordered[:n_unordered]


def _repeats(
    source: Source, matched: ScoredBlock, repeat_of: Int32Array, scores: FloatArray, policies: Policies
) -> BoolArray:
    """(n_queries, width) the places of documents that stand at a better one as well."""
    several: BoolArray = repeat_of >= 0
    queries, positions = np.nonzero(several)
    if policies.duplicates == "error":
        raise _repeat_error(source, matched.rows[queries[0]], positions[0])
    several[queries, repeat_of[queries, positions]] = True  # all places of documents that have several
    queries, positions = np.nonzero(several)
    firsts = repeat_of[queries, positions]
    firsts = np.where(firsts < 0, positions, firsts)
    order = np.lexsort((-scores[queries, positions], firsts, queries))  # document by document, the best place first
    queries, positions, firsts = queries[order], positions[order], firsts[order]
    repeated = np.append(False, (queries[1:] == queries[:-1]) & (firsts[1:] == firsts[:-1]))
    if policies.ties == "expected":
        ranked = scores[queries, positions]
        tied = np.flatnonzero(repeated[1:] & ~repeated[:-1] & (ranked[1:] == ranked[:-1])) + 1
        if tied.size:
            raise InputError(
                f"{_retrieved(source, matched.rows[queries[tied[0]]], positions[tied[0]])} twice with one score, for "
                "which ties='expected' has no exact value; remove the repeat"
            )
    several[queries, positions] = repeated
    return several


def _repeat_error(source: Source, row: int, position: int) -> InputError:
    return InputError(
        f"{_retrieved(source, row, position)} twice; remove the repeat, or say which one counts: "
        "duplicates='first_keep_rank' or duplicates='first_compact'"
    )


def _retrieved(source: Source, row: int, position: int) -> str:
    return f"query {source.query_ids[row]!r} retrieves document {source.describe(row, position)}"


def _tie_error(source: Source, rows: IntArray, scores: FloatArray, ordered: FloatArray) -> InputError:
    """Names the first tie; `ordered` is `scores`, (n_queries, width), in descending order."""
    q, rank = np.argwhere(ordered[:, 1:] == ordered[:, :-1])[0]
    row, score = rows[q], ordered[q, rank]
    first, second = (source.describe(row, position) for position in np.flatnonzero(scores[q] == score)[:2])
    return InputError(
        f"query {source.query_ids[row]!r} gives documents {first} and {second} the same score {score}; "
        "ties='error' refuses that"
    )
