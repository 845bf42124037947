"""Settings of the whole suite: Hypothesis profiles, and no telemetry from the peers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from metrics_core.metrics import names

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

# Without a deadline: the first example of a test may compile a kernel.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real inputs beside the checkout; it is private, so tests that need it skip where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the folder of real inputs, shared/ beside the checkout, is absent")
    return SHARED


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics that the test registers are forgotten after it."""
    for table in ("_registered", "_by_name", "_spellings"):
        monkeypatch.setattr(names, table, dict(getattr(names, table)))


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_main(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command line's `main` with arguments in this process, without the terminal's settings."""
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(main: Callable[[list[str]], int], *arguments: object) -> Result:
        code = main([str(each) for each in arguments])
        return Result(code, *capsys.readouterr())

    return run
