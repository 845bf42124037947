"""Compiles plain functions with numba at their first call; nothing else imports numba.

Kernels are written as plain functions over arrays, so that they can be read, tested and stepped through as Python,
and so that importing them costs nothing. numba itself (0.13 s) is imported at the first call of the first kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.RLock()
_compiled: dict[tuple[FunctionType, bool], Callable[..., Any]] = {}
_cached = True


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function, compiled at its first call: nogil, IEEE arithmetic, cached on disk where that is possible.

    Plain functions of the same module that it calls are compiled with it. They have to live in the same module:
    numba's disk cache watches one file a kernel, and would not see a change in another.

    Raises:
        numba.core.errors.NumbaError: at the first call, where numba cannot compile the function.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return run(function, *args, **kwargs)

    return call


def run(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls the function, compiled; see `compiled`."""
    global _cached  # noqa: PLW0603
    try:
        return _dispatcher(function)(*args, **kwargs)
    except OSError:
        if not _cached:
            raise
    with _lock:  # the cache can be found but not written, on a full disk, say: compile all again without it
        _cached = False
        _compiled.clear()
    return _dispatcher(function)(*args, **kwargs)


def _dispatcher(function: Callable[P, R], *, by_kernels: bool = False) -> Callable[P, R]:
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
