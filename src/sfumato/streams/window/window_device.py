"""The device's half of an endless stream, which answers by its own coin within its budget.

A server may ask anything. The device checks that its task allows the question and that its window
still affords it, flips its own coin, records what it spends, and only then looks at the value. So
whether a device answers reveals nothing about its data, and no w consecutive periods ever spend
more than epsilon, whatever is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from sfumato.accounting.windows import WindowLedger
from sfumato.arrays import Array
from sfumato.core.stream import Ask, Stream
from sfumato.errors import InputError, MismatchError
from sfumato.randomness import Source
from sfumato.streams.asked import AskedDevice, blurred, coin

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.window.window import Window

__all__ = ["WindowDevice", "WindowLedger"]

MOST: Final = 1 << 40
"""An upper limit of every count of periods and rounds."""
LEAST: Final = {"period": 0, "tick": 0, "round": -1}
"""The counts of a saved state, with the smallest value of each."""


@dataclass
class WindowDevice(AskedDevice):
    """One device: its ledger, and the value that it answers for.

    Parameters
    ----------
    protocol
        The stream.
    ledger
        The payments of the last periods.
    period
        The last period that the device has lived through.
    tick
        The ledger's own clock, which never runs ahead of what this device has lived through; it
        frees budget, independently of what a server says.
    held
        The value at the end of the last period; None before the first.
    round
        The last question about that period that the device has seen.

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
        """The stream of the device."""
        return self.protocol

    def observe(self, value: Any, coins: Source) -> None:
        """Hold a value from the end of the next period on, and advance the ledger's clock."""
        super().observe(value, coins)
        self.tick += 1

    def _report(self, ask: Ask, coins: Source) -> Array | None:
        """Return a report; None if the window is full or the coin forbids it."""
        self.protocol.check_question(ask.mechanism)
        threshold = coin(ask.probability)
        self.ledger = self.ledger.at(self.tick)
        epsilon = ask.mechanism.epsilon
        # Whether a window is full only depends on earlier coins and questions, and the coin only on
        # now.
        if not self.ledger.affords(self.tick, epsilon) or not coins.bernoulli(threshold, 1)[0]:
            return None
        self.ledger = self.ledger.paid(self.tick, epsilon)
        return self._blurred(ask, coins)

    def _blurred(self, ask: Ask, coins: Source) -> Array:
        """Return a report of the value held, or of the public default if there is none.

        It was decided before whether the device answers, so no value may prevent an answer.
        """
        if self.held is not None:
            try:
                return blurred(ask.mechanism, self.held, coins)
            except InputError:  # from a state that was tampered with
                pass
        return blurred(ask.mechanism, self.protocol.default, coins)

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which is as secret as the value."""
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
        """Return the device of a saved state; MismatchError if no device can have saved it."""
        named = isinstance(state, Mapping) and set(state) == {*LEAST, "held", "ledger"}
        if not named or any(
            type(state[name]) is not int or not low <= state[name] < MOST
            for name, low in LEAST.items()
        ):
            # The state is not quoted, because it has a value in it and errors are logged.
            raise MismatchError(
                "the saved state is none of this task; period, tick, round, held and ledger are "
                "expected."
            )
        counts = {name: state[name] for name in (*LEAST, "held")}
        return cls(protocol, _ledger(protocol, state["ledger"]), **counts, **more)


def _ledger(protocol: Window, state: Any) -> WindowLedger:
    """Return a saved ledger; raise MismatchError if it does not belong to this task."""
    if not isinstance(state, Mapping) or set(state) != {"period", "spent"}:
        names = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise MismatchError(f"the saved state has {names}; period, spent are expected.")
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
    """Return saved payments; None if they cannot be those of one window."""
    if not isinstance(given, (list, tuple)):
        return None
    for entry in given:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2 or not all(map(_count, entry)):
            return None
    entries = tuple((int(period), int(paid)) for period, paid in given)
    periods = [period for period, _ in entries]
    ordered = periods == sorted(set(periods))
    return entries if ordered and all(after < period <= until for period in periods) else None
