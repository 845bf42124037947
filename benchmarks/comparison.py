"""Comparisons of systems: sign-flip and randomised Tukey tests, and bootstrap intervals, of 10,000 resamples."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import run_command
from benchmarks.workload import Case, Contender, Prepared, Size, Workload, growth_mb, times_as_fast

OURS, OURS_TWO_THREADS = "metrics-core", "metrics-core, two threads"
RANX, SCIPY, NUMPY = "ranx", "scipy", "NumPy, rng.permuted"
RESAMPLES = 10_000
STEP = 0.03  # between the means of two systems: far beyond chance at 1,000 queries, so that all tests agree

FloatArray = NDArray[np.float64]


def system_scores(size: Size, seed: int) -> FloatArray:
    """Scores (queries, systems) of systems that share how hard a query is; each is better than the one before."""
    rng = np.random.default_rng(seed)
    hardness = rng.random((size.queries, 1))
    return hardness + STEP * np.arange(size.depth) + rng.normal(0, 0.1, (size.queries, size.depth))


def _significant(p: Any) -> dict[str, Any]:
    """Resampled p-values differ by chance; on which side of 0.05 they are does not."""
    return {"significant": np.ravel(np.asarray(p) < 0.05)}


def sign_flips(size: Size, seed: int, threads: int) -> Prepared:
    """Our sign-flip test of two systems."""
    from metrics_core.statistics import sign_flip_test

    first, second = system_scores(size, seed).T
    call = partial(sign_flip_test, first - second, n_resamples=RESAMPLES, n_threads=threads)
    return Prepared(call, lambda tested: _significant(tested.p))


def ranx_fisher(size: Size, seed: int) -> Prepared:
    """Fisher's test of the same by ranx."""
    from ranx.statistical_tests import fisher_randomization_test

    first, second = np.ascontiguousarray(system_scores(size, seed).T)
    call = partial(fisher_randomization_test, first, second, n_permutations=RESAMPLES)
    return Prepared(call, lambda tested: _significant([tested[0]]))


def scipy_permutations(size: Size, seed: int) -> Prepared:
    """The permutation test of the same by scipy."""
    from scipy.stats import permutation_test

    first, second = system_scores(size, seed).T
    call = partial(
        permutation_test,
        (first - second,),
        lambda differences, axis: np.mean(differences, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=1_000,
    )
    return Prepared(call, lambda tested: _significant([tested.pvalue]))


def tukey(size: Size, seed: int, threads: int) -> Prepared:
    """Our randomised Tukey HSD over all systems."""
    from metrics_core.statistics import tukey_hsd_test

    call = partial(tukey_hsd_test, system_scores(size, seed), n_resamples=RESAMPLES, n_threads=threads)
    return Prepared(call, _significant)


def numpy_tukey(size: Size, seed: int) -> Prepared:
    """The same in NumPy, a permutation at a time."""
    scores = system_scores(size, seed)

    def call() -> FloatArray:
        rng = np.random.default_rng(0)
        ranges = np.array([np.ptp(rng.permuted(scores, axis=1).mean(axis=0)) for _ in range(RESAMPLES)])
        means = scores.mean(axis=0)
        differences = np.abs(means[:, np.newaxis] - means)
        at_least = RESAMPLES - np.searchsorted(np.sort(ranges), differences - 1e-12)
        return np.asarray((at_least + 1) / (RESAMPLES + 1))

    return Prepared(call, _significant)


def _differences(size: Size, seed: int) -> FloatArray:
    """(queries, pairs) of all pairs of systems."""
    scores = system_scores(size, seed)
    first, second = np.triu_indices(size.depth, 1)
    return scores[:, first] - scores[:, second]


def intervals(size: Size, seed: int, threads: int) -> Prepared:
    """Our BCa intervals of all pairs."""
    from metrics_core.statistics import mean_interval

    call = partial(mean_interval, _differences(size, seed), n_resamples=RESAMPLES, n_threads=threads)
    return Prepared(call, lambda interval: {"zero is outside": (interval.low > 0) | (interval.high < 0)})


def scipy_intervals(size: Size, seed: int) -> Prepared:
    """BCa intervals by scipy, pair by pair."""
    from scipy.stats import bootstrap

    differences = _differences(size, seed)

    def call() -> list[Any]:
        return [
            bootstrap((pair,), np.mean, n_resamples=RESAMPLES, batch=1_000, rng=0).confidence_interval
            for pair in differences.T
        ]

    return Prepared(call, lambda found: {"zero is outside": [each.low > 0 or each.high < 0 for each in found]})


WORKLOAD = Workload(
    "comparison",
    "Comparison of systems, 10,000 resamples",
    (
        Case(
            "sign flips, 2 systems x 1,000 queries",
            Size(queries=1_000, depth=2, judged=0),
            (
                Contender(OURS, partial(sign_flips, threads=1), reads_rows=False),
                Contender(OURS_TWO_THREADS, partial(sign_flips, threads=2), threads=2, reads_rows=False),
                Contender(RANX, ranx_fisher, reads_rows=False),
                Contender(SCIPY, scipy_permutations, reads_rows=False),
            ),
            (times_as_fast(OURS, RANX, gate=10),),
        ),
        Case(
            "randomised Tukey HSD, 10 systems x 1,000 queries",
            Size(queries=1_000, depth=10, judged=0),
            (
                Contender(OURS, partial(tukey, threads=1), reads_rows=False),
                Contender(OURS_TWO_THREADS, partial(tukey, threads=2), threads=2, reads_rows=False),
                Contender(NUMPY, numpy_tukey, reads_rows=False),
            ),
            (times_as_fast(OURS, NUMPY), growth_mb(OURS, gate=20)),
            rounds=3,
        ),
        Case(
            "BCa intervals, 45 pairs x 1,000 queries",
            Size(queries=1_000, depth=10, judged=0),
            (
                Contender(OURS, partial(intervals, threads=1), reads_rows=False),
                Contender(OURS_TWO_THREADS, partial(intervals, threads=2), threads=2, reads_rows=False),
                Contender(SCIPY, scipy_intervals, reads_rows=False),
            ),
            (times_as_fast(OURS, SCIPY),),
            rounds=3,
        ),
    ),
    ("scipy", "ranx"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
