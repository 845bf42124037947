"""Measures one contender in this process: `python -m benchmarks.measure WORKLOAD CASE CONTENDER [--quick]`.

It prints the line `begin` when the timed call begins, so that another process can watch the memory of this one, and
then one line of JSON. A process is used once: strings cache their hash and allocators keep their memory, so whatever
runs second in a process has an advantage.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks.workload import Case, Contender, Size, Workload
from metrics_core import compile as engine

QUICK_ROWS = 20_000  # --quick: enough to see that everything runs and agrees, too little to judge
WARM_ROWS = 300_000  # more than one block of ours, so that everything is compiled and imported before the clock
TIMED_SEED, WARM_SEED = 1, 2


def main(arguments: list[str] | None = None) -> None:
    """Measures the contender that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure", description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("case")
    parser.add_argument("contender")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--answers", type=Path, help="write the answers to this .npz file")
    options = parser.parse_args(arguments)
    out = _reserved_stdout()
    workload: Workload = import_module(f"benchmarks.{options.workload}").WORKLOAD
    case = _named(workload.cases, options.case)
    contender = _named(case.contenders, options.contender)
    size = case_size(case, options.quick)
    warm_size = size.shrunk(min(case.few_rows or WARM_ROWS, size.rows))
    report = _measure(contender, size, warm_size, out, options.answers)
    print(json.dumps(report), file=out, flush=True)


def case_size(case: Case, quick: bool) -> Size:
    """The size of a case, shrunk for a smoke test."""
    return case.size.shrunk(case.few_rows or QUICK_ROWS) if quick else case.size


def _measure(
    contender: Contender, size: Size, warm_size: Size, out: IO[str], answers_path: Path | None
) -> dict[str, Any]:
    _bind_to_cpus(contender.threads)
    engine.STEPS_IN_PYTHON = 0  # the warm-up compiles whatever the call will need
    try:
        warm = contender.setup(warm_size, WARM_SEED)
    except ImportError as error:
        return {"absent": str(error)}
    warm.answers(warm.call())
    del warm
    gc.disable()  # while the input is made: collections over millions of new objects take longer than the work
    prepared = contender.setup(size, TIMED_SEED)
    gc.enable()
    gc.collect()
    _return_free_memory()
    anonymous = anonymous_bytes(os.getpid())
    print("begin", file=out, flush=True)
    cpu_start = time.process_time()
    start = time.perf_counter()
    result = prepared.call()
    seconds = time.perf_counter() - start
    cpu_seconds = time.process_time() - cpu_start
    anonymous_after = anonymous_bytes(os.getpid())
    answers = {name: np.asarray(values, np.float64) for name, values in prepared.answers(result).items()}
    if answers_path is not None:
        np.savez(answers_path, **answers)  # type: ignore[arg-type]
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "anonymous_bytes": anonymous,
        "anonymous_bytes_after": anonymous_after,
        "quantities": dict(prepared.quantities(result)),
    }


def anonymous_bytes(pid: int) -> int:
    """Resident memory of a process that is no file's: what it allocated; 0 where /proc does not tell."""
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _bind_to_cpus(n_cpus: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, available[-n_cpus:])


def _return_free_memory() -> None:
    """Gives freed heap back to the system, or the call would fill it again without any growth to be seen."""
    with suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _reserved_stdout() -> IO[str]:
    """The standard output for our lines alone; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return out


def _named(choices: tuple[Any, ...], name: str) -> Any:
    for choice in choices:
        if choice.name == name:
            return choice
    sys.exit(f"{name!r} is none of {[choice.name for choice in choices]}")


if __name__ == "__main__":
    main()
