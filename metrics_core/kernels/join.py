"""From documents' ids and scores to grades at ranks: matching, ordering and the settling of ties.

Loops over elements, without sorts and slice assignments: numba takes seconds to compile one of those, and a few tenths
for a loop.
"""

from __future__ import annotations

import numpy as np

from metrics_core.blocks import NO_RANK, BoolArray, FloatArray, Int32Array, IntArray, UInt16Array

_TILE = 256  # rankings that are compared side by side: their ids stay in the L1 cache
NARROW_RANKINGS = 24  # the longest, and
_NARROW_JUDGEMENTS = 12  # the most judgements, that are compared side by side
_SHORT_RANKINGS = 512  # the longest, and
_SHORT_JUDGEMENTS = 32  # the most judgements, that are compared at all, not looked up in a table
_SLOTS = 1 << 14  # 32 KB of 16-bit positions: stays in the L1 cache
_NUMBER_BITS = 5  # for the number of a judgement
_NUMBERS = 1 << _NUMBER_BITS
_NOWHERE = np.int32(1 << 20)  # beyond every position and number
_ONCE = 1 << 20  # beyond the sum of all positions
_HASH = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads runs of integers over the high bits
_SHIFT = np.uint64(50)  # the 14 highest bits

NARROW = 12  # the most values that are sorted faster by comparing neighbours than by NumPy
_FEW_MARKS = 16  # judged documents whose ranks are found faster by counting than by sorting, or as many as make
_FEW_COMPARISONS = 4096  # at most

_NO_RANK = np.int32(NO_RANK)
KEEP_ERROR, KEEP_MAX, KEEP_LAST = 0, 1, 2  # which of two judgements of a document counts


