"""Outward-rounded arithmetic for guarantees: e^x and log of rationals, as rationals.

A probability threshold is an integer chosen so that the *implemented* law never exceeds its
epsilon; a printed epsilon is an upper bound in the mathematical sense. Python's ``decimal``
rounds exp and ln correctly, so one step outward brackets the true value.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

__all__ = ["exp_above", "exp_below", "is_finite_number", "log_above", "log_below"]

_DIGITS = Context(prec=50)


def is_finite_number(given: object) -> bool:
    """Return whether this is a number that a float can hold, and not a truth value."""
    if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(given)
    except OverflowError:
        return False


def _decimal(x: Fraction, *, up: bool) -> Decimal:
    """Return x in 50 digits, rounded down or up."""
    quotient = _DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))
    if Fraction(quotient) == x:
        return quotient
    return _DIGITS.next_plus(quotient) if up else _DIGITS.next_minus(quotient)


def exp_below(x: float | Fraction) -> Fraction:
    """Return a rational just below e^x (for x = 0 exactly 1)."""
    exact = Fraction(x)
    if exact == 0:
        return Fraction(1)
    return Fraction(_DIGITS.next_minus(_DIGITS.exp(_decimal(exact, up=False))))


def exp_above(x: float | Fraction) -> Fraction:
    """Return a rational just above e^x (for x = 0 exactly 1)."""
    exact = Fraction(x)
    if exact == 0:
        return Fraction(1)
    return Fraction(_DIGITS.next_plus(_DIGITS.exp(_decimal(exact, up=True))))


def log_below(ratio: Fraction) -> float:
    """Return a float at or below log(ratio), exact at ratio 1; -inf for 0."""
    return _log(ratio, up=False)


def log_above(ratio: Fraction) -> float:
    """Return a float at or above log(ratio), exact at ratio 1; -inf for 0."""
    return _log(ratio, up=True)


def _log(ratio: Fraction, *, up: bool) -> float:
    if ratio == 0:
        return -math.inf
    if ratio == 1:
        return 0.0
    # Near 1 the fifty digits of the logarithm cancel with those of the ratio: carry more.
    close = Context(prec=50 + 2 * len(str(ratio.denominator)))
    value = close.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    step = close.next_plus if up else close.next_minus
    exact = Fraction(step(close.ln(step(value))))
    nearest = float(exact)
    if up and Fraction(nearest) < exact:
        return math.nextafter(nearest, math.inf)
    if not up and Fraction(nearest) > exact:
        return math.nextafter(nearest, -math.inf)
    return nearest
