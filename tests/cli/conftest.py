"""Files of three queries that are small enough to score by hand, and the command line in this process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from metrics_core.cli import main

if TYPE_CHECKING:
    from pathlib import Path

QRELS = """\
q1 0 a 2
q1 0 b 0
q1 0 c 1
q2 0 d 1
q10 0 e 1
"""
FIRST = """\
q1 Q0 c 1 0.9 first
q1 Q0 a 2 0.8 first
q1 Q0 x 3 0.7 first
q2 Q0 x 1 0.5 first
q2 Q0 d 2 0.4 first
"""
SECOND = """\
q1 Q0 x 1 2 second
q1 Q0 a 2 2 second
q2 Q0 d 1 1 second
q10 Q0 e 1 1 second
"""


@pytest.fixture
def cli(run_main):
    return partial(run_main, main)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where qrels.txt, first.run (which lacks q10) and second.run (whose q1 is a tie) are, as the working directory."""
    for name, text in (("qrels.txt", QRELS), ("first.run", FIRST), ("second.run", SECOND)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path
