"""What tests of judges share: retries without waiting, and no progress bars."""

from collections.abc import Iterator

import pytest

stamina = pytest.importorskip("stamina", reason="needs the extra: pip install 'metrics-core[judges]'")
pytest.importorskip("openai", reason="needs the extra: pip install 'metrics-core[judges]'")


@pytest.fixture(autouse=True)
def retries_without_waiting() -> Iterator[None]:
    """Back-off takes no time; how often is tried stays as configured. A server's Retry-After is waited for."""
    with stamina.set_testing(True, attempts=1_000, cap=True):
        yield
