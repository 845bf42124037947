"""How many threads, and work handed to them in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from typing import TypeVar

from metrics_core.errors import InputError

_T = TypeVar("_T")
_U = TypeVar("_U")


def thread_count(n_threads: int | None) -> int:
    """What `n_threads=` asks for: None means as many as there are cores.

    Raises:
        InputError: neither None nor a positive integer.
    """
    if n_threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise InputError(f"n_threads must be a positive integer or None, got {n_threads!r}")
    return int(n_threads)


def ordered_map(function: Callable[[_T], _U], items: Iterable[_T], n_threads: int) -> Iterator[_U]:
    """map() over threads, with a bounded number of items under way."""
    if n_threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        pending: deque[Future[_U]] = deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
