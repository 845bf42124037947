"""Whether two tables without ids have the same rows in the same order, as far as their columns show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any


@dataclass(frozen=True, slots=True)
class RowOrder:
    """What the columns that two tables share, of as many rows each, say of the order of the rows.

    Attributes:
        same: the columns that are equal row by row.
        moved: of the columns that hold the same values in another order, the one that tells most rows apart; None:
            there is none.
        differs: whether `moved` tells more rows apart than the columns in `same` do together. Otherwise it is no proof:
            two systems may answer yes and no equally often.
        in_doubt: whether it tells as many rows apart.
    """

    same: tuple[str, ...]
    moved: str | None
    differs: bool
    in_doubt: bool


def row_order(ours: Mapping[str, Sequence[Any]], theirs: Mapping[str, Sequence[Any]]) -> RowOrder:
    """Compares the columns that both have."""
    shared = {
        name: (list(map(_comparable, values)), list(map(_comparable, theirs[name])))
        for name, values in ours.items()
        if name in theirs
    }
    same = [name for name, (mine, others) in shared.items() if mine == others]
    told_apart = len(set(zip(*(shared[name][0] for name in same), strict=True)))
    n_distinct = {
        name: len(set(mine))
        for name, (mine, others) in shared.items()
        if name not in same and Counter(mine) == Counter(others)
    }
    moved = max(n_distinct, key=n_distinct.__getitem__, default=None)
    by_moved = 0 if moved is None else n_distinct[moved]
    return RowOrder(tuple(same), moved, by_moved > told_apart, 0 < by_moved == told_apart)


def _comparable(value: Any) -> Any:
    """The value, or its text where it does not hash or, as arrays and NaN, does not equal itself."""
    if isinstance(value, (str, int)) or (isinstance(value, float) and not isnan(value)):
        return value
    return repr(value)
