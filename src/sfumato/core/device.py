"""The device's half of a stream: a small state machine, and what leaves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sfumato.core.curator import Ask
from sfumato.core.tally import Place
from sfumato.errors import MismatchError
from sfumato.randomness import Source

__all__ = ["Message", "StreamDevice"]


@dataclass(frozen=True)
class Message:
    """What leaves a device: where it belongs, and bytes of a size that tells nothing.

    Parameters
    ----------
    place
        The key of the tally that it is counted in.
    payload
        What the place's :class:`Form` reads.

    """

    place: Place
    payload: bytes


class StreamDevice(ABC):
    """The device's half of a stream: it lives through periods, and says what is due.

    Whether, when and how much it says never depends on what it has seen. It is a small state
    machine: save it before a message leaves, and a crash may lose a message, but never sends two
    that differ.
    """

    period: int = 0
    """The last period that it has lived through; 0 before the first."""
    round: int = -1
    """The last question about that period that it has looked at, counted from 0; -1 for none."""

    @property
    @abstractmethod
    def message_bytes(self) -> int:
        """The bytes of its longest payload."""

    @property
    def bounds_copies(self) -> bool:
        """Whether a copy of it that sees other values shows no more than twice the epsilon.

        It does if each value is blurred on its own, with coins that are bound to the value.
        """
        return False

    @abstractmethod
    def observe(self, value: Any, coins: Source) -> Message | None:
        """Live through the next period; return the message that is due at its end, if any.

        Parameters
        ----------
        value
            What is held at the end of the period. None stands for no news, and so does a value
            that the stream does not know.
        coins
            Coins for this period alone.

        """

    def answer(self, ask: Ask, coins: Source) -> Message | None:
        """Return the answer to a question about the last period; None if it keeps silent.

        Raises MismatchError if the stream's devices do not let themselves be asked so. A question
        that was looked at before, or that the stream does not have, changes nothing.

        Parameters
        ----------
        ask
            The question, whoever asks it.
        coins
            Coins for this question alone.

        """
        del coins
        raise MismatchError(
            f"{ask.mechanism.name} is asked; devices of this stream answer nothing."
        )

    def miss(self, periods: int) -> None:
        """Let periods pass that the device's own clock cannot vouch for: they free no budget.

        Only devices that are asked can do without these periods.
        """
        raise MismatchError(
            f"{periods} periods are to be missed; devices of this stream live through each."
        )

    @abstractmethod
    def save(self) -> dict[str, Any]:
        """Return the state as plain data, with its ``period`` among it.

        It is as secret as the values themselves.
        """
