"""Lines of TREC files and document ids as bytes: splitting, numbers, matching, order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metrics_core.blocks import ByteArray, FloatArray, Int32Array, IntArray, UInt16Array, UInt64Array

_ZERO: Any = np.int64(0)  # for what functions get: of a plain 0 numba compiles them a second time, for the literal

_MAX_EXPONENT = 64  # of the table of powers of ten; scores beyond are for Python

_NEWLINE, _MINUS, _POINT, _LETTER_E = b"\n-.e"
_IS_SIGN = np.isin(np.arange(256), np.frombuffer(b"+-", np.uint8))
_DIGIT = np.array([byte - 48 if 48 <= byte <= 57 else -1 for byte in range(256)])
_IS_SPACE = np.isin(np.arange(256), np.frombuffer(b" \t\r\v\f", np.uint8))
_ENDS_FIELD = np.isin(np.arange(256), np.frombuffer(b" \t\r\v\f\n", np.uint8))
_HUGE_EXPONENT = 10**6  # stands for all larger ones
_INT64_DIGITS = 10**17  # below it, another digit still fits: 18 in all, where a float needs 17
_EXACT_INTEGER = 2**53  # below it, and with a power of ten up to 22, one float operation rounds correctly
_EXACT_EXPONENT = 22
_SPLIT = 134217729.0  # 2^27 + 1: cuts a float into halves of 26 bits (Dekker 1971)
_SLACK = 2.0**-98  # the error of a double-double product is below 2^-100
_POWER = np.array([float(f"1e{k}") for k in range(-_MAX_EXPONENT, _MAX_EXPONENT + 1)])


def _remainder_of_power(k: int) -> float:
    """10^k less its nearest float, rounded once: Python divides integers correctly rounded."""
    numerator, denominator = float(f"1e{k}").as_integer_ratio()
    up, down = int(10 ** max(k, 0)), int(10 ** max(-k, 0))
    return (up * denominator - numerator * down) / (denominator * down)


_POWER_REMAINDER = np.array([_remainder_of_power(k) for k in range(-_MAX_EXPONENT, _MAX_EXPONENT + 1)])
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_HIGH_HALF = np.uint64(32)
SHORT_RANKING = 512  # the longest, and
_SHORT_JUDGEMENTS = 32  # the most judgements, that are matched through a table of positions
SLOTS = 1 << 14  # 32 KB of 16-bit positions: stays in the L1 cache
_SHIFT = np.uint64(50)  # the 14 highest bits


def parse_lines(
    text: ByteArray,
    document_column: int,
    value_column: int,
    more_columns: bool,
    ids: ByteArray,
    lengths: Int32Array,
    values: FloatArray,
    groups: IntArray,
    blank: IntArray,
    unsure: IntArray,
) -> tuple[int, int, int, int, int, int]:
    """Parses lines into a document and a number each; lines of white space are left out.

    Args:
        text: ends with a line end.
        document_column, value_column: from 0, in this order; column 0 is the query.
        more_columns: lines may go on after the number.
        ids: the documents' ids, one after the other, on return; as large as the text.
        lengths: (n_lines,) of the ids, on return.
        values: (n_lines,) the numbers on return, correctly rounded; NaN where only Python can tell.
        groups: (n_lines, 3) on return, for adjacent lines with the same query: the first one among those not blank,
            and where the query's id lies in the text, as start and end.
        blank: (n_lines,) on return the numbers, from 0, of the blank lines.
        unsure: (n_lines, 4) on return the values that are NaN: which, where the number begins and ends, and the line
            begins.

    Returns:
        How much of `ids`, of `lengths` and `values`, of `groups`, `blank` and `unsure` is filled; and where the first
        malformed line begins, or -1: nothing after it is parsed.
    """
    n_bytes = n = n_groups = n_blank = n_unsure = 0
    query, query_length = 0, -1
    p = _ZERO
    while p < text.size:
        line = p
        p = _skip_space(text, p)
        if _at(text, p) == _NEWLINE:
            blank[n_blank] = n + n_blank
            n_blank += 1
            p += 1
            continue
        # Comparing with the line before costs less than looking for the end: the branches repeat.
        k = 0
        while k < query_length and _at(text, p + k) == _at(text, query + k):
            k += 1
        if k != query_length or not _ENDS_FIELD[_at(text, p + k)]:
            k = _field_end(text, p) - p
            query, query_length = p, k
            groups[n_groups, 0], groups[n_groups, 1], groups[n_groups, 2] = n, p, p + k
            n_groups += 1
        p += k
        # A missing column is an empty field: the line end stops every scan, and the number is then none.
        for _ in range(1, document_column):
            p = _field_end(text, _skip_space(text, p))
        p = _skip_space(text, p)
        document = p
        while not _ENDS_FIELD[_at(text, p)]:
            ids[np.uintp(n_bytes)] = _at(text, p)
            n_bytes += 1
            p += 1
        lengths[n] = p - document
        for _ in range(document_column + 1, value_column):
            p = _field_end(text, _skip_space(text, p))
        number = _skip_space(text, p)
        p, values[n] = parse_number(text, number)
        if p < 0 or not (more_columns or _at(text, _skip_space(text, p)) == _NEWLINE):
            return n_bytes, n, n_groups, n_blank, n_unsure, line
        if np.isnan(values[n]):
            unsure[n_unsure, 0], unsure[n_unsure, 1], unsure[n_unsure, 2], unsure[n_unsure, 3] = n, number, p, line
            n_unsure += 1
        n += 1
        while _at(text, p) != _NEWLINE:
            p += 1
        p += 1
    return n_bytes, n, n_groups, n_blank, n_unsure, -1


def _at(text: ByteArray, p: int) -> np.uint8:
    """text[p], for p from 0: numba tests a signed index for being negative, a third of the time of parsing."""
    byte: np.uint8 = text[np.uintp(p)]
    return byte


def _skip_space(text: ByteArray, p: int) -> int:
    while _IS_SPACE[_at(text, p)]:
        p += 1
    return p


def _field_end(text: ByteArray, p: int) -> int:
    while not _ENDS_FIELD[_at(text, p)]:
        p += 1
    return p


def parse_number(text: ByteArray, p: int) -> tuple[int, float]:
    """The decimal number that begins at p: where its field ends, or -1 if it is none, and its value.

    The value is the nearest float, or NaN where that is not certain: beyond the table of powers, some with more than 18
    digits, and next to none of the others.
    """
    sign = _at(text, p)
    if _IS_SIGN[sign]:
        p += 1
    first = p
    digits, exponent, exact, after_point = _ZERO, 0, True, 0
    while True:
        digit = _DIGIT[_at(text, p)]
        if digit < 0:
            if after_point or _at(text, p) != _POINT:
                break
            after_point = 1
        elif digits < _INT64_DIGITS:
            digits = digits * 10 + digit
            exponent -= after_point
        else:
            exponent += 1 - after_point
            exact &= digit == 0
        p += 1
    if p - after_point == first:
        return -1, 0.0
    if _at(text, p) | 32 == _LETTER_E:
        p += 1
        power_sign = _at(text, p)
        if _IS_SIGN[power_sign]:
            p += 1
        first, power = p, 0
        while _DIGIT[_at(text, p)] >= 0:
            power = min(power * 10 + _DIGIT[_at(text, p)], _HUGE_EXPONENT)
            p += 1
        if p == first:
            return -1, 0.0
        exponent += -power if power_sign == _MINUS else power
    if not _ENDS_FIELD[_at(text, p)]:
        return -1, 0.0
    value = _nearest_float(digits, exponent)
    if not exact and value != _nearest_float(digits + 1, exponent):
        value = np.nan
    return p, -value if sign == _MINUS else value


def _nearest_float(digits: int, exponent: int) -> float:
    """The float nearest to digits * 10^exponent, or NaN where that is not certain; digits from 0 to 10^18.

    Source: Clinger 1990 for the case that one operation rounds correctly; beyond, the product of double-doubles
    (Dekker 1971), and NaN if the rounding hangs on its error.
    """
    if digits == 0:
        return 0.0
    if digits <= _EXACT_INTEGER and -_EXACT_EXPONENT <= exponent <= _EXACT_EXPONENT:
        power: float = _POWER[_MAX_EXPONENT + abs(exponent)]
        return digits / power if exponent < 0 else digits * power
    if not -_MAX_EXPONENT <= exponent <= _MAX_EXPONENT:
        return np.nan
    power = _POWER[_MAX_EXPONENT + exponent]
    high = float(digits)
    product = high * power
    cut = high * _SPLIT
    high_1 = cut - (cut - high)
    high_2 = high - high_1
    cut = power * _SPLIT
    power_1 = cut - (cut - power)
    power_2 = power - power_1
    error = ((high_1 * power_1 - product) + high_1 * power_2 + high_2 * power_1) + high_2 * power_2
    error += high * _POWER_REMAINDER[_MAX_EXPONENT + exponent] + float(digits - np.int64(high)) * power
    value: float = product + error
    remainder = error - (value - product)
    slack = value * _SLACK
    if value + (remainder + slack) == value and value + (remainder - slack) == value:
        return value
    return np.nan


def match_short(
    judged_blob: ByteArray,
    judged_starts: IntArray,
    judged_lengths: Int32Array,
    judged_grades: FloatArray,
    judged_ranges: IntArray,
    blob: ByteArray,
    starts: IntArray,
    lengths: Int32Array,
    all_scores: FloatArray,
    ranges: IntArray,
    grades: FloatArray,
    judged: FloatArray,
    judged_steps: IntArray,
    scores: FloatArray,
    prints: UInt64Array,
    slot_of: UInt16Array,
    left: IntArray,
) -> int:
    """Matches retrieved to judged documents by the bytes of their ids; returns how many queries are left to tables.

    These have long rankings, or ones with repeats or nulls. Short ones are matched through a table of positions. Equal
    fingerprints are settled by the bytes. Judged grades and scores are put in place for all queries.

    Args:
        judged_blob, judged_starts, judged_lengths: the ids of judged documents, different within a query.
        judged_grades: as judged_starts.
        judged_ranges: (q, 2) where each query's judged documents begin and end.
        blob, starts, lengths: the ids of retrieved documents; a length of -1 is a null, which equals nothing.
        all_scores: as starts.
        ranges: (q, 2) where each query's ranking begins and ends.
        grades: (q, width) NaN on entry; the grade of each retrieved document on return.
        judged: NaN on entry; the judged documents' grades on return. Flat, as its layout may be either:
        judged_steps: (2,) how far queries, and their judged documents, are apart.
        scores: (q, width) NaN on entry; the score of each retrieved document on return; may have no columns.
        prints, slot_of: (SHORT_RANKING,), (SLOTS,) room for fingerprints, and for the position that each stands at.
        left: (q,) on return, the queries that are left.
    """
    n_left = 0
    for q in range(ranges.shape[0]):
        judged_begin, begin = judged_ranges[q, 0], ranges[q, 0]
        n_judged, n = judged_ranges[q, 1] - judged_begin, ranges[q, 1] - begin
        for i in range(n if scores.shape[1] > 0 else 0):
            scores[q, i] = all_scores[begin + i]
        judged_at = q * judged_steps[0]
        for j in range(n_judged):
            judged[judged_at + j * judged_steps[1]] = judged_grades[judged_begin + j]
        has_repeat_or_null = displaced = False
        n_short = n if n <= SHORT_RANKING and n_judged <= _SHORT_JUDGEMENTS else 0
        # The slot of a fingerprint holds the last position with that slot: if every document finds itself there, all
        # are different, and a judged one is found by one look. The slots need no clearing: what else they hold is
        # compared and found to be another.
        for i in range(n_short):
            has_repeat_or_null |= lengths[begin + i] < 0
            prints[i] = _fingerprint(blob, starts[begin + i], lengths[begin + i])
            slot_of[prints[i] >> _SHIFT] = i
        for i in range(n_short):
            if has_repeat_or_null:
                break
            if slot_of[prints[i] >> _SHIFT] != i:
                displaced = True
                for k in range(i + 1, n):
                    has_repeat_or_null |= prints[k] == prints[i]
        if has_repeat_or_null or n_short < n:
            left[n_left] = q
            n_left += 1
            continue
        for j in range(n_judged):
            k = judged_begin + j
            fingerprint = _fingerprint(judged_blob, judged_starts[k], judged_lengths[k])
            i = _ZERO + slot_of[fingerprint >> _SHIFT]  # an int64
            if displaced and (i >= n or prints[i] != fingerprint):
                i = 0
                while i < n and prints[i] != fingerprint:
                    i += 1
            if i < n and prints[i] == fingerprint:
                at = begin + i
                if _same(judged_blob, judged_starts[k], judged_lengths[k], blob, starts[at], lengths[at]):
                    grades[q, i] = judged_grades[k]
    return n_left


def match_by_table(
    judged_blob: ByteArray,
    judged_starts: IntArray,
    judged_lengths: Int32Array,
    judged_grades: FloatArray,
    judged_ranges: IntArray,
    blob: ByteArray,
    starts: IntArray,
    lengths: Int32Array,
    ranges: IntArray,
    queries: IntArray,
    grades: FloatArray,
    slots: Int32Array,
    prints: UInt64Array,
    first_of: IntArray,
    repeat_of: Int32Array,
) -> int:
    """Matches the documents of some queries by a hash table; returns how many retrieved ones are repeats.

    It takes a query's judged documents, then the retrieved ones as they come. Equal fingerprints are settled by the
    bytes.

    Args:
        judged_blob, judged_starts, judged_lengths, judged_grades, judged_ranges, blob, starts, lengths, ranges, grades:
            as for match_short.
        queries: (n,) which are matched.
        slots, prints: room for the documents that stand in each slot, judged ones first, and for their fingerprints: a
            power of two, at least twice the documents of any query.
        first_of: (q,) where each ranking begins in
        repeat_of: -1 on entry, ranking after ranking; on return where an equal document came first in it.
    """
    n_repeats = 0
    for q in queries:
        judged_begin, begin = judged_ranges[q, 0], ranges[q, 0]
        n_judged, n = judged_ranges[q, 1] - judged_begin, ranges[q, 1] - begin
        size = 8
        while size < 2 * (n_judged + n):
            size *= 2
        mask = size - 1
        for k in range(size):
            slots[k] = -1
        for j in range(n_judged):
            k = judged_begin + j
            fingerprint = _fingerprint(judged_blob, judged_starts[k], judged_lengths[k])
            slot = np.int64(fingerprint >> _HIGH_HALF) & mask
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = j
            prints[slot] = fingerprint
        for i in range(n):
            start, length = starts[begin + i], lengths[begin + i]
            if length < 0:
                continue
            fingerprint = _fingerprint(blob, start, length)
            slot = np.int64(fingerprint >> _HIGH_HALF) & mask
            while slots[slot] >= 0:
                if prints[slot] == fingerprint:
                    known = slots[slot]
                    if known < n_judged:
                        k = judged_begin + known
                        if _same(judged_blob, judged_starts[k], judged_lengths[k], blob, start, length):
                            grades[q, i] = judged_grades[k]
                            slots[slot] = n_judged + i  # stands for the document from now on
                            break
                    else:
                        k = begin + known - n_judged
                        if _same(blob, starts[k], lengths[k], blob, start, length):
                            if n_judged > 0:  # else there may be no cells
                                grades[q, i] = grades[q, known - n_judged]
                            repeat_of[first_of[q] + i] = known - n_judged
                            n_repeats += 1
                            break
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                slots[slot] = n_judged + i
                prints[slot] = fingerprint
    return n_repeats


def _fingerprint(blob: ByteArray, start: int, length: int) -> np.uint64:
    h = np.uint64(length) * _MIX
    i, end = start, start + length
    while i + 8 <= end:
        h = (h ^ _word(blob, i)) * _MIX
        h ^= h >> _HIGH_HALF
        i += 8
    h = (h ^ _rest(blob, i, end)) * _MIX
    return h ^ (h >> np.uint64(29))


def fingerprints(blob: ByteArray, starts: IntArray, lengths: Int32Array, out: UInt64Array) -> None:
    """Fills `out`, (n,), with a number for each key; equal keys have equal ones, and different keys hardly ever."""
    for i in range(out.size):
        out[i] = _fingerprint(blob, starts[i], lengths[i])


def _same(a: ByteArray, a_start: int, a_length: int, b: ByteArray, b_start: int, length: int) -> bool:
    if a_length != length:
        return False
    i, end = a_start, a_start + length
    further = b_start - a_start
    while i + 8 <= end:
        if _word(a, i) != _word(b, i + further):
            return False
        i += 8
    return bool(_rest(a, i, end) == _rest(b, i + further, end + further))


def _word(text: ByteArray, p: int) -> np.uint64:
    """The eight bytes from p on; compiled, this is one load."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(_at(text, p + i)) << np.uint64(8 * i)
    return word


