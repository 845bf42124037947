"""Runs kernels: as plain Python while they have little to do, compiled with numba from then on.

Kernels are written as plain functions over arrays, so that they can be read, tested and stepped through as Python,
and so that importing them costs nothing. To import numba takes 0.4 s and to compile a kernel 0.1 to 1.6 s, or 3 ms
from numba's cache; Python takes some 0.5 µs a cell. So a few queries are scored within milliseconds, in a process that
never imports numba, and nobody waits for Python for much longer than for the compiler.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, wraps
from math import inf
from types import FunctionType
from typing import Any, TypeVar, TypeVarTuple

import numpy as np

Ts = TypeVarTuple("Ts")
R = TypeVar("R")

STEPS_IN_PYTHON = 200_000  # of a kernel in all its calls together, some 0.1 s: with more than these it is compiled

_lock = threading.RLock()
_compiled: dict[tuple[Callable[..., Any], bool], Callable[..., Any]] = {}
_steps: dict[Callable[..., Any], float] = {}  # that kernels have done in Python
_cached = True


def cells(*args: Any) -> int:
    """How many cells the arrays among the arguments have: the steps of a kernel that goes through each once or so."""
    return sum(arg.size for arg in args if isinstance(arg, np.ndarray))


def hashing_steps(lengths: Any) -> int:
    """Of a kernel that takes the fingerprints of keys of these lengths, (n,) in bytes."""
    return 6 * int(lengths.sum() + 2 * lengths.size)


def at_once(*_args: Any) -> float:
    """The steps of a function that is to be compiled at its first call."""
    return inf


def compiled(function: Callable[[*Ts], R], steps: Callable[..., float] = cells) -> Callable[[*Ts], R]:
    """The kernel, compiled as soon as that is worth the time: nogil, IEEE arithmetic, cached on disk where possible.

    It must do the same compiled and not, to the bit. NumPy's scalars calculate as numba's do; Python's numbers do not:
    compiled, integers wrap at 64 bits, x / 0 is infinite or NaN, a plain integer beside a narrow one makes an int64
    (uint8 + 1), and an index out of range reads anything. Kernels must avoid all of these.

    Plain functions of the same module that it calls are compiled with it. They have to live in the same module:
    numba's disk cache watches one file a kernel, and would not see a change in another.

    Args:
        function: a plain function of loops over arrays.
        steps: about how many steps a call takes, from its arguments.
    """

    @wraps(function)
    def call(*args: *Ts) -> R:
        return run(function, args, steps)

    return call


def run(function: Callable[[*Ts], R], args: tuple[*Ts], steps: Callable[..., float]) -> R:
    """Calls a function, in Python or compiled; see `compiled`.

    Raises:
        numba.core.errors.NumbaError: numba cannot compile the function.
    """
    if (function, False) not in _compiled:
        done = _steps.get(function, 0) + steps(*args)
        if done <= STEPS_IN_PYTHON:
            _steps[function] = done
            with np.errstate(all="ignore"):  # as compiled
                return function(*args)
    return _run_compiled(function, args)


def _run_compiled(function: Callable[[*Ts], R], args: tuple[*Ts]) -> R:
    global _cached  # noqa: PLW0603
    try:
        return _dispatcher(function)(*args)
    except OSError:
        if not _cached:
            raise
    with _lock:  # the cache can be found but not written, on a full disk, say: compile all again without it
        _cached = False
        _compiled.clear()
    return _dispatcher(function)(*args)


def _dispatcher(function: Callable[..., R], *, by_kernels: bool = False) -> Callable[..., R]:
    assert isinstance(function, FunctionType)
    ready = _compiled.get((function, by_kernels))
    if ready is None:
        with _lock:
            ready = _compiled.get((function, by_kernels)) or _compile(function, by_kernels)
            _compiled[function, by_kernels] = ready
    return ready


def _compile(function: FunctionType, by_kernels: bool) -> Callable[..., Any]:
    """The function, to be called from Python or by kernels.

    What nobody calls is not compiled, a seventh of the time: the entry for C and, of a function for kernels, the one
    for Python. Such a function must not come from the cache for Python: it is part of its kernels there.
    """
    import numba

    called = {
        name: _dispatcher(value, by_kernels=True)
        for name in function.__code__.co_names
        if isinstance(value := function.__globals__.get(name), FunctionType)
        and value.__module__ == function.__module__
        and value is not function
    }
    if called:
        linked = FunctionType(
            function.__code__,
            function.__globals__ | called,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        linked.__qualname__, linked.__module__ = function.__qualname__, function.__module__
        function = linked
    compiler = partial(
        numba.njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=by_kernels
    )
    try:
        return compiler(cache=_cached and not by_kernels)(function)
    except (RuntimeError, OSError):  # no directory for the cache can be found or written
        return compiler()(function)
