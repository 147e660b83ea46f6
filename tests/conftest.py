"""What all tests share: examples that stay the same, and kinds of tests that may be left out."""

from __future__ import annotations

import pytest
from hypothesis import settings
from tests.kinds import kinds_of

# A fresh draw in every run would fail on somebody else's machine; a deadline on a busy one.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose kind can be read from their code."""
    for item in items:
        for kind in kinds_of(item):
            item.add_marker(kind)
