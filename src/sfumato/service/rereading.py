"""Other ways to look at a task's periods: read again by a decoder, or moved to possible shares.

What was released when a period closed stays final. The page of a task over a horizon opens with it
filtered, which is final, too, and much closer to the truth; what was released is one click away.
Reading many periods again can take longer than anybody waits for a page, so it is done in the
background, one task at a time, and the result is kept until the next period closes.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlencode

from sfumato.core.decoded import ONLINE
from sfumato.core.field_checks import check_one_of
from sfumato.errors import ConfigurationError
from sfumato.queries.postprocessing import PROJECTIONS
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


class Reread(NamedTuple):
    """The periods of a task as a page shows them."""

    releases: tuple[Release, ...]
    """The closed periods, or those that had closed when they were read last."""
    is_waiting: bool = False
    """Whether the periods that have closed since are being read in the background."""


class Rereader:
    """Reads periods again in the background, one task at a time, and keeps the results."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "rereader")
        self._lock = Lock()
        self.kept: dict[tuple[str, Lens], tuple[Release, ...]] = {}
        """The periods that were read, by task and lens; the oldest result comes first."""
        self.pending: dict[tuple[str, Lens], Future[tuple[Release, ...]]] = {}
        """What is being read, or about to be."""

    def stop(self) -> None:
        """Begin nothing new."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def read(self, running: RunningTask, lens: Lens) -> Reread:
        """Return a task's periods as far as they are there; begin to read those that are not."""
        closed = running.closed
        if lens == PLAIN or not closed:
            return Reread(tuple(running.releases[:closed]))
        key = (running.name, lens)
        with self._lock:
            kept = self.kept.get(key, ())
            if len(kept) >= closed:
                return Reread(kept)
            begun = key in self.pending
            if not begun:
                self.pending[key] = self._pool.submit(reread, running, lens)
            pending = self.pending[key]
        try:
            kept = pending.result(0 if begun else AT_ONCE)
        except NotYet:
            return Reread(kept, is_waiting=True)
        except Exception:
            self._settle(key, pending, ())
            raise
        self._settle(key, pending, kept)
        return Reread(kept, is_waiting=len(kept) < closed)

    def _settle(self, key: tuple[str, Lens], done: Future[Any], kept: tuple[Release, ...]) -> None:
        with self._lock:
            if self.pending.get(key) is done:
                del self.pending[key]
            if len(kept) > len(self.kept.pop(key, ())):
                self.kept[key] = kept
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
