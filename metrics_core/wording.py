"""Counts and names of queries in sentences."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 3


def counted(n: int, one: str, several: str) -> str:
    """The number and what it counts."""
    return f"{n} {one if n == 1 else several}"


def queries(n: int, names: Sequence[str] | None = None) -> str:
    """`n` queries: the first by name, if names are known, and how many more there are."""
    if not names:
        return counted(n, "query", "queries")
    more = f" and {n - _NAMED} more" if n > _NAMED else ""
    return f"{'query' if n == 1 else 'queries'} {', '.join(names[:_NAMED])}{more}"
