"""What tests of similarity share: skipping where the extra is not installed."""

import pytest


@pytest.fixture(autouse=True)
def installed(needs_sas: None) -> None:
    """Each of these tests needs the extra."""
