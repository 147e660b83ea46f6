from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.ledger import UNITS, units
from sfumato.accounting.windows import WindowLedger, affordable, whole_units
from sfumato.errors import BudgetError, ConfigurationError
from sfumato.streams.window.window_fleet import Ledgers


def asked(window: int, prices: tuple[float, ...]) -> list[int]:
    """Return what a device spends in each period, asked for these prices one after the other."""
    ledger = WindowLedger(window, 1.0)
    spent = []
    for period, price in enumerate(prices, 1):
        fits = price > 0 and ledger.affords(period, price)
        if fits:
            ledger = ledger.paid(period, price)
        spent.append(units(price) if fits else 0)
    return spent


def fullest(window: int, spent: list[int]) -> int:
    return max(sum(spent[start : start + window]) for start in range(len(spent)))


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_no_window_of_any_sequence_of_questions_holds_more_than_the_budget(window: int) -> None:
    for prices in product((0.0, 0.3, 0.5, 1.0), repeat=window + 2):
        assert fullest(window, asked(window, prices)) <= UNITS


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_what_is_refused_would_have_been_too_much_then_and_there(window: int) -> None:
    for prices in product((0.3, 0.5, 1.0), repeat=window + 2):
        spent = asked(window, prices)
        for place, price in enumerate(prices):
            if not spent[place]:
                before = sum(spent[max(0, place - window + 1) : place])
                assert before + units(price) > UNITS


def test_the_whole_budget_is_free_again_after_exactly_w_periods() -> None:
    ledger = WindowLedger(5, 1.0).paid(3, 1.0)
    assert [ledger.affords(period, 1.0) for period in range(3, 10)] == [False] * 5 + [True] * 2


def test_several_questions_of_one_period_add_up() -> None:
    ledger = WindowLedger(2, 1.0).paid(1, 0.5).paid(1, 0.5)
    assert ledger.spent == ((1, UNITS),)
    with pytest.raises(BudgetError, match=r"period 2 is asked for epsilon 0.25; 0 of 1 is left"):
        ledger.paid(2, 0.25)


def test_time_only_goes_forward() -> None:
    ledger = WindowLedger(2, 1.0).at(9)
    with pytest.raises(BudgetError, match="period is 8; it was 9 before, and periods only go"):
        ledger.affords(8, 0.1)


@pytest.mark.parametrize("window", [0, -1, 1.5, True, "7", 1 << 20])
def test_a_window_is_a_positive_whole_number(window: object) -> None:
    with pytest.raises(ConfigurationError, match=r"window is .*; a whole number in 1..16384"):
        WindowLedger(window, 1.0)  # type: ignore[arg-type]


@given(st.integers(1, 20 * UNITS))
def test_what_is_affordable_costs_what_was_given(price: int) -> None:
    assert units(affordable(price)) == price
    assert units(np.nextafter(affordable(price), np.inf)) >= price


@given(st.floats(1e-6, 20.0))
def test_a_limit_never_holds_more_than_was_said(epsilon: float) -> None:
    assert affordable(whole_units(epsilon)) <= epsilon


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 3), st.floats(1e-6, 1.2), st.integers(0, 255)), max_size=60),
)
def test_many_ledgers_at_once_are_each_the_ledger_of_a_device(
    window: int, questions: list[tuple[int, float, int]]
) -> None:
    """Each question goes to a subset of eight devices, after a pause of 0..3 periods."""
    many = Ledgers(8, window, 1.0)
    each = [WindowLedger(window, 1.0) for _ in range(8)]
    period = 1
    for pause, epsilon, chosen in questions:
        period += pause
        price = units(epsilon)
        afford = many.affording(period, price)
        assert afford.tolist() == [i for i in range(8) if each[i].affords(period, epsilon)]
        who = afford[[chosen >> i & 1 == 1 for i in afford]]
        many.pay(period, who, price)
        for device in who:
            each[device] = each[device].paid(period, epsilon)
