"""Leads a task's curator through its periods, round by round, with the recorded tallies.

A curator is deterministic: with the same tallies it asks the same questions. So it is never saved;
after a restart it is led through the recorded tallies again, up to the open round.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Final, Self

import numpy as np

from sfumato.arrays import Bools, Floats
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.stream import Ask, Curator, Place, Stream, Timestep
from sfumato.core.tally import ENROLMENT
from sfumato.errors import MismatchError
from sfumato.queries.honesty import Honesty, Suspicion
from sfumato.store import Release, Store
from sfumato.store.interface import Count
from sfumato.wire.questions import Question
from sfumato.wire.reports import Layout

__all__ = ["LEVEL", "Driver"]


LEVEL: Final = 0.95
"""The level of the intervals of releases."""


class Driver:
    """A curator, its current period and its open question.

    Parameters
    ----------
    stream
        The task's stream.
    store
        The store that records tallies and rounds.
    task_id
        The task's id.
    layout
        The sizes of the task's reports; no question may need longer ones.
    periods
        The number of periods of the task.
    closed
        The last period that has closed.
    silent_if_short
        Whether nothing is released of a period without reports, even if other periods tell of it.

    """

    def __init__(
        self,
        stream: Stream,
        store: Store,
        task_id: bytes,
        layout: Layout,
        *,
        periods: int,
        closed: int,
        silent_if_short: bool = False,
    ) -> None:
        self._stream = stream
        self._store = store
        self._task_id = task_id
        self._layout = layout
        self._periods = periods
        self._silent_if_short = silent_if_short
        self.asked: dict[Place, Ask] = {}
        """All questions so far, by the place of their answers."""
        self.ends: list[tuple[Floats, Floats]] = []
        """The two ends of the intervals of each closed period."""
        self.enrolled: list[int] = []
        """The number of devices that have said by each closed period that they take part."""
        self.suspicions: list[tuple[Suspicion, ...]] = []
        """What honest devices would not have sent of each closed period."""
        self._curator: Curator
        self._honesty: Honesty
        self._owed: int | None = None
        """The closed periods after which a new curator has to go on first; None if none has to."""
        self._restore(closed)

    def _restore(self, closed: int) -> None:
        """Lead a new curator to the round that is open after ``closed`` closed periods.

        Tallies are read for that, and others look at this meanwhile: until the new curator is there
        all stays as it is. If they cannot be read, the next step begins with it.
        """
        self._owed = closed
        vars(self).update(vars(copy(self).led_anew(closed)))

    def led_anew(self, closed: int) -> Self:
        """Return this after a new curator was led to the round after ``closed`` closed periods."""
        self._curator = self._stream.curator()
        self.ends, self.suspicions, self.enrolled = [], [], []
        self._honesty = Honesty(self._stream, self._periods)
        self._begin(1)
        self._lead(closed)
        self._owed = None
        return self

    def _restore_if_owed(self) -> None:
        if self._owed is not None:
            self._restore(self._owed)

    def follow(self, closed: int) -> None:
        """Lead the curator on to the round that is open after ``closed`` closed periods."""
        self._restore_if_owed()
        self._lead(closed)

    def _lead(self, closed: int) -> None:
        while self.period <= closed:
            while (estimate := self._advanced()) is None:
                pass
            self.ends.append(estimate.interval(LEVEL))
            self._begin(self.period + 1)
        rounds = self._store.rounds(self._task_id).get(self.period, 0)
        while self._step is not None and self.round < rounds:
            if self._advanced() is not None:
                raise MismatchError(f"period {self.period} has fewer rounds than were recorded.")

    # ---- its state ---------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The number of the open round, counted from 0."""
        return 0 if self._step is None else self._step.round

    @property
    def question(self) -> Question | None:
        """The open question in the form that devices read; None if devices are not asked."""
        ask = None if self._step is None else self._step.question
        if not isinstance(ask, Ask):
            return None
        return Question.of(self.period, ask)

    # ---- one step ----------------------------------------------------------------------------

    def _begin(self, period: int) -> None:
        self.period = period
        self._step = None if period > self._periods else Timestep(self._curator, period)
        self._opened()

    def _opened(self) -> None:
        """Record the open question, if there is one."""
        if self._step is not None and isinstance(self._step.question, Ask):
            self._layout.fits(self._step.question.mechanism.report_bytes)
            self.asked[self._step.place] = self._step.question

    def _advanced(self) -> Estimate | None:
        """Pass on the tally of the open round; return the estimate, None if more is asked."""
        assert self._step is not None  # noqa: S101 -- nobody closes a round after the last period
        tallies = self._store.tallies(self._task_id, self.period)
        estimate = self._step.answer(self._step.brought(tallies))
        self._opened()
        if estimate is not None:
            self.suspicions.append(self._honesty.judged(self.period, tallies, self.asked))
            joined = sum(each.n for place, each in tallies.items() if place.span == ENROLMENT)
            self.enrolled.append(sum(self.enrolled[-1:]) + joined)
        if estimate is None or tallies or not self._silent_if_short:
            return estimate
        unknown = np.full(len(estimate.values), np.nan)
        nothing = Covariance(np.full_like(unknown, np.inf))
        return Estimate(unknown, nothing, estimate.labels, estimate.n, estimate.guarantee)

    def pack(self, period: int, *, keeps: bool) -> None:
        """Move the contents of a closed period into the log, or erase them if none are kept."""
        once = self._said_once if self._stream.enrols else None
        self._store.pack(self._task_id, period, keeps=keeps, once=once)

    def _said_once(self, contents: bytes) -> Bools:
        return np.asarray(self._layout.contents(contents)["span"] == ENROLMENT)

    def close_round(self, count: Count, *, keeps: bool = True) -> Release | None:
        """Close the open round; return what the period releases if it was the last one.

        No further report of the round counts, and each counts once before its tally is looked at.
        If anything fails, the round stays open as before, but takes no reports, and the next call
        begins with it again.

        Parameters
        ----------
        count
            A function that counts contents.
        keeps
            Whether contents are kept once their period has closed.

        """
        self._restore_if_owed()
        period, number = self.period, self.round
        try:
            self._store.end_round(self._task_id, period, number)
            self._store.settle(self._task_id, period, count)
            estimate = self._advanced()
            if estimate is None:
                self._store.close_round(self._task_id, period, number)
                return None
            self.pack(period, keeps=keeps)
            release = self._closed(period, estimate)
        except BaseException:
            self._restore(period - 1)
            raise
        self._begin(period + 1)
        return release

    def release_counted(self) -> Release:
        """Return what the open period releases, all of whose reports an engine has counted."""
        self._restore_if_owed()
        period = self.period
        try:
            estimate = self._advanced()
            assert estimate is not None  # noqa: S101 -- no engine counts answers to questions
            release = self._closed(period, estimate)
        except BaseException:
            self._restore(period - 1)
            raise
        self._begin(period + 1)
        return release

    def _closed(self, period: int, estimate: Estimate) -> Release:
        """Record what a period releases; return what was recorded first."""
        release = self._release(period, estimate)
        if self._store.close_period(self._task_id, release):
            return release
        # Another process was first; what it has released is what counts.
        (stored,) = self._store.releases(self._task_id, period - 1)[:1]
        return replace(stored, ends=release.ends)

    def _release(self, period: int, estimate: Estimate) -> Release:
        variances = estimate.covariance.variances()
        values = np.where(np.isfinite(variances), estimate.values, np.nan)
        self.ends.append(estimate.interval(LEVEL))
        return Release(period, self._reports(period), values, variances, self.ends[-1])

    def _reports(self, period: int) -> int:
        """Return the number of reports up to and including a period."""
        counted = self._store.participation(self._task_id)
        return sum(n for one, n in counted.items() if one <= period)
