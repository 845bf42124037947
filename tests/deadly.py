"""A metric that kills the process of the first worker that comes to query 33, once: for tests of lost workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from metrics_core import Metric

FLAG = "METRICS_CORE_TESTS_DEADLY"  # the variable with the path of a file that says that a worker died
MARK = 77.0  # the grade that kills


def kernel(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    flag = os.environ.get(FLAG)
    if flag and ideal.size and (ideal == MARK).any() and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    out[:] = n_retrieved


DEADLY = Metric("Deadly", kernel, definition="the length of the ranking", compiled=False)
