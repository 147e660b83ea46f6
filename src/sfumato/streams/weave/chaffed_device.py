"""The device's half of Weave with chaff: its signal, and its dummies beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from sfumato.core.stream import Message
from sfumato.errors import MismatchError
from sfumato.randomness import Source
from sfumato.streams.weave import saved
from sfumato.streams.weave.dummies import Dummy
from sfumato.streams.weave.threads import Thread
from sfumato.streams.weave.weave_device import WeaveDevice

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.chaffed_weave import ChaffedWeave

__all__ = ["ChaffedDevice"]

BESIDE: Final = -2
"""What the coins of dummies are bound to: a number that no entry is, the same for all devices."""


@dataclass
class ChaffedDevice(WeaveDevice):
    """One device on one thread, with dummies on others; all are drawn before any data.

    Parameters
    ----------
    dummies
        Its dummies.

    """

    dummies: tuple[Dummy, ...] = ()
    _beside: tuple[Message, ...] = field(default=())

    @classmethod
    def join(cls, protocol: ChaffedWeave, rng: Source) -> Self:  # type: ignore[override]
        """Draw a thread with the secrets of its mechanism, and all dummies."""
        device = super().join(protocol, rng)
        chance = protocol.chaff.chance
        more = rng.coins().below(chance.denominator) < chance.numerator
        number = protocol.chaff.certain + int(more)
        device.dummies = tuple(Dummy.drawn(protocol, rng) for _ in range(number))
        return device

    @property
    def beside(self) -> tuple[Message, ...]:
        """The messages of the dummies in the last period."""
        return self._beside

    @property
    def message_bytes(self) -> int:
        """The number of bytes of the longest message."""
        return self.protocol.payload

    def observe(self, value: Any, coins: Source) -> Message | None:
        """Observe the value of the next period; return the message that is due, if any."""
        message = super().observe(value, coins)
        protocol: Any = self.protocol
        # Coins of dummies are not bound to what the device holds, and neither is what they send.
        due = (
            dummy.due(protocol, self.period, coins.bound([BESIDE, number]))
            for number, dummy in enumerate(self.dummies)
        )
        self._beside = tuple(each for each in due if each is not None)
        return message

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which is as secret as the stream itself."""
        listed = [
            [each.thread.span, each.thread.offset, each.thread.block, each.symbol]
            for each in self.dummies
        ]
        return super().save() | {"dummies": listed}

    @classmethod
    def restore(cls, protocol: ChaffedWeave, state: Any) -> Self:  # type: ignore[override]
        """Return the device of a saved state; MismatchError if no device can have saved it."""
        if not isinstance(state, Mapping) or "dummies" not in state:
            raise MismatchError("the saved state has no dummies; those of the device are expected.")
        device = super().restore(
            protocol, {name: part for name, part in state.items() if name != "dummies"}
        )
        saved.check_dummies(protocol, state["dummies"])
        device.dummies = tuple(Dummy(Thread(*row[:3]), row[3]) for row in state["dummies"])
        return device
