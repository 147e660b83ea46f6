"""The device's half of ToPL, which answers once for each amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sfumato.arrays import Array
from sfumato.core.exact import is_finite_number
from sfumato.core.stream import Ask
from sfumato.errors import MismatchError
from sfumato.mechanisms import Hybrid
from sfumato.randomness import Source
from sfumato.streams.asked import AskedDevice, blurred, coin

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.published.topl import ToPL

__all__ = ["ToPLDevice"]


@dataclass
class ToPLDevice(AskedDevice):
    """One device, which holds the current value and answers once for it.

    If it holds none, before the first value and after each answer, it answers for the public
    default, an amount of 0, because silence would reveal that there was no value.

    Parameters
    ----------
    protocol
        The stream.
    period
        The last period that the device has lived through.
    held
        The value of that period, until the device has answered for it.
    round
        The last question about that period that the device has seen.

    """

    protocol: ToPL
    period: int = 0
    held: float | None = None
    round: int = -1

    @property
    def stream(self) -> ToPL:
        """The stream of the device."""
        return self.protocol

    def _report(self, ask: Ask, coins: Source) -> Array | None:
        """Return a report of the current value; None if the coin forbids it."""
        self._refuse(ask)
        if not coins.bernoulli(coin(ask.probability), 1)[0]:
            return None
        value, self.held = self.protocol.default if self.held is None else self.held, None
        threshold = ask.mechanism.high  # type: ignore[attr-defined]
        return blurred(ask.mechanism, min(value, threshold), coins)

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which is as secret as the value."""
        return {"period": self.period, "held": self.held, "round": self.round}

    @classmethod
    def restore(cls, protocol: ToPL, state: Any) -> Self:
        """Return the device of a saved state; MismatchError if no device can have saved it."""
        held = state.get("held") if isinstance(state, Mapping) else None
        good = (
            isinstance(state, Mapping)
            and set(state) == {"period", "held", "round"}
            and type(state["period"]) is int
            and state["period"] >= 0
            and type(state["round"]) is int
            and -1 <= state["round"] < protocol.rounds
            and (held is None or (is_finite_number(held) and held >= 0))
        )
        if not good:
            # The state is not quoted, because it has a value in it and errors are logged.
            raise MismatchError(
                "the saved state is none of this task; period, held and round are expected."
            )
        return cls(protocol, state["period"], held, state["round"])

    def _refuse(self, ask: Ask) -> None:
        asked, protocol = ask.mechanism, self.protocol
        fits = asked == protocol.learner or (
            isinstance(asked, Hybrid)
            and 0 < asked.high <= protocol.bound
            and asked == protocol.summer(asked.high)
        )
        if not fits:
            raise MismatchError(
                f"{asked.name} with epsilon {asked.epsilon:g} is asked; this is none of the "
                "protocol's questions."
            )