def match_ids(
    judged_ids: IntArray,
    judged_starts: IntArray,
    judged_lengths: IntArray,
    judged_grades: FloatArray,
    retrieved_ids: IntArray,
    retrieved_starts: IntArray,
    retrieved_lengths: IntArray,
    has_null: bool,
    keep: int,
    find_unjudged: bool,
    grades: FloatArray,
    ranks: Int32Array,
    judged: FloatArray,
    repeat_of: Int32Array,
    refused: IntArray,
) -> tuple[int, int]:
    """Finds the judged ids of rankings, query by query.

    Args:
        judged_ids, retrieved_ids: int32 or int64; those of other queries may lie among them.
        judged_starts, judged_lengths, retrieved_starts, retrieved_lengths: (q,) where each query's ids lie.
        judged_grades: as long as judged_ids.
        has_null: the id -1 matches nothing, not even itself.
        keep: KEEP_ERROR, KEEP_MAX or KEEP_LAST.
        find_unjudged: repeats of documents that are not judged count, too.
        grades: (room, q) on return those of the judged documents and repeats, in rank order, NaN after the last.
        ranks: (room, q) on return theirs, from 1, NO_RANK after the last.
        judged: (n_judged, q) on return the judgements that count, NaN after the last.
        repeat_of: (q, width) -1 on entry, the position of the first equal document on return; may have no cells.
        refused: (2,) -1 on entry; under KEEP_ERROR the query and the position of a second judgement.

    Returns:
        How many documents a ranking has in `grades` at most, which may be more than there is room for: then they are
        incomplete; and how many documents are repeats.
    """
    n_queries = retrieved_lengths.size
    left = np.arange(n_queries)  # the queries that are left to tables: long ones, and those that hold a document twice
    n_left, width = n_queries, 0
    for q in range(n_queries):
        width = max(width, retrieved_lengths[q])
    in_tiles = not has_null and width <= _SHORT_RANKINGS and judged.shape[0] <= _SHORT_JUDGEMENTS
    for i in range(judged.shape[0] if in_tiles else 0, grades.shape[0]):
        for q in range(n_queries):
            grades[i, q], ranks[i, q] = np.nan, _NO_RANK
    if in_tiles:
        n_left = _match_tiles(
            judged_ids,
            judged_starts,
            judged_lengths,
            judged_grades,
            retrieved_ids,
            retrieved_starts,
            retrieved_lengths,
            width,
            find_unjudged,
            grades,
            ranks,
            judged,
            left,
        )
    else:
        for j in range(judged.shape[0]):
            for q in range(n_queries):
                judged[j, q] = np.nan
    widest = 0
    for k in range(n_left):
        widest = max(widest, judged_lengths[left[k]] + retrieved_lengths[left[k]])
    n_slots, shift = 16, 60
    while n_slots < 2 * widest:
        n_slots *= 2
        shift -= 1
    table_stamp = np.zeros(n_slots, np.int64)
    table_key = np.empty(n_slots, np.int64)
    table_grade = np.empty(n_slots, np.float64)
    table_place = np.empty(n_slots, np.int64)
    most = n_repeats = 0
    for k in range(n_left):
        q = left[k]
        start, n_judged = judged_starts[q], judged_lengths[q]
        ids = judged_ids[start : start + n_judged]
        id_grades = judged_grades[start : start + n_judged]
        start, n = retrieved_starts[q], retrieved_lengths[q]
        ranking = retrieved_ids[start : start + n]
        # A table of the judged documents, then of the retrieved ones.
        n_unique = 0
        for j in range(n_judged):
            if has_null and ids[j] == -1:
                continue
            slot = _slot(ids[j], table_stamp, table_key, q + 1, shift)
            if table_stamp[slot] != q + 1:
                table_stamp[slot] = q + 1
                table_key[slot] = ids[j]
                table_place[slot] = -1
                table_grade[slot] = id_grades[j]
            elif keep == KEEP_ERROR:
                refused[0], refused[1] = q, j
                return 0, 0
            elif keep == KEEP_LAST or id_grades[j] > table_grade[slot]:
                table_grade[slot] = id_grades[j]
        for j in range(n_judged):
            if has_null and ids[j] == -1:
                continue
            slot = _slot(ids[j], table_stamp, table_key, q + 1, shift)
            if table_place[slot] == -1:  # the first judgement of this document
                table_place[slot] = -2
                judged[n_unique, q] = table_grade[slot]
                n_unique += 1
        n_found = 0
        for i in range(n):
            if has_null and ranking[i] == -1:
                continue
            slot = _slot(ranking[i], table_stamp, table_key, q + 1, shift)
            if table_stamp[slot] != q + 1:
                if find_unjudged:
                    table_stamp[slot] = q + 1
                    table_key[slot] = ranking[i]
                    table_place[slot] = i
                continue
            grade = -np.inf
            if table_place[slot] < 0:
                table_place[slot] = i
                grade = table_grade[slot]
            else:
                n_repeats += 1
                if repeat_of.size:
                    repeat_of[q, i] = table_place[slot]
            if n_found < grades.shape[0]:
                grades[n_found, q], ranks[n_found, q] = grade, i + 1
            n_found += 1
        most = max(most, n_found)
    return most, n_repeats


