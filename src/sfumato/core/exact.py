"""Outward-rounded arithmetic for guarantees: e^x and log of rationals, as rationals.

A probability threshold is an integer chosen so that the *implemented* law never exceeds its
epsilon; a printed epsilon is a proven upper bound. Python's ``decimal``
rounds exp and ln correctly, so one step outward brackets the true value.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.errors import ConfigurationError

__all__ = [
    "LARGEST_EPSILON",
    "SMALLEST_EPSILON",
    "checked_epsilon",
    "exp_above",
    "exp_below",
    "is_finite_number",
    "is_whole_number",
    "log_above",
    "log_below",
]

SMALLEST_EPSILON: Final = 1e-6
LARGEST_EPSILON: Final = 20.0
"""Outside of these two limits, thresholds of 64 bits could not keep the promised epsilon."""

_DIGITS = Context(prec=50)


def is_finite_number(given: object) -> bool:
    """Return whether an object is a finite number that a float can hold, and not a bool."""
    if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(given)
    except OverflowError:
        return False


def is_whole_number(given: object) -> bool:
    """Return whether an object is a whole number of Python or numpy, and not a bool."""
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)


def checked_epsilon(given: float) -> float:
    """Return epsilon if 64-bit thresholds can keep it; raise ConfigurationError otherwise."""
    if not is_finite_number(given):
        raise ConfigurationError(f"epsilon is {given!r}; a positive number is expected.")
    if not SMALLEST_EPSILON <= given <= LARGEST_EPSILON:
        raise ConfigurationError(
            f"epsilon is {given}; it must lie in {SMALLEST_EPSILON:g}..{LARGEST_EPSILON:g}."
        )
    return float(given)


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
    # Near ratio 1 the leading digits of the logarithm cancel, so more digits are carried.
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
