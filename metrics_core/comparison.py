"""compare: from the scores of several runs to what can be said about their differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from metrics_core import __version__, statistics
from metrics_core.aggregate import Aggregate, aggregate, mean
from metrics_core.alignment import AlignedRuns, RunsLike, align
from metrics_core.blocks import FloatArray
from metrics_core.errors import InputError
from metrics_core.metrics import Metric
from metrics_core.scores import Scores
from metrics_core.statistics import Correction, checked_confidence, checked_resamples
from metrics_core.wording import counted

if TYPE_CHECKING:
    import pandas as pd

Test = Literal["t", "permutation", "bootstrap", "wilcoxon", "tukey"]
Family = Literal["metric", "all"]

TEST_TITLES: dict[Test, str] = {
    "t": "paired t-test",
    "permutation": "sign-flip permutation test",
    "bootstrap": "paired bootstrap test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "tukey": "randomised Tukey HSD",
}
CORRECTION_TITLES: dict[Correction, str] = {
    "holm": "Holm",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
    "none": "no correction",
}
_WILCOXON = (
    "Wilcoxon's test asks whether the differences are symmetric around zero, not whether the means are equal: it can "
    "find a run significantly better whose mean is lower"
)
_TIE = 1e-12  # relative and absolute: what sums in another order differ by is no difference


@dataclass(frozen=True, slots=True)
class Difference:
    """One run against another by one metric, over the queries that both have scores for.

    Attributes:
        metric: its name.
        run, other: their names; with a baseline, `other` is the baseline.
        n: queries that both runs have scores for.
        n_left_out: queries that one of them, or both, has no score for; under Tukey's test, any of the runs.
        mean, other_mean: over those n queries.
        difference: mean - other_mean.
        low, high: the BCa bootstrap interval of the difference, for this pair alone.
        sd: the standard deviation of the per-query differences: what `power` and `topics_needed` ask for.
        effect_size: d_z, difference / sd; 0 where all differences are 0.
        wins, ties, losses: queries in which `run` is above, equal to or below `other`.
        statistic: the test's: t, the mean difference, or the smaller rank sum.
        p: two-sided, uncorrected; under Tukey's test that of the test, which is corrected.
        p_adjusted: corrected within its family.
        p_permutation: the sign-flip permutation test's, uncorrected: a check of p.
        significant: whether p_adjusted is below 1 - confidence.
    """

    metric: str
    run: str
    other: str
    n: int
    n_left_out: int
    mean: float
    other_mean: float
    difference: float
    low: float
    high: float
    sd: float
    effect_size: float
    wins: int
    ties: int
    losses: int
    statistic: float
    p: float
    p_adjusted: float
    p_permutation: float
    significant: bool


class MeanInterval(NamedTuple):
    """A mean over the scored queries, with its BCa bootstrap interval.

    Attributes:
        mean, low, high: floats; low and high are -inf and inf with a single query.
        n: scored queries.
    """

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What `compare` found, and everything that it rests on.

    Attributes:
        runs: the scores that were compared, aligned by query id.
        differences: metric by metric; all pairs of runs in the order given, or each run against the baseline.
        baseline: its name, or None.
        test, correction, family: as given; under Tukey's test correction is None.
        family_size: the p-values that were corrected together.
        n_resamples, seed, confidence: as given.
        notes: what a reader has to know, a sentence each.
    """

    runs: AlignedRuns
    differences: tuple[Difference, ...]
    baseline: str | None
    test: Test
    correction: Correction | None
    family: Family
    family_size: int
    n_resamples: int
    seed: int
    confidence: float
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The runs' names."""
        return self.runs.names

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics' names."""
        return self.runs.metrics

    @property
    def alpha(self) -> float:
        """The level of significance, 1 - confidence."""
        return round(1 - self.confidence, 12)

    @property
    def method(self) -> str:
        """The test, the correction and the family, in words."""
        pairs = "all pairs" if self.baseline is None else f"each run against {self.baseline}"
        if self.correction is None:
            return f"{TEST_TITLES[self.test]} over all pairs of runs, per metric"
        among = "across metrics" if self.family == "all" else "per metric"
        tests = f"{counted(self.family_size, 'comparison', 'comparisons')} {among}"
        return f"{TEST_TITLES[self.test]}, {CORRECTION_TITLES[self.correction]} over {tests} ({pairs})"

    def difference(self, run: str, other: str, metric: str | Metric | None = None) -> Difference:
        """The comparison of two runs, whichever way round it was made: `run` minus `other`.

        Args:
            run, other: their names.
            metric: may be left out where there is only one.

        Raises:
            InputError: they were not compared, or by several metrics.
        """
        if metric is None and len(self.metrics) > 1:
            raise InputError(f"metric must be one of {', '.join(self.metrics)}")
        name = self.runs.metric_named(self.metrics[0] if metric is None else metric)
        for each in self.differences:
            if each.metric == name and {each.run, each.other} == {self.runs.named(run), self.runs.named(other)}:
                return each if each.run == run else self._reversed(each)
        raise InputError(f"{run!r} was not compared with {other!r}")

    def _reversed(self, difference: Difference) -> Difference:
        rank_sum = self.test == "wilcoxon"  # the smaller one, whichever way round
        return replace(
            difference,
            run=difference.other,
            other=difference.run,
            mean=difference.other_mean,
            other_mean=difference.mean,
            difference=-difference.difference,
            low=-difference.high,
            high=-difference.low,
            effect_size=-difference.effect_size,
            wins=difference.losses,
            losses=difference.wins,
            statistic=difference.statistic if rank_sum else -difference.statistic,
        )

    def means(self) -> dict[str, dict[str, Aggregate]]:
        """{run: {metric: its mean over its scored queries, and how many they are}}."""
        return {
            name: {metric: aggregate(self.runs.column(name, metric)) for metric in self.metrics} for name in self.names
        }

    def columns(self) -> dict[str, list[Any]]:
        """The differences as columns, one a field of Difference, a row each."""
        return {each.name: [getattr(row, each.name) for row in self.differences] for each in fields(Difference)}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the scores, as plain values."""
        return {
            "version": __version__,
            "test": self.test,
            "correction": self.correction,
            "family": self.family,
            "family_size": self.family_size,
            "baseline": self.baseline,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "confidence": self.confidence,
            "method": self.method,
            "notes": list(self.notes),
            "policies": {name: policies.to_dict() for name, policies in self.runs.policies.items()},
            "runs": {
                name: {
                    metric: {"mean": mean.value, "n_scored": mean.n_scored, "n_total": mean.n_total}
                    for metric, mean in means.items()
                }
                for name, means in self.means().items()
            },
            "differences": [asdict(difference) for difference in self.differences],
        }

    def to_pandas(self) -> pd.DataFrame:
        """The differences as a data frame, a row each.

        Raises:
            ImportError: pandas is not installed.
        """
        from metrics_core.export import to_pandas

        return to_pandas(self.columns())

    def to_markdown(self) -> str:
        """The means and the differences as Markdown, ready to paste."""
        from metrics_core.comparison_tables import markdown

        return markdown(self)

    def to_latex(self) -> str:
        """The same as LaTeX, for the package booktabs."""
        from metrics_core.comparison_tables import latex

        return latex(self)

    def to_html(self) -> str:
        """The same as HTML tables without style, everything escaped."""
        from metrics_core.comparison_tables import html

        return html(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        from metrics_core.comparison_tables import text

        return text(self)


def compare(
    runs: RunsLike,
    *,
    baseline: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    test: Test = "t",
    correction: Correction | None = None,
    family: Family = "metric",
    n_resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    key: str | None = None,
    n_threads: int | None = None,
) -> Comparison:
    """Compares runs over the same queries: differences with intervals, effect sizes and corrected p-values.

    Runs are joined by query id. A query that one of two runs has no score for (NaN, None, or not there) is left out of
    that pair and counted; Tukey's test looks at the queries that all runs have scores for. Means are arithmetic.

    Args:
        runs: {name: run}, where a run is Scores, an EvaluationRunResult (or what has its `inputs` and `results`), or
            {query: value}; or a list of results, which have names.
        baseline: the name of a run that the others are compared with; None: all pairs.
        metrics: which; None: all, and all runs must have the same. {query: value} answers to a single metric's name.
        test: "t" (paired), "permutation" (sign flips; exact for few queries), "bootstrap" (differences moved to a mean
            of zero), "wilcoxon" (warns of what it tests), or "tukey" (randomised HSD for all pairs at once).
        correction: "holm", "bh", "by" or "none"; see `statistics.adjusted`. None: "holm". Tukey's test corrects
            itself, and refuses another.
        family: which p-values are corrected together: those of a "metric", or "all".
        n_resamples: of permutations and bootstraps.
        seed: of random numbers; the same seed gives the same result on any number of threads.
        confidence: of the intervals; differences are significant below 1 - confidence.
        key: the input column of EvaluationRunResults that identifies a row. Without one their rows are paired by
            position, and an input column has to show that they are the same rows.
        n_threads: None: as many as there are cores.

    Raises:
        InputError: fewer than two runs, two of one name, an unknown baseline or choice, fewer than two queries that
            a pair has scores for, scores that are no numbers or beyond 1e100, or a metric aggregated by the geometric
            mean.
        MetricNameError: a metric that a run does not have.
    """
    for name, value, choices in (
        ("test", test, Test),
        ("family", family, Family),
        ("correction", correction, Correction),
    ):
        if value not in get_args(choices) and not (name == "correction" and value is None):
            raise InputError(f"{name} must be one of {', '.join(map(repr, get_args(choices)))}, got {value!r}")
    if test == "tukey" and correction is not None:
        raise InputError(f"test='tukey' is its own correction; leave out correction={correction!r}")
    if test == "tukey" and family == "all":
        raise InputError("test='tukey' corrects within a metric; leave out family='all'")
    checked_confidence(confidence)
    checked_resamples(n_resamples)
    aligned = align(runs, metrics, key=key)
    _refuse_geometric_means(runs, aligned)
    if len(aligned.names) < 2:
        raise InputError(f"runs must be two or more to be compared, got only {aligned.names[0]!r}")
    if baseline is not None:
        aligned.named(baseline)
    if test == "wilcoxon":
        warnings.warn(_WILCOXON, UserWarning, stacklevel=2)
    resampling = {"n_resamples": n_resamples, "seed": seed, "n_threads": n_threads}
    pairs = [
        _Pair.of(aligned, metric, run, other, only_complete=test == "tukey")
        for metric in aligned.metrics
        for run, other in _pairs(aligned.names, baseline)
    ]
    differences = [pair.differences for pair in pairs]
    tested = _tested(aligned, pairs, test, resampling)
    checks = tested if test == "permutation" else _by_length(differences, statistics.sign_flip_test, **resampling)
    intervals = _by_length(differences, statistics.mean_interval, confidence=confidence, **resampling)
    resolved = None if test == "tukey" else correction or "holm"
    raw = [p for _, p in tested]
    p_adjusted = raw if resolved is None else _adjusted(raw, pairs, resolved, family)
    alpha = round(1 - confidence, 12)
    found = tuple(
        pair.difference(low, high, statistic, p, corrected, check, significant=corrected < alpha)
        for pair, (low, high), (statistic, p), corrected, (_, check) in zip(
            pairs, intervals, tested, p_adjusted, checks, strict=True
        )
    )
    return Comparison(
        runs=aligned,
        differences=found,
        baseline=baseline,
        test=test,
        correction=resolved,
        family=family,
        family_size=len(pairs) if family == "all" else len(pairs) // len(aligned.metrics),
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        notes=tuple(_notes(aligned, found, test, alpha)),
    )


def confidence_interval(
    scores: Scores,
    metric: str | Metric,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> MeanInterval:
    """The mean of a metric over the scored queries, with its BCa bootstrap interval.

    Args:
        scores: what `evaluate` gives.
        metric: one of its metrics, in any spelling.
        confidence, n_resamples, seed, n_threads: as of `compare`.

    Raises:
        MetricNameError: not one of its metrics.
        InputError: no query was scored, or an argument is out of range.
    """
    (interval,) = mean_intervals([scores[metric]], confidence, n_resamples=n_resamples, seed=seed, n_threads=n_threads)
    if not interval.n:
        raise InputError(f"no query has a score of {metric}")
    return interval


def mean_intervals(columns: Sequence[FloatArray], confidence: float, **resampling: Any) -> list[MeanInterval]:
    """The mean of each of several columns, (n_queries,) with NaN for what was not scored; see `confidence_interval`.

    Without any score all but n is NaN.
    """
    checked_confidence(confidence)
    scored = [values[~np.isnan(values)] for values in columns]
    several = [values for values in scored if values.size > 1]
    ends = iter(_by_length(several, statistics.mean_interval, confidence=confidence, **resampling))
    intervals = []
    for values in scored:
        unbounded = (-np.inf, np.inf) if values.size else (np.nan, np.nan)
        low, high = next(ends) if values.size > 1 else unbounded
        intervals.append(MeanInterval(aggregate(values).value, low, high, values.size))
    return intervals


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """The queries that two runs are compared over."""

    metric: str
    run: str
    other: str
    first: FloatArray  # (n,)
    second: FloatArray  # (n,)
    differences: FloatArray  # (n,) exactly 0 where they are equal but for rounding
    n_queries: int  # of all runs

    @classmethod
    def of(cls, runs: AlignedRuns, metric: str, run: str, other: str, *, only_complete: bool) -> _Pair:
        first, second = runs.column(run, metric), runs.column(other, metric)
        both = ~np.isnan(first - second)
        if not both.any():
            raise InputError(
                f"no query has a {metric} of both {run!r} ({_some(runs, first)}) and {other!r} ({_some(runs, second)})"
            )
        if only_complete:
            both = _complete(runs, metric)
        if np.count_nonzero(both) < 2:
            whose = "all runs" if only_complete else f"both {run!r} and {other!r}"
            raise InputError(
                f"{np.count_nonzero(both)} of {both.size} queries have a {metric} of {whose}; a comparison needs two"
            )
        first, second = first[both], second[both]
        differences = np.where(np.isclose(first, second, rtol=_TIE, atol=_TIE), 0.0, first - second)
        return cls(metric, run, other, first, second, differences, both.size)

    def difference(
        self,
        low: float,
        high: float,
        statistic: float,
        p: float,
        p_adjusted: float,
        p_permutation: float,
        *,
        significant: bool,
    ) -> Difference:
        n = self.differences.size
        return Difference(
            metric=self.metric,
            run=self.run,
            other=self.other,
            n=n,
            n_left_out=self.n_queries - n,
            mean=mean(self.first),
            other_mean=mean(self.second),
            difference=mean(self.differences),
            low=low,
            high=high,
            sd=float(statistics.standard_deviation(self.differences)[0]),
            effect_size=float(statistics.effect_size(self.differences)[0]),
            wins=int(np.count_nonzero(self.differences > 0)),
            ties=int(np.count_nonzero(self.differences == 0)),
            losses=int(np.count_nonzero(self.differences < 0)),
            statistic=statistic,
            p=p,
            p_adjusted=p_adjusted,
            p_permutation=p_permutation,
            significant=significant,
        )


def _pairs(names: Sequence[str], baseline: str | None) -> Iterator[tuple[str, str]]:
    if baseline is None:
        return combinations(names, 2)
    return ((name, baseline) for name in names if name != baseline)


def _complete(runs: AlignedRuns, metric: str) -> Any:
    """(n_queries,) whether all runs have a score."""
    return ~np.isnan(runs.values[:, :, runs.metrics.index(metric)]).any(axis=1)


def _some(runs: AlignedRuns, column: FloatArray) -> str:
    scored = np.flatnonzero(~np.isnan(column))
    return f"scored: {', '.join(repr(runs.query_ids[row]) for row in scored[:3])}, …" if scored.size else "none scored"


def _tested(
    runs: AlignedRuns, pairs: Sequence[_Pair], test: Test, resampling: Mapping[str, Any]
) -> list[tuple[float, float]]:
    """The statistic and p of each pair."""
    if test == "tukey":
        p = {
            metric: statistics.tukey_hsd_test(
                runs.values[_complete(runs, metric), :, runs.metrics.index(metric)], **resampling
            )
            for metric in runs.metrics
        }
        place = {name: column for column, name in enumerate(runs.names)}
        # It sees the scores, not the differences: what these count as ties, it would tell apart by their rounding.
        return [
            (
                mean(pair.differences),
                float(p[pair.metric][place[pair.run], place[pair.other]]) if pair.differences.any() else 1.0,
            )
            for pair in pairs
        ]
    differences = [pair.differences for pair in pairs]
    if test == "t":
        return _by_length(differences, statistics.t_test)
    if test == "wilcoxon":
        return _by_length(differences, statistics.wilcoxon_test)
    resampled = statistics.sign_flip_test if test == "permutation" else statistics.bootstrap_test
    return _by_length(differences, resampled, **resampling)


def _by_length(
    columns: Sequence[FloatArray], function: Callable[..., statistics.Tested | statistics.Interval], **arguments: Any
) -> list[tuple[float, float]]:
    """A function of tables, column by column: those of one length, (n,), share its resamples."""
    results: list[tuple[float, float]] = [(np.nan, np.nan)] * len(columns)
    for n in {column.size for column in columns}:
        places = [place for place, column in enumerate(columns) if column.size == n]
        found = function(np.column_stack([columns[place] for place in places]), **arguments)
        for place, first, second in zip(places, *found, strict=True):
            results[place] = (float(first), float(second))
    return results


def _adjusted(raw: Sequence[float], pairs: Sequence[_Pair], correction: Correction, family: Family) -> list[float]:
    if family == "all":
        return [float(p) for p in statistics.adjusted(raw, correction)]
    result = []
    for metric in dict.fromkeys(pair.metric for pair in pairs):
        members = [p for p, pair in zip(raw, pairs, strict=True) if pair.metric == metric]
        result += statistics.adjusted(members, correction).tolist()
    return result


def _notes(runs: AlignedRuns, differences: Sequence[Difference], test: Test, alpha: float) -> Iterator[str]:
    if test == "wilcoxon":
        yield _WILCOXON
    if len(set(runs.policies.values())) > 1:
        each = "; ".join(f"{name}: {policies}" for name, policies in runs.policies.items())
        yield f"the runs were evaluated under different policies ({each})"
    left_out = [difference for difference in differences if difference.n_left_out]
    if left_out:
        most = max(left_out, key=lambda difference: difference.n_left_out)
        yield (
            f"{len(left_out)} of {len(differences)} comparisons leave out queries without scores, at most "
            f"{most.n_left_out} of {most.n + most.n_left_out} ({most.run} and {most.other}, {most.metric})"
        )
    if test == "t":
        differ = [each for each in differences if (each.p < alpha) != (each.p_permutation < alpha)]
        if differ:
            first = differ[0]
            yield (
                f"t-test and permutation test fall on different sides of {alpha:g} in {len(differ)} of "
                f"{len(differences)} comparisons, such as {first.run} and {first.other} by {first.metric} "
                f"(p {first.p:.4f} and {first.p_permutation:.4f}, uncorrected)"
            )


def _refuse_geometric_means(runs: RunsLike, aligned: AlignedRuns) -> None:
    for run in runs.values() if isinstance(runs, Mapping) else ():
        for metric, how in zip(run.metrics, run.aggregates, strict=True) if isinstance(run, Scores) else ():
            if how == "geometric mean" and metric in aligned.metrics:
                raise InputError(
                    f"{metric} is a geometric mean, and what is compared are arithmetic means of its per-query values; "
                    "leave it out: metrics= says which to compare"
                )
