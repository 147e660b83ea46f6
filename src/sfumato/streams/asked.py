"""The base of streams whose devices are asked: whether a device answers, and its answer.

The coin that decides whether a device answers does not depend on the value, so it reveals nothing.
The coins that randomize the value are bound to it: a copy of a device with another value repeats
the decision, but draws its answer independently.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, Final

import numpy as np

from sfumato.arrays import Array
from sfumato.core.doubt import Doubt
from sfumato.core.exact import is_finite_number
from sfumato.core.fleet import Fleet, Population, summed
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Form, Message, Place, Question, Stream, StreamDevice
from sfumato.core.tally import ALONE, Tally
from sfumato.errors import InputError, MismatchError
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.randomness import ONE, Source

__all__ = [
    "LARGEST_SYMBOL",
    "AskedDevice",
    "AskedFleet",
    "AskedStream",
    "blurred",
    "coin",
    "described_mechanism",
    "sampled",
    "value_code",
]

LARGEST_SYMBOL: Final = 8
"""The largest number of bytes of a symbol of a mechanism for numbers."""


class AskedStream(Stream):
    """A stream whose devices answer questions, each with the question's mechanism."""

    @property
    def tracks(self) -> tuple[tuple[int, int], ...]:
        """The spans and parts of answers: one for each question of a period."""
        return tuple((ALONE, number) for number in range(self.rounds))

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return the form of the answers to a question; None without a question."""
        del place
        return None if ask is None else Form.of(ask.mechanism)

    def doubt(self, place: Place, tally: Tally, ask: Ask | None = None) -> Doubt | None:
        """Return how improbable the answers to a question are if all devices are honest."""
        del place
        return None if ask is None else ask.mechanism.doubt(tally)


class AskedDevice(StreamDevice):
    """A device that only answers questions, each at most once.

    A subclass defines the answer for the value ``held`` in :meth:`_report`.
    """

    held: Any = None
    """The value at the end of the last period; None before the first."""
    tier: int = 0
    """The device's tier; it only answers questions to this tier."""

    @property
    @abstractmethod
    def stream(self) -> Stream:
        """The stream of the device."""

    @property
    def message_bytes(self) -> int:
        """The number of bytes of the longest answer."""
        return self.stream.payload

    @property
    def bounds_copies(self) -> bool:
        """Whether copies are bounded: yes, because each answer is randomized on its own."""
        return True

    def observe(self, value: Any, coins: Source) -> None:
        """Hold a value from the end of the next period on; nothing is sent before a question."""
        del coins
        self.period += 1
        self.round = -1
        self.held = self._news(value)

    def _news(self, value: Any) -> Any:
        """Return the value held after observing a value or None."""
        kept = self.held if self.stream.lasts else None
        if value is None:
            return kept
        try:
            self.stream.check(value)
        except InputError:
            return kept
        return value

    def miss(self, periods: int) -> None:
        """Let periods pass that can no longer be asked about."""
        self.period += periods
        self.round = -1
        if not self.stream.lasts:
            self.held = None

    def answer(self, ask: Ask, coins: Source) -> Message | None:
        """Return the answer to a question about the last period; None for silence."""
        if not self.period or not self.round < ask.round < self.stream.rounds:
            return None
        if ask.tier != self.tier:
            self.round = ask.round
            return None
        report = self._report(ask, coins)
        self.round = ask.round
        if report is None:
            return None
        return Message(Place.answer(self.period, ask.round), report.tobytes())

    @abstractmethod
    def _report(self, ask: Ask, coins: Source) -> Array | None:
        """Return a report of the value held; None if the coin or the budget forbids it.

        Raises MismatchError, and changes nothing, if the stream does not have such a question.
        """


def described_mechanism(
    described: Mapping[str, Any], kinds: Sequence[type[Mechanism]]
) -> Mechanism:
    """Return the mechanism that plain data describe; MismatchError unless its kind is allowed."""
    rest = dict(described)
    name = rest.pop("mechanism", None)
    kind = next((kind for kind in kinds if kind.name == name), None)
    if kind is None:
        raise MismatchError(
            f"the question is asked with {str(name)[:40]!r}; this task allows "
            f"{', '.join(kind.name for kind in kinds)}."
        )
    known = {field.name for field in fields(kind)}
    unknown = [str(field) for field in rest if field not in known]
    if unknown:
        raise MismatchError(
            f"{name} has no parameter {unknown[0][:40]!r}; it takes {', '.join(sorted(known))}."
        )
    try:
        return kind(**rest)
    except TypeError:
        raise MismatchError(
            f"{name} has {', '.join(sorted(rest)) or 'nothing'}; more is expected."
        ) from None


class AskedFleet(Fleet):
    """Simulated devices that answer questions; by default all of them answer every question.

    Parameters
    ----------
    population
        The values that the devices hold.
    rng
        The source of all devices' coins.
    width
        The number of entries of an estimate.

    """

    def __init__(self, population: Population, rng: Source, width: int) -> None:
        self.population = population
        self.rng = rng
        self._width = width

    def answer(self, period: int, question: Question) -> Tally:
        """Return the tally of all answers to a question."""
        if not isinstance(question, Ask):
            raise MismatchError(f"period {period} has a standing question; devices are asked.")
        return self.asked(period, question)

    def asked(self, period: int, ask: Ask) -> Tally:
        """Return the tally of all answers to a question."""
        return sampled(ask.mechanism, self.population.values(period), self.rng)

    def totals(self, period: int) -> Array:
        """Return the number of devices that hold each item, or the sum of their numbers."""
        return summed(self.population.values(period), self._width)


def sampled(mechanism: Mechanism, values: Array, rng: Source) -> Tally:
    """Return the tally of people with these values, drawn from its exact law if that is fast."""
    if isinstance(mechanism, FrequencyOracle):
        held = np.bincount(values, minlength=mechanism.size)
        if held.size > mechanism.size:
            raise InputError(
                f"a value is {int(values.max())}; the domain has the items 0..{mechanism.size - 1}."
            )
        return mechanism.sample_tally(held, rng)
    return mechanism.tally(mechanism.randomize(values, rng))


def coin(probability: float) -> int:
    """Return a question's probability as a threshold in units of 2^-64, rounded down.

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


def value_code(encoded: Array) -> int:
    """Return a whole number that identifies an encoded value.

    It is an item's code, or a number's position on the grid in steps of 2^-64, because a coin of 64
    bits decides its rounding. Values with the same code have the same law.

    Examples
    --------
    >>> from sfumato.mechanisms import GRR, Hybrid
    >>> value_code(GRR(1.0, ("home", "work")).encode(["work"]))
    1
    >>> numbers = Hybrid(1.0, -1, 1)
    >>> value_code(numbers.encode([1])) == value_code(numbers.encode([1.0])) == numbers.grid * ONE
    True

    """
    code = encoded[0].item()
    return code if isinstance(code, int) else int(Fraction(code) * ONE)


def blurred(mechanism: Mechanism, value: Any, rng: Source) -> Array:
    """Return the report of one value, drawn with the coins that are bound to its code."""
    encoded = mechanism.encode([value])
    return mechanism.randomize_encoded(encoded, rng.bound([value_code(encoded)]))
