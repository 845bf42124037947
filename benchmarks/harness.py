"""Runs workloads: every contender in fresh processes, in turn; answers are compared before a time is shown."""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import anonymous_bytes, case_size
from benchmarks.workload import OURS, Case, Contender, Gate, Workload
from metrics_core import __version__

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
SAMPLE_SECONDS = 0.005  # between two looks at a contender's memory: 0.3% of one CPU
WORK_DIRECTORY = "METRICS_CORE_BENCHMARKS"  # environment: a folder for generated files, shared by the contenders
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
METHOD = (
    "Each contender in fresh processes on equal inputs, warmed on other data, in turn; seconds are the median of the "
    "rounds; gc enabled and collected before the clock; growth_mb is the largest growth of anonymous resident memory "
    f"during the call, sampled every {SAMPLE_SECONDS * 1e3:.0f} ms from outside. Every contender is bound to the CPUs "
    "stated, whether it makes use of them or not. Answers agree, to 1e-9 a query or the tolerance of the case, before "
    "a time counts."
)


class AnswersDifferError(RuntimeError):
    """Contenders gave different answers to the same question; their times mean nothing."""


def run_command(workloads: Sequence[Workload], arguments: list[str] | None = None) -> int:
    """The command line of one or all workloads.

    Returns:
        The exit status: 1 if a contender failed, answers differ or ours is absent. A missed gate is reported in the
        output and the JSON, and is no failure of the run.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=METHOD)
    if len(workloads) > 1:
        parser.add_argument("workload", nargs="*", help=f"of {', '.join(w.name for w in workloads)}; default: all")
    parser.add_argument("--quick", action="store_true", help="a smoke test on small inputs, one round; judges no gate")
    parser.add_argument("--rounds", type=int, help="processes a contender, instead of each case's own number")
    parser.add_argument("--case", action="append", help="only the cases whose name contains this text")
    parser.add_argument("--out", type=Path, help=f"folder of the JSON files; default: {RESULTS}; none for parts")
    options = parser.parse_args(arguments)
    selected = list(workloads)
    if names := getattr(options, "workload", []):
        by_name = {workload.name: workload for workload in workloads}
        if unknown := [name for name in names if name not in by_name]:
            parser.error(f"no workload is named {unknown[0]!r}; there are {', '.join(by_name)}")
        selected = [by_name[name] for name in names]
    in_part = options.quick or options.case or options.rounds
    out: Path | None = options.out or (None if in_part else RESULTS)
    sound = True
    for workload in selected:
        report = run_workload(workload, quick=options.quick, case_parts=options.case or [""], rounds=options.rounds)
        sound &= all(case["sound"] for case in report["cases"])
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{workload.name}.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0 if sound else 1


def run_workload(
    workload: Workload, *, quick: bool = False, case_parts: Sequence[str] = ("",), rounds: int | None = None
) -> dict[str, Any]:
    """Runs the cases of a workload, prints a table of each, and returns the report that goes to its JSON file."""
    print(f"\n{workload.title}" + (" (quick: times mean nothing)" if quick else ""), flush=True)
    environment = _environment(workload)
    with tempfile.TemporaryDirectory(prefix="metrics-core-benchmarks-") as work:
        cases = [
            _run_case(workload, replace(case, rounds=rounds or (1 if quick else case.rounds)), Path(work), quick=quick)
            for case in workload.cases
            if any(part in case.name for part in case_parts) and (case.smoke or not quick)
        ]
    return {
        "workload": workload.name,
        "title": workload.title,
        "quick": quick,
        "method": METHOD,
        "environment": environment,
        "cases": cases,
    }


def _run_case(workload: Workload, case: Case, work: Path, *, quick: bool) -> dict[str, Any]:
    size = case_size(case, quick)
    report: dict[str, Any] = {
        "name": case.name,
        "size": {"queries": size.queries, "depth": size.depth, "judged": size.judged, "longest": size.longest},
        "rows": size.rows,
        "rounds": case.rounds,
        "tolerance": case.tolerance,
    }
    try:
        contenders, compared = _run_rounds(workload, case, work, quick=quick)
    except AnswersDifferError as error:
        report |= {"sound": False, "error": str(error), "contenders": {}, "gates": []}
        print(f"\n  {case.name}: {error}", flush=True)
        return report
    measured = {name: found["quantities"] for name, found in contenders.items() if "absent" not in found}
    _add_rates(case, contenders, size.rows)
    report |= {
        "sound": any(name.startswith(OURS) for name in measured)
        and not any("failed" in found for found in contenders.values()),
        "answers_compared": compared,
        "contenders": contenders,
        "gates": [_judged(gate, measured, quick) for gate in case.gates],
    }
    _print_case(report)
    return report


def _run_rounds(
    workload: Workload, case: Case, work: Path, *, quick: bool
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The contenders' measurements and, by contender, the metrics in which it agrees with those before it."""
    runs: dict[str, list[dict[str, Any]]] = {contender.name: [] for contender in case.contenders}
    reference: dict[str, np.ndarray[Any, Any]] = {}
    compared: dict[str, list[str]] = {}
    for turn in range(case.rounds):
        first = turn % len(case.contenders)  # nobody always comes first
        for contender in case.contenders[first:] + case.contenders[:first]:
            if runs[contender.name] and "absent" in runs[contender.name][-1]:
                continue
            answers_path = work / "answers.npz"
            command = [sys.executable, "-m", "benchmarks.measure", workload.name, case.name, contender.name]
            command += ["--answers", str(answers_path)] + ["--quick"] * quick
            run = _run_process(command, contender.threads, work)
            runs[contender.name].append(run)
            if "absent" not in run:
                with np.load(answers_path) as answers:
                    compared[contender.name] = _compare(contender.name, dict(answers), reference, case.tolerance)
    return {contender.name: _summary(contender, runs[contender.name]) for contender in case.contenders}, compared


