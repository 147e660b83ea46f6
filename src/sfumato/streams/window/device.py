"""The device's half of an endless stream: it answers by its own coin, and never too much.

A server asks whatever it likes. The device checks that the question is one its task allows, looks
whether its window still affords it, flips its own coin, writes down what it spends, and only then
looks at the value. So who answers tells nothing about anybody's data, and no w consecutive periods
ever hold more than epsilon, whatever is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from sfumato.accounting.windows import WindowLedger
from sfumato.core.stream import Ask
from sfumato.errors import MismatchError
from sfumato.randomness import Source
from sfumato.streams.asked import blurred, coin

if TYPE_CHECKING:  # a protocol makes its devices
    from sfumato.streams.window.protocol import Window

__all__ = ["WindowDevice", "WindowLedger"]


@dataclass
class WindowDevice:
    """One device: what its window holds.

    Parameters
    ----------
    protocol
        The public design.
    ledger
        What was spent in the last periods.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> from sfumato.streams.window import Window
    >>> protocol = Window(window=3, epsilon=1.0, devices=900, domain=("home", "work"), method="lpu")
    >>> device = protocol.device(seeded(1))
    >>> ask = Ask(protocol.mechanism(1_000_000), probability=1.0)
    >>> [device.answer(t, ask, "work", seeded(t)) is not None for t in (1, 2, 3, 4)]
    [True, False, False, True]

    """

    protocol: Window
    ledger: WindowLedger

    def answer(self, period: int, ask: Ask, value: Any, rng: Source) -> NDArray[Any] | None:
        """Return one report, or None if the window is full or the coin says so.

        Parameters
        ----------
        period
            By the device's own clock, never by the server's word: it is what frees budget.
        ask
            The question; each period may have several.
        value
            What the device holds now; looked at only if a report is made.
        rng
            Coins for this question alone; the answer takes those of them that are the value's own.

        Save the state before the report leaves: then a crash may lose a report, never privacy.

        """
        self.protocol.check(ask.mechanism)
        threshold = coin(ask.probability)
        self.ledger = self.ledger.at(period)
        epsilon = ask.mechanism.epsilon
        # A full window is known from earlier coins and questions alone, as the coin is from now.
        if not self.ledger.affords(period, epsilon) or not rng.bernoulli(threshold, 1)[0]:
            return None
        self.ledger = self.ledger.paid(period, epsilon)
        return blurred(ask.mechanism, value, rng)

    def save(self) -> dict[str, Any]:
        """Return the state as plain data; of values it holds nothing."""
        spent = [list(entry) for entry in self.ledger.spent]
        return {"period": self.ledger.period, "spent": spent}

    @classmethod
    def restore(cls, protocol: Window, state: Any) -> Self:
        """Go on from a saved state; raise MismatchError on what no device of this task saved."""
        if not isinstance(state, Mapping) or set(state) != {"period", "spent"}:
            found = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
            raise MismatchError(f"the saved state has {found}; period, spent are expected.")
        fresh = WindowLedger(protocol.window, protocol.epsilon)
        period = state["period"]
        if not _count(period):
            raise MismatchError(f"the saved state has period {period!r}; 0 or more is expected.")
        spent = _entries(state["spent"], period - protocol.window, period)
        if spent is None or sum(paid for _, paid in spent) > fresh.units_left(0):
            raise MismatchError(
                f"the saved state has spent {state['spent']!r}; up to epsilon {protocol.epsilon:g} "
                f"in the {protocol.window} periods until {period} is expected."
            )
        return cls(protocol, WindowLedger(protocol.window, protocol.epsilon, period, spent))


def _count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _entries(given: Any, after: int, until: int) -> tuple[tuple[int, int], ...] | None:
    """Return saved payments, or None if they cannot be those of one window."""
    if not isinstance(given, (list, tuple)):
        return None
    for entry in given:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2 or not all(map(_count, entry)):
            return None
    entries = tuple((int(period), int(paid)) for period, paid in given)
    periods = [period for period, _ in entries]
    ordered = periods == sorted(set(periods))
    return entries if ordered and all(after < period <= until for period in periods) else None
