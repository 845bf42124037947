"""As a process: exit codes, pipes, and what is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from metrics_core import __version__

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: str, cwd: Path | None = None, **options) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-m", "metrics_core", *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def test_version():
    result = _run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"metrics-core {__version__}\n", "")


def test_a_run_on_standard_input(folder):
    result = _run("evaluate", "qrels.txt", "-", "-m", "RR", cwd=folder, input=(folder / "first.run").read_text())
    assert (result.returncode, result.stdout) == (0, "metric\tstdin\nRR\t0.5\n")
    assert result.stderr == "metrics-core: stdin lacks query q10: scored as empty rankings (missing=zero)\n"


def test_an_error_is_one_line_and_2(folder):
    result = _run("evaluate", "qrels.txt", "absent.run", cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "metrics-core: error: absent.run: No such file or directory\n"


def test_a_reader_that_leaves_gets_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    result = _run("metrics", stdout=writing)
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line_and_2():
    with Path("/dev/full").open("w") as full:
        result = _run("metrics", stdout=full)
    assert result.returncode == 2
    assert result.stderr == "metrics-core: error: standard output: No space left on device\n"


def test_help_imports_neither_numpy_nor_rich():
    code = (
        "import sys; from metrics_core.cli import main; main(['evaluate', '--help']); "
        "sys.exit(', '.join({'numpy', 'numba', 'rich', 'scipy'} & set(sys.modules)) or None)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_rich_is_imported_for_tables_only(folder):
    code = (
        "import sys; from metrics_core.cli import main; main(['evaluate', 'qrels.txt', 'second.run']); "
        "sys.exit(', '.join({'rich'} & set(sys.modules)) or None)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
