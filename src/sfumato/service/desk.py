"""One running task: its protocol and keys, what has closed, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato.core.estimate import Estimate
from sfumato.core.protocol import Ask
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.queries.history import History
from sfumato.service.judging import Judge
from sfumato.store import Release, Store, StoredTask
from sfumato.streams.flat import Flat
from sfumato.streams.specs import protocol_of
from sfumato.wire.published import Published
from sfumato.wire.reports import Layout
from sfumato.wire.sealing import OVERHEAD

__all__ = ["Desk"]


class Desk:
    """A task and the state it is in.

    Parameters
    ----------
    stored
        As the store has it.
    store
        Where its tallies are.
    base
        The collector's address, where devices send.

    """

    def __init__(self, stored: StoredTask, store: Store, base: str = "") -> None:
        given = Published.parse(stored.published)
        endpoint = f"{base}/v1/tasks/{stored.task_id.hex()}/reports"
        self.published = Published(given.spec, given.keys, endpoint)
        self.task_id = stored.task_id
        self.name = stored.task_id.hex()
        self.public = stored.public
        self.protocol = protocol_of(given.spec)
        self.layout = Layout(self.protocol.payload, OVERHEAD if given.keys else 0)
        self.judge = Judge(self.protocol, self.layout)
        self.keys = {
            name: X25519PrivateKey.from_private_bytes(key) for name, key in stored.keys.items()
        }
        self.releases = store.releases(self.task_id)
        self._store = store
        self._curator = self.protocol.curator()
        for release in self.releases:
            self._step(release.period)
        self._asked: tuple[int, History] | None = None
        self._lock = Lock()

    # ---- time --------------------------------------------------------------------------------

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return len(self.releases)

    @property
    def is_over(self) -> bool:
        """Whether all periods have closed."""
        return self.closed == self.protocol.periods

    def period_at(self, now: float) -> int:
        """Return the period that goes on at a time; 0 before the first, T + 1 after the last."""
        spec = self.published.spec
        passed = int((now - spec["start"]) // spec["period_seconds"])
        return min(max(passed + 1, 0), self.protocol.periods + 1)

    def closes_at(self, period: int) -> float:
        """Return when no report of a period is taken any more."""
        spec = self.published.spec
        return float(spec["start"] + period * spec["period_seconds"] + spec["grace"])

    def due(self, now: float) -> Iterator[int]:
        """Yield the periods that should have closed by now and have not, in order."""
        for period in range(self.closed + 1, self.protocol.periods + 1):
            if self.closes_at(period) > now:
                return
            yield period

    # ---- closing -----------------------------------------------------------------------------

    def close(self, period: int) -> Release:
        """Release a period's estimate; it is final."""
        estimate = self._step(period)
        variances = estimate.covariance.variances()
        release = Release(period, estimate.n, estimate.values, variances)
        self._store.close_period(self.task_id, release)
        self.releases.append(release)
        return release

    def _step(self, period: int) -> Estimate:
        """Drive the curator through a period by the tallies that the store has."""
        step = self._curator.timestep(period)
        asked = next(step)
        if isinstance(asked, Ask):
            raise MismatchError(f"period {period} asks devices anew; standing questions are known.")
        try:
            asked = step.send(self._store.tallies(self.task_id, period))
        except StopIteration as done:
            found: Estimate = done.value
            return found
        raise MismatchError(f"period {period} has a second question, {asked}; one is known.")

    # ---- asking ------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[Any, ...]:
        """What the entries are called."""
        if isinstance(self.protocol, Flat):
            return self.protocol.labels
        return tuple(self.protocol.values.labels)

    def history(self) -> History:
        """Return all that can be asked; raise if it is too early for that."""
        if isinstance(self.protocol, Flat):
            raise ConfigurationError("the task asks for moves; their releases are all there is.")
        with self._lock:
            closed = self.closed
            if not closed:
                raise MismatchError(
                    "no period has closed yet; the first answer comes when one does."
                )
            if self._asked is None or self._asked[0] != closed:
                tallies: Tallies[Any] = self._store.tallies(self.task_id)
                self._asked = (closed, History(self.protocol, tallies, closed))
            return self._asked[1]

    def participation(self) -> dict[int, int]:
        """Return how many reports each period has."""
        return self._store.participation(self.task_id)
