"""Whether reports are what honest devices send: one judge for the tallies of every stream.

Honest devices blur values that are possible. So what a period's reports say of an entry lies
outside of what is possible by no more than noise explains, and the exact law of the stream's
mechanisms bounds how likely noise is to explain it (:mod:`sfumato.core.doubt`). Where a device
sends a single report over all periods, those of all periods so far are judged together as well,
which notices forgers who move many periods a little.

A task raises a false alarm with a probability below :data:`CHANCE`, over all its periods and
entries, whatever its devices hold and however many take part: each of T periods has an equal part
of this probability, each of a period's K tests an equal part of that, and no test assumes anything
about the others.

Forgers who stay within what is possible cannot be told from devices that hold such values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sfumato.core.domain import Label
from sfumato.core.doubt import Doubt
from sfumato.core.stream import Ask, Place, Stream
from sfumato.core.tally import ENROLMENT, Tally

__all__ = ["CHANCE", "Honesty", "Suspicion"]

CHANCE: Final = 1e-6
"""The probability that a task with honest devices alone has any period flagged."""


@dataclass(frozen=True)
class Suspicion:
    """Something that honest devices would not send.

    Parameters
    ----------
    period
        The period in which it was seen.
    since
        The first period whose reports were judged: the same one, or the task's first.
    what
        What the value is, in words.
    label
        The name of the entry; None if it has none.
    value
        What the reports say of it.
    low, high
        The smallest and the largest value that is possible.
    log_chance
        The natural logarithm of an upper bound on the probability that honest reports say so.

    """

    period: int
    since: int
    what: str
    label: Label | None
    value: float
    low: float
    high: float
    log_chance: float

    @property
    def sentence(self) -> str:
        """What is odd, for people."""
        of = "A value" if self.label is None else f"{self.label!s}"
        when = "" if self.since == self.period else f", in all periods since {self.since:,},"
        tens = -self.log_chance / math.log(10)
        return (
            f"{of}: {self.what}{when} is {self.value:.3g} where {self.low:g} to {self.high:g} is "
            f"possible. Noise alone does that at most once in 10^{math.floor(tens):,}."
        )


class Honesty:
    """Judges the tallies of a task, period by period.

    Parameters
    ----------
    stream
        The task's stream.
    periods
        The number of periods of the task.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.streams.kinds import Binary
    >>> from sfumato.streams.weave import Weave
    >>> stream = Weave(Binary(), 2, 1, 1.0, spans=(0,), shares=(1.0,))
    >>> tally = Tally(1000, np.array([950, 50]))  # 269 of 1,000 reports say "on" if all are off
    >>> [odd] = Honesty(stream, 2).judged(1, {Place(0, 1): tally})
    >>> odd.label, round(odd.value, 2)
    ('on', -0.47)

    """

    def __init__(self, stream: Stream, periods: int) -> None:
        self._stream, self._periods = stream, periods
        self._total: dict[tuple[int, int], Tally] = {}
        self._enrolled = 0

    def judged(
        self, period: int, tallies: Mapping[Any, Tally], asked: Mapping[Place, Ask] | None = None
    ) -> tuple[Suspicion, ...]:
        """Return what is odd about the reports of a period, the most improbable first.

        Parameters
        ----------
        period
            The period; they are judged in order.
        tallies
            Its tallies, by place.
        asked
            The questions that were answered, by place, if devices are asked.

        """
        tests = list(self._tests(tallies, asked or {}))
        if self._stream.enrols:
            tests += self._crowd(period, tallies)
        many = sum(2 * doubt.logs.size for _, doubt in tests)
        if not many:
            return ()
        limit = math.log(CHANCE) - math.log(self._periods) - math.log(many)
        suspicions = [
            Suspicion(
                *(period, since, doubt.what, self._label(doubt, entry)),
                *(float(doubt.values[entry]), doubt.low, doubt.high, float(doubt.logs[entry])),
            )
            for since, doubt in tests
            for entry in (doubt.logs < limit).nonzero()[0].tolist()
        ]
        return tuple(sorted(suspicions, key=lambda each: each.log_chance))

    def _tests(
        self, tallies: Mapping[Any, Tally], asked: Mapping[Place, Ask]
    ) -> Iterator[tuple[int, Doubt]]:
        """Yield the first period whose reports are judged, and the doubt, of each test."""
        for key, tally in tallies.items():
            place = Place(*key)
            if not tally.n or place.span == ENROLMENT:
                continue
            if (doubt := self._stream.doubt(place, tally, asked.get(place))) is not None:
                yield place.period, doubt
            if self._stream.reports_once(place):
                track = (place.span, place.part)
                before = self._total.get(track)
                self._total[track] = tally if before is None else before + tally
                together = self._stream.doubt(place, self._total[track])
                if before is not None and together is not None:
                    yield 1, together

    def _crowd(self, period: int, tallies: Mapping[Any, Tally]) -> Iterator[tuple[int, Doubt]]:
        """Yield the doubt about the number of reports, of which only enrolled devices send any."""
        reports = sum(tally.n for key, tally in tallies.items() if key[0] != ENROLMENT)
        self._enrolled += sum(tally.n for tally in tallies.values()) - reports
        crowd = Tally(self._enrolled, np.array([reports]))
        doubt = self._stream.doubt(Place(ENROLMENT, period), crowd)
        if reports and doubt is not None:
            yield period, doubt

    def _label(self, doubt: Doubt, entry: int) -> Label | None:
        labels = self._stream.labels
        if doubt.about:
            return doubt.about
        return labels[entry] if doubt.logs.size == len(labels) else None
