"""The device's half of a stream: a small state machine, and what leaves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.curator import Ask
from sfumato.core.tally import Place
from sfumato.errors import MismatchError
from sfumato.randomness import Source

__all__ = ["Message", "StreamDevice"]


@dataclass(frozen=True)
class Message:
    """What leaves a device: the place it belongs to, and bytes whose number reveals nothing.

    Parameters
    ----------
    place
        The key of the tally that the message is counted in.
    payload
        The bytes; the :class:`Form` of the place reads them.

    """

    place: Place
    payload: bytes


class StreamDevice(ABC):
    """The device's half of a stream: it lives through periods and returns the messages due.

    Whether, when and how many bytes it sends never depends on the values it has observed. It is a
    small state machine: save it before a message leaves, and a crash may lose a message, but never
    sends two that differ.
    """

    period: int = 0
    """The last period that the device has lived through; 0 before the first."""
    round: int = -1
    """The last question about that period that the device has seen, counted from 0; -1 for none."""

    @property
    @abstractmethod
    def message_bytes(self) -> int:
        """The number of bytes of the longest payload that the device sends."""

    @property
    def bounds_copies(self) -> bool:
        """Whether a copy of this device that sees other values costs at most twice the epsilon.

        This is so if each value is randomized on its own, with coins that are bound to the value.
        """
        return False

    @abstractmethod
    def observe(self, value: Any, coins: Source) -> Message | None:
        """Live through the next period; return the message that is due at its end, if any.

        Parameters
        ----------
        value
            The value held at the end of the period. None means that it has not changed, and so does
            a value that the stream does not know.
        coins
            Coins for this period alone.

        """

    @property
    def beside(self) -> Sequence[Message]:
        """The meaningless messages that go with that of the last period; their number is public.

        They hide the real ones where a shuffler unlinks all messages, and depend on no value.
        """
        return ()

    def answer(self, ask: Ask, coins: Source) -> Message | None:
        """Return the answer to a question about the last period; None for silence.

        Raises MismatchError if devices of this stream do not answer such a question. A question
        that was seen before, or that the stream does not have, changes nothing.

        Parameters
        ----------
        ask
            The question; it may come from a stranger.
        coins
            Coins for this question alone.

        """
        del coins
        raise MismatchError(
            f"{ask.mechanism.name} is asked; devices of this stream answer nothing."
        )

    def miss(self, periods: int) -> None:
        """Let periods pass that the device's own clock cannot confirm; they free no budget.

        Only devices that answer questions can skip periods; all others raise MismatchError.
        """
        raise MismatchError(
            f"{periods} periods are to be missed; devices of this stream live through each."
        )

    @abstractmethod
    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which includes its ``period``.

        The state must be kept as secret as the values themselves.
        """
