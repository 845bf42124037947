"""Parameters of metrics: their defaults, their checks and how their values are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf, nan
from numbers import Real
from typing import Any, TypeAlias

from metrics_core.blocks import LARGEST_GRADE

Value: TypeAlias = float | bool | str | tuple[tuple[float, float], ...] | None
Check: TypeAlias = Callable[[Any], Value]


NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"


class Required(Enum):
    """The default of a parameter that has none."""

    REQUIRED = "required"


REQUIRED = Required.REQUIRED


@dataclass(frozen=True)
class Number:
    """Checks for a finite number between two open bounds; a bool is not one."""

    above: float = -inf
    below: float = inf

    def __call__(self, value: Any) -> float:
        """The number as a float."""
        try:
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan
        except OverflowError:
            number = inf
        if self.above < number < self.below:
            return number
        raise ValueError(f"must be {self}")

    def __str__(self) -> str:
        if self.below < inf:
            return f"a number between {self.above:g} and {self.below:g}"
        return "a number" if self.above == -inf else f"a number above {self.above:g}"


@dataclass(frozen=True)
class Choice:
    """Checks for one of some words."""

    words: tuple[str, ...]

    def __call__(self, value: Any) -> str:
        """The word as it is."""
        if isinstance(value, str) and value in self.words:
            return value
        raise ValueError(f"must be {' or '.join(map(repr, self.words))}")


def flag(value: Any) -> bool:
    """Checks for True or False."""
    if isinstance(value, bool):
        return value
    raise ValueError("must be True or False")


def gain_table(value: Any) -> tuple[tuple[float, float], ...]:
    """Checks for a mapping from grades to gains; its pairs are returned by ascending grade."""
    number = Number()
    try:
        pairs = value.items() if isinstance(value, Mapping) else value
        gains = {number(grade): number(gain) for grade, gain in pairs}
    except (TypeError, ValueError):
        raise ValueError("must map grades to gains, as in {1: 0.5, 2: 1}") from None
    if max(gains.values(), default=0) > LARGEST_GRADE:
        raise ValueError(f"must map grades to gains of at most {LARGEST_GRADE:g}, whose sums do not overflow")
    return tuple(sorted(gains.items()))


@dataclass(frozen=True)
class Parameter:
    """A named parameter of a metric.

    Args:
        name: as written in `Name(name=value)`.
        default: the value where none is given; REQUIRED if one has to be.
        definition: what it means, in a phrase.
        check: returns the value in the form to keep (hashable), or raises a ValueError "must be …".
        example: a value to suggest where a required one is missing.
    """

    name: str
    default: Value | Required = REQUIRED
    definition: str = ""
    check: Check = field(default_factory=Number)
    example: Value = None


REL = Parameter("rel", None, "lowest grade that is relevant; the policies' default_rel where none is given")


def written(value: Value) -> str:
    """A parameter's value as it is written in a metric's name, and read back by `parse`."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{written(grade)}: {written(gain)}" for grade, gain in value) + "}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)
