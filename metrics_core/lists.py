"""Lists of questions that come from outside, in two sides that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet, Sized
from typing import Any

from metrics_core.errors import InputError
from metrics_core.wording import counted


def is_list(value: object) -> bool:
    """Whether a value holds several, in order: a list, a tuple, an array or a column of a data frame."""
    return (
        isinstance(value, Iterable)
        and isinstance(value, Sized)
        and not isinstance(value, (str, bytes, Mapping, AbstractSet))
        and getattr(value, "ndim", 1) > 0  # a NumPy array of no dimensions holds one value
    )


def row_number(position: int) -> str:
    """How messages name a question of which only the position is known, from 0."""
    return f"row {position}"


def paired(of: str, *, may_be_empty: bool = False, **sides: Any) -> list[Sequence[Any]]:
    """The sides as sequences, also where they came as arrays or columns of a data frame.

    Args:
        of: what each side is a list of, one a question.
        may_be_empty: whether there may be no question at all.
        sides: by the names of the arguments.

    Raises:
        InputError: a side that is no list or is empty, or sides that do not pair up.
    """
    for name, side in sides.items():
        if not is_list(side):
            raise InputError(f"{name} must be a list of {of}, one a question, got {side!r:.80}")
    lists = {name: side if isinstance(side, Sequence) else _python_list(side) for name, side in sides.items()}
    for name, side in lists.items():
        if not side and not may_be_empty:
            raise InputError(f"{name} must not be empty")
    lengths = {name: len(side) for name, side in lists.items()}
    if len(set(lengths.values())) > 1:
        has = " and ".join(f"{name} has {counted(n, 'question', 'questions')}" for name, n in lengths.items())
        raise InputError(f"{has}; they must pair up")
    return list(lists.values())


def _python_list(side: Any) -> list[Any]:
    # Arrow's arrays iterate over scalars of their own.
    return list(side.to_pylist() if hasattr(side, "to_pylist") else side)
