"""Outward rounding: every bound is on the right side, and close."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.exact import exp_above, exp_below, log_above, log_below

FINE = Context(prec=120)
WIDE = settings(max_examples=300)

rationals = st.builds(
    Fraction, st.integers(-(10**40), 10**40), st.integers(10**38, 10**40)
) | st.builds(
    lambda digit, places: Fraction(digit, 10**places), st.integers(-9, 9), st.integers(0, 70)
)
ratios = (
    st.builds(Fraction, st.integers(1, 1 << 200), st.integers(1, 1 << 200))
    | st.builds(lambda n, k: Fraction(n + k, n), st.integers(1 << 20, 1 << 128), st.integers(1, 3))
    | st.builds(lambda k: Fraction(10) ** k, st.integers(-300, 300))
)


def decimal(x: Fraction) -> Decimal:
    return FINE.divide(Decimal(x.numerator), Decimal(x.denominator))


@WIDE
@given(rationals)
def test_exp_is_bracketed_closely(x: Fraction) -> None:
    below, above = exp_below(x), exp_above(x)
    true = Fraction(FINE.exp(decimal(x)))
    slack = true / 10**60  # the reference's own error is far smaller, and far below one step
    if x == 0:
        assert below == above == 1
    else:
        assert below + slack < true < above - slack
        assert above - below < true * Fraction(1, 10**46) * (1 + abs(x))


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 0.5, 1.0, math.log(2), 20.0, 700.0])
def test_exp_of_a_float_is_that_of_its_exact_value(epsilon: float) -> None:
    true = Fraction(FINE.exp(Decimal(epsilon)))
    assert exp_below(epsilon) < true < exp_above(epsilon)
    assert exp_below(epsilon) == exp_below(Fraction(epsilon))


@pytest.mark.statistics
@WIDE
@given(ratios)
def test_log_is_bracketed_by_neighbouring_floats(ratio: Fraction) -> None:
    below, above = log_below(ratio), log_above(ratio)
    if ratio == 1:
        assert below == above == 0
        return
    # the reference carries enough digits for a ratio whose logarithm cancels to 1e-40
    true = Fraction(
        Context(prec=300).ln(Context(prec=300).divide(*map(Decimal, ratio.as_integer_ratio())))
    )
    assert Fraction(below) <= true <= Fraction(above)
    assert above <= math.nextafter(math.nextafter(below, math.inf), math.inf)


@pytest.mark.parametrize("digits", [3, 20, 64, 200])
def test_log_stays_exact_next_to_one(digits: int) -> None:
    tiny = Fraction(1, 10**digits)
    # log(1 + t) = t - t^2/2 + ..., between t - t^2/2 and t
    assert Fraction(log_below(1 + tiny)) <= tiny
    assert Fraction(log_above(1 + tiny)) >= tiny - tiny**2 / 2
    assert log_above(1 + tiny) == pytest.approx(float(tiny), rel=1e-2)
    assert Fraction(log_above(1 - tiny)) >= -tiny - tiny**2
    assert log_below(1 - tiny) < 0 < log_above(1 + tiny)


def test_log_of_the_borders() -> None:
    assert log_below(Fraction(1)) == log_above(Fraction(1)) == 0
    assert log_below(Fraction(0)) == log_above(Fraction(0)) == -math.inf


def test_log_undoes_exp() -> None:
    for epsilon in (1e-6, 0.5, 1.0, 3.0, 20.0):
        assert log_below(exp_below(epsilon)) <= epsilon <= log_above(exp_above(epsilon))
        assert log_above(exp_below(epsilon)) == pytest.approx(epsilon, rel=1e-15)
