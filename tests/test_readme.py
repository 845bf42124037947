"""The README's examples print what it says, and its table is the one that the benchmarks wrote."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from benchmarks.harness import RESULTS
from benchmarks.table import summary, table
from metrics_core.cli import main

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.fixture
def demo_files(tmp_path, monkeypatch):
    with as_file(files("metrics_core") / "demo") as folder:
        shutil.copytree(folder, tmp_path / "demo")
    monkeypatch.chdir(tmp_path / "demo")


@pytest.mark.usefixtures("demo_files", "own_registry")
def test_python_examples():
    found = doctest.testfile(str(README), module_relative=False)
    assert found.attempted > 20
    assert found.failed == 0


@pytest.mark.usefixtures("demo_files")
def test_shell_example(capsys):
    example = re.compile(r"^\$ metrics-core (.+)\n((?:.*\n)+?)```", re.MULTILINE)
    ((command, printed),) = example.findall(README.read_text("utf-8"))
    assert main([*shlex.split(command), "--format", "table"]) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.strip("\n").splitlines()] == printed.splitlines()


def test_tables():
    shown = README.read_text("utf-8").split("<!-- python -m benchmarks.table -->\n")[1].split("<!-- end -->")[0]
    assert shown.strip() == summary(RESULTS)
    shown = (RESULTS.parent / "RESULTS.md").read_text("utf-8").split("<!-- python -m benchmarks.table --all -->\n")[1]
    assert shown.strip() == table(RESULTS)
