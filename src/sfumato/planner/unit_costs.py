"""What a report costs on one machine, piece by piece: measured, kept in a file, and shipped."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Self

from sfumato.core.field_checks import check_number
from sfumato.errors import ConfigurationError, InputError
from sfumato.wire.reading import read_json

__all__ = ["UnitCosts", "kept_units", "units_file"]

VERSION: Final = 1
OLD: Final = 180
"""The days after which unit costs are called old."""
DAY: Final = 86_400
LARGEST: Final = 1 << 16
"""The largest number of bytes of a file of unit costs."""


@dataclass(frozen=True)
class UnitCosts:
    """What each piece of work costs on one machine.

    All are seconds of processor time and were measured by ``./run bench --units``, unless their
    names end otherwise.

    Parameters
    ----------
    machine
        What they were measured on.
    measured
        The day of the measurement, as in 2026-11-18.
    request_kept, request_new
        An upload at a collector on a kept and on a new connection: bytes, HTTP, receipt.
    round_sqlite, round_postgres
        A round of uploads that are judged and committed together, in the collector: with a store in
        one file, and with a database.
    place_sqlite, place_postgres
        Each further tally that a round adds to.
    database_round, database_place
        The same in the processes of the database.
    seal
        Opening one seal.
    report
        One opened report among many: judged, told from others, counted, stored.
    entry, hashed_entry
        Counting one entry of a report: as it is, and by a hash.
    database_report
        One report among many, in the processes of the database.
    close, close_report
        Closing a period, and each of its reports: finding copies, and packing.
    scan_report
        Reading one report once more while a period closes, which many reports make necessary.
    database_close_report, database_scan_report
        The same of a report, in the processes of the database.
    shuffler_request, shuffler_round, shuffler_report
        An upload at a shuffler; a round of uploads that it writes together; one report among many:
        held, mixed and handed on.
    engine_report
        Reading and counting one exported report in bulk, by the engine of this machine.
    spark_factor
        How many times as much Spark takes for it.
    collector_idle, shuffler_idle
        The share of a core that a process takes while nobody sends.
    handed_connection
        What handing one new connection to a worker costs the process that listens for workers.
    gather_wall, shuffler_gather_wall, hold_wall
        The seconds, by a clock on the wall, for which a round of a collector, and of a shuffler,
        gathers uploads, and for which a shuffler writes them.
    collector_bytes, shuffler_bytes
        The memory of a process before any report comes.
    id_bytes, shuffler_id_bytes
        The memory of the id of a report of an open period.

    """

    machine: str
    measured: str
    request_kept: float
    request_new: float
    round_sqlite: float
    round_postgres: float
    place_sqlite: float
    place_postgres: float
    database_round: float
    database_place: float
    seal: float
    report: float
    entry: float
    hashed_entry: float
    database_report: float
    close: float
    close_report: float
    scan_report: float
    database_close_report: float
    database_scan_report: float
    shuffler_request: float
    shuffler_round: float
    shuffler_report: float
    engine_report: float
    spark_factor: float
    collector_idle: float
    shuffler_idle: float
    handed_connection: float
    gather_wall: float
    shuffler_gather_wall: float
    hold_wall: float
    collector_bytes: float
    shuffler_bytes: float
    id_bytes: float
    shuffler_id_bytes: float

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all costs are numbers from 0 on, and the day is one."""
        if not isinstance(self.machine, str) or not self.machine.isprintable():
            raise ConfigurationError(f"machine is {self.machine!r}; a line of text is expected.")
        try:
            date.fromisoformat(self.measured)
        except (TypeError, ValueError):
            raise ConfigurationError(
                f"measured is {self.measured!r}; a day such as 2026-11-18 is expected."
            ) from None
        for name in COSTS:
            check_number(name, getattr(self, name), least=0.0)

    @classmethod
    def shipped(cls) -> Self:
        """Return the unit costs that come with this package."""
        text = resources.files("sfumato.planner").joinpath("unit_costs.json").read_text("utf-8")
        return cls.parse(text, "the shipped unit costs")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the unit costs in a file; raise InputError if it has none of this version."""
        path = Path(path)
        if not path.is_file():
            raise InputError(
                f"{path} is no file; unit costs that were measured on a machine are expected."
            )
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise InputError(f"{path} is larger than a file of unit costs can be.")
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str | bytes, what: str) -> Self:
        """Return the unit costs in a JSON text; raise InputError, which names it, if it is bad."""
        plain = read_json(text, what)
        if not isinstance(plain, dict) or plain.get("format") != VERSION:
            shown = plain.get("format") if isinstance(plain, dict) else None
            raise InputError(
                f"{what}: format is {shown!r}; unit costs of format {VERSION} are expected: "
                "measure them anew."
            )
        known = {field.name for field in fields(cls)}
        there = plain.keys() - {"format"}
        for wrong, words in ((known - there, "is missing"), (there - known, "is no unit cost")):
            if wrong:
                raise InputError(f"{what}: {min(wrong)} {words}.")
        try:
            return cls(**{name: plain[name] for name in known})
        except ConfigurationError as error:
            raise InputError(f"{what}: {error}") from None

    def encode(self) -> str:
        """Return them as the text of a file."""
        return json.dumps({"format": VERSION, **asdict(self)}, indent=2) + "\n"

    def age(self, today: date | None = None) -> int:
        """Return how many days ago they were measured."""
        today = today or datetime.now(UTC).date()
        return max(0, (today - date.fromisoformat(self.measured)).days)

    def sentence(self, today: date | None = None) -> str:
        """Return when and on what they were measured, in words."""
        days = self.age(today)
        when = "today" if days == 0 else f"{days:,} day{'s' * (days != 1)} ago"
        old = ": that is long ago, so measure them again" if days > OLD else ""
        return f"measured on {self.measured}, {when}, on {self.machine}{old}"


COSTS: Final = tuple(field.name for field in fields(UnitCosts) if field.type == "float")


def units_file() -> Path:
    """Return the file of the unit costs of this machine, as the XDG standard names its folder."""
    kept = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(kept) / "sfumato" / "unit-costs.json"


def kept_units() -> UnitCosts:
    """Return the unit costs of this machine or, if none were measured, those that are shipped."""
    path = units_file()
    return UnitCosts.read(path) if path.exists() else _shipped()


@cache
def _shipped() -> UnitCosts:
    return UnitCosts.shipped()
