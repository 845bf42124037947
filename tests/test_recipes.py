"""The guides in tests/recipes run, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECIPES = sorted(path for path in (ROOT / "tests/recipes").glob("*.py") if not path.stem.startswith("test_"))
NEEDS = {"offline_run": "haystack", "haystack_dropin": "haystack", "own_judge": "stamina"}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipe(recipe, tmp_path):
    needed = NEEDS.get(recipe.stem)
    if needed and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    done = subprocess.run(
        [sys.executable, str(recipe)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HAYSTACK_TELEMETRY_ENABLED": "False"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readme_links_all():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [path.name for path in RECIPES if f"(tests/recipes/{path.name})" not in readme] == []
