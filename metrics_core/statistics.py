"""Tests, intervals and corrections for per-query differences, on arrays.

Everything is paired: a row is a query, and what is tested is the difference of two systems on the same queries. The
distributions are scipy's; the resampling is ours, because it shares its draws between all columns of a table, runs over
threads and keeps memory bounded whatever the number of resamples. Sources: Smucker, Allan and Carterette, "A comparison
of statistical significance tests for information retrieval evaluation", CIKM 2007; Carterette, "Multiple testing in
statistical analysis of systems-based information retrieval experiments", TOIS 30(1), 2012; Sakai, "Laboratory
experiments in information retrieval", 2018.

Random numbers come from the seed and the number of the resample alone: the same seed gives the same result on any
number of threads. What a textbook leaves undefined is defined: differences that are all zero give p = 1 and an interval
without width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite, sqrt
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from metrics_core.blocks import FloatArray, IntArray
from metrics_core.compile import compiled
from metrics_core.errors import InputError
from metrics_core.kernels import resampling
from metrics_core.threads import ordered_map, thread_count

Correction = Literal["holm", "bh", "by", "none"]

_ROUNDING = 1e-10  # of the sum of absolute values: sums that differ by less are equal, whatever the order of adding
_CHUNK_CELLS = 1 << 18  # sums of resamples in memory at a time, for each thread: 2 MB
_CHUNK_RESAMPLES = 1 << 10  # a unit of work for a thread, where there are few columns
_TABULATED = 16  # differences whose sums under all combinations of signs are in memory together: 0.5 MB
_COLUMNS = 64  # resampled together: as many share one draw, and a row of them is 512 bytes
_RANKED_DIGITS = 10  # decimals of differences, as shares of the largest, that tell their ranks apart
_STEPS_A_DRAW = 5  # of a kernel, for the random number
_MOST_TOPICS = 1 << 53


def _steps(rows: FloatArray, _seed: Any, _first: int, out: FloatArray) -> int:
    return len(out) * (_STEPS_A_DRAW * len(rows) + rows.size)


_flipped_sums = compiled(
    resampling.flipped_sums, lambda rows, *others: resampling.PATTERNS * rows.size + _steps(rows, *others)
)
_resampled_sums = compiled(resampling.resampled_sums, _steps)
_permuted_ranges = compiled(resampling.permuted_ranges, _steps)


class Tested(NamedTuple):
    """A test of each column.

    Attributes:
        statistic: (n_columns,) what the test looks at.
        p: (n_columns,) two-sided, before any correction.
    """

    statistic: FloatArray
    p: FloatArray


class Interval(NamedTuple):
    """A confidence interval of each column's mean.

    Attributes:
        low, high: (n_columns,).
    """

    low: FloatArray
    high: FloatArray


def t_test(differences: ArrayLike) -> Tested:
    """Student's paired t-test of a mean difference of zero.

    Args:
        differences: (n,) or (n, n_columns), at least two rows, finite.

    Returns:
        t, with n - 1 degrees of freedom, and p. All zero: t = 0 and p = 1; all the same but not zero: t is infinite
        and p = 0.

    Raises:
        InputError: fewer than two rows, or values that are not finite.
    """
    from scipy.special import stdtr

    rows = _rows(differences)
    n = len(rows)
    mean, sd = rows.mean(axis=0), standard_deviation(rows)
    t = _ratio(mean * sqrt(n), sd)
    return Tested(t, 2 * stdtr(n - 1, -np.abs(t)))


def sign_flip_test(
    differences: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0, n_threads: int | None = None
) -> Tested:
    """Fisher's randomisation test: how often are random signs of the differences as far from zero as those observed?

    Exact where the signs of the non-zero differences have no more combinations than `n_resamples`; else
    p = (b + 1) / (n_resamples + 1) for b resamples at least as far, which is never 0
    (Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9(1), 2010).

    Args:
        differences: (n,) or (n, n_columns), at least two rows, finite.
        n_resamples: random combinations of signs; the error of p is about sqrt(p (1 - p) / n_resamples).
        seed: of the random signs.
        n_threads: None: as many as there are cores. The result does not depend on it.

    Returns:
        The mean difference, and p.

    Raises:
        InputError: fewer than two rows, values that are not finite, or n_resamples or seed out of range.
    """
    rows = _rows(differences)
    sums, scale = np.abs(rows.sum(axis=0)), np.abs(rows).sum(axis=0)
    threshold = sums - _ROUNDING * scale
    n_nonzero = np.count_nonzero(rows, axis=0)
    exact = n_nonzero <= np.log2(checked_resamples(n_resamples))
    p = np.empty(rows.shape[1])
    for column in np.flatnonzero(exact):
        p[column] = _exact_sign_flip_p(rows[rows[:, column] != 0, column], threshold[column])
    random = np.flatnonzero(~exact)
    for columns in _column_groups(random):
        limit = threshold[columns]
        counts = _summed(
            lambda sums, limit=limit: np.count_nonzero(np.abs(sums) >= limit, axis=0),  # type: ignore[misc]
            _flipped_sums,
            np.ascontiguousarray(rows[:, columns]),
            n_resamples,
            seed,
            n_threads,
        )
        p[columns] = (sum(counts) + 1) / (n_resamples + 1)
    return Tested(rows.mean(axis=0), p)


def _exact_sign_flip_p(differences: FloatArray, threshold: float) -> float:
    """Over all combinations of signs of a few differences, (n,); a table of sums of bounded size at a time."""
    sums = _signed_sums(differences[:_TABULATED])
    at_least = sum(
        np.count_nonzero(np.abs(sums + rest) >= threshold) for rest in _signed_sums(differences[_TABULATED:])
    )
    return float(at_least / 2**differences.size)


def _signed_sums(differences: FloatArray) -> FloatArray:
    """(2^n,) the sums of differences, (n,), under each combination of signs."""
    sums = np.zeros(1)
    for each in differences:
        sums = np.concatenate([sums + each, sums - each])
    return sums


def bootstrap_test(
    differences: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0, n_threads: int | None = None
) -> Tested:
    """The bootstrap test of a mean difference of zero, by resampling the differences moved to a mean of zero.

    p = (b + 1) / (n_resamples + 1) for b resampled means at least as far from zero as the observed one. Arguments,
    returns and errors as of `sign_flip_test`.
    """
    rows = _rows(differences)
    checked_resamples(n_resamples)
    sums, scale = rows.sum(axis=0), np.abs(rows).sum(axis=0)
    threshold = np.abs(sums) - _ROUNDING * scale
    centred = rows - sums / len(rows)
    p = np.empty(rows.shape[1])
    for columns in _column_groups(np.arange(rows.shape[1])):
        limit = threshold[columns]
        counts = _summed(
            lambda sums, limit=limit: np.count_nonzero(np.abs(sums) >= limit, axis=0),  # type: ignore[misc]
            _resampled_sums,
            np.ascontiguousarray(centred[:, columns]),
            n_resamples,
            seed,
            n_threads,
        )
        p[columns] = (sum(counts) + 1) / (n_resamples + 1)
    return Tested(rows.mean(axis=0), p)


def wilcoxon_test(differences: ArrayLike) -> Tested:
    """Wilcoxon's signed-rank test, by scipy; zero differences are left out.

    Differences that are equal but for rounding share a rank.

    It tests whether the differences are symmetric around zero, not whether the means are equal: it looks at the ranks
    of the differences, so that it can call a system significantly better whose mean is lower.

    Args:
        differences: (n,) or (n, n_columns), at least two rows, finite.

    Returns:
        The smaller of the two rank sums, and p; all zero: 0 and 1.

    Raises:
        InputError: fewer than two rows, or values that are not finite.
    """
    from scipy.stats import wilcoxon

    rows = _rows(differences)
    statistic, p = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    for column in np.flatnonzero(rows.any(axis=0)):
        differences = rows[rows[:, column] != 0, column]
        # 0.3 - 0.2 and 0.2 - 0.1 differ in their last digit: left so, most ties of P@10 would get ranks by chance
        result = wilcoxon(np.round(differences / np.abs(differences).max(), _RANKED_DIGITS))
        statistic[column], p[column] = result.statistic, result.pvalue
    return Tested(statistic, p)


def tukey_hsd_test(
    values: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0, n_threads: int | None = None
) -> FloatArray:
    """The randomised version of Tukey's HSD: all pairs of systems, with the family-wise error under control.

    Under its null hypothesis the values of a query could have come from the systems in any order. Each resample puts
    them in a random order, query by query, and notes the largest difference of two means; the p of a pair is
    (b + 1) / (n_resamples + 1) for b such differences at least as large as that of the pair (Carterette, TOIS 2012).
    Not `scipy.stats.tukey_hsd`, which is for unpaired samples.

    Args:
        values: (n_queries, n_systems), at least two of each, finite.
        n_resamples, seed, n_threads: as of `sign_flip_test`.

    Returns:
        (n_systems, n_systems) symmetric; corrected for all pairs as it is; 1 on the diagonal.

    Raises:
        InputError: fewer than two queries or systems, values that are not finite, n_resamples or seed out of range.
    """
    rows = np.ascontiguousarray(_rows(values, "values"))
    if rows.shape[1] < 2:
        raise InputError(f"values must have a column for each of two systems or more, got {rows.shape[1]}")
    sums, scale = rows.sum(axis=0), np.abs(rows).sum(axis=0).max()
    chunks = _summed(np.asarray, _permuted_ranges, rows, checked_resamples(n_resamples), seed, n_threads, flat=True)
    ranges = np.sort(np.concatenate(list(chunks)))
    threshold = np.abs(sums[:, np.newaxis] - sums) - _ROUNDING * scale
    at_least = n_resamples - np.searchsorted(ranges, threshold)
    p = (at_least + 1) / (n_resamples + 1)
    np.fill_diagonal(p, 1)
    return np.asarray(p, np.float64)


def adjusted(p: ArrayLike, correction: Correction = "holm") -> FloatArray:
    """p-values corrected for being several.

    Args:
        p: (n,) the p-values of one family.
        correction: "holm" controls the chance of any false positive (Holm, Scandinavian Journal of Statistics 6, 1979);
            "bh" the expected share of false ones among the positives, if the tests are independent or positively
            dependent (Benjamini and Hochberg, 1995), "by" whatever their dependence (Benjamini and Yekutieli, 2001),
            both by scipy; "none" nothing.

    Raises:
        InputError: another correction, or values that are no probabilities.
    """
    given = np.asarray(p, np.float64)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
        raise InputError(f"p must be a list of numbers from 0 to 1, got {p!r:.80}")
    if correction not in get_args(Correction):
        raise InputError(f"correction must be one of {_listed(get_args(Correction))}, got {correction!r}")
    if correction == "none" or not given.size:
        return given.copy()
    if correction == "holm":
        order = np.argsort(given, kind="stable")
        stepped = np.maximum.accumulate(given[order] * np.arange(given.size, 0, -1))
        result = np.empty_like(given)
        result[order] = np.minimum(stepped, 1)
        return result
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(given, method=correction), np.float64)


def effect_size(differences: ArrayLike) -> FloatArray:
    """d_z, (n_columns,): the mean difference over the standard deviation of the differences; all zero: 0.

    Args:
        differences: (n,) or (n, n_columns), at least two rows, finite.

    Raises:
        InputError: fewer than two rows, or values that are not finite.
    """
    rows = _rows(differences)
    return _ratio(rows.mean(axis=0), standard_deviation(rows))


def standard_deviation(values: ArrayLike) -> FloatArray:
    """(n_columns,) with n - 1 in the denominator; exactly 0 where all values are the same. As `effect_size`."""
    rows = _rows(values)
    exponents = _exponents(rows)
    deviations = np.ldexp(np.ldexp(rows, -exponents).std(axis=0, ddof=1), exponents)
    return np.where(np.ptp(rows, axis=0) == 0, 0.0, deviations)


def mean_interval(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> Interval:
    """The bias-corrected and accelerated (BCa) bootstrap interval of each column's mean.

    Values that are all the same have an interval without width.

    Args:
        values: (n,) or (n, n_columns), at least two rows, finite: scores, or differences.
        confidence: between 0 and 1.
        n_resamples, seed, n_threads: as of `sign_flip_test`.

    Raises:
        InputError: fewer than two rows, values that are not finite, or another argument out of range.

    Source: Efron, "Better bootstrap confidence intervals", JASA 82, 1987. The mean has its jackknife in closed form.
    """
    from scipy.special import ndtr, ndtri

    rows = _rows(values)
    checked_resamples(n_resamples)
    n, mean = len(rows), rows.mean(axis=0)
    low, high = rows[0].copy(), rows[0].copy()
    level = checked_confidence(confidence)
    tails = ndtri([[(1 - level) / 2], [(1 + level) / 2]])
    for columns in _column_groups(np.flatnonzero(np.ptp(rows, axis=0) > 0)):
        group = np.ascontiguousarray(rows[:, columns])
        centred = group - mean[columns]
        chunks = _summed(np.asarray, _resampled_sums, centred, n_resamples, seed, n_threads)
        sums = np.concatenate(list(chunks))  # of what is left of the mean: small numbers keep their digits
        rounding = _ROUNDING * np.abs(centred).sum(axis=0)
        below = (np.mean(sums < -rounding, axis=0) + np.mean(sums <= rounding, axis=0)) / 2
        bias = ndtri(np.clip(below, 0.5 / n_resamples, 1 - 0.5 / n_resamples))
        # Leaving a value out moves the mean by -value / (n - 1): the acceleration is the skewness of the values.
        scaled = np.ldexp(centred, -_exponents(centred))
        acceleration = (scaled**3).sum(axis=0) / (6 * (scaled**2).sum(axis=0) ** 1.5)
        shifted = bias + tails
        quantiles = ndtr(bias + shifted / (1 - acceleration * shifted))  # (2, n_columns)
        for place, column in enumerate(columns):
            ends = np.quantile(sums[:, place], quantiles[:, place])
            low[column], high[column] = mean[column] + ends / n
    return Interval(low, high)


def power(difference: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """The chance that the paired t-test finds a true difference.

    Args:
        difference: the true mean difference.
        sd: the standard deviation of the per-query differences, above 0; see `Difference.sd` of a Comparison.
        n: queries, at least 2.
        alpha: the level of the two-sided test.

    Returns:
        Between alpha, for no difference, and 1.

    Raises:
        InputError: an argument out of range.

    Source: the noncentral t distribution; Cohen, "Statistical power analysis for the behavioral sciences", chapter 2.
    """
    from scipy.special import nctdtr, stdtrit

    _check_positive("sd", sd)
    _check_share("alpha", alpha)
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 2:
        raise InputError(f"n must be a whole number of queries, at least 2, got {n!r}")
    shift = _finite("difference", difference) / sd * sqrt(n)
    critical = float(stdtrit(n - 1, 1 - alpha / 2))
    # The statistic falls short, or is significant the wrong way. scipy 1.17 gives NaN where next to nothing is left.
    short, wrong_way = np.nan_to_num(nctdtr(n - 1, abs(shift), [critical, -critical]))
    return float(1 - short + wrong_way)


def topics_needed(difference: float, sd: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """The fewest queries with which the paired t-test finds a true difference with a chance of at least `power`.

    Args:
        difference: the true mean difference, not 0.
        sd, alpha: as of `power`.
        power: between 0 and 1.

    Raises:
        InputError: an argument out of range, or a difference so small that no number of queries would do.
    """
    _check_share("power", power)
    if not _finite("difference", difference):
        raise InputError("difference must not be 0: no number of queries finds a difference that is none")
    chance = partial(_power, difference, sd, alpha)
    most = 2
    while chance(most) < power:
        most *= 2
        if most > _MOST_TOPICS:
            raise InputError(f"a difference of {difference!r} with sd {sd!r} is out of reach of any number of queries")
    fewest = most // 2
    while most - fewest > 1:
        middle = (fewest + most) // 2
        fewest, most = (fewest, middle) if chance(middle) >= power else (middle, most)
    return most


def _power(difference: float, sd: float, alpha: float, n: int) -> float:
    return power(difference, sd, n, alpha)


def checked_resamples(n_resamples: Any) -> int:
    """The number, if it is a positive one.

    Raises:
        InputError: it is not.
    """
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, Integral) or n_resamples < 1:
        raise InputError(f"n_resamples must be a positive integer, got {n_resamples!r}")
    return int(n_resamples)


def checked_confidence(confidence: Any) -> float:
    """The number, if it is between 0 and 1.

    Raises:
        InputError: it is not.
    """
    _check_share("confidence", confidence)
    return float(confidence)


def _rows(values: ArrayLike, name: str = "differences") -> FloatArray:
    """(n, n_columns) what came, checked."""
    rows = np.asarray(values, np.float64)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(f"{name} must be (n,) or (n, n_columns) with at least two rows, got shape {np.shape(values)}")
    if not np.isfinite(rows).all():
        raise InputError(f"{name} must be finite; leave out the rows that were not scored")
    return rows


def _exponents(rows: FloatArray) -> IntArray:
    """(n_columns,) the powers of two next to the largest values: divided by them, squares and cubes stay floats."""
    exponents: IntArray = np.frexp(np.abs(rows).max(axis=0))[1]
    return exponents


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Their quotient; over 0 it is 0 for 0 and infinite for others."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(numerator == 0, 0.0, numerator / denominator)


def _column_groups(columns: Any) -> list[Any]:
    return [columns[start : start + _COLUMNS] for start in range(0, len(columns), _COLUMNS)]


def _summed(
    summary: Callable[[FloatArray], Any],
    kernel: Callable[[FloatArray, Any, int, FloatArray], None],
    rows: FloatArray,
    n_resamples: int,
    seed: Any,
    n_threads: int | None,
    *,
    flat: bool = False,
) -> Any:
    """A summary of the results of each chunk of resamples, in order; `flat`: a resample has one result, not a row."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed must be an integer that is not negative, got {seed!r}")
    spread = np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0]
    size = max(1, min(_CHUNK_RESAMPLES, _CHUNK_CELLS // (1 if flat else rows.shape[1])))

    def chunk(first: int) -> Any:
        n = min(size, n_resamples - first)
        out = np.empty(n if flat else (n, rows.shape[1]))
        kernel(rows, spread, first, out)
        return summary(out)

    return ordered_map(chunk, range(0, n_resamples, size), thread_count(n_threads))


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def _check_positive(name: str, value: Any) -> None:
    if _finite(name, value) <= 0:
        raise InputError(f"{name} must be above 0, got {value!r}")


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} must be between 0 and 1, got {value!r}")


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(map(repr, choices))
