"""Prints the README's Markdown tables from the JSON of a run: `python -m benchmarks.table [FOLDER]`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, gate_line

ORDER = ("documents", "mappings", "trec_files", "arrays", "skew", "startup")


def tables(folder: Path) -> str:
    """The tables of all workloads whose results lie in a folder.

    Raises:
        FileNotFoundError: there are none.
    """
    paths = [path for name in ORDER if (path := folder / f"{name}.json").exists()]
    if not paths:
        raise FileNotFoundError(f"no results in {folder}; run python -m benchmarks first")
    return "\n".join(line for path in paths for line in _workload_lines(json.loads(path.read_text())))


def _workload_lines(report: Mapping[str, Any]) -> Iterator[str]:
    environment = report["environment"]
    versions = ", ".join(f"{name} {version or 'absent'}" for name, version in environment["versions"].items())
    yield f"**{report['title']}**" + (" (quick: times mean nothing)" if report["quick"] else "")
    yield ""
    yield "| case | contender | CPUs | time, ms | times ours | M rows/s | memory growth, MB |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for case in report["cases"]:
        yield from _case_rows(case)
    yield ""
    for case in report["cases"]:
        for gate in case["gates"]:
            yield f"- {case['name']}: {gate_line(gate)}"
        if not case["sound"]:
            failed = [name for name, found in case["contenders"].items() if "failed" in found]
            yield f"- {case['name']}: FAILED: {case.get('error') or ', '.join(failed) or 'ours is absent'}"
    yield ""
    yield f"{environment['cpu']}, {environment['cpus']} CPUs, Python {environment['python']}; {versions}."
    yield ""


def _case_rows(case: Mapping[str, Any]) -> Iterator[str]:
    name = case["name"]
    for contender, found in case["contenders"].items():
        if "absent" in found:
            yield f"| {name} | {contender} | | {'FAILED' if 'failed' in found else 'absent'} | | | |"
        else:
            quantities = found["quantities"]
            times_ours = f"{found['times_ours']:.2f}" if found["times_ours"] else ""
            rate = f"{found['rows_per_second'] / 1e6:.2f}" if found["rows_per_second"] else ""
            yield (
                f"| {name} | {contender} | {found['threads']} | {quantities['seconds'] * 1e3:,.1f} | {times_ours} "
                f"| {rate} | {quantities['growth_mb']:,.0f} |"
            )
        name = ""


if __name__ == "__main__":
    print(tables(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
