"""Lists of questions that come from outside, in two sides that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet, Sized
from typing import Any

from metrics_core.errors import InputError


def is_list(value: object) -> bool:
    """Whether a value holds several, in order: a list, a tuple, an array or a column of a data frame."""
    return (
        isinstance(value, Iterable)
        and isinstance(value, Sized)
        and not isinstance(value, (str, bytes, Mapping, AbstractSet))
        and getattr(value, "ndim", 1) > 0  # a NumPy array of no dimensions holds one value
    )


def paired(of: str, **sides: Any) -> list[Sequence[Any]]:
    """The sides as sequences, also where they came as arrays or columns of a data frame.

    Args:
        of: what each side is a list of, one a question.
        sides: by the names of the arguments.

    Raises:
        InputError: a side that is no list or is empty, or sides that do not pair up.
    """
    for name, side in sides.items():
        if not is_list(side):
            raise InputError(f"{name} must be a list of {of}, one a question, got {side!r:.80}")
    lists = {name: side if isinstance(side, Sequence) else list(side) for name, side in sides.items()}
    for name, side in lists.items():
        if not side:
            raise InputError(f"{name} must not be empty")
    lengths = {name: len(side) for name, side in lists.items()}
    if len(set(lengths.values())) > 1:
        has = " and ".join(f"{name} has {n} questions" for name, n in lengths.items())
        raise InputError(f"{has}; they must pair up")
    return list(lists.values())