def _rest(text: ByteArray, p: int, end: int) -> np.uint64:
    """The bytes from p to the end, seven at most, as a number; a load unless the text ends too early for it."""
    if p >= end:  # shifted below, bits of a negative number would be anything
        return np.uint64(0)
    if p + 8 <= text.size:
        return _word(text, p) & ((np.uint64(1) << np.uint64(8 * (end - p))) - np.uint64(1))
    word = np.uint64(0)
    for i in range(end - p):
        word |= np.uint64(_at(text, p + i)) << np.uint64(8 * i)
    return word


def order_groups_descending(
    group_starts: IntArray,
    group_lengths: IntArray,
    blob: ByteArray,
    starts: IntArray,
    lengths: Int32Array,
    order: IntArray,
) -> None:
    """Orders the keys of each group by their bytes, descending.

    Bytes compare as in C's memcmp; of two keys of which one begins with the other, the longer comes first. Equal keys
    keep their order.

    Args:
        group_starts, group_lengths: (n_groups,) the keys of each group, as a range.
        blob, starts, lengths: the keys.
        order: (n_keys,) on return, over each group's range, the numbers of its keys in their order.
    """
    longest = 0
    for g in range(group_lengths.size):
        longest = max(longest, group_lengths[g])
    room = np.empty(longest, np.int64)
    heads = np.empty(starts.size, np.uint64)
    for i in range(starts.size):
        order[i] = i
        heads[i] = _head(blob, starts[i], lengths[i])
    for g in range(group_starts.size):
        end = group_starts[g] + group_lengths[g]
        width = 1
        while width < group_lengths[g]:
            for left in range(group_starts[g], end - width, 2 * width):
                a, b, b_end = 0, left + width, min(left + 2 * width, end)
                for i in range(width):
                    room[i] = order[left + i]
                out = left
                while a < width:
                    if b < b_end and _greater(order[b], room[a], heads, blob, starts, lengths):
                        order[out] = order[b]
                        b += 1
                    else:
                        order[out] = room[a]
                        a += 1
                    out += 1
            width *= 2


def _head(blob: ByteArray, start: int, length: int) -> np.uint64:
    """The first eight bytes as a number, zeros after the end: orders keys as their bytes, but for equal heads."""
    head = np.uint64(0)
    for i in range(8):
        head = head << np.uint64(8)
        if i < length:
            head |= np.uint64(_at(blob, start + i))
    return head


def _greater(a: int, b: int, heads: NDArray[np.uint64], blob: ByteArray, starts: IntArray, lengths: Int32Array) -> bool:
    if heads[a] != heads[b]:
        return bool(heads[a] > heads[b])
    for i in range(min(lengths[a], lengths[b])):
        byte_a, byte_b = _at(blob, starts[a] + i), _at(blob, starts[b] + i)
        if byte_a != byte_b:
            return bool(byte_a > byte_b)
    return bool(lengths[a] > lengths[b])
