"""The guide to judges prints what it says."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[1] / "recipes/judges.md"


def test_its_examples(tmp_path, monkeypatch):
    for package in ("pydantic", "stamina", "scipy"):
        pytest.importorskip(package, reason="needs the extra: pip install 'metrics-core[judges]'")
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(GUIDE), module_relative=False)
    assert found.attempted > 20
    assert found.failed == 0


def test_its_spec_is_one(tmp_path, run_main):
    pytest.importorskip("yaml", reason="needs the extra: pip install 'metrics-core[judges]'")
    from llm_judges.cli import main

    (spec,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "rate.yaml").write_text(spec)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "why?", "answer": "so"}))
    shown = run_main(main, "custom", tmp_path / "rows.jsonl", "--spec", tmp_path / "rate.yaml", "--dry-run")
    assert shown.code == 0
    assert '{"questions": "why?", "answers": "so"}' in shown.out
