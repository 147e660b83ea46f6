"""The guarantee in words for a person: what can be learnt, what can be forged, who sees what."""

from __future__ import annotations

import math

from sfumato.core.guarantee import Guarantee
from sfumato.pages.subject import Promise

__all__ = ["forged", "guessed", "learnt"]


def guessed(epsilon: float, delta: float = 0.0) -> str:
    """Return how often the best guess between two equally likely possibilities can be right.

    By the definition of (epsilon, delta) no test is right more often than
    (e^epsilon + delta) / (1 + e^epsilon). The result is rounded up.

    Examples
    --------
    >>> guessed(1.0), guessed(0.05), guessed(4.0), guessed(20.0)
    ('at most 74 of 100', 'at most 52 of 100', 'at most 983 of 1,000', 'practically all')

    """
    odds = math.exp(-epsilon)
    right = (1.0 + delta * odds) / (1.0 + odds)
    for whole in (100, 1_000, 10_000):
        count = math.ceil(whole * right - 1e-9)
        if whole - count >= 10:
            return f"at most {count:,} of {whole:,}"
    return "practically all"


def learnt(guarantee: Guarantee, whoever: str) -> Promise:
    """Return what anybody can learn at most, in the terms of a bet that everybody knows.

    Parameters
    ----------
    guarantee
        The promise.
    whoever
        Who looks, and at what.

    """
    unit = guarantee.unit.removesuffix(",")
    if guarantee.window is not None:
        many = guarantee.window
        unit += " in any one period" if many == 1 else f" over any {many} consecutive periods"
    often = guessed(guarantee.epsilon, guarantee.delta)
    weak = ""
    if guarantee.epsilon > 3:
        weak = (
            " That is weak protection against somebody who has narrowed it down to two"
            " possibilities; against somebody who knows less it protects more."
        )
    return Promise(
        "What can anybody learn about one of them?",
        f"{whoever} and wants to know which of two possibilities is true of {unit}, both equally "
        f"likely before, guesses right in {often} cases; a coin is right in 50 of 100. "
        f"This holds whatever else they know, now or later.{weak}",
    )


def forged(influence: float | None, text: str, cap: int | None = None) -> Promise:
    """Return what somebody who sends forged reports can move.

    Parameters
    ----------
    influence
        The most that one forged device among 1,000 can move a value; None if it is not known.
    text
        The same as it is printed.
    cap
        The largest number of reports of a period that count from one address; None for any.

    """
    question = "What can a forger move?"
    capped = ""
    if cap is not None:
        counted = "1 report counts" if cap == 1 else f"{cap:,} reports count"
        capped = f" In a period, at most {counted} from one address."
    if influence is None:
        return Promise(
            question,
            "Nobody can check whether a device tells the truth. A forged report counts once, and "
            f"what no device can send is refused.{capped}",
        )
    return Promise(
        question,
        f"Nobody can check whether a device tells the truth. One forged device among 1,000 moves a "
        f"value by up to {text}; ten of them up to ten times as much, among 10,000 a tenth. "
        f"Intervals do not cover forgery.{capped}",
    )
