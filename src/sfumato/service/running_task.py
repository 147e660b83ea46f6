"""A running task: its stream and keys, its releases, and the history for questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from threading import RLock
from typing import Any, ClassVar, Final, cast

import numpy as np

from sfumato.accounting.shuffle import Requirement
from sfumato.arrays import Array, Bools, Ints
from sfumato.core.computed import Computed
from sfumato.core.decoded import ONLINE, over_whom
from sfumato.queries.history import History
from sfumato.queries.honesty import Suspicion
from sfumato.service.engine_lag import EngineLag
from sfumato.service.kept_history import KeptHistory
from sfumato.service.task_driving import Driver
from sfumato.service.task_summary import TaskSummary
from sfumato.store import EngineProgress, Release, Store, StoredTask
from sfumato.store.interface import MOST_LATE
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.streams.amplification import Shuffled, fewest_counted, requirement
from sfumato.streams.judging import Judge
from sfumato.streams.registry import stream_of
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Layout
from sfumato.wire.sealing import OVERHEAD
from sfumato.wire.sqlite_tables import Damaged
from sfumato.wire.task import FOR_EVER
from sfumato.wire.unsealing import Key

__all__ = ["RunningTask"]


CROWD: Final = 1_000
MOST_PERIODS_FORGED: Final = 256
"""What a forger moves in more periods takes seconds to compute; `sfumato plan` takes the time."""


def _has_its_keys(spec: Mapping[str, Any], stored: StoredTask) -> bool:
    """Return whether a task has keys if its reports are sealed; an archived one needs none."""
    return bool(spec["sealed"]) == bool(stored.keys) or (stored.archived and not stored.keys)


class RunningTask:
    """A published task and its state; its reports are opened and counted as they come.

    Parameters
    ----------
    stored
        The task as stored.
    store
        The store with the task's tallies.
    base
        The collector's address, which devices send to.
    wrapping
        The way in which the store keeps private keys; None if none of them is to be opened.

    """

    opens: ClassVar[bool] = True
    """Whether this collector opens and judges reports."""
    progress: EngineProgress | None = None
    """How far the engine has come; None if no engine counts."""

    def __init__(
        self,
        stored: StoredTask,
        store: Store,
        base: str = "",
        wrapping: KeyWrapping | None = None,
    ) -> None:
        self.task_id = stored.task_id
        self.name = stored.task_id.hex()
        self.public = stored.public
        self._store = store
        self._base = base
        self._wrapping = wrapping
        self.elsewhere = Published.parse(stored.published).endpoint
        self.renew(stored)
        spec = self.published.spec
        if self.published.task_id != self.task_id or not _has_its_keys(spec, stored):
            raise Damaged(f"the store of task {self.name[:12]}", "the task is not what it was")
        self.protocol = stream_of(spec)
        self.periods = int(spec["periods"])
        self.layout = Layout(self.protocol.payload, OVERHEAD if spec["sealed"] else 0)
        released = store.releases(self.task_id)
        self.driver = Driver(
            self.protocol,
            store,
            self.task_id,
            self.layout,
            periods=self.periods,
            closed=len(released),
            silent_if_short=self.is_mixed,
        )
        self.releases = [
            replace(release, ends=ends)
            for release, ends in zip(released, self.driver.ends, strict=True)
        ]
        self.judge = Judge(self.protocol, self.layout, self.driver.asked)
        self.kept_history = KeptHistory(self._history)
        self._suspicions: dict[int, tuple[Suspicion, ...]] = {}
        self._judged = 0
        """The last period that was looked at for what honest devices would not have sent."""
        self._moving = RLock()
        """Held while the task goes on to its next round or period."""

    def renew(self, stored: StoredTask) -> None:
        """Take over the published task and its keys from the store."""
        published = Published.parse(stored.published)
        here = f"{self._base}/v1/tasks/{self.name}/reports"
        self.published = Published(
            published.spec, published.keys, self.elsewhere or here, stored.last_period
        )
        self.is_archived = stored.archived
        self.gaps = tuple(stored.gaps)
        keys: dict[int, Key] = {}
        if self._wrapping is not None:
            for number, kept in stored.keys.items():
                private = self._wrapping.unwrap(stored.task_id, number, kept)
                keys[number] = Key.of(published.spec, number, private)
        self.keys = keys  # at once, because reports are opened meanwhile
        self.until = dict(stored.until)

    @property
    def summary(self) -> TaskSummary:
        """The task in a few words."""
        spec = self.published.spec
        return TaskSummary(
            task_id=self.name,
            title=spec["title"],
            epsilon=spec["epsilon"],
            periods=spec["periods"],
            period_seconds=spec["period_seconds"],
            start=spec["start"],
            closed=self.closed,
            public=self.public,
            guarantee=str(self.protocol.guarantee),
            offers=[str(offer) for offer in self.protocol.offers],
            last_period=self.published.last_period,
            archived=self.is_archived,
        )

    @property
    def is_mixed(self) -> bool:
        """Whether reports come through a shuffler, and from nobody else."""
        return self.required is not None

    @cached_property
    def required(self) -> Requirement | None:
        """The promise about shuffled reports; None if reports are not shuffled."""
        return requirement(self.published.spec)

    @Computed
    def influence(self) -> float | None:
        """How far one forged device among 1,000 moves a value; None if that is not known."""
        return self.protocol.influence(CROWD) if self.periods <= MOST_PERIODS_FORGED else None

    @cached_property
    def fewest_counted(self) -> int:
        """The smallest number of valid reports of one batch and period that are counted."""
        return fewest_counted(self.published.spec)

    @property
    def shuffled(self) -> Shuffled:
        """The stream of a task whose reports are shuffled."""
        stream: Any = self.protocol  # a task with a `shuffle` has a stream of this kind
        return cast("Shuffled", stream)

    @property
    def is_interactive(self) -> bool:
        """Whether devices are asked questions in each period."""
        return self.protocol.rounds > 0

    # ---- time --------------------------------------------------------------------------------

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return len(self.releases)

    @property
    def sealed(self) -> int:
        """The last period that takes no more reports."""
        return self.closed

    @property
    def lag(self) -> EngineLag | None:
        """The periods that have closed and that no engine has counted yet, if one counts."""
        return None

    @property
    def is_over(self) -> bool:
        """Whether no further period closes."""
        return self.closed >= self.published.periods

    @property
    def was_ended(self) -> bool:
        """Whether the task was ended before its time."""
        return self.published.last_period is not None

    def period_at(self, now: float) -> int:
        """Return the period at a time; 0 before the first, T + 1 after the last."""
        spec = self.published.spec
        passed = int((now - spec["start"]) // spec["period_seconds"])
        return min(max(passed + 1, 0), self.periods + 1)

    def last_ended(self, now: float) -> int:
        """Return the last period that has ended at a time, or has closed."""
        return max(0, min(self.period_at(now) - 1, self.periods), self.closed)

    def ends_at(self, period: int) -> float:
        """Return the time when a period ends and its first question, if any, opens."""
        spec = self.published.spec
        return float(spec["start"] + period * spec["period_seconds"])

    def closes_at(self, period: int) -> float:
        """Return the time after which no report of a period is accepted."""
        # Devices have the grace for sending and, if there is a shuffler, it has as much again.
        return self.ends_at(period) + self.grace * (1 + self.is_mixed)

    @property
    def keeps_contents(self) -> bool:
        """Whether contents are kept once their period has closed; tasks of before do not say so."""
        return bool(self.published.spec.get("keep", FOR_EVER))

    def erased_at(self, now: float) -> int:
        """Return the last period whose contents are kept no longer at a time; 0 if all are kept."""
        spec = self.published.spec
        keep = spec.get("keep", FOR_EVER)
        if keep == FOR_EVER:
            return 0
        passed = now - self.closes_at(0) - keep
        return max(0, min(int(passed // spec["period_seconds"]), self.closed))

    @property
    def grace(self) -> float:
        """The time, in seconds, that devices have for sending after a period has ended."""
        return float(self.published.spec["grace"])

    @property
    def next_at(self) -> float:
        """The time when the next period, or round of a period, closes."""
        if not self.is_interactive:
            return self.closes_at(self.closed + 1)
        share = (self.driver.round + 1) / self.protocol.rounds
        open_ = self.grace * min(share, 1.0)
        return self.ends_at(self.driver.period) + open_

    def question_at(self, now: float) -> Question | None:
        """Return the open question at a time; None before the period has ended."""
        if self.is_over or not self.ends_at(self.driver.period) <= now < self.next_at:
            return None
        return self.driver.question

    def last_begun(self, now: float) -> int:
        """Return the last period that reports can be about at a time."""
        if not self.is_interactive:
            return self.period_at(now)
        return self.driver.period - (now < self.ends_at(self.driver.period))

    def is_late(self, periods: Array, contents: Array) -> Bools:
        """Return a mask of the reports that are too late for their period or its round."""
        late = periods <= self.sealed
        if self.is_interactive:
            late |= (periods == self.driver.period) & (contents["block"] < self.driver.round)
        return np.asarray(late)

    def rounds_of(self, contents: Array) -> Ints:
        """Return the round that each report answers; 0 if devices are not asked."""
        if not self.is_interactive:
            return np.zeros(len(contents), dtype=np.int64)
        return np.asarray(contents["block"], dtype=np.int64)

    def counted_before(self, periods: Array, ids: Array) -> Bools:
        """Return a mask of the late reports that are known to have been counted in time."""
        known = np.zeros(len(periods), dtype=bool)
        few = self.protocol.enrols and len(periods) <= MOST_LATE
        for period in np.unique(periods).tolist() if few else [self.sealed]:
            if (rows := periods == period).any():
                known[rows] = self.counted(period, ids[rows].tobytes())
        return known

    def counted(self, period: int, ids: bytes) -> Bools:
        """Return a mask of the ids that were counted in a period that has just been sealed."""
        return self._store.counted(self.task_id, period, ids)

    # ---- closing -----------------------------------------------------------------------------

    def close_next(self) -> Release | None:
        """Close the next round; return what the period releases if it was its last round."""
        with self._moving:
            release = self.driver.close_round(self.judge.count, keeps=self.keeps_contents)
            if release is not None:
                self.releases.append(release)
                self._drop_keys()
            return release

    def release_counted(self) -> list[Release]:
        """Return what the periods release that an engine has counted since."""
        return []

    def follow(self) -> list[Release]:
        """Take over what other processes have closed since; return what was released."""
        with self._moving:
            stored = self._store.releases(self.task_id, self.closed)
            self.driver.follow(self.closed + len(stored))
            new = [
                replace(release, ends=ends)
                for release, ends in zip(stored, self.driver.ends[self.closed :], strict=True)
            ]
            self.releases += new
            if new:
                self._drop_keys()
            return new

    def _drop_keys(self) -> None:
        """Erase the keys whose last period has closed."""
        over = [name for name, last in self.until.items() if last <= self.closed]
        if over:
            self._store.erase_keys(self.task_id)
        for name in over:
            self.keys.pop(name, None)
            del self.until[name]

    # ---- asking ------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The names of the entries."""
        return self.protocol.labels

    def history(self, decoder: str = ONLINE) -> History:
        """Return the history for questions; raise MismatchError if no period has closed yet.

        The decoder is the one that will be asked for; its answers are prepared from then on.
        """
        return self.kept_history.ask(self.closed, decoder)

    def prepare(self) -> None:
        """Read what questions need, if any was asked since the last time; else forget it."""
        self.kept_history.prepare(self.closed)

    def _history(self, closed: int) -> History:
        if self.protocol.decodes:
            return History.of(self.protocol, self._store.tallies(self.task_id), closed)
        released = self.releases[:closed]
        decoded = self.protocol.released(
            np.array([release.values for release in released]),
            np.array([release.variances for release in released]),
            np.diff([0, *(release.n for release in released)]).tolist(),
        )
        return History(self.protocol, decoded)

    def short_periods(self) -> list[int]:
        """Return the closed periods of which nothing is published, because too few reports came."""
        if not self.is_mixed:
            return []
        counted = self.participation()
        return [period for period in range(1, self.closed + 1) if not counted.get(period)]

    def suspicions(self) -> dict[int, tuple[Suspicion, ...]]:
        """Return what honest devices would not have sent, by closed period."""
        judged = self._judged
        new = self.driver.suspicions[judged : self.closed]  # the others were looked at before
        odd = {period: odd for period, odd in enumerate(new, judged + 1) if odd}
        self._suspicions = self._suspicions | odd  # another one, as threads read the one before
        self._judged = judged + len(new)
        return self._suspicions

    def over(self, period: int) -> str:
        """Return over whom means of a closed period are, in words; empty if over who reports."""
        return over_whom(self.driver.enrolled[period - 1]) if self.protocol.enrols else ""

    def incomplete(self) -> list[int]:
        """Return the closed periods that may lack reports, as the store was put in place anew."""
        most = self.closed + 1
        return sorted({p for first, last in self.gaps for p in range(first, min(last + 1, most))})

    def participation(self) -> dict[int, int]:
        """Return the number of reports of each period."""
        return self._store.participation(self.task_id)
