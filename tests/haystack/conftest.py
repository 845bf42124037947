"""What tests of the components share: no telemetry, and skipping where the extra is not installed."""

import os

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported


@pytest.fixture(autouse=True)
def needs_haystack(monkeypatch):
    for package in ("haystack", "stamina"):
        pytest.importorskip(package, reason="needs the extra: pip install 'metrics-core[haystack]'")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
