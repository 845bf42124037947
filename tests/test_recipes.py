"""The guides in tests/recipes run: scripts in a process of their own, and pages; both print what they say."""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "tests/recipes"
SCRIPTS = sorted(RECIPES.glob("*.py"))
NEEDS = {
    "offline_run": "haystack",
    "haystack_dropin": "haystack",
    "own_judge": "stamina",
    "large_datasets": "pyarrow",
    "spark": "pyspark",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    needed = NEEDS.get(script.stem)
    if needed and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    if needed == "pyspark" and which("java") is None:
        pytest.skip("Spark needs Java")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HAYSTACK_TELEMETRY_ENABLED": "False"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    _, says, printed = (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("It prints:\n\n")
    if says:
        assert done.stdout == f"{dedent(printed)}\n"


def test_judges(tmp_path, monkeypatch):
    for package in ("pydantic", "stamina", "scipy"):
        pytest.importorskip(package, reason="needs the extra: pip install 'metrics-core[judges]'")
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(RECIPES / "judges.md"), module_relative=False)
    assert found.attempted > 20
    assert found.failed == 0


def test_the_spec_of_the_judges_guide_is_one(tmp_path, run_main):
    pytest.importorskip("yaml", reason="needs the extra: pip install 'metrics-core[judges]'")
    from llm_judges.cli import main

    (spec,) = re.findall(r"```yaml\n(.*?)```", (RECIPES / "judges.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "rate.yaml").write_text(spec)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "why?", "answer": "so"}))
    shown = run_main(main, "custom", tmp_path / "rows.jsonl", "--spec", tmp_path / "rate.yaml", "--dry-run")
    assert shown.code == 0
    assert '{"questions": "why?", "answers": "so"}' in shown.out


def test_the_readme_links_all():
    readme = (ROOT / "README.md").read_text("utf-8")
    guides = [path.name for path in (*SCRIPTS, *RECIPES.glob("*.md"))]
    assert [name for name in guides if f"(tests/recipes/{name})" not in readme] == []