def _match_tiles(
    judged_ids: IntArray,
    judged_starts: IntArray,
    judged_lengths: IntArray,
    judged_grades: FloatArray,
    retrieved_ids: IntArray,
    retrieved_starts: IntArray,
    retrieved_lengths: IntArray,
    width: int,
    find_unjudged: bool,
    grades: FloatArray,
    ranks: Int32Array,
    judged: FloatArray,
    left: IntArray,
) -> int:
    """Matches queries by comparing all ids with all, a tile of queries at a time; returns how many are left to tables.

    These hold a document twice. What is one operation on adjacent numbers the compiler vectorises: for ten or a hundred
    retrieved and five judged ids this takes a fifth of the time of tables. 32-bit numbers throughout, as more of them
    fit in a vector. Filled are judged and, of grades and ranks, as many documents; NaN and NO_RANK included.
    """
    most = judged.shape[0]
    narrow = width <= NARROW_RANKINGS and most <= _NARROW_JUDGEMENTS
    ranked = np.empty((width if narrow else 0, _TILE), retrieved_ids.dtype)  # cells beyond a length hold anything
    known = np.empty((most, _TILE), judged_ids.dtype)
    known_grades = np.empty((most, _TILE), np.float64)
    n_retrieved, n_judged = np.zeros(_TILE, np.int32), np.zeros(_TILE, np.int32)
    begin = np.zeros(_TILE, np.int64)
    twice = np.zeros(_TILE, np.int32)
    found = np.empty((most, _TILE), np.int32)  # as of _find; then where each stands and which it is, as one number
    slot_of = np.zeros(_SLOTS, np.uint16)
    n_left = 0
    for first in range(0, left.size, _TILE):
        n_queries = min(_TILE, left.size - first)
        for t in range(n_queries):  # query by query, as they lie in memory
            q = first + t
            begin[t], start, twice[t] = retrieved_starts[q], judged_starts[q], 0
            n_retrieved[t], n_judged[t] = retrieved_lengths[q], judged_lengths[q]
            for j in range(n_judged[t]):
                known[j, t], known_grades[j, t] = judged_ids[start + j], judged_grades[start + j]
        for j in range(most):
            for t in range(n_queries):
                judged[j, first + t] = known_grades[j, t] if np.int32(j) < n_judged[t] else np.nan
        _mark_repeats(known, n_judged, n_queries, twice)
        if narrow:
            for t in range(n_queries):
                for i in range(n_retrieved[t]):
                    ranked[i, t] = retrieved_ids[begin[t] + i]
            if find_unjudged:
                _mark_repeats(ranked, n_retrieved, n_queries, twice)
            _find_narrow(ranked, known, n_retrieved, n_queries, found)
        else:
            for t in range(n_queries):
                ranking = retrieved_ids[begin[t] : begin[t] + n_retrieved[t]]
                if find_unjudged and not _all_differ(ranking, slot_of):
                    twice[t] = 1
                _find(ranking, known, n_judged[t], t, found)
        for j in range(most):
            for t in range(n_queries):  # without branches, which could not be predicted
                seen = found[j, t] if np.int32(j) < n_judged[t] else np.int32(0)
                twice[t] |= np.int32(1) if seen >= 2 * _ONCE else np.int32(0)
                found[j, t] = np.int32((seen - _ONCE) * _NUMBERS + j) if seen > 0 else _NOWHERE
        for end in range(most - 1, 0, -1):
            for j in range(end):
                for t in range(n_queries):
                    upper, lower = found[j, t], found[j + 1, t]
                    found[j, t], found[j + 1, t] = min(upper, lower), max(upper, lower)
        for j in range(min(grades.shape[0], most)):
            for t in range(n_queries):
                here = (found[j, t] < _NOWHERE) & (twice[t] == 0)
                ranks[j, first + t] = np.int32((found[j, t] >> _NUMBER_BITS) + 1) if here else _NO_RANK
            for t in range(n_queries):
                grade = np.nan
                if found[j, t] < _NOWHERE and twice[t] == 0:  # a branch: faster than to look up what is not wanted
                    grade = known_grades[found[j, t] & (_NUMBERS - 1), t]
                grades[j, first + t] = grade
        for t in range(n_queries):
            if twice[t] != 0:
                for j in range(most):
                    judged[j, first + t] = np.nan
                left[n_left] = first + t
                n_left += 1
    return n_left


def _find_narrow(ranked: IntArray, known: IntArray, n_retrieved: Int32Array, n_queries: int, found: Int32Array) -> None:
    """Looks for the judged documents of a tile's queries, each step for all of these; `found` is as of `_find`."""
    for j in range(known.shape[0]):
        for t in range(n_queries):
            found[j, t] = 0
        for i in range(ranked.shape[0]):
            here = np.int32(_ONCE + i)
            for t in range(n_queries):
                same = (ranked[i, t] == known[j, t]) & (np.int32(i) < n_retrieved[t])
                found[j, t] += here if same else np.int32(0)


def _find(ranking: IntArray, known: IntArray, n_judged: int, t: int, found: Int32Array) -> None:
    """Looks for the judged documents of one query of a tile, going through the ranking for each.

    On return `found` holds of each how often it stands there and the sum of the positions, as one number.
    """
    for j in range(n_judged):
        wanted = known[j, t]
        seen = np.int32(0)
        for i in range(ranking.size):
            seen = np.int32(seen + (np.int32(_ONCE + i) if ranking[i] == wanted else np.int32(0)))
        found[j, t] = seen


