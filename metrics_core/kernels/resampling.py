"""Resamples of the rows of a table: random signs, draws with replacement, and orders within a row.

Each resample has random numbers of its own, SplitMix64 started from the seed and the resample's number (Steele, Lea and
Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). So a result depends neither on how resamples are
cut into pieces nor on which thread computes which, and no state of the process is read or changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics_core.blocks import FloatArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_4, _27, _30, _31, _32 = np.uint64(4), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_GROUP = 4  # rows whose signs are drawn at once
PATTERNS = 16
_LOW_PATTERN = np.uint64(15)
_GROUPS_A_DRAW = 16


def _mixed(state: Any) -> Any:
    """The random bits of a state, as uint64."""
    state = (state ^ (state >> _30)) * _MIX_1
    state = (state ^ (state >> _27)) * _MIX_2
    return state ^ (state >> _31)


def flipped_sums(rows: FloatArray, seed: Any, first: int, out: FloatArray) -> None:
    """The column sums of rows with random signs.

    The sums of each four rows under their 16 patterns of signs are made once and looked up: a quarter of the additions.

    Args:
        rows: (n, n_columns); the signs of a resample are one a row, the same in all columns.
        seed: uint64.
        first: the number of the first resample.
        out: (n_resamples, n_columns), filled.
    """
    n, n_columns = rows.shape
    n_groups = (n + _GROUP - 1) // _GROUP
    sums = np.zeros((n_groups, PATTERNS, n_columns))
    for q in range(n):
        for pattern in range(PATTERNS):
            sign = 1.0 - 2.0 * ((pattern >> (q % _GROUP)) & 1)
            for c in range(n_columns):
                sums[q // _GROUP, pattern, c] += sign * rows[q, c]
    for b in range(out.shape[0]):
        state = _mixed(seed ^ _mixed(np.uint64(first + b)))
        bits = state
        for c in range(n_columns):
            out[b, c] = 0.0
        for group in range(n_groups):
            if group % _GROUPS_A_DRAW == 0:
                state += _STEP
                bits = _mixed(state)
            drawn = np.int64(bits & _LOW_PATTERN)
            bits = bits >> _4
            for c in range(n_columns):
                out[b, c] += sums[group, drawn, c]


def resampled_sums(rows: FloatArray, seed: Any, first: int, out: FloatArray) -> None:
    """The column sums of as many rows, drawn with replacement; arguments as of `flipped_sums`."""
    n = np.uint64(rows.shape[0])
    for b in range(out.shape[0]):
        state = _mixed(seed ^ _mixed(np.uint64(first + b)))
        for c in range(out.shape[1]):
            out[b, c] = 0.0
        for _ in range(rows.shape[0]):
            state += _STEP
            q = np.int64(((_mixed(state) >> _32) * n) >> _32)
            for c in range(out.shape[1]):
                out[b, c] += rows[q, c]


def permuted_ranges(rows: FloatArray, seed: Any, first: int, out: FloatArray) -> None:
    """The largest minus the smallest column sum of rows whose values were put in a random order, row by row.

    Args:
        rows: (n, n_columns), at least two columns.
        seed, first: as of `flipped_sums`.
        out: (n_resamples,), filled.
    """
    n_columns = rows.shape[1]
    row = np.empty(n_columns)
    sums = np.empty(n_columns)
    for b in range(out.size):
        state = _mixed(seed ^ _mixed(np.uint64(first + b)))
        sums[:] = 0.0
        for q in range(rows.shape[0]):
            for c in range(n_columns):
                row[c] = rows[q, c]
            last = n_columns - 1
            while last > 0:
                state += _STEP
                bits = _mixed(state)
                chosen = np.int64(((bits >> _32) * np.uint64(last + 1)) >> _32)
                sums[last] += row[chosen]
                row[chosen] = row[last]
                last -= 1
                if last > 0:  # one draw has bits for two
                    chosen = np.int64(((bits & _LOW) * np.uint64(last + 1)) >> _32)
                    sums[last] += row[chosen]
                    row[chosen] = row[last]
                    last -= 1
            sums[0] += row[0]
        largest, smallest = sums[0], sums[0]
        for c in range(1, n_columns):
            largest = max(largest, sums[c])
            smallest = min(smallest, sums[c])
        out[b] = largest - smallest
