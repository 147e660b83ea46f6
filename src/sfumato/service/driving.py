"""Drives a task's curator through its periods, round by round, by what the store has recorded.

A curator is deterministic and draws nothing: fed with the same tallies it asks the same questions.
So it is never saved; after a restart it is led through the recorded tallies again, up to the round
that was open.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import numpy as np

from sfumato.core.estimate import Estimate
from sfumato.core.protocol import Ask, Curator, Due
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import MismatchError
from sfumato.store import Release, Store
from sfumato.streams.specs import Streams
from sfumato.wire.questions import Question
from sfumato.wire.reports import Layout

__all__ = ["ASKED", "Driver"]

ASKED: Final = 0
"""What answers to questions have where others have their span; their block is the round."""


class Driver:
    """A curator, the period it is in, and the question it has open.

    Parameters
    ----------
    protocol
        The task's.
    store
        Where tallies and rounds are recorded.
    task_id
        Of the task.
    layout
        Of its reports: no question may need longer ones.
    periods
        How many there are.
    closed
        The last period that was released.

    """

    def __init__(
        self,
        protocol: Streams,
        store: Store,
        task_id: bytes,
        layout: Layout,
        *,
        periods: int,
        closed: int,
    ) -> None:
        self._protocol = protocol
        self._store = store
        self._task_id = task_id
        self._layout = layout
        self._periods = periods
        self._open: Due | Ask | None = None
        self.asked: dict[tuple[int, int], Ask] = {}
        """Every question so far, by period and round."""
        self.restore(closed)

    def restore(self, closed: int) -> None:
        """Lead a new curator to the round that is open after so many released periods."""
        self._curator: Curator = self._protocol.curator()
        for period in range(1, closed + 1):
            self._begin(period)
            while self._advanced() is None:
                pass
        self._begin(closed + 1)
        for _ in range(self._store.rounds(self._task_id).get(closed + 1, 0)):
            if self._advanced() is not None:
                raise MismatchError(f"period {closed + 1} has fewer rounds than were recorded.")

    # ---- where it stands ---------------------------------------------------------------------

    @property
    def ask(self) -> Ask | None:
        """The question that is open, if devices are asked anew."""
        return self._open if isinstance(self._open, Ask) else None

    @property
    def question(self) -> Question | None:
        """The same, as devices are told."""
        ask = self.ask
        if ask is None:
            return None
        plain = ask.mechanism.configuration()
        return Question(self.period, self.round, plain, ask.probability)

    # ---- one step ----------------------------------------------------------------------------

    def _begin(self, period: int) -> None:
        self.period, self.round = period, 0
        if period > self._periods:
            self._open = None
            return
        self._step: Generator[Due | Ask, Tallies[Any] | Tally, Any] = self._curator.timestep(period)
        self._opened(next(self._step))

    def _opened(self, question: Due | Ask) -> None:
        self._open = question
        if isinstance(question, Ask):
            self._layout.fits(question.mechanism.report_bytes)
            self.asked[(self.period, self.round)] = question

    def _advanced(self) -> Any:
        """Feed the tally of the open round; return what is released, None if more is asked."""
        tallies = self._store.tallies(self._task_id, self.period)
        given: Tallies[Any] | Tally = tallies
        if isinstance(self._open, Ask):
            place = (ASKED, self.period, self.round)
            nothing = Tally.zero(self._open.mechanism.tally_shape)
            given = tallies.get(place, nothing)
        try:
            following = self._step.send(given)
        except StopIteration as done:
            return done.value
        if isinstance(following, Due):
            raise MismatchError(f"period {self.period} waits twice; one wait is known.")
        self.round += 1
        self._opened(following)
        return None

    def close_round(self) -> Release | None:
        """End the round that is open, and write it down; return what the period releases, if all.

        If anything fails, nothing has happened: the round is still open.
        """
        period, number = self.period, self.round
        try:
            released = self._advanced()
            if released is None:
                self._store.close_round(self._task_id, period, number)
                return None
            release = self._release(period, released)
            self._store.close_period(self._task_id, release)
        except BaseException:
            self.restore(period - 1)
            raise
        self._begin(period + 1)
        return release

    def _release(self, period: int, released: Any) -> Release:
        if isinstance(released, Estimate):
            variances = released.covariance.variances()
            return Release(period, self._reports(period), released.values, variances)
        values = np.where(np.isfinite(released.variance), released.values, np.nan)
        return Release(period, self._reports(period), values, released.variance)

    def _reports(self, period: int) -> int:
        """Return how many reports there are up to a period."""
        counted = self._store.participation(self._task_id)
        return sum(n for one, n in counted.items() if one <= period)