def _mark_repeats(ids: IntArray, lengths: Int32Array, n_queries: int, twice: Int32Array) -> None:
    """Sets the columns of (v, tile) ids to 1 that have two equal ones in the first `lengths`."""
    for i in range(1, ids.shape[0]):
        for k in range(i):
            for t in range(n_queries):
                same = (ids[i, t] == ids[k, t]) & (np.int32(i) < lengths[t])
                twice[t] |= np.int32(1) if same else np.int32(0)


def _all_differ(ids: IntArray, slot_of: UInt16Array) -> bool:
    """Whether no id comes twice: the slot of a hash holds the last position with that hash, and each finds itself.

    The slots need no clearing: what an earlier list left there is overwritten where this one looks.
    """
    for i in range(ids.size):
        slot_of[(np.uint64(ids[i]) * _HASH) >> _SHIFT] = i
    displaced = 0
    for i in range(ids.size):
        displaced |= slot_of[(np.uint64(ids[i]) * _HASH) >> _SHIFT] ^ np.uint16(i)
    if displaced == 0:
        return True
    for i in range(ids.size):
        if slot_of[(np.uint64(ids[i]) * _HASH) >> _SHIFT] != i:
            for k in range(i + 1, ids.size):
                if ids[k] == ids[i]:
                    return False
    return True


def _slot(key: int, stamps: IntArray, keys: IntArray, stamp: int, shift: int) -> np.uint64:
    mask = np.uint64(stamps.size - 1)
    slot = (np.uint64(key) * _HASH) >> np.uint64(shift)  # the highest bits: the low ones of 2^k i are all the same
    while stamps[slot] == stamp and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


def locate(
    scores: FloatArray,
    n_retrieved: IntArray,
    judged: FloatArray,
    judged_scores: FloatArray,
    grades: FloatArray,
    tied: BoolArray,
) -> None:
    """Finds judged documents in rankings by their scores alone, as far as these tell them from others.

    Args:
        scores: (q, width) in input order.
        n_retrieved: (q,)
        judged, judged_scores: (q, n_judged) grades, and scores in the ranking; NaN = not retrieved, or no document.
        grades: (q, width) NaN on entry; on return the judgements of those found.
        tied: (q, width) False on entry; on return whether a document is one of several with its score, at least one of
            which is judged.
    """
    for q in range(scores.shape[0]):
        row = scores[q, : n_retrieved[q]]
        for j in range(judged.shape[1]):
            score = judged_scores[q, j]
            if np.isnan(score):
                continue
            equal, place = 0, 0
            for i in range(row.size):
                if row[i] == score:
                    equal += 1
                    place = i
            if equal == 1:
                grades[q, place] = judged[q, j]
                continue
            for i in range(row.size):
                tied[q, i] |= row[i] == score


def sort_descending(values: FloatArray) -> None:
    """Sorts each column of (v, q) in place, descending, NaN only behind; columns are short."""
    for end in range(values.shape[0] - 1, 0, -1):
        for i in range(end):
            for q in range(values.shape[1]):
                upper, lower = values[i, q], values[i + 1, q]
                swap = upper < lower
                values[i, q] = lower if swap else upper
                values[i + 1, q] = upper if swap else lower


