"""Devices that say once that they take part, so that means are over those who have.

What a device says is a message like any other, in a place of its own, and the same for all devices:
that it takes part from a period on. Each counts from then on, to the end of the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.core.doubt import Doubt
from sfumato.core.form import Form
from sfumato.core.tally import ENROLMENT, Tally
from sfumato.errors import ConfigurationError
from sfumato.streams.amplification import requirement
from sfumato.streams.kinds import values_of
from sfumato.wire.values import TaskValues

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.arrays import Array, Bools
    from sfumato.streams.weave.design import WeaveDesign

__all__ = [
    "FORM",
    "SHAPE",
    "Enrolled",
    "doubt_of_crowd",
    "due_share",
    "enrolled_in",
    "refuse_enrolment",
    "refuse_task",
    "told_apart",
]

SHAPE: Final = (1,)
"""The shape of a tally of enrolments: their number."""
_SAID: Final = 1
"""The byte that a device sends."""
_IMPOSSIBLE: Final = -1000 * math.log(10)
"""What is taken for the logarithm of 0."""


def _valid(payloads: Array) -> Bools:
    return np.asarray(payloads == _SAID)


def _counted(payloads: Array) -> Tally:
    return Tally(len(payloads), np.array([len(payloads)]))


FORM: Final = Form(np.dtype("u1"), _valid, _counted)
"""How enrolments are read."""


def refuse_enrolment(*, always_there: bool, shuffled: bool) -> None:
    """Raise ConfigurationError unless the devices of a task can be counted.

    Parameters
    ----------
    always_there
        Whether each device always holds an item.
    shuffled
        Whether reports are shuffled.

    """
    if always_there:
        raise ConfigurationError(
            "enrolment is 'counted' where each device always holds an item; one that has not "
            "joined holds none, so that values with optional = true, sets or binary values are "
            "expected."
        )
    if shuffled:
        raise ConfigurationError(
            "enrolment is 'counted' where reports are shuffled; who takes part would not hide "
            "among the reports, so that it is left out."
        )


def refuse_task(task: Mapping[str, Any]) -> None:
    """Raise ConfigurationError unless the devices of a task in plain data can be counted."""
    values = values_of(TaskValues.of_spec(task))
    shuffled = requirement(task) is not None
    refuse_enrolment(always_there=values.always_there, shuffled=shuffled)


def told_apart(tallies: Mapping[Any, Tally]) -> tuple[dict[Any, Tally], dict[int, int]]:
    """Return the tallies of reports, and the number of enrolments of each period."""
    reports = {place: tally for place, tally in tallies.items() if place[0] != ENROLMENT}
    joined = {place[1]: tally.n for place, tally in tallies.items() if place[0] == ENROLMENT}
    return reports, joined


class Enrolled:
    """The number of devices that take part, as periods close.

    Each device sends one report in a period at most, so there are at least as many devices as that.

    Examples
    --------
    >>> from sfumato.core.tally import Place
    >>> crowd = Enrolled()
    >>> crowd.close({Place(ENROLMENT, 1): Tally(5, np.array([5]))})
    >>> crowd.close({Place(0, 2): Tally(3, np.array([1]))})
    >>> crowd.close({Place(0, 3): Tally(8, np.array([1]))})
    >>> crowd.sizes
    [5, 5, 8]

    """

    def __init__(self) -> None:
        self.enrolled: list[int] = []
        """The number of devices that have said that they take part, by period."""
        self.sizes: list[int] = []
        """The number of devices that there are at least, by period."""
        self._most = 1

    def close(self, tallies: Mapping[Any, Tally]) -> None:
        """Add the tallies of the next period."""
        reports, joined = told_apart(tallies)
        self.enrolled.append(sum(self.enrolled[-1:]) + sum(joined.values()))
        self._most = max(self._most, sum(tally.n for tally in reports.values()))
        self.sizes.append(max(self.enrolled[-1], self._most))


def enrolled_in(periods: Iterable[Mapping[Any, Tally]]) -> Enrolled:
    """Return the devices that take part, from the tallies of each period."""
    crowd = Enrolled()
    for tallies in periods:
        crowd.close(tallies)
    return crowd


def due_share(protocol: WeaveDesign, period: int) -> float:
    """Return the share of devices that send a report about a period."""
    return sum(
        share
        for thread, share in protocol.threads()
        if any(end == period for _, end in protocol.edges(thread))
    )


def doubt_of_crowd(crowd: Tally, share: float) -> Doubt:
    """Return how improbable the reports of a period are if only enrolled devices send them.

    Parameters
    ----------
    crowd
        The number of enrolled devices and, as its sum, of reports.
    share
        The share of devices that send one; reports come only if it is not 0.

    Examples
    --------
    >>> float(doubt_of_crowd(Tally(1000, np.array([300])), 0.3).logs[0])
    0.0
    >>> round(float(doubt_of_crowd(Tally(1000, np.array([600])), 0.3).logs[0]))
    -192

    """
    enrolled, reports = crowd.n, int(crowd.sums.sum())
    logs = 0.0
    if reports > enrolled * share:
        # Chernoff's bound for the number of heads among as many coins.
        part = reports / enrolled if enrolled else math.inf
        logs = _IMPOSSIBLE if part > 1 else -enrolled * _divergence(part, share)
    value, what = np.array([reports / share]), "their number, by a period's reports,"
    return Doubt(value, 0.0, float(enrolled), np.array([logs]), what, "devices")


def _divergence(part: float, share: float) -> float:
    """Return the divergence of two coins."""
    total = part * math.log(part / share)
    if part < 1:
        total += (1 - part) * math.log((1 - part) / (1 - share))
    return total
