"""Markdown tables from the JSON of a run.

`python -m benchmarks.table [FOLDER]` prints the README's, one line a workload; with `--all`, that of RESULTS.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, gate_line
from benchmarks.suite import WORKLOADS
from benchmarks.workload import OURS


def summary(folder: Path) -> str:
    """A line for each workload whose results lie in a folder: its first case, and how many of its gates are met.

    Raises:
        FileNotFoundError: there are none.
    """
    reports = _reports(folder)
    lines = [
        "| input | case | ms | others: their time over ours | gates met |",
        "|---|---|--:|---|--:|",
        *map(_line, reports),
    ]
    return "\n".join([*lines, "", _environments(reports)])


def table(folder: Path) -> str:
    """All cases and contenders of the results in a folder, and the gates that were missed.

    Raises:
        FileNotFoundError: there are none.
    """
    reports = _reports(folder)
    lines = [
        "| input | case | ours | ms | growth, MB | others: their time over ours |",
        "|---|---|---|--:|--:|---|",
        *(line for report in reports for line in _rows(report)),
        "",
        *(line for report in reports for line in _missed(report)),
        "",
        _environments(reports),
    ]
    return "\n".join(lines)


def _reports(folder: Path) -> list[dict[str, Any]]:
    paths = [path for workload in WORKLOADS if (path := folder / f"{workload.name}.json").exists()]
    if not paths:
        raise FileNotFoundError(f"no results in {folder}; run python -m benchmarks first")
    return [json.loads(path.read_text()) for path in paths]


def _environments(reports: Sequence[Mapping[str, Any]]) -> str:
    environments = {_environment(report) for report in reports}
    versions = {name: found for report in reports for name, found in report["environment"]["versions"].items()}
    return f"{'; '.join(sorted(environments))}; {', '.join(f'{name} {found}' for name, found in versions.items())}."


def _environment(report: Mapping[str, Any]) -> str:
    environment = report["environment"]
    quick = ", quick: times mean nothing" if report["quick"] else ""
    return f"{environment['cpu']}, {environment['cpus']} CPUs, Python {environment['python']}{quick}"


def _line(report: Mapping[str, Any]) -> str:
    case = report["cases"][0]
    seconds = {name: found["seconds"] for name, found in _measured(case).items()}
    ours = next(time for name, time in seconds.items() if name.startswith(OURS))
    answered = {name for name, metrics in case["answers_compared"].items() if metrics} or seconds.keys()
    others = {name: time for name, time in seconds.items() if name in answered and not name.startswith(OURS)}
    over_ours = ", ".join(f"{other} {time / ours:.2f}" for other, time in others.items())
    gates = [gate for each in report["cases"] for gate in each["gates"] if gate.get("met") is not None]
    met = f"{sum(gate['met'] for gate in gates)} of {len(gates)}"
    return f"| {report['title']} | {case['name']} | {ours * 1e3:,.1f} | {over_ours} | {met} |"


def _measured(case: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found["quantities"] for name, found in case["contenders"].items() if "absent" not in found}


def _rows(report: Mapping[str, Any]) -> Iterator[str]:
    title = report["title"]
    for case in report["cases"]:
        name, measured = case["name"], _measured(case)
        others = {name: found["seconds"] for name, found in measured.items() if not name.startswith(OURS)}
        for contender in (name for name in measured if name not in others):
            seconds, growth = measured[contender]["seconds"], measured[contender]["growth_mb"]
            over_ours = ", ".join(f"{other} {time / seconds:.2f}" for other, time in others.items())
            what = contender.removeprefix(OURS).strip(", ")
            yield f"| {title} | {name} | {what} | {seconds * 1e3:,.1f} | {growth:,.0f} | {over_ours} |"
            title = name = ""


def _missed(report: Mapping[str, Any]) -> Iterator[str]:
    for case in report["cases"]:
        for gate in case["gates"]:
            if gate.get("met") is False:
                yield f"- {report['workload']}, {case['name']}: {gate_line(gate)}"
        if not case["sound"]:
            failed = [name for name, found in case["contenders"].items() if "failed" in found]
            yield f"- {report['workload']}, {case['name']}: FAILED: {case.get('error') or ', '.join(failed)}"


if __name__ == "__main__":
    folders = [Path(each) for each in sys.argv[1:] if each != "--all"]
    print((table if "--all" in sys.argv else summary)(folders[0] if folders else RESULTS))
