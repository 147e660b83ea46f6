"""Every check, on every example, of every mechanism in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato import catalog
from sfumato.checks import MECHANISM_CHECKS
from sfumato.core import Mechanism

EXAMPLES = [example for name in catalog.names() for example in catalog.find(name).examples()]
STATISTICS = pytest.mark.statistics
SMALL = ("grr", "stochastic_rounding")
"""Two mechanisms are small enough to be checked in every run."""


LONG = ("large_sizes_follow_the_law",)
"""The checks that take long, and are left to the slow suite for rivals."""
TWINS = ("pckv_agrr", "topl_ternary")
"""Rivals with the law and the code of another one."""


def _marks(example: Mechanism, check: Callable[[Mechanism], None]) -> Any:
    if example.role == "rival" and (
        example != next(iter(type(example).examples()))
        or example.name in TWINS
        or check.__name__ in LONG
    ):
        return pytest.mark.slow
    return () if example.name in SMALL else STATISTICS


# All checks of one example follow each other, so that its laws are listed once.
@pytest.mark.parametrize(
    ("mechanism", "check"),
    [
        pytest.param(each, check, marks=_marks(each, check), id=f"{each}-{check.__name__}")
        for each in EXAMPLES
        for check in MECHANISM_CHECKS
    ],
)
def test_every_example_passes_every_check(
    check: Callable[[Mechanism], None], mechanism: Mechanism
) -> None:
    check(mechanism)


def test_the_catalogue_rebuilds_every_example() -> None:
    for example in EXAMPLES:
        assert catalog.from_configuration(example.configuration()) == example


def test_every_mechanism_has_an_example() -> None:
    assert {example.name for example in EXAMPLES} == set(catalog.names())
