"""A service from what its operator has chosen, in one process or in each of several workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.service.asgi import Service
from sfumato.service.caps import Caps
from sfumato.service.collector import Collector
from sfumato.service.crew import Crew
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.report_tables import ReportTables
from sfumato.store.seen_ids import MOST

__all__ = ["ServicePlan"]


@dataclass(frozen=True)
class ServicePlan:
    """What every process of a collector has to know.

    Parameters
    ----------
    store
        The file of the store, or the address of its database.
    base
        The collector's own address, which devices send to.
    rate
        The largest number of requests per second from one client; 0 for no limit.
    proxies
        Addresses or networks of the proxies that are believed when they say for whom they ask.
    key_secret_file
        A file with the secret that wraps the private keys of tasks, if there is one.
    most_ids
        The largest number of ids of open periods that a process has in memory for one task.

    """

    store: str
    base: str
    rate: float = 0.0
    proxies: tuple[str, ...] = ()
    key_secret_file: str | None = None
    most_ids: int = MOST

    @property
    def wrapping(self) -> KeyWrapping:
        """The way in which the store keeps private keys."""
        return KeyWrapping.of(Path(self.key_secret_file) if self.key_secret_file else None)

    def service(
        self, opened: ReportTables, crew: Crew | None = None, caps: Caps | None = None
    ) -> Service:
        """Return the service of an open store; a worker brings what it shares with the others."""
        collector = Collector(
            opened, self.base, most_ids=self.most_ids, wrapping=self.wrapping, caps=caps
        )
        return Service(
            collector, rate=self.rate, proxies=self.proxies, store_file=opened.file, crew=crew
        )
