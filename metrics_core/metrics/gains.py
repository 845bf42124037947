# ruff: noqa: ARG001 (all take the same arguments)
"""From grades to gains: array transforms that metrics declare, applied before their kernels.

Each takes grades of any shape, the lowest relevant grade and the metric's values, and returns gains of that shape.
A gain counts if it is positive; the unjudged (NaN), repeats (-inf) and negative grades may stay as they are where the
kernel skips them, which spares a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metrics_core.blocks import LARGEST_GRADE, REPEAT, FloatArray
from metrics_core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def own_grade(grades: FloatArray, rel: float, values: Mapping[str, Any]) -> FloatArray:
    """The grade as it is."""
    return grades


def graded(grades: FloatArray, rel: float, values: Mapping[str, Any]) -> FloatArray:
    """The grade, its entry in a table, or 2^grade - 1; with a rel of the metric's own, nothing for lower grades."""
    gains = grades
    if values["gains"] is not None:
        gains = grades.copy()
        for grade, gain in values["gains"]:
            gains[grades == grade] = gain
    if values["rel"] is not None:
        gains = np.where(grades >= rel, gains, 0.0)
    if values["dcg"] == "exp-log2":
        gains = _exponential(gains)
        if (gains > LARGEST_GRADE).any():
            raise InputError(f"2^grade is too large for a grade of {np.nanmax(grades):g}; use linear gains")
    return gains


def binary_or_scaled(grades: FloatArray, rel: float, values: Mapping[str, Any]) -> FloatArray:
    """1 for each relevant document or, with max_rel, grade / max_rel."""
    max_rel = values["max_rel"]
    if max_rel is None:
        return np.where(grades >= rel, 1.0, 0.0)
    return np.where(_at_most(grades, max_rel) > 0, grades / max_rel, 0.0)


def stop_probability(grades: FloatArray, rel: float, values: Mapping[str, Any]) -> FloatArray:
    """(2^grade - 1) / 2^max_rel, the chance that a reader is satisfied by a document."""
    highest: float = 2.0 ** values["max_rel"]
    return _exponential(_at_most(grades, values["max_rel"])) / highest


def judged(grades: FloatArray, rel: float, values: Mapping[str, Any]) -> FloatArray:
    """1 for each judged document; a negative grade is no judgement."""
    return np.where(grades >= 0, 1.0, 0.0)


def known(grades: FloatArray, rel: float, values: Mapping[str, Any]) -> FloatArray:
    """1 for each document that is judged, or came before; a negative grade is no judgement."""
    return np.where((grades >= 0) | (grades == REPEAT), 1.0, 0.0)


def _exponential(grades: FloatArray) -> FloatArray:
    positive = grades > 0
    gains = np.zeros(grades.shape)
    with np.errstate(over="ignore"):
        gains[positive] = np.exp2(grades[positive]) - 1
    return gains


def _at_most(grades: FloatArray, max_rel: float) -> FloatArray:
    if (grades > max_rel).any():
        raise InputError(f"a grade of {np.nanmax(grades):g} is above max_rel={max_rel:g}, the top of the scale")
    return grades
