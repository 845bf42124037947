"""What a benchmark is made of: workloads of cases, the contenders of a case, and what they are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

Answers: TypeAlias = Mapping[str, ArrayLike]
"""Metric -> one value a query, in the order of the generated queries; or a single value, the mean."""

Quantities: TypeAlias = Mapping[str, float]
"""What was measured of a contender: `seconds`, `growth_mb` and its own quantities."""

OURS = "metrics-core"  # the names of our contenders begin with it


@dataclass(frozen=True)
class Size:
    """How much input a case has.

    Args:
        queries: rankings of the usual length.
        depth: documents in each of them.
        judged: judged documents a query.
        longest: documents in one more ranking, for the skewed workload.
    """

    queries: int
    depth: int
    judged: int
    longest: int = 0

    @property
    def rows(self) -> int:
        """Retrieved documents of all queries."""
        return self.queries * self.depth + self.longest

    def shrunk(self, rows: int) -> Size:
        """The same shape with about this many rows (at least 20 queries), or as it is where it has fewer."""
        queries = max(20, rows // self.depth)
        if queries >= self.queries:
            return self
        return replace(self, queries=queries, longest=self.longest * queries // self.queries)


def no_answers(_result: Any) -> Answers:
    """For a contender whose result has nothing to compare (it only reads, or only starts)."""
    return {}


def no_quantities(_result: Any) -> Quantities:
    """For a contender of which only time and memory are measured."""
    return {}


@dataclass(frozen=True)
class Prepared:
    """A contender with its input at hand: only `call` is timed."""

    call: Callable[[], Any]
    answers: Callable[[Any], Answers] = no_answers
    quantities: Callable[[Any], Quantities] = no_quantities


@dataclass(frozen=True)
class Contender:
    """One way to do the work of a case.

    Args:
        name: what the tables call it.
        setup: imports what it needs and makes the input from a size and a seed; an ImportError means "absent".
        threads: CPUs it may use; the environment says so to the libraries, and the process is bound to as many.
        reads_rows: whether rows a second mean anything.
    """

    name: str
    setup: Callable[[Size, int], Prepared]
    threads: int = 1
    reads_rows: bool = True


@dataclass(frozen=True)
class Gate:
    """A number that the measured quantities are held to.

    Args:
        text: what the number is.
        value: computes it from the quantities of each contender; a KeyError means a contender is absent.
        gate: what it must reach, where there is such a limit.
        aim: what would be good.
        at_least: whether larger is better.
    """

    text: str
    value: Callable[[Mapping[str, Quantities]], float]
    gate: float | None = None
    aim: float | None = None
    at_least: bool = True

    def met(self, value: float, limit: float | None) -> bool | None:
        """Whether the value reaches the limit; None without a limit."""
        if limit is None:
            return None
        return value >= limit if self.at_least else value <= limit


def times_as_fast(ours: str, *peers: str, gate: float | None = None, aim: float | None = None) -> Gate:
    """The time of a peer (of several: the fastest) over ours."""
    return Gate(
        f"{ours}: times as fast as {_either(peers)}",
        lambda measured: min(measured[peer]["seconds"] for peer in peers) / measured[ours]["seconds"],
        gate,
        aim,
    )


def times_the_time(ours: str, peer: str, gate: float | None = None, aim: float | None = None) -> Gate:
    """Our time over that of a peer, where we need not be faster."""
    return Gate(
        f"{ours}: times the time of {peer}",
        lambda measured: measured[ours]["seconds"] / measured[peer]["seconds"],
        gate,
        aim,
        at_least=False,
    )


def growth_mb(ours: str, gate: float) -> Gate:
    """Our growth of memory during the call."""
    return Gate(f"{ours}: memory growth, MB", lambda measured: measured[ours]["growth_mb"], gate, at_least=False)


def _either(peers: tuple[str, ...]) -> str:
    return peers[0] if len(peers) == 1 else f"the fastest of {', '.join(peers)}"


@dataclass(frozen=True)
class Case:
    """Contenders that do the same work on equal inputs.

    Args:
        name: what the tables call it.
        size: of the input.
        contenders: ours and its peers, run in turn.
        gates: what ours is held to.
        rounds: processes a contender; the median counts.
        smoke: whether `--quick` runs it, too; not where it would only repeat another case.
        few_rows: enough to warm up, and for `--quick`, where each row takes long; None: as many as elsewhere.
        tolerance: how far answers to a query may be apart.
    """

    name: str
    size: Size
    contenders: tuple[Contender, ...]
    gates: tuple[Gate, ...] = ()
    rounds: int = 5
    smoke: bool = True
    few_rows: int | None = None
    tolerance: float = 1e-9


@dataclass(frozen=True)
class Workload:
    """The cases of one module.

    Args:
        name: of the module, and of the JSON file.
        title: a line for the tables.
        cases: run one after the other.
        packages: distributions whose versions belong in the results.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    packages: tuple[str, ...] = ()
