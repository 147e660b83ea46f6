"""The ledger counts whole units, is never overdrawn and pays nothing back."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.ledger import UNITS, Ledger, units
from sfumato.errors import BudgetError, ConfigurationError


@given(st.floats(1e-6, 20.0))
def test_units_never_understate(epsilon: float) -> None:
    assert Fraction(units(epsilon), UNITS) >= Fraction(epsilon)
    assert Fraction(units(epsilon) - 1, UNITS) < Fraction(epsilon)


@given(st.lists(st.floats(1e-6, 2.0), max_size=12), st.floats(0.0, 5.0))
def test_no_sequence_of_tasks_spends_more_than_the_limit(asked: list[float], limit: float) -> None:
    ledger = Ledger(limit)
    granted = Fraction(0)
    for number, epsilon in enumerate(asked):
        try:
            ledger = ledger.paid(bytes([number]), epsilon)
        except BudgetError:
            continue
        granted += Fraction(epsilon)
    assert granted <= Fraction(limit)


def test_a_task_is_paid_once() -> None:
    ledger = Ledger(1.0).paid(b"a", 1.0)
    assert ledger.paid(b"a", 1.0) is ledger
    assert ledger.left == 0.0


@given(st.floats(1e-6, 20.0))
def test_a_limit_is_enough_for_one_task_that_asks_for_it(epsilon: float) -> None:
    ledger = Ledger(epsilon).paid(b"a", epsilon)
    assert ledger.left == 0.0
    with pytest.raises(BudgetError, match="0 of the limit of"):
        ledger.paid(b"b", 1e-6)


def test_what_is_left_is_told_to_the_last_unit() -> None:
    with pytest.raises(BudgetError, match=r"asks for epsilon 0.1; 0.099999 of the limit of 0.2"):
        Ledger(0.2).paid(b"a", 0.1).paid(b"b", 0.1)


def test_a_limit_is_a_number() -> None:
    with pytest.raises(ConfigurationError, match="limit is -1"):
        Ledger(-1)
