"""Work on many items: in this process, by any executor of concurrent.futures, or by Ray; results as they come."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

from metrics_core.errors import InputError, WorkerError

_T = TypeVar("_T")
_R = TypeVar("_R")

ExecutorLike: TypeAlias = Executor | Literal["ray"] | None
_Submit: TypeAlias = Callable[[Callable[[_T], _R], _T], "Future[_R]"]

_RAY_RETRIES = 3
# By name: none of these packages is imported for it.
_LOST = ("KilledWorker", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "LocalRayletDiedError")


def check_executor(executor: object) -> None:
    """Refuses what is no executor.

    Raises:
        InputError: it is none.
    """
    if executor is not None and executor != "ray" and not hasattr(executor, "submit"):
        raise InputError(f"executor must be None, an Executor of concurrent.futures or 'ray', got {executor!r}")


def completed(
    function: Callable[[_T], _R], items: Sequence[_T], executor: ExecutorLike, n_threads: int
) -> Iterator[tuple[int, _R]]:
    """Numbers of items and what the function gives for them, in the order in which they are done.

    Args:
        function, items: where `executor` has other processes, both are pickled, and so are results and errors.
        executor: None: threads of this process.
        n_threads: how many.

    Raises:
        WorkerError: a worker died, and the executor did not have another one do its work.
        ImportError: Ray is not installed.
        Exception: what the function raised; items that were not begun are cancelled.
    """
    if executor is None and n_threads == 1:
        yield from enumerate(map(function, items))
        return
    with _submitting(executor, n_threads) as submit:
        numbers = {submit(function, item): number for number, item in enumerate(items)}
        try:
            for future in as_completed(list(numbers)):
                yield numbers.pop(future), _result(future)
        finally:
            for future in numbers:
                future.cancel()


def _result(future: Future[_R]) -> _R:
    try:
        return future.result()
    except Exception as error:
        if isinstance(error, BrokenExecutor) or type(error).__name__ in _LOST:
            raise WorkerError(
                f"a worker died ({type(error).__name__}: {error}); with out=, finished parts are kept, and the same "
                "call with new workers goes on from there"
            ) from error
        cause = getattr(error, "cause", None)  # Ray hands on errors with the worker's traceback as their message
        if isinstance(cause, Exception):
            raise cause from error
        raise


@contextmanager
def _submitting(executor: ExecutorLike, n_threads: int) -> Iterator[_Submit[Any, Any]]:
    if executor == "ray":
        with _ray() as submit:
            yield submit
    elif executor is None:
        with ThreadPoolExecutor(n_threads) as pool:
            yield pool.submit
    else:
        yield executor.submit


@contextmanager
def _ray() -> Iterator[_Submit[Any, Any]]:
    """Tasks of Ray: on the cluster that the process is connected to, or else on a local one as long as it is needed."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("executor='ray' needs Ray: pip install 'metrics-core[ray]'") from error
    own = not ray.is_initialized()
    if own:
        with _environment(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0"):
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    task: Any = ray.remote(max_retries=_RAY_RETRIES)(_call)
    unfinished: dict[Future[Any], Any] = {}

    def submit(function: Callable[[Any], Any], item: Any) -> Future[Any]:
        reference = task.remote(function, item)
        future: Future[Any] = reference.future()
        unfinished[future] = reference
        future.add_done_callback(lambda done: unfinished.pop(done, None))
        return future

    try:
        yield submit
    finally:
        for reference in list(unfinished.values()):
            ray.cancel(reference)
        if own:
            ray.shutdown()


def _call(function: Callable[[_T], _R], item: _T) -> _R:
    return function(item)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Environment variables for as long as something is started."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
