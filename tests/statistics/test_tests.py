"""Tests of paired differences against scipy, ranx, hand-computed cases and slow twins."""

from __future__ import annotations

import tracemalloc
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from metrics_core import InputError
from metrics_core.statistics import (
    adjusted,
    bootstrap_test,
    effect_size,
    sign_flip_test,
    standard_deviation,
    t_test,
    tukey_hsd_test,
    wilcoxon_test,
)

stats = pytest.importorskip("scipy.stats")

# Quarters: their sums are exact, so that ties of resamples are the same whatever the order of adding.
quarters = st.integers(-8, 8).map(lambda value: value / 4)
few = arrays(np.float64, st.integers(2, 9), elements=quarters)
tables = arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(2, 4)), elements=quarters)


def sampled(n, columns=1, shift=0.0, seed=0):
    return np.random.default_rng(seed).normal(shift, 1, (n, columns))


def slow_exact_p(differences):
    observed = abs(sum(differences))
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(each >= observed for each in sums) / len(sums)


class TestT:
    @given(st.integers(2, 50), st.integers(0, 1000))
    def test_equals_scipys_paired_test(self, n, seed):
        first, second = sampled(n, seed=seed)[:, 0], sampled(n, seed=seed + 1)[:, 0]
        expected = stats.ttest_rel(first, second)
        statistic, p = t_test(first - second)
        assert statistic[0] == pytest.approx(expected.statistic, rel=1e-9)
        assert p[0] == pytest.approx(expected.pvalue, rel=1e-9)

    def test_by_hand(self):
        # mean 2, sd 1, n 3: t = 2 / (1 / sqrt 3); with two degrees of freedom p = 1 - t / sqrt(t^2 + 2)
        statistic, p = t_test([1, 2, 3])
        assert statistic[0] == pytest.approx(2 * sqrt(3))
        assert p[0] == pytest.approx(1 - sqrt(12 / 14))

    @pytest.mark.parametrize(
        ("differences", "statistic", "p"), [([0, 0, 0], 0, 1), ([2, 2, 2], inf, 0), ([-1, -1], -inf, 0)]
    )
    def test_what_the_textbook_leaves_undefined(self, differences, statistic, p):
        assert t_test(differences) == ([statistic], [p])
        assert effect_size(differences) == [statistic]
        assert standard_deviation(differences) == [0]


@pytest.mark.parametrize("exponent", [-990, -500, 500, 990])
@pytest.mark.parametrize("test", [t_test, sign_flip_test, bootstrap_test, wilcoxon_test])
def test_p_does_not_depend_on_the_unit(test, exponent):
    """Nor where the squares of differences are no floats any more."""
    differences = sampled(20, 3)
    assert np.array_equal(test(np.ldexp(differences, exponent)).p, test(differences).p)


class TestSignFlips:
    @given(few)
    def test_few_queries_are_exact(self, differences):
        statistic, p = sign_flip_test(differences)
        assert statistic[0] == pytest.approx(np.mean(differences), abs=1e-15)
        assert p[0] == slow_exact_p(differences)

    def test_equals_scipys_exact_test(self):
        differences = sampled(12, shift=0.5)[:, 0]
        expected = stats.permutation_test(
            (differences, np.zeros(12)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=inf
        )
        assert sign_flip_test(differences).p[0] == pytest.approx(expected.pvalue, abs=1e-15)

    def test_exact_tests_take_memory_for_few_of_the_combinations(self):
        differences = np.arange(1.0, 21)  # 2^20 combinations: 8 MB of sums, 168 MB with their signs
        tracemalloc.start()
        p = sign_flip_test(differences, n_resamples=2**20).p[0]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert p == 2 / 2**20
        assert peak < 4e6

    def test_many_queries_are_within_the_error_of_resampling_of_scipys(self):
        differences = sampled(80, shift=0.15)[:, 0]
        expected = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
        ).pvalue
        p = sign_flip_test(differences, n_resamples=20_000).p[0]
        assert p == pytest.approx(expected, abs=4 * sqrt(2 * expected * (1 - expected) / 20_000))

    def test_is_never_zero(self):
        p = sign_flip_test(np.ones(100) + sampled(100)[:, 0] / 100, n_resamples=999).p[0]
        assert p == 1 / 1000

    def test_zeros_change_nothing_where_it_is_exact(self):
        differences = [0.5, -0.25, 1, 0.75]
        assert sign_flip_test(differences).p == sign_flip_test([*differences, *[0] * 40]).p == slow_exact_p(differences)

    def test_equals_ranx_within_the_error_of_resampling(self):
        ranx = pytest.importorskip("ranx.statistical_tests", reason="ranx is not installed")
        first, second = sampled(300, 2, seed=3).T
        second += 0.1
        theirs, _ = ranx.fisher_randomization_test(first, second, n_permutations=5_000)
        ours = sign_flip_test(first - second, n_resamples=5_000).p[0]
        assert ours == pytest.approx(theirs, abs=4 * sqrt(2 * theirs * (1 - theirs) / 5_000))


