"""How far a judge agrees with people: the figures to look at before a judge is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan, nan
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from metrics_core.errors import InputError

Scale = Literal["binary", "nominal", "ordinal"]
Label: TypeAlias = str | float
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_STATISTICS = ("accuracy", "kappa", "alpha")
_INTERVAL = (0.025, 0.975)


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Agreement of a judge with people over the rows that both scored.

    NaN means undefined, never bad: all three figures where no row was scored by both, and `kappa` and `alpha` where
    both gave one and the same label to every row, so that nothing tells agreement from chance.

    Attributes:
        accuracy: the share of rows with the same label, 0 to 1.
        kappa: Cohen's kappa, at most 1, 0 at chance; with quadratic weights on the ordinal scale
            (Cohen, Educational and Psychological Measurement 20, 1960; Psychological Bulletin 70, 1968).
        alpha: Krippendorff's alpha for the scale, at most 1, 0 at chance
            (Krippendorff, Content Analysis, 4th edition, chapter 12).
        intervals: {"accuracy" | "kappa" | "alpha": (low, high)}: 95%, percentile bootstrap over rows. Resamples in
            which a figure is undefined are left out of its interval. (nan, nan) with fewer than two rows or where the
            figure is undefined. Rows that all agree give an interval of no width: they say nothing about the
            disagreements that more rows would show.
        disagreements: positions of the rows with different labels, in the order given; on the ordinal scale those
            furthest apart come first.
    """

    scale: Scale
    labels: tuple[Label, ...]
    n_rows: int
    n_judged: int  # rows that the judge scored
    n_human: int  # rows that people scored
    n_compared: int  # rows that both scored
    accuracy: float
    kappa: float
    alpha: float
    intervals: Mapping[str, tuple[float, float]]
    confusion: IntArray  # (n_labels, n_labels): rows what people said, columns what the judge said
    disagreements: tuple[int, ...]


def agreement(
    judged: Iterable[Any],
    human: Iterable[Any],
    scale: Scale = "binary",
    *,
    labels: Iterable[Label] | None = None,
    n_resamples: int = 9_999,
    rng: int | np.random.Generator = 0,
) -> Agreement:
    """Compares a judge's labels with those of people, row by row.

        judged = FaithfulnessEvaluator(raise_on_failure=False).run(...)["individual_scores"]
        agreement([score if isnan(score) else score == 1 for score in judged], human)

    Before a judge is trusted, have people label a sample of its rows without seeing its labels, compare, and read the
    disagreements. As high as two people agree with each other is as high as a judge can be asked to; an interval
    whose low end is near 0 calls for more rows, not for trust. A new model or prompt is a new judge.

    A row that either side left unscored (None or NaN) is left out, and the counts say so.

    Args:
        judged, human: one label a row, (n_rows,) each: str, bool or numbers.
        scale: "binary" takes 0 and 1; "nominal" labels that differ or do not; "ordinal" labels in an order, where
            near misses count less.
        labels: all labels there are, on the ordinal scale from the lowest to the highest. Unless given: 0 and 1 on
            the binary scale, else those that occur, in sorted order. A level of an ordinal scale that nobody used
            counts in the weights of kappa only if it is given here.
        n_resamples: bootstrap resamples, at least 2.
        rng: seed or generator of the bootstrap; the same seed gives the same intervals.

    Raises:
        InputError: unequal lengths, a label that is not one of `labels`, words and numbers mixed, or words on the
            ordinal scale without `labels`.
    """
    if scale not in get_args(Scale):
        raise InputError(f"scale must be one of {', '.join(map(repr, get_args(Scale)))}, got {scale!r}")
    if n_resamples < 2:
        raise InputError(f"n_resamples must be at least 2, got {n_resamples!r}")
    sides = {"judged": _scored("judged", judged), "human": _scored("human", human)}
    n_rows, n_human = map(len, sides.values())
    if n_rows != n_human:
        raise InputError(f"judged has {n_rows} rows and human {n_human}; they must pair up")
    known = _labels(sides, scale, labels)
    judge_codes, human_codes = (_codes(name, values, known, scale) for name, values in sides.items())
    compared = np.flatnonzero((judge_codes >= 0) & (human_codes >= 0))
    confusion = np.zeros((len(known), len(known)), np.int64)
    np.add.at(confusion, (human_codes[compared], judge_codes[compared]), 1)
    statistics = _statistics(confusion.astype(np.float64), scale)
    distances = np.abs(judge_codes[compared] - human_codes[compared])
    order = np.argsort(-distances, kind="stable") if scale == "ordinal" else np.arange(distances.size)
    return Agreement(
        scale=scale,
        labels=known,
        n_rows=n_rows,
        n_judged=int(np.count_nonzero(judge_codes >= 0)),
        n_human=int(np.count_nonzero(human_codes >= 0)),
        n_compared=compared.size,
        **dict(zip(_STATISTICS, map(float, statistics), strict=True)),
        intervals=_intervals(confusion, scale, n_resamples, rng),
        confusion=confusion,
        disagreements=tuple(compared[order[distances[order] > 0]].tolist()),
    )


