"""The kernels against twins in Python's integers, and whatever the pieces that resamples are computed in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core.compile import compiled
from metrics_core.kernels import resampling

MASK = 2**64 - 1
KERNELS = {name: compiled(getattr(resampling, name)) for name in ("flipped_sums", "resampled_sums", "permuted_ranges")}


def mixed(state):
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & MASK
    return state ^ (state >> 31)


def draws(seed, number):
    """SplitMix64's numbers for one resample."""
    state = mixed(seed ^ mixed(number))
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        yield mixed(state)


def flipped_sums(rows, seed, number):
    numbers = draws(seed, number)
    bits = [bit for _ in range(0, len(rows), 64) for bit in f"{next(numbers):064b}"[::-1]]
    return sum((-row if bit == "1" else row for row, bit in zip(rows, bits, strict=False)), np.zeros(rows.shape[1]))


def resampled_sums(rows, seed, number):
    numbers = draws(seed, number)
    return sum((rows[(next(numbers) >> 32) * len(rows) >> 32] for _ in rows), np.zeros(rows.shape[1]))


def permuted_ranges(rows, seed, number):
    numbers = draws(seed, number)
    sums = np.zeros(rows.shape[1])
    for row in rows:
        halves, left = [], list(row)
        while len(left) > 1:
            if not halves:
                number = next(numbers)
                halves = [number & 0xFFFFFFFF, number >> 32]
            chosen = halves.pop() * len(left) >> 32
            left[chosen], left[-1] = left[-1], left[chosen]
            sums[len(left) - 1] += left.pop()
        sums[0] += left[0]
    return np.ptp(sums)


TWINS = {"flipped_sums": flipped_sums, "resampled_sums": resampled_sums, "permuted_ranges": permuted_ranges}


def resamples(name, rows, seed, first, n):
    out = np.empty(n if name == "permuted_ranges" else (n, rows.shape[1]))
    KERNELS[name](rows, np.uint64(seed), first, out)
    return out


@pytest.mark.parametrize("name", KERNELS)
@given(st.integers(2, 150), st.integers(2, 6), st.integers(0, MASK), st.integers(0, 10**6))
def test_equals_its_twin(name, n, n_columns, seed, first):
    rows = np.random.default_rng(n).integers(-8, 9, (n, n_columns)) / 4  # quarters: sums are exact
    expected = [TWINS[name](rows, seed, first + place) for place in range(3)]
    assert np.array_equal(resamples(name, rows, seed, first, 3), expected)


@pytest.mark.parametrize("name", KERNELS)
def test_pieces_make_the_whole_and_no_resample_comes_twice(name):
    rows = np.random.default_rng(0).random((40, 3))
    whole = resamples(name, rows, 7, 0, 3_000)
    pieces = [resamples(name, rows, 7, first, 1_000) for first in (0, 1_000, 2_000)]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert len(np.unique(whole, axis=0)) == 3_000