class TestBootstrap:
    def test_equals_a_slow_twin_within_the_error_of_resampling(self):
        differences = sampled(40, shift=0.25, seed=5)[:, 0]
        rng = np.random.default_rng(0)
        centred = differences - differences.mean()
        means = np.array([rng.choice(centred, 40).mean() for _ in range(10_000)])
        expected = np.mean(np.abs(means) >= abs(differences.mean()))
        p = bootstrap_test(differences).p[0]
        assert p == pytest.approx(expected, abs=4 * sqrt(2 * expected * (1 - expected) / 10_000))

    @pytest.mark.parametrize(("differences", "p"), [([0] * 5, 1), ([1] * 5, 1 / 10_001)])
    def test_where_nothing_varies(self, differences, p):
        assert bootstrap_test(differences).p[0] == p


class TestWilcoxon:
    def test_equals_scipys(self):
        differences = np.round(sampled(60, 2, shift=0.2), 1)
        for column, (statistic, p) in enumerate(zip(*wilcoxon_test(differences), strict=True)):
            expected = stats.wilcoxon(differences[:, column])
            assert (statistic, p) == (expected.statistic, pytest.approx(expected.pvalue))

    def test_differences_that_are_equal_but_for_rounding_share_a_rank(self):
        # P@10: in floats 0.3 - 0.2 < 0.2 - 0.1 < 0.4 - 0.3, and all are a tenth
        first, second = np.array([3, 2, 4, 1, 4, 2, 5, 3]), np.array([2, 1, 3, 2, 0, 5, 3, 2])
        expected = stats.wilcoxon(first - second)
        assert wilcoxon_test(first / 10 - second / 10) == ([expected.statistic], [expected.pvalue])

    def test_no_differences(self):
        assert wilcoxon_test([0, 0, 0]) == ([0], [1])


class TestTukey:
    @given(tables, st.integers(0, 100))
    def test_is_symmetric_bounded_and_falls_with_the_difference(self, values, seed):
        p = tukey_hsd_test(values, n_resamples=50, seed=seed)
        assert (p == p.T).all()
        assert (np.diag(p) == 1).all()
        assert ((p > 0) & (p <= 1)).all()
        distance = np.abs(values.sum(axis=0)[:, np.newaxis] - values.sum(axis=0))
        upper = np.triu_indices(len(p), 1)
        order = np.argsort(distance[upper])
        assert (np.diff(p[upper][order]) <= 0).all()
        assert (p[distance == 0] == 1).all()

    def test_equals_a_slow_twin_within_the_error_of_resampling(self):
        values = sampled(30, 4, seed=7) + np.array([0, 0.3, 0.6, 0])
        rng = np.random.default_rng(0)
        ranges = np.array([np.ptp(rng.permuted(values, axis=1).mean(axis=0)) for _ in range(5_000)])
        means = values.mean(axis=0)
        expected = np.array([[np.mean(ranges >= abs(a - b)) for b in means] for a in means])
        assert tukey_hsd_test(values, n_resamples=5_000) == pytest.approx(expected, abs=4 * sqrt(2 * 0.25 / 5_000))

    def test_of_two_systems_is_the_sign_flip_test(self):
        values = sampled(40, 2, seed=2) + np.array([0, 0.3])
        p = tukey_hsd_test(values)[0, 1]
        assert p == pytest.approx(
            sign_flip_test(values[:, 0] - values[:, 1]).p[0], abs=4 * sqrt(2 * p * (1 - p) / 10_000)
        )

    def test_is_paired_unlike_scipys(self):
        queries = np.random.default_rng(0).random(50)  # hard and easy ones, far more different than the systems
        values = np.column_stack([queries, queries + 0.01])
        values += np.random.default_rng(1).normal(0, 1e-3, values.shape)
        assert stats.tukey_hsd(*values.T).pvalue[0, 1] > 0.8
        assert tukey_hsd_test(values)[0, 1] == 1 / 10_001

    def test_needs_two_systems(self):
        with pytest.raises(InputError, match="a column for each of two systems or more, got 1"):
            tukey_hsd_test([[1.0], [2.0]])