def _scored(name: str, values: Iterable[Any]) -> list[Any]:
    """The labels, None where unscored."""
    found = [None if isinstance(value, Real) and isnan(value) else value for value in values]
    for row, value in enumerate(found):
        if not isinstance(value, (str, Real, np.bool_, type(None))):
            raise InputError(
                f"{name}[{row}] is {value!r}; a label is a str, a bool or a number, or None or NaN where unscored"
            )
    return found


def _labels(sides: Mapping[str, Sequence[Any]], scale: Scale, given: Iterable[Label] | None) -> tuple[Label, ...]:
    if given is not None:
        labels = tuple(given)
        if len(set(labels)) < max(len(labels), 2) or (scale == "binary" and len(labels) > 2):
            raise InputError(f"labels must be two or more different ones, on the binary scale two, got {labels!r}")
        return labels
    if scale == "binary":
        return (0, 1)
    occurring = [label for label in dict.fromkeys(chain(*sides.values())) if label is not None]
    if scale == "ordinal" and (words := [label for label in occurring if isinstance(label, str)]):
        raise InputError(f"words such as {words[0]!r} have no order; give labels=, from the lowest to the highest")
    try:
        return tuple(sorted(occurring))
    except TypeError:
        raise InputError(f"labels mix words and numbers: {occurring!r:.100}; use one of them") from None


def _codes(name: str, values: Sequence[Any], labels: tuple[Label, ...], scale: Scale) -> IntArray:
    """The position of each row's label among the labels, (n_rows,); -1 = unscored."""
    codes: dict[Label | None, int] = {label: i for i, label in enumerate(labels)} | {None: -1}
    for row, value in enumerate(values):
        if value not in codes:
            hint = "; cut other scores into two first, and leave unscored rows None" if scale == "binary" else ""
            raise InputError(f"{name}[{row}] is {value!r}, which is none of the labels {[*labels]}{hint}")
    return np.array([codes[value] for value in values], np.int64)


def _statistics(table: FloatArray, scale: Scale) -> FloatArray:
    """Accuracy, kappa and alpha of confusion tables, (3, ...) of (..., n_labels, n_labels); NaN = undefined."""
    n = table.sum((-2, -1))
    ranks = np.arange(table.shape[-1])
    differ = (ranks[:, None] != ranks).astype(np.float64)
    weights = np.square(ranks[:, None] - ranks) if scale == "ordinal" else differ
    human, judge = table.sum(-1), table.sum(-2)
    both = human + judge  # the marginals of Krippendorff's coincidences, table + its transpose
    if scale == "ordinal":
        middle = np.cumsum(both, -1) - both / 2  # the ordinal metric is the distance between these mid-ranks
        distance = np.square(middle[..., :, None] - middle[..., None, :])
    else:
        distance = np.broadcast_to(differ, table.shape)

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(values.sum((-2, -1)))

    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN: undefined
        accuracy = 1 - total(differ * table) / n
        kappa = 1 - total(weights * table) * n / total(weights * human[..., :, None] * judge[..., None, :])
        expected = total(distance * both[..., :, None] * both[..., None, :])
        alpha = 1 - (2 * n - 1) * total(2 * distance * table) / expected
    return np.stack([accuracy, kappa, alpha])


def _intervals(
    confusion: IntArray, scale: Scale, n_resamples: int, rng: int | np.random.Generator
) -> dict[str, tuple[float, float]]:
    n = int(confusion.sum())
    if n < 2:
        return dict.fromkeys(_STATISTICS, (nan, nan))
    # To draw rows with replacement and count them is to draw counts from the multinomial distribution
    resampled = np.random.default_rng(rng).multinomial(n, confusion.ravel() / n, n_resamples)
    tables = resampled.reshape(n_resamples, *confusion.shape).astype(np.float64)
    intervals = {}
    for name, distribution in zip(_STATISTICS, _statistics(tables, scale), strict=True):
        defined = distribution[~np.isnan(distribution)]
        low, high = np.quantile(defined, _INTERVAL).tolist() if defined.size else (nan, nan)
        intervals[name] = (low, high)
    return intervals
