"""What tests of judges share: retries without waiting, and skipping where the extra is not installed."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def retries_without_waiting() -> Iterator[None]:
    """Back-off takes no time; how often is tried stays as configured. A server's Retry-After is waited for."""
    for package in ("openai", "stamina"):
        pytest.importorskip(package, reason="needs the extra: pip install 'metrics-core[judges]'")
    import stamina

    with stamina.set_testing(True, attempts=1_000, cap=True):
        yield