def _run_process(command: list[str], threads: int, work: Path) -> dict[str, Any]:
    """What a contender's process reports, and how its memory grew."""
    environment = os.environ | {name: str(threads) for name in THREAD_VARIABLES}
    environment |= {WORK_DIRECTORY: str(work), "PYTHONHASHSEED": "0", "HAYSTACK_TELEMETRY_ENABLED": "False"}
    with (
        tempfile.TemporaryFile("w+") as messages,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=messages, text=True, bufsize=1
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        peak = 0
        if line == "begin\n":
            while not select.select([process.stdout], [], [], SAMPLE_SECONDS)[0]:
                peak = max(peak, anonymous_bytes(process.pid))
            line = process.stdout.readline()
        if process.wait() != 0:
            messages.seek(0)
            failure = messages.read().strip()
            return {"absent": failure.rpartition("\n")[2], "failed": failure}
    run: dict[str, Any] = json.loads(line)
    if "absent" not in run:
        run["growth_mb"] = (max(peak, run["anonymous_bytes_after"]) - run["anonymous_bytes"]) / 1e6
    return run


def _compare(
    name: str,
    answers: dict[str, np.ndarray[Any, Any]],
    reference: dict[str, np.ndarray[Any, Any]],
    tolerance: float,
) -> list[str]:
    """Holds answers against those seen before, per query where both are, else by the mean."""
    compared = []
    for metric, values in answers.items():
        known = reference.setdefault(metric, values)
        if known is values:
            continue
        if known.ndim and values.ndim and known.shape != values.shape:
            raise AnswersDifferError(f"answers differ: {name} has {values.shape} values of {metric}, not {known.shape}")
        if known.ndim != values.ndim:
            known, found = np.atleast_1d(known.mean()), np.atleast_1d(values.mean())
        else:
            known, found = np.atleast_1d(known), np.atleast_1d(values)
        equal = np.abs(known - found) <= tolerance  # NaN is a difference, too
        if not equal.all():
            query = int(np.argmin(equal))
            raise AnswersDifferError(
                f"answers differ: {metric} of query {query} is {found[query]!r} from {name}, {known[query]!r} from "
                f"others; {np.count_nonzero(~equal)} of {equal.size} differ"
            )
        compared.append(metric)
    return compared


def _summary(contender: Contender, runs: list[dict[str, Any]]) -> dict[str, Any]:
    if "absent" in runs[-1]:
        return runs[-1]
    quantities = {name: median(run["quantities"][name] for run in runs) for name in runs[0]["quantities"]}
    quantities["seconds"] = median(run["seconds"] for run in runs)
    quantities["cpu_seconds"] = median(run["cpu_seconds"] for run in runs)
    quantities["growth_mb"] = max(run["growth_mb"] for run in runs)
    return {"threads": contender.threads, "rounds": [run["seconds"] for run in runs], "quantities": quantities}


def _add_rates(case: Case, contenders: dict[str, Any], rows: int) -> None:
    """Adds rows a second, and the time as a multiple of our first contender's."""
    present = {name: found for name, found in contenders.items() if "absent" not in found}
    ours = next((found for name, found in present.items() if name.startswith(OURS)), None)
    reading = {contender.name for contender in case.contenders if contender.reads_rows}
    for name, found in present.items():
        seconds = found["quantities"]["seconds"]
        found["rows_per_second"] = rows / seconds if name in reading else None
        found["times_ours"] = seconds / ours["quantities"]["seconds"] if ours else None


def _judged(gate: Gate, measured: Mapping[str, Mapping[str, float]], quick: bool) -> dict[str, Any]:
    judged = {"text": gate.text, "gate": gate.gate, "aim": gate.aim, "at_least": gate.at_least}
    try:
        value = gate.value(measured)
    except KeyError as error:
        return judged | {"value": None, "absent": error.args[0]}
    if quick:
        return judged | {"value": value}
    return judged | {"value": value, "met": gate.met(value, gate.gate), "aim_met": gate.met(value, gate.aim)}


def _print_case(report: dict[str, Any]) -> None:
    print(f"\n  {report['name']}: {report['rows']:,} rows, {report['rounds']} rounds")
    for name, found in report["contenders"].items():
        if "absent" in found:
            print(f"    {name:<42} {'FAILED' if 'failed' in found else 'absent'}: {found['absent']}")
            continue
        quantities = found["quantities"]
        times_ours = f"{found['times_ours']:.2f} x" if found["times_ours"] else ""
        rate = f"{found['rows_per_second'] / 1e6:.2f} M/s" if found["rows_per_second"] else ""
        print(
            f"    {name:<42}{quantities['seconds'] * 1e3:10.1f} ms (CPU {quantities['cpu_seconds'] * 1e3:8.1f})"
            f"{times_ours:>10}{rate:>13}{quantities['growth_mb']:8.0f} MB"
            f"  {found['threads']} CPU{'s' * (found['threads'] > 1)}"
        )
    for gate in report["gates"]:
        print(f"    {gate_line(gate)}")
    sys.stdout.flush()


def gate_line(gate: Mapping[str, Any]) -> str:
    """A gate of a report as a line of text; a missed one says so."""
    if gate["value"] is None:
        return f"not measured ({gate['absent']} is absent): {gate['text']}"
    bound = "at least" if gate["at_least"] else "at most"
    limits = [f"{kind} {bound} {gate[kind]:g}" for kind in ("gate", "aim") if gate[kind] is not None]
    verdict = {True: "met: ", False: "MISSED: ", None: ""}[gate.get("met")]
    return f"{verdict}{gate['text']}: {gate['value']:.3g}" + (f" ({', '.join(limits)})" if limits else "")


def _environment(workload: Workload) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "versions": {OURS: __version__} | {name: _version(name) for name in ("numpy", "numba", *workload.packages)},
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def work_directory() -> Path:
    """Where contenders put generated files: the run's own folder, or a lasting one for a contender run by hand."""
    path = Path(os.environ.get(WORK_DIRECTORY) or Path(tempfile.gettempdir()) / "metrics-core-benchmarks")
    path.mkdir(parents=True, exist_ok=True)
    return path
