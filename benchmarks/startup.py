"""Processes that start, work a little and end: the import, the command on small files, and the first scores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.harness import ROOT, run_command, work_directory
from benchmarks.trec_files import qrels_and_run_files
from benchmarks.workload import (
    Answers,
    Case,
    Contender,
    Gate,
    Prepared,
    Quantities,
    Size,
    Workload,
    times_as_fast,
    times_the_time,
)

NUMPY_IMPORT, OUR_IMPORT = "import numpy", "metrics-core, import metrics_core"
EVALUATE_IMPORT = "metrics-core, from metrics_core import evaluate"  # what the import puts off until it is needed
CACHED, UNCACHED = "metrics-core evaluate, disk cache", "metrics-core evaluate, no disk cache"
KERNEL = "numba, one trivial cached kernel"
FIRST, FIRST_PYTREC_EVAL, FIRST_RANX = "metrics-core", "pytrec_eval", "ranx"
# Dicts of dicts: 100 queries of ten documents.
FIRST_INPUT = (
    "qrels = {f'q{q:03}': {'d0': 1, f'd{q % 10}': 2} for q in range(100)}; "
    "run = {q: {f'd{d}': 10.0 - d for d in range(10)} for q in qrels}; "
)
# By contender: its package, and code that leaves the means in ndcg and rr.
FIRST_SCORES = {
    FIRST: (
        "metrics_core",
        "from metrics_core import evaluate; ndcg, rr = evaluate(qrels, run, ['nDCG', 'RR']).mean().values()",
    ),
    FIRST_PYTREC_EVAL: (
        "pytrec_eval",
        (
            "from pytrec_eval import RelevanceEvaluator as Evaluator; names = 'ndcg', 'recip_rank'; "
            "found = Evaluator(qrels, {*names}).evaluate(run).values(); "
            "ndcg, rr = (sum(each[name] for each in found) / len(found) for name in names)"
        ),
    ),
    FIRST_RANX: (
        "ranx",
        "from ranx import Qrels, Run, evaluate; ndcg, rr = evaluate(Qrels(qrels), Run(run), ['ndcg', 'mrr']).values()",
    ),
}
# In the form that the command prints.
FIRST_OUTPUT = "; print('metric\\tmean', f'nDCG\\t{ndcg}', f'RR\\t{rr}', sep='\\n')"


def _run(command: list[str], cache: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise RuntimeError(f"{command} exits with {finished.returncode}: {finished.stderr[-2000:]}")
    return finished.stdout


def statement(_size: Size, _seed: int, code: str) -> Prepared:
    """A process that runs a line of Python and ends."""
    return Prepared(lambda: _run([sys.executable, "-c", code], work_directory()))


def command(size: Size, seed: int, *, cached: bool) -> Prepared:
    """The command, started as its console script does; its kernels compiled at the warm-up, or in the process."""
    qrels, run = qrels_and_run_files(size, seed)
    cache = work_directory() / "numba-cache" if cached else Path(tempfile.mkdtemp(dir=work_directory()))
    script = "import sys; from metrics_core.cli import main; sys.exit(main())"
    arguments = [sys.executable, "-c", script, "evaluate", qrels, run, "-m", "nDCG@10", "-m", "RR@10"]
    return Prepared(lambda: _run(arguments, cache), _answers)


def _answers(printed: str) -> Answers:
    """The means, by metric, of the command's TSV: a header, then a row a metric whose last column is the value."""
    rows = (line.split("\t") for line in printed.splitlines()[1:])
    return {row[0]: float(row[-1]) for row in rows if len(row) > 1}


def trivial_kernel(_size: Size, _seed: int) -> Prepared:
    """The import of numba and a kernel from its cache, which the warm-up fills."""
    if find_spec("numba") is None:
        raise ImportError("No module named 'numba'")
    script = str(Path(__file__).with_name("trivial_kernel.py"))
    return Prepared(lambda: _run([sys.executable, script], work_directory() / "numba-cache"))


def first_scores(_size: Size, _seed: int, package: str, code: str) -> Prepared:
    """A process that imports a package and scores little with it; where it compiles, without a disk cache."""
    if find_spec(package) is None:
        raise ImportError(f"No module named {package!r}")
    command = [sys.executable, "-c", FIRST_INPUT + code + FIRST_OUTPUT]
    return Prepared(lambda: _run(command, Path(tempfile.mkdtemp(dir=work_directory()))), _answers)


def _over_numpy(ours: str, gate: float | None = None, aim: float | None = None) -> Gate:
    def milliseconds(measured: Mapping[str, Quantities]) -> float:
        return (measured[ours]["seconds"] - measured[NUMPY_IMPORT]["seconds"]) * 1e3

    return Gate(f"{ours}: over import numpy, ms", milliseconds, gate, aim, at_least=False)


WORKLOAD = Workload(
    "startup",
    "Processes: the import, the command on 100 queries x 100, the first scores",
    (
        Case(
            "import",
            Size(1, 1, 1),
            (
                Contender(OUR_IMPORT, partial(statement, code="import metrics_core"), reads_rows=False),
                Contender(
                    EVALUATE_IMPORT, partial(statement, code="from metrics_core import evaluate"), reads_rows=False
                ),
                Contender(NUMPY_IMPORT, partial(statement, code="import numpy"), reads_rows=False),
            ),
            (
                _over_numpy(OUR_IMPORT, gate=30, aim=10),
                _over_numpy(EVALUATE_IMPORT),
            ),
            rounds=15,
        ),
        Case(
            "command",
            Size(100, 100, 1),
            (
                Contender(CACHED, partial(command, cached=True), reads_rows=False),
                Contender(UNCACHED, partial(command, cached=False), reads_rows=False),
                Contender(KERNEL, trivial_kernel, reads_rows=False),
            ),
            (
                times_the_time(CACHED, KERNEL, gate=1.8, aim=1.3),
                times_the_time(UNCACHED, KERNEL, gate=5),
            ),
            rounds=9,
        ),
        Case(
            "first scores of a process, 100 x 10, no disk cache",
            Size(100, 10, 2),
            tuple(
                Contender(name, partial(first_scores, package=package, code=code), reads_rows=False)
                for name, (package, code) in FIRST_SCORES.items()
            ),
            (times_as_fast(FIRST, FIRST_PYTREC_EVAL), times_as_fast(FIRST, FIRST_RANX)),
            rounds=5,
        ),
    ),
    ("click", "pytrec_eval-terrier", "ranx"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
