"""Prints the README's Markdown table from the JSON of a run: `python -m benchmarks.table [FOLDER]`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, gate_line
from benchmarks.suite import WORKLOADS
from benchmarks.workload import OURS


def table(folder: Path) -> str:
    """A table of all workloads whose results lie in a folder, and the gates that were missed.

    Raises:
        FileNotFoundError: there are none.
    """
    paths = [path for workload in WORKLOADS if (path := folder / f"{workload.name}.json").exists()]
    if not paths:
        raise FileNotFoundError(f"no results in {folder}; run python -m benchmarks first")
    reports = [json.loads(path.read_text()) for path in paths]
    environments = {_environment(report) for report in reports}
    versions = {name: found for report in reports for name, found in report["environment"]["versions"].items()}
    lines = [
        "| input | case | ours | ms | growth, MB | others: their time over ours |",
        "|---|---|---|--:|--:|---|",
        *(line for report in reports for line in _rows(report)),
        "",
        *(line for report in reports for line in _missed(report)),
        "",
        f"{'; '.join(sorted(environments))}; {', '.join(f'{name} {found}' for name, found in versions.items())}.",
    ]
    return "\n".join(lines)


def _environment(report: Mapping[str, Any]) -> str:
    environment = report["environment"]
    quick = ", quick: times mean nothing" if report["quick"] else ""
    return f"{environment['cpu']}, {environment['cpus']} CPUs, Python {environment['python']}{quick}"


def _rows(report: Mapping[str, Any]) -> Iterator[str]:
    title = report["title"]
    for case in report["cases"]:
        name = case["name"]
        measured = {name: found["quantities"] for name, found in case["contenders"].items() if "absent" not in found}
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
    print(table(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