def order_by_score(
    scores: FloatArray,
    grades: FloatArray,
    n_retrieved: IntArray,
    ranked: FloatArray,
    ties: IntArray,
    members: IntArray,
    unordered: IntArray,
) -> tuple[int, int, int]:
    """Puts each grade at its document's rank by descending score, and reports the ties that this leaves open.

    A tie is open if it holds documents of different grades; their ranks are left to `place_ties`. Rankings that are
    neither in order nor have few judged documents are left out and reported: sorting is for NumPy.

    Args:
        scores, grades: (q, width) in input order; a score is finite, or NaN for no document.
        n_retrieved: (q,) at least the number of documents.
        ranked: (q, width) NaN on entry, the grade at each rank on return.
        ties: (n, 3) on return: a query's place, the tie's first rank (from 0) and its length.
        members: (n,) on return: the positions of the ties' documents, tie after tie, in input order.
        unordered: (q,) on return: the places of the queries left out.

    Returns:
        How many ties, members and unordered queries there are; `ties` and `members` hold at least as many rows as
        there are documents.
    """
    n_ties = n_members = n_unordered = 0
    for q in range(scores.shape[0]):
        n = n_retrieved[q]
        while n > 0 and np.isnan(scores[q, n - 1]):
            n -= 1
        score = scores[q, :n]
        grade = grades[q, :n]
        descending, n_marks = True, 0
        for i in range(n):
            descending &= i == 0 or score[i - 1] >= score[i]
            n_marks += not np.isnan(grade[i])
        if not descending and n_marks > _FEW_MARKS and n_marks * n > _FEW_COMPARISONS:
            unordered[n_unordered] = q
            n_unordered += 1
            continue
        settled = 0
        for i in range(n):
            if i < settled or np.isnan(grade[i]):
                continue
            begin, end, uniform = 0, n, True
            if descending:
                begin, end = i, i + 1
                while begin > 0 and score[begin - 1] == score[i]:  # unjudged ones, or they were settled
                    begin -= 1
                while end < n and score[end] == score[i]:
                    uniform &= grade[end] == grade[i]
                    end += 1
                uniform &= begin == i
                ahead, equal, settled = begin, end - begin, end
            else:  # few judged documents: count who is ahead of each instead of sorting everybody
                ahead, equal, equal_before = 0, 0, 0
                for k in range(n):
                    ahead += score[k] > score[i]
                    if score[k] == score[i]:
                        equal += 1
                        equal_before += k < i and not np.isnan(grade[k])
                        uniform &= grade[k] == grade[i]
                if equal_before:  # the tie is settled
                    continue
            if uniform:
                for rank in range(ahead, ahead + equal):
                    ranked[q, rank] = grade[i]
                continue
            ties[n_ties, 0], ties[n_ties, 1], ties[n_ties, 2] = q, ahead, equal
            n_ties += 1
            for k in range(begin, end):
                if score[k] == score[i]:
                    members[n_members] = k
                    n_members += 1
    return n_ties, n_members, n_unordered


def place_ties(ties: IntArray, members: IntArray, grades: FloatArray, ranked: FloatArray) -> None:
    """Puts the grades of the ties' members, now in their final order, at their ranks."""
    m = 0
    for t in range(ties.shape[0]):
        q, start, length = ties[t, 0], ties[t, 1], ties[t, 2]
        for i in range(length):
            ranked[q, start + i] = grades[q, members[m + i]]
        m += length


def keep_judged(grades: FloatArray, kept: FloatArray, ranks: Int32Array) -> int:
    """Takes the documents that have a grade; returns how many a ranking has at most, which may be more than the room.

    Args:
        grades: (q, width) at each rank, NaN = none.
        kept, ranks: (room, q) NaN and NO_RANK on entry; on return their grades, and ranks from 1, in rank order.
    """
    most = 0
    for q in range(grades.shape[0]):
        n = 0
        for i in range(grades.shape[1]):
            if not np.isnan(grades[q, i]):
                if n < kept.shape[0]:
                    kept[n, q], ranks[n, q] = grades[q, i], i + 1
                n += 1
        most = max(most, n)
    return most


def tie_ends(ordered: FloatArray, n_retrieved: IntArray, ends: IntArray) -> int:
    """The rank (from 0, exclusive) where the tie of each rank ends; returns how many documents are tied.

    Args:
        ordered: (q, width) scores, descending; NaN = no document, which ties with nothing.
        n_retrieved: (q,)
        ends: (width, q) filled on return, up to each ranking's length.
    """
    n_tied = 0
    for q in range(ordered.shape[0]):
        n = n_retrieved[q]
        end = n
        for i in range(n - 1, -1, -1):
            if i + 1 < n and ordered[q, i] != ordered[q, i + 1]:
                end = i + 1
            ends[i, q] = end
            n_tied += end - i > 1
    return n_tied
