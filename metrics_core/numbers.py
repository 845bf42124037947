"""Grades and scores out of Python objects, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import numpy as np

from metrics_core.blocks import FloatArray
from metrics_core.errors import InputError


def finite_floats(
    values: Callable[[], Iterable[Any]],
    n: int,
    describe: Callable[[int], str],
    samples: Iterable[Any] | None = None,
) -> FloatArray:
    """Numbers of any kind (int, float, bool, NumPy scalars, Decimal) as float64.

    Args:
        values: gives the numbers; called again to find the one at fault.
        n: how many there are.
        describe: what the number at a position is, for the message.
        samples: those whose types are looked at, which takes as long as reading them; None: all. Text that spells a
            number would pass otherwise.

    Raises:
        InputError: one of them is not a number, or is NaN or infinite.
    """
    types = set(map(type, values() if samples is None else samples))
    if not any(issubclass(kind, (str, bytes)) for kind in types):
        try:
            floats = np.fromiter(values(), np.float64, n)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if np.isfinite(floats).all():
                return floats
    for position, value in enumerate(values()):
        try:
            finite = isfinite(value)
        except (TypeError, ValueError, OverflowError):
            finite = False
        if not finite:
            raise InputError(f"{describe(position)} must be a finite number, got {value!r}")
    raise InputError("the numbers changed while they were read")
