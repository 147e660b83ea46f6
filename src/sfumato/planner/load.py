"""The load of a task: how many devices send what, when, and where it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sfumato.core.duration import length
from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.errors import ConfigurationError
from sfumato.streams.amplification import fewest_sent, requirement
from sfumato.wire.reports import LARGEST_MIXED, LARGEST_PAYLOAD, MOST_REPORTS, Layout
from sfumato.wire.sealing import OVERHEAD
from sfumato.wire.task import COUNTS, FOR_EVER, MOST_ENTRIES, MOST_PEOPLE

if TYPE_CHECKING:
    from sfumato.core.stream import Stream
    from sfumato.wire.task import Task

__all__ = ["CONNECTIONS", "ENGINES", "STORES", "Load"]

STORES: Final = ("sqlite", "postgresql")
CONNECTIONS: Final = ("kept", "new")
ENGINES: Final = ("none", "local", "spark")
USUAL_PEAK: Final = 3.0
"""How many times the mean the peak is taken to be if nobody says."""
LONGEST: Final = 100 * 365 * 86_400
MOST_PROCESSES: Final = 10**15


@dataclass(frozen=True)
class Load:
    """What comes in, and how it is run.

    Parameters
    ----------
    devices
        The number of devices.
    every
        The length of a period in seconds.
    messages
        The mean number of reports that a device sends in a period.
    batch
        The number of reports in an upload; more than one if a gateway joins those of many devices.
    peak
        The peak of uploads, as a multiple of their mean.
    connections
        Whether uploads come on connections that are kept, as from a proxy, or on new ones.
    sealed
        Whether reports are sealed.
    payload
        The number of bytes of a payload.
    entries
        The number of entries of a value, each of which is counted.
    hashed
        Whether entries are counted by a hash.
    places
        The number of tallies to which the reports of a period are added.
    min_batch
        The smallest number of reports that a shuffler hands on; None without a shuffler.
    store
        Where a collector keeps what it receives: one file (``sqlite``), or a database; None for
        a file as long as one machine is enough.
    collectors, shufflers
        The number of processes; None for as many as are needed.
    keep
        For how many seconds contents are kept after their period, or ``for ever``; None if they
        are erased when it closes.
    counts
        Who opens and counts reports: the ``collector``, or an ``engine`` once a period has closed.
    engine
        Which engine counts what was kept: ``none``, ``local`` or ``spark``.

    Examples
    --------
    >>> Load(devices=1_000_000, every=3600).reports
    1000000.0
    >>> Load(devices=0, every=3600)
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: devices is 0; a whole number in 1..1000000000000000 is ...

    """

    devices: int
    every: int
    messages: float = 1.0
    batch: int = 1
    peak: float = USUAL_PEAK
    connections: str = "kept"
    sealed: bool = True
    payload: int = 8
    entries: int = 16
    hashed: bool = False
    places: int = 1
    min_batch: int | None = None
    store: str | None = None
    collectors: int | None = None
    shufflers: int | None = None
    keep: int | str | None = None
    counts: str = "collector"
    engine: str = "none"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all of it is possible, and goes together."""
        check_whole("devices", self.devices, 1, MOST_PEOPLE)
        check_whole("every", self.every, 1, LONGEST)
        check_number("messages", self.messages, above=0.0, most=1e6)
        check_whole("batch", self.batch, 1, MOST_REPORTS)
        check_number("peak", self.peak, least=1.0, most=float(self.every))
        check_one_of("connections", self.connections, CONNECTIONS)
        check_whole("payload", self.payload, 1, LARGEST_PAYLOAD)
        check_whole("entries", self.entries, 1, MOST_ENTRIES)
        check_whole("places", self.places, 1, 1 << 32)
        if self.store is not None:
            check_one_of("store", self.store, STORES)
        check_one_of("engine", self.engine, ENGINES)
        check_one_of("counts", self.counts, COUNTS)
        if self.by_engine and self.engine == "none":
            raise ConfigurationError(
                "engine is 'none' where counts is 'engine'; local or spark is expected."
            )
        for name, most in (
            ("collectors", MOST_PROCESSES),
            ("shufflers", MOST_PROCESSES),
            ("keep", LONGEST),
            ("min_batch", MOST_REPORTS // 2),
        ):
            if getattr(self, name) not in (None, FOR_EVER):
                check_whole(name, getattr(self, name), 1, most)
        self._check_shuffler()

    def _check_shuffler(self) -> None:
        if self.min_batch is None:
            if self.shufflers is not None:
                raise ConfigurationError(
                    f"shufflers is {self.shufflers} where nothing is shuffled; name a min_batch."
                )
            return
        if not self.sealed:
            raise ConfigurationError(
                "sealed is False where reports go through a shuffler, which would read them."
            )
        crowd = self.reports / (self.shufflers or 1)
        if crowd < self.min_batch:
            raise ConfigurationError(
                f"min_batch is {self.min_batch:,}, and {crowd:,.0f} reports of a period come to a "
                "shuffler: it erases them all; more devices, longer periods or fewer shufflers are "
                "expected."
            )

    @classmethod
    def of(cls, task: Task, stream: Stream, devices: int, **run: Any) -> Load:
        """Return the load of a task, which says the rest; ``run`` are further fields.

        A number of reports that depends on what devices are asked is the most that they answer.
        """
        if run.setdefault("every", task.period_seconds) != task.period_seconds:
            raise ConfigurationError(
                f"every is {length(run['every'])} where the task's period is "
                f"{length(task.period_seconds)}; leave it out."
            )
        sent = stream.sent
        required = requirement(task.plain())
        known: dict[str, Any] = {
            "messages": max(sent.messages / (stream.horizon or 1), 1e-6),
            "payload": stream.payload,
            "entries": len(stream.labels),
            "hashed": stream.rounds > 0,
            "places": max(len(stream.tracks), 1),
            "keep": task.keep,
        }
        if required is not None:
            known["min_batch"] = fewest_sent(task.plain())
        if task.counts == "engine":
            known |= {"counts": "engine", "engine": "local"}
        return cls(devices, **(known | run))

    @property
    def by_engine(self) -> bool:
        """Whether collectors leave reports as they come, for an engine to open and count."""
        return self.counts == "engine"

    @property
    def is_shuffled(self) -> bool:
        """Whether reports come through a shuffler."""
        return self.min_batch is not None

    @property
    def reports(self) -> float:
        """The mean number of reports of a period."""
        return self.devices * self.messages

    @property
    def uploads(self) -> float:
        """The mean number of uploads of devices in a period."""
        return self.reports / self.batch

    @property
    def sending(self) -> float:
        """The seconds in which the uploads of a period come, at the rate of the peak."""
        return self.every / self.peak

    @property
    def report_bytes(self) -> int:
        """The number of bytes of a report as it is sent."""
        return self._layout.report_dtype.itemsize

    @property
    def content_bytes(self) -> int:
        """The number of bytes of a report as it is kept."""
        if self.by_engine and self.sealed:
            return self._layout.named_dtype.itemsize
        return self._layout.content_dtype.itemsize

    @property
    def _layout(self) -> Layout:
        return Layout(self.payload, OVERHEAD if self.sealed else 0)

    @property
    def mixed(self) -> float:
        """The number of reports that a shuffler hands on together, on average."""
        most = min(MOST_REPORTS, LARGEST_MIXED // self.report_bytes)
        crowd = self.reports / (self.shufflers or 1)
        return crowd / -(-crowd // most)
