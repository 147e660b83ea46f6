"""Other ways to look at a task's periods: read again by a decoder, or moved to possible shares.

What was released when a period closed stays final. The page of a task over a horizon opens with it
filtered, which is final, too, and much closer to the truth; what was released is one click away.
Reading many periods again can take longer than anybody waits for a page, so it is done in the
background, in turns between clients, and the result is kept until the next period closes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Final, NamedTuple, Self, TypeAlias
from urllib.parse import urlencode

from sfumato.core.decoded import ONLINE
from sfumato.core.field_checks import check_one_of
from sfumato.errors import ConfigurationError
from sfumato.queries.postprocessing import PROJECTIONS
from sfumato.service.lane import Lane
from sfumato.service.running_task import RunningTask
from sfumato.service.task_driving import LEVEL
from sfumato.store import Release
from sfumato.streams.horizon import SMOOTHED
from sfumato.streams.posterior.believed import (
    FILTERED,
    MOST_PERIODS_JOINED,
    POSTERIOR,
    decoders_by_prior,
)

__all__ = ["PLAIN", "Lens", "Reread", "Rereader", "decoders_of", "opened_by", "reread", "usual"]

AT_ONCE: Final = 0.5
"""The number of seconds that a page waits for curves before it says that they are computed."""
PATIENCE: Final = 30.0
"""The number of seconds since somebody looked last after which nothing is begun for pages."""
MOST_KEPT: Final = 32
"""The largest number of tasks and ways to look at them whose curves are kept."""


@dataclass(frozen=True)
class Lens:
    """A way to look at the periods of a task: a decoder, and a projection if there is one."""

    decoder: str = ONLINE
    projection: str | None = None

    @classmethod
    def of(cls, running: RunningTask, fields: Mapping[str, str]) -> Self:
        """Return what the query of an address asks for; raise ConfigurationError if unknown.

        What it does not say is as in the :func:`usual` way.
        """
        for name in fields:
            if name not in ("decoder", "projection"):
                raise ConfigurationError(
                    f"{name[:40]!r} is no field of a page; it has decoder and projection."
                )
        lens = cls(**{"decoder": usual(running).decoder} | dict(fields))
        check_one_of("decoder", lens.decoder, decoders_of(running))
        if lens.projection is not None:
            check_one_of("projection", lens.projection, PROJECTIONS)
            if not running.protocol.wholes:
                raise ConfigurationError(
                    f"projection is {lens.projection!r}; the shares of this task need not sum to "
                    "one."
                )
        return lens

    @property
    def query(self) -> str:
        """The same as the query of an address; empty if it shows what was released."""
        fields = {"decoder": self.decoder, "projection": self.projection}
        return urlencode({name: to for name, to in fields.items() if to not in (ONLINE, None)})


PLAIN: Final = Lens()
"""What was released when each period closed."""


def usual(running: RunningTask) -> Lens:
    """Return the way in which a task's page opens.

    It is ``filtered`` where a joint posterior of all periods can answer about ranges of them, and
    what was released elsewhere.
    """
    is_joined = running.protocol.decodes and running.periods <= MOST_PERIODS_JOINED
    return Lens(FILTERED) if is_joined else PLAIN


def opened_by(running: RunningTask) -> tuple[str, ...]:
    """Return the decoders that answer a visitor who opens a task's page and asks for ranges."""
    return (ONLINE, FILTERED, POSTERIOR) if usual(running) != PLAIN else (ONLINE,)


def decoders_of(running: RunningTask) -> tuple[str, ...]:
    """Return the decoders that a task's page offers; the first one shows what was released."""
    if not running.protocol.decodes:
        return (ONLINE,)
    return (ONLINE, SMOOTHED, *decoders_by_prior(running.closed))


Sight: TypeAlias = tuple[str, Lens]
"""A task by its name, and a way to look at it."""


