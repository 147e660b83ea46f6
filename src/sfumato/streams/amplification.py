"""Shuffling of streams: a device's thread and all its reports count as one message.

A device draws its thread before any data and sends one private output along it, in parts. If the
parts of all devices are shuffled period by period, an observer learns no more than from all
messages (thread, whole output) shuffled at once; so a bound for one message is enough, and devices
of all threads hide each other. Only devices that take part in the whole horizon may be counted,
because those that leave early hide nobody afterwards.

How many devices are there? A device sends at most one report in a period, so a batch of
``min_batch`` reports of one period comes from as many devices. Smaller batches are never released:
with fewer devices nothing is, and with more the bound for ``min_batch`` devices holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Generic, Protocol, Self, TypeVar, runtime_checkable

from sfumato.accounting.shuffle import Hiding, HidingByMore, Requirement, best, calibrated, holds
from sfumato.core.contrast import Contrasts
from sfumato.core.guarantee import Guarantee
from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError

__all__ = [
    "TOO_FEW",
    "Shuffled",
    "fewest_counted",
    "fewest_sent",
    "kept_among",
    "promised",
    "refuse_false",
    "requirement",
    "shuffled",
]

TOO_FEW: Final = "too few reports to keep the promise"
"""What is said of a period in whose place nothing is published."""
ROUNDED: Final = 1e-6
"""The share of epsilon by which two machines may compute it differently, and far more."""


@runtime_checkable
class Shuffled(Protocol):
    """A stream whose reports can be shuffled."""

    @property
    def epsilon(self) -> float:
        """The privacy of a device's whole stream."""

    def at(self, epsilon: float) -> Self:
        """Return the same stream at another epsilon."""

    def message(self) -> Hiding:
        """Return everything that a device sends over the horizon, as one message."""


S = TypeVar("S", bound=Shuffled)


@dataclass(frozen=True, eq=False)
class _Tried(Generic[S]):
    """A stream that was tried, with its message."""

    stream: S
    message: Hiding

    @property
    def worst_ratio(self) -> Fraction:
        return self.message.worst_ratio

    def contrasts(self) -> tuple[Contrasts, ...]:
        return self.message.contrasts()


def shuffled(stream: S, required: Requirement) -> S:
    """Return the stream with the largest epsilon, up to its own, that meets a requirement.

    Spans and shares stay the same; sizes are chosen again.

    Parameters
    ----------
    stream
        The stream; its epsilon is the largest one that devices allow.
    required
        The promise about shuffled reports; ``min_batch`` is the smallest number of reports of one
        period that leave the shuffler together, and so a number of devices.

    """

    def tried(epsilon: float) -> _Tried[S]:
        other = stream.at(epsilon)
        return _Tried(other, other.message())

    return calibrated(tried, required, stream.epsilon).stream


def promised(stream: Stream, required: Requirement, messages: int = 0) -> Guarantee:
    """Return the guarantee of a shuffled stream.

    ``messages`` is the smallest number of messages of a batch, if a device sends several.
    """
    crowd, *others = required.guarantee.assumptions
    if messages > required.min_batch:
        crowd = f"every batch has {messages:,} messages, those of at least {required.min_batch:,}"
    unseen = "nobody who sees what was shuffled knows in which periods a device sends"
    ends = "devices that take part in the whole horizon"
    first = f"{crowd} {ends}" if messages > required.min_batch else f"{crowd} of {ends}"
    assumed = [first, *others, unseen]
    return replace(
        stream.guarantee,
        model="shuffle",
        epsilon=required.epsilon,
        delta=required.delta,
        assumptions=(*stream.guarantee.assumptions, *assumed),
    )


def requirement(spec: Mapping[str, Any]) -> Requirement | None:
    """Return the promise about a task's shuffled reports; None if they are not shuffled."""
    table = spec.get("shuffle")
    if table is None:
        return None
    return Requirement.of({name: to for name, to in dict(table).items() if name != "url"})


def refuse_false(spec: Mapping[str, Any], stream: Stream) -> None:
    """Raise ConfigurationError if a stranger's task does not keep its promise about mixed reports.

    So what the log of a device says about them does not rest on the word of a collector.
    """
    required = requirement(spec)
    if required is None:
        return
    if not isinstance(stream, Shuffled):
        raise ConfigurationError(
            f"shuffle is given where the stream is {stream.name!r}; nothing is proven about its "
            "reports among those of others."
        )
    allowed = required.epsilon * (1 + ROUNDED)
    if not holds(stream.message(), allowed, required.delta, required.crowd):
        raise ConfigurationError(
            f"the task promises epsilon {required.epsilon:g} and delta {required.delta:g} among "
            f"{required.min_batch:,} devices, which its reports do not keep."
        )


def fewest_sent(spec: Mapping[str, Any]) -> int:
    """Return how many reports of a period leave the shuffler together; 1 if they are not shuffled.

    That is ``min_batch`` or, with chaff, the number of messages that so many devices send.
    """
    required = requirement(spec)
    if required is None:
        return 1
    return max(required.min_batch, int(spec.get("min_messages", 0)))


def fewest_counted(spec: Mapping[str, Any]) -> int:
    """Return how many valid reports of a period must come together to be counted at all.

    That is :func:`fewest_sent` without those who may collude, and 1 if reports are not shuffled.
    """
    required = requirement(spec)
    if required is None:
        return 1
    return replace(required, min_batch=fewest_sent(spec)).crowd.honest(required.delta)[0]


def kept_among(stream: Shuffled, required: Requirement, reports: int) -> float:
    """Return the epsilon that a batch of so many reports keeps, at the same delta.

    It is never above the local epsilon, which holds whatever becomes of a batch.
    """
    message = stream.message()
    honest, spent = replace(required, min_batch=max(reports, 1)).crowd.honest(required.delta)
    if isinstance(message, HidingByMore):
        honest = message.senders(honest, required.delta)
    reached = best(message, honest, required.delta - spent).epsilon
    return stream.epsilon if reached is None else min(reached, stream.epsilon)