class TestCorrections:
    def test_holm_by_hand(self):
        assert adjusted([0.01, 0.04, 0.03]).tolist() == pytest.approx([3 * 0.01, 2 * 0.03, 2 * 0.03])
        assert adjusted([0.5, 0.9]).tolist() == [1, 1]

    @given(arrays(np.float64, st.integers(0, 8), elements=st.floats(0, 1)))
    def test_none_is_nothing_and_the_others_never_lower(self, p):
        assert (adjusted(p, "none") == p).all()
        for correction in ("holm", "bh", "by"):
            corrected = adjusted(p, correction)
            assert (corrected >= p - 1e-12).all()
            assert (corrected <= 1).all()
            assert (corrected[np.argsort(p, kind="stable")] == np.sort(corrected)).all()

    @pytest.mark.parametrize("method", ["bh", "by"])
    def test_false_discovery_rates_are_scipys(self, method):
        p = [0.001, 0.02, 0.03, 0.8]
        assert adjusted(p, method).tolist() == stats.false_discovery_control(p, method=method).tolist()

    @pytest.mark.parametrize("p", [[-0.1], [1.5], [float("nan")], 0.5])
    def test_what_is_no_probability_is_refused(self, p):
        with pytest.raises(InputError, match="numbers from 0 to 1"):
            adjusted(p)

    def test_unknown(self):
        with pytest.raises(InputError, match="correction must be one of 'holm', 'bh', 'by', 'none', got 'sidak'"):
            adjusted([0.5], "sidak")


@pytest.mark.parametrize("test", [sign_flip_test, bootstrap_test, tukey_hsd_test])
class TestResampling:
    def p(self, test, values, **options):
        found = test(values, n_resamples=3_000, **options)
        return np.asarray(found if test is tukey_hsd_test else found.p).tolist()

    def test_threads_change_nothing(self, test):
        values = sampled(70, 5, shift=0.1)
        assert (
            self.p(test, values, n_threads=1) == self.p(test, values, n_threads=2) == self.p(test, values, n_threads=5)
        )

    def test_seeds_do(self, test):
        values = sampled(70, 5, shift=0.1)
        assert self.p(test, values, seed=1) == self.p(test, values, seed=1)
        assert self.p(test, values, seed=1) != self.p(test, values, seed=2)
        assert self.p(test, values, seed=2**70) != self.p(test, values, seed=2**70 + 1)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_resamples": 0}, "n_resamples must be a positive integer, got 0"),
            ({"n_resamples": True}, "n_resamples must be a positive integer, got True"),
            ({"seed": -1}, "seed must be an integer that is not negative, got -1"),
            ({"seed": 0.5}, "seed must be an integer that is not negative, got 0.5"),
            ({"n_threads": 0}, "n_threads must be a positive integer or None, got 0"),
        ],
    )
    def test_options_out_of_range(self, test, options, message):
        with pytest.raises(InputError, match=message):
            test(sampled(20, 2), **options)


@pytest.mark.parametrize("test", [sign_flip_test, bootstrap_test])
def test_a_column_does_not_depend_on_those_beside_it(test):
    values = sampled(60, 70, shift=0.1)  # more than are resampled together
    together = test(values, n_resamples=500).p
    assert together[[0, 69]].tolist() == [test(values[:, place], n_resamples=500).p[0] for place in (0, 69)]


@pytest.mark.parametrize("test", [t_test, sign_flip_test, bootstrap_test, wilcoxon_test, effect_size])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], "at least two rows"),
        (1.0, "at least two rows"),
        ([[[1.0], [2.0]]], "at least two rows"),
        ([1.0, float("nan")], "must be finite; leave out the rows that were not scored"),
        ([1.0, inf], "must be finite"),
    ],
)
def test_differences_that_cannot_be_tested(test, values, message):
    with pytest.raises(InputError, match=message):
        test(values)
