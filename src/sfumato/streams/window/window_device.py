"""The device's half of an endless stream: it answers by its own coin, and never too much.

A server asks whatever it likes. The device checks that the question is one its task allows, looks
whether its window still affords it, flips its own coin, writes down what it spends, and only then
looks at the value. So who answers tells nothing about anybody's data, and no w consecutive periods
ever hold more than epsilon, whatever is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from numpy.typing import NDArray

from sfumato.accounting.windows import WindowLedger
from sfumato.core.stream import Ask, Stream
from sfumato.errors import InputError, MismatchError
from sfumato.randomness import Source
from sfumato.streams.asked import AskedDevice, blurred, coin

if TYPE_CHECKING:  # a protocol makes its devices
    from sfumato.streams.window.window import Window

__all__ = ["WindowDevice", "WindowLedger"]

MOST: Final = 1 << 40
"""Above every count of periods and rounds."""
LEAST: Final = {"period": 0, "tick": 0, "round": -1}
"""The counts of a saved state, and the least that each can be."""


@dataclass
class WindowDevice(AskedDevice):
    """One device: what its window holds, and the value that it would answer for.

    Parameters
    ----------
    protocol
        The public design.
    ledger
        What was spent in the last periods.
    period
        The last period lived through.
    tick
        The ledger's own clock, which never runs ahead of what this device has lived through: it
        is what frees budget, not the server's word.
    held
        The value at the end of the last period; None before the first.
    round
        The last question about that period that was looked at.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> from sfumato.streams.window import Window
    >>> protocol = Window(window=3, epsilon=1.0, devices=900, domain=("home", "work"), method="lpu")
    >>> device = protocol.device(seeded(1))
    >>> ask = Ask(protocol.mechanism(1_000_000), probability=1.0)
    >>> for period in (1, 2, 3, 4):
    ...     device.observe("work", seeded(period))
    ...     print(device.answer(ask, seeded(period)) is not None)
    True
    False
    False
    True

    """

    protocol: Window
    ledger: WindowLedger
    period: int = 0
    tick: int = 0
    held: Any = None
    round: int = -1

    @property
    def stream(self) -> Stream:
        """The stream that it takes part in."""
        return self.protocol

    def observe(self, value: Any, coins: Source) -> None:
        """Hold a value from the end of the next period on; the ledger's clock moves along."""
        super().observe(value, coins)
        self.tick += 1

    def _report(self, ask: Ask, coins: Source) -> NDArray[Any] | None:
        """Return one report, or None if the window is full or the coin says so."""
        self.protocol.check_question(ask.mechanism)
        threshold = coin(ask.probability)
        self.ledger = self.ledger.at(self.tick)
        epsilon = ask.mechanism.epsilon
        # A full window is known from earlier coins and questions alone, as the coin is from now.
        if not self.ledger.affords(self.tick, epsilon) or not coins.bernoulli(threshold, 1)[0]:
            return None
        self.ledger = self.ledger.paid(self.tick, epsilon)
        return self._blurred(ask, coins)

    def _blurred(self, ask: Ask, coins: Source) -> NDArray[Any]:
        """Return the report of the held value; of the public default, if there is none to hold.

        Who answers has been decided before, so that no value may stop an answer.
        """
        if self.held is not None:
            try:
                return blurred(ask.mechanism, self.held, coins)
            except InputError:  # from a state that was tampered with
                pass
        return blurred(ask.mechanism, self.protocol.default, coins)

    def save(self) -> dict[str, Any]:
        """Return the state as plain data; it is as secret as the value."""
        spent = [list(entry) for entry in self.ledger.spent]
        return {
            "period": self.period,
            "tick": self.tick,
            "held": self.held,
            "round": self.round,
            "ledger": {"period": self.ledger.period, "spent": spent},
        }

    @classmethod
    def restore(cls, protocol: Window, state: Any, **more: Any) -> Self:
        """Go on from a saved state; raise MismatchError on what no device of this task saved."""
        named = isinstance(state, Mapping) and set(state) == {*LEAST, "held", "ledger"}
        if not named or any(
            type(state[name]) is not int or not low <= state[name] < MOST
            for name, low in LEAST.items()
        ):
            # It is not quoted: it has a value in it, and errors are logged.
            raise MismatchError(
                "the saved state is none of this task; period, tick, round, held and ledger are "
                "expected."
            )
        counts = {name: state[name] for name in (*LEAST, "held")}
        return cls(protocol, _ledger(protocol, state["ledger"]), **counts, **more)


def _ledger(protocol: Window, state: Any) -> WindowLedger:
    """Return a saved ledger; raise MismatchError if it cannot be one of this task."""
    if not isinstance(state, Mapping) or set(state) != {"period", "spent"}:
        found = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise MismatchError(f"the saved state has {found}; period, spent are expected.")
    fresh = WindowLedger(protocol.window, protocol.epsilon)
    period = state["period"]
    if not _count(period):
        raise MismatchError(
            "the saved state has another period in its ledger; 0 or more is expected."
        )
    spent = _entries(state["spent"], period - protocol.window, period)
    if spent is None or sum(paid for _, paid in spent) > fresh.units_left(0):
        raise MismatchError(
            f"the saved state has spent otherwise; up to epsilon {protocol.epsilon:g} in the "
            f"{protocol.window} periods until {period} is expected."
        )
    return WindowLedger(protocol.window, protocol.epsilon, period, spent)


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
