"""On simulated data p-values are uniform where nothing differs, and intervals cover at their rate."""

from __future__ import annotations

import numpy as np
import pytest

from metrics_core.statistics import bootstrap_test, mean_interval, sign_flip_test, t_test, tukey_hsd_test, wilcoxon_test

stats = pytest.importorskip("scipy.stats")

N_EXPERIMENTS = 2_000


def within_binomial(hits, n, rate, confidence=0.999):
    low, high = stats.binom.interval(confidence, n, rate)
    return low <= hits <= high


def null_differences(n, seed):
    """(n, N_EXPERIMENTS): two systems with equally distributed scores that share how hard a query is."""
    rng = np.random.default_rng(seed)
    queries = rng.beta(2, 2, (n, N_EXPERIMENTS))
    noise = rng.normal(0, 0.1, (2, n, N_EXPERIMENTS))
    first, second = np.clip(queries + noise, 0, 1)
    return first - second


@pytest.mark.parametrize(
    "test",
    [
        t_test,
        lambda values: sign_flip_test(values, n_resamples=999),
        lambda values: bootstrap_test(values, n_resamples=999),
        wilcoxon_test,
    ],
    ids=["t", "sign flips", "bootstrap", "wilcoxon"],
)
def test_p_values_are_uniform_where_nothing_differs(test):
    p = test(null_differences(50, seed=1)).p
    assert within_binomial(np.count_nonzero(p <= 0.05), N_EXPERIMENTS, 0.05)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_a_family_of_tukeys_test_has_one_false_positive_in_twenty():
    n_experiments = 400
    rng = np.random.default_rng(4)
    false_positives = 0
    for _ in range(n_experiments):
        values = rng.beta(2, 2, (40, 1)) + rng.normal(0, 0.1, (40, 5))
        false_positives += (tukey_hsd_test(values, n_resamples=399, n_threads=1) <= 0.05).any()
    assert within_binomial(false_positives, n_experiments, 0.05)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_cover_at_their_rate(confidence):
    # An exponential distribution is as skewed as differences get; its mean is 1.
    values = np.random.default_rng(6).exponential(size=(400, N_EXPERIMENTS))
    low, high = mean_interval(values, confidence=confidence, n_resamples=999)
    covered = np.count_nonzero((low <= 1) & (high >= 1))
    assert within_binomial(covered, N_EXPERIMENTS, confidence)
