"""What a window has to hand out: units of budget, or devices.

Most methods can divide either. In parts: if budget is divided everybody answers everything, and a
question of k parts spends k millionths of an epsilon; if the population is divided a question of k
parts asks k devices, in expectation, and each of them spends everything it has in a window.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

from sfumato.core.exact import is_finite_number
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.streams.window.curators import WindowCurator
from sfumato.streams.window.readings import Reading

__all__ = ["Budget", "Divided", "Population", "Spent", "between"]


class Divided(WindowCurator):
    """A method that asks in parts of a whole, whatever they are parts of."""

    @property
    @abstractmethod
    def whole(self) -> int:
        """How many parts a window has."""

    @abstractmethod
    def mechanism(self, parts: int) -> Mechanism:
        """Return what so many parts are asked with."""

    @abstractmethod
    def answers(self, parts: int) -> int:
        """Return how many answers so many parts bring."""

    @abstractmethod
    def question(self, parts: int) -> Ask:
        """Return the question that spends so many parts."""

    def asked(self, parts: int) -> Generator[Ask, Tally, Reading | None]:
        """Spend so many parts; return what was answered, if anything."""
        ask = self.question(parts)
        tally = yield ask
        return self.read(ask.mechanism, tally)

    def error(self, parts: int, known: Reading | None = None) -> float:
        """Return the variance of what so many parts would say, on average over the items."""
        return self.variance(self.mechanism(parts), self.answers(parts), known)

    @abstractmethod
    def parts(self, share: float, what: str) -> int:
        """Return a share of the whole; raise if it is less than one part."""


class Budget(Divided):
    """A method whose parts are units of budget: it asks all devices with a part of epsilon."""

    divides: ClassVar[str] = "budget"

    @property
    def whole(self) -> int:
        """How many units of budget a window has."""
        return self.units

    def parts(self, share: float, what: str) -> int:
        """Return a share of the units."""
        return self.part(share, what)

    def mechanism(self, parts: int) -> Mechanism:
        """Return the mechanism that spends so many units."""
        return self.oracle(parts)

    def answers(self, parts: int) -> int:
        """Return how many devices there are: all of them answer."""
        del parts
        return self.devices

    def question(self, parts: int) -> Ask:
        """Return a question that all devices answer."""
        return self.ask_all(self.mechanism(parts))


class Population(Divided):
    """A method whose parts are devices: it asks some of them with all of epsilon."""

    divides: ClassVar[str] = "population"

    @property
    def whole(self) -> int:
        """How many devices there are."""
        return self.devices

    def parts(self, share: float, what: str) -> int:
        """Return a share of the devices."""
        del what
        self.needs_devices(ceil(1 / share))
        return int(self.devices * share)

    def mechanism(self, parts: int) -> Mechanism:
        """Return the mechanism that spends everything."""
        del parts
        return self.oracle()

    def answers(self, parts: int) -> int:
        """Return how many devices are asked: each answers once."""
        return parts

    def question(self, parts: int) -> Ask:
        """Return a question that so many devices answer, in expectation."""
        return self.ask(self.oracle(), parts)


@dataclass
class Spent:
    """What the last w - 1 periods have spent, and how often.

    Examples
    --------
    >>> spent = Spent(window=3)
    >>> spent.add(1, 10)
    >>> spent.add(2, 5)
    >>> spent.before(3), spent.before(4), spent.times(4)
    (15, 5, 1)

    """

    window: int
    _parts: dict[int, int] = field(default_factory=dict)

    def add(self, period: int, parts: int) -> None:
        """Write down what a period spends."""
        self._parts[period] = self._parts.get(period, 0) + parts

    def before(self, period: int) -> int:
        """Return what the w - 1 periods before this one have spent."""
        self._parts = {
            past: parts for past, parts in self._parts.items() if past > period - self.window
        }
        return sum(self._parts.values())

    def times(self, period: int) -> int:
        """Return in how many of the w - 1 periods before this one anything was spent."""
        self.before(period)
        return len(self._parts)


def between(name: str, value: float, low: float, high: float = float("inf")) -> float:
    """Return a parameter that lies between two numbers, the ends left out."""
    if not is_finite_number(value) or not low < value < high:
        wanted = f"a number above {low:g}" + ("" if high == float("inf") else f", below {high:g}")
        raise ConfigurationError(f"{name} is {value!r}; {wanted} is expected.")
    return float(value)
