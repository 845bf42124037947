"""Intervals against scipy's BCa bootstrap; power and topics needed against tables and simulation."""

from __future__ import annotations

from math import isclose, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import InputError, power, topics_needed
from metrics_core.statistics import mean_interval, t_test

stats = pytest.importorskip("scipy.stats")


def skewed(n=60, seed=0):
    return np.random.default_rng(seed).exponential(size=n)


class TestMeanInterval:
    @pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
    def test_equals_scipys_within_the_error_of_resampling(self, confidence):
        values = skewed()
        expected = stats.bootstrap(
            (values,), np.mean, confidence_level=confidence, n_resamples=20_000, rng=np.random.default_rng(0)
        ).confidence_interval
        low, high = mean_interval(values, confidence=confidence, n_resamples=20_000)
        error = 0.03 * values.std()  # of the ends, at the 99.5% quantile: the density there is low
        assert (low[0], high[0]) == (pytest.approx(expected.low, abs=error), pytest.approx(expected.high, abs=error))

    def test_leans_to_the_long_tail(self):
        values = skewed()
        low, high = mean_interval(values)
        assert high[0] - values.mean() > values.mean() - low[0]

    @pytest.mark.parametrize("value", [0, 0.1, -3])
    def test_has_no_width_where_nothing_varies(self, value):
        assert mean_interval([value] * 7) == ([value], [value])

    def test_of_tiny_samples_is_finite(self):
        low, high = mean_interval([[0, 1], [1, 1e-300], [0, 1]])
        assert (low <= high).all()
        assert np.isfinite([low, high]).all()

    def test_moves_and_scales_with_the_values(self):
        values = skewed()
        (low,), (high,) = mean_interval(values)
        moved = mean_interval(100 - 2 * values)
        assert (moved.low[0], moved.high[0]) == (
            pytest.approx(100 - 2 * high, abs=0.05),
            pytest.approx(100 - 2 * low, abs=0.05),
        )

    @pytest.mark.parametrize("exponent", [-990, -500, 500, 990])
    def test_scales_exactly_with_powers_of_two(self, exponent):
        """Whose cubes are no floats any more."""
        values = skewed()
        scaled = mean_interval(np.ldexp(values, exponent))
        assert np.array_equal(scaled, np.ldexp(mean_interval(values), exponent))

    def test_threads_change_nothing(self):
        values = np.column_stack([skewed(seed=seed) for seed in range(3)])
        one, two = (mean_interval(values, n_resamples=5_000, n_threads=n) for n in (1, 2))
        assert np.array_equal(one, two)

    @pytest.mark.parametrize("confidence", [0, 1, 95, float("nan"), None])
    def test_confidence_out_of_range(self, confidence):
        with pytest.raises(InputError, match="confidence must be between 0 and 1"):
            mean_interval([1, 2], confidence=confidence)


class TestPower:
    # Cohen, Statistical Power Analysis, table 2.4.1 for one sample: d of .2, .5 and .8 at alpha .05 and power .8.
    @pytest.mark.parametrize(("d", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
    def test_topics_needed_are_cohens(self, d, n):
        assert topics_needed(d, 1) == topics_needed(-3 * d, 3) == n

    @given(st.floats(0.05, 2), st.floats(0.1, 0.95), st.floats(0.001, 0.2))
    def test_topics_needed_are_the_fewest(self, d, wanted, alpha):
        n = topics_needed(d, 1, wanted, alpha)
        assert power(d, 1, n, alpha) >= wanted
        assert n == 2 or power(d, 1, n - 1, alpha) < wanted

    @pytest.mark.parametrize(("difference", "sd", "n"), [(0.02, 0.1, 150), (0.3, 1, 40), (-0.05, 0.2, 60)])
    def test_equals_scipys_distribution_and_simulation(self, difference, sd, n):
        critical, shift = stats.t.ppf(0.975, n - 1), difference / sd * sqrt(n)
        expected = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
        found = power(difference, sd, n)
        assert found == pytest.approx(expected, abs=1e-9)
        p = t_test(np.random.default_rng(1).normal(difference, sd, (n, 4_000))).p
        low, high = stats.binom.interval(0.999, 4_000, found)
        assert low <= np.count_nonzero(p < 0.05) <= high

    def test_ends(self):
        assert power(0, 1, 20) == pytest.approx(0.05)
        assert power(1e6, 1, 20) == 1
        assert power(5, 1, 1_000_000) == 1
        assert topics_needed(100, 1) == 2
        assert isclose(topics_needed(1e-3, 1), 7_848_884, rel_tol=1e-3)  # (1.96 + 0.8416)^2 / d^2

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: power(0.1, 0, 10), "sd must be above 0, got 0"),
            (lambda: power(0.1, 1, 1), "n must be a whole number of queries, at least 2, got 1"),
            (lambda: power(0.1, 1, 10.5), "n must be a whole number of queries, at least 2, got 10.5"),
            (lambda: power(float("nan"), 1, 10), "difference must be a finite number, got nan"),
            (lambda: power(0.1, 1, 10, 0), "alpha must be between 0 and 1, got 0"),
            (lambda: topics_needed(0, 1), "difference must not be 0"),
            (lambda: topics_needed(0.1, 1, 1), "power must be between 0 and 1, got 1"),
            (lambda: topics_needed(1e-9, 1), "out of reach of any number of queries"),
        ],
    )
    def test_refusals(self, call, message):
        with pytest.raises(InputError, match=message):
            call()