class Reread(NamedTuple):
    """The periods of a task as a page shows them."""

    releases: tuple[Release, ...]
    """The closed periods, or those that had closed when they were read last."""
    is_waiting: bool = False
    """Whether the periods that have closed since are being read in the background."""


class Rereader:
    """Reads periods again in the background, in turns between clients, and keeps the results.

    Parameters
    ----------
    lane
        Where it is done; a thread of its own by default.

    """

    def __init__(self, lane: Lane | None = None) -> None:
        self._lane = lane or Lane(1, "rereader")
        self._lock = Lock()
        self.kept: dict[Sight, tuple[Release, ...]] = {}
        """The periods that were read, by task and lens; the oldest result comes first."""
        self.pending: dict[tuple[Sight, str], Future[tuple[Release, ...]]] = {}
        """What is being read, or about to be, by the client that waits."""
        self._looked: dict[Sight, float] = {}
        """When somebody looked last for what is pending, by a monotonic clock."""

    def read(self, running: RunningTask, lens: Lens, client: str = "") -> Reread:
        """Return a task's periods as far as they are there; begin to read those that are not."""
        begun = self.begin(running, lens, client)
        if begun is not None:
            wait([begun], AT_ONCE)
        return self.look(running, lens, begun)

    def begin(
        self, running: RunningTask, lens: Lens, client: str
    ) -> Future[tuple[Release, ...]] | None:
        """Begin to read for a client what is not there yet, and return it; None if all is there."""
        closed, sight = running.closed, (running.name, lens)
        with self._lock:
            if lens == PLAIN or len(self.kept.get(sight, ())) >= closed:
                return None
            self._looked[sight] = time.monotonic()
            if (pending := self.pending.get((sight, client))) is not None:
                return pending
            work, has_left = partial(reread, running, lens), partial(self._is_left, sight)
            pending = self._lane.submit(client, work, ("reread", sight), has_left)
            self.pending[sight, client] = pending
        pending.add_done_callback(partial(self._settle, sight, client))
        return pending

    def look(
        self, running: RunningTask, lens: Lens, begun: Future[tuple[Release, ...]] | None
    ) -> Reread:
        """Return a task's periods as far as they are there, after beginning to read the others."""
        closed, sight = running.closed, (running.name, lens)
        if lens == PLAIN or not closed:
            return Reread(tuple(running.releases[:closed]))
        kept = self.kept.get(sight, ())
        if begun is not None and begun.done() and not begun.cancelled():
            kept = max(begun.result(), kept, key=len)
        return Reread(kept, is_waiting=len(kept) < closed)

    def _is_left(self, sight: Sight) -> bool:
        """Return whether nobody has looked for a while at what is not there yet."""
        return time.monotonic() - self._looked.get(sight, 0.0) > PATIENCE

    def _settle(self, sight: Sight, client: str, done: Future[tuple[Release, ...]]) -> None:
        """Keep what has been read."""
        kept = () if done.cancelled() or done.exception() else done.result()
        with self._lock:
            if self.pending.get((sight, client)) is done:
                del self.pending[sight, client]
                self._looked.pop(sight, None)
            if len(kept) > len(self.kept.get(sight, ())):
                self.kept.pop(sight, None)
                self.kept[sight] = kept
            while len(self.kept) > MOST_KEPT:
                del self.kept[next(iter(self.kept))]


def reread(running: RunningTask, lens: Lens) -> tuple[Release, ...]:
    """Return the closed periods of a task, seen through a lens."""
    if lens.decoder == FILTERED:
        running.history(POSTERIOR)  # will be asked about ranges, so it is prepared from now on
    values, variances, low, high = running.history(lens.decoder).curves(
        lens.decoder, LEVEL, lens.projection
    )
    short = running.short_periods()  # nothing was released of them, and nothing is
    return tuple(
        release
        if release.period in short
        else replace(
            release, values=values[row], variances=variances[row], ends=(low[row], high[row])
        )
        for row, release in enumerate(running.releases[: len(values)])
    )
