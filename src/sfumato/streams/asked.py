"""What all devices that are asked share: the coin that decides whether they answer, and the answer.

The coin is free of the value, so that who answers tells nothing. What blurs the value takes coins
that are bound to it: a copy of a device that holds another value repeats the decision, but draws
its answer independently.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from numpy.typing import NDArray

from sfumato.core.exact import is_finite_number
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Form, Place, Stream
from sfumato.core.tally import ALONE
from sfumato.errors import MismatchError
from sfumato.randomness import ONE, Source

__all__ = ["LARGEST_SYMBOL", "AskedStream", "blurred", "coin", "value_code"]

LARGEST_SYMBOL: Final = 8
"""The bytes that a symbol of a mechanism for numbers has at most."""


class AskedStream(Stream):
    """A stream whose devices answer questions: each is read by the mechanism it was asked with."""

    @property
    def tracks(self) -> tuple[tuple[int, int], ...]:
        """The places of answers: one for each question of a period."""
        return tuple((ALONE, number) for number in range(self.rounds))

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return how the answers to a question are read."""
        del place
        return None if ask is None else Form.of(ask.mechanism)


def coin(probability: float) -> int:
    """Return a question's probability as a threshold in 2^-64, never above what was asked.

    Examples
    --------
    >>> coin(0.5) == ONE // 2, coin(1.0) == ONE, coin(2.0**-65)
    (True, True, 0)

    """
    if not is_finite_number(probability) or not 0 <= probability <= 1:
        raise MismatchError(
            f"the question has probability {probability!r}; a number in 0..1 is expected."
        )
    return int(Fraction(probability) * ONE)


def value_code(mechanism: Mechanism, value: Any) -> int:
    """Return the whole number that a value is encoded as.

    An item's number in its domain; a number's place on the grid in steps of 2^-64, as its rounding
    is decided by a coin of so many bits. Values of one code are blurred by one law.

    Examples
    --------
    >>> from sfumato.mechanisms import GRR, Hybrid
    >>> value_code(GRR(1.0, ("home", "work")), "work")
    1
    >>> numbers = Hybrid(1.0, -1, 1)
    >>> value_code(numbers, 1) == value_code(numbers, 1.0) == numbers.grid * ONE
    True

    """
    encoded = mechanism.encode([value])[0].item()
    return encoded if isinstance(encoded, int) else int(Fraction(encoded) * ONE)


def blurred(mechanism: Mechanism, value: Any, rng: Source) -> NDArray[Any]:
    """Return the report of one value, drawn with the coins that are bound to its code."""
    return mechanism.randomize([value], rng.bound([value_code(mechanism, value)]))
