"""Every check, on every example, of every mechanism in the catalogue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato import catalog
from sfumato.checks import MECHANISM_CHECKS
from sfumato.core import Mechanism

EXAMPLES = [example for name in catalog.names() for example in catalog.find(name).examples()]
STATISTICS = pytest.mark.statistics
MARKED = [
    pytest.param(
        example, marks=() if example.name in ("grr", "stochastic_rounding") else STATISTICS
    )
    for example in EXAMPLES
]
"""Two mechanisms are small enough to be checked in every run."""


# All checks of one example follow each other, so that its laws are listed once.
@pytest.mark.parametrize("check", MECHANISM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("mechanism", MARKED, ids=str)
def test_every_example_passes_every_check(
    check: Callable[[Mechanism], None], mechanism: Mechanism
) -> None:
    check(mechanism)


def test_the_catalogue_rebuilds_every_example() -> None:
    for example in EXAMPLES:
        assert catalog.from_configuration(example.configuration()) == example


def test_every_mechanism_has_an_example() -> None:
    assert {example.name for example in EXAMPLES} == set(catalog.names())
