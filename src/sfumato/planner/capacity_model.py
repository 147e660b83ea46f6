"""Capacity: the cores, memory, disk and network that a load takes, by role, and what limits it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Final

from sfumato.core.duration import rounded
from sfumato.planner.capacity_roles import Capacity, Limit, Role
from sfumato.planner.joining import Rounds
from sfumato.planner.load import Load
from sfumato.planner.unit_costs import UnitCosts
from sfumato.store.merging import AT_ONCE
from sfumato.store.packing import MOST_BYTES
from sfumato.store.seen_ids import MOST

__all__ = ["MOST_HELD", "capacity"]

FULLEST: Final = 0.7
"""The share of the uploads that a process could take at most, and of a core, that is planned."""
MOST_HELD: Final = 4_000_000
"""The largest number of reports of one task's open periods that a shuffler process holds."""
MOST_WORKERS: Final = 64
"""The largest number of workers that share one file, on one machine."""
LARGEST_DATABASE: Final = 64
"""The number of cores from which on one database is a limit."""
MOST_TOGETHER: Final = 256
"""The number of reports, of many small uploads, that a full round of a collector has."""
HEAD: Final = 250
"""The bytes of the head of a request, and of a response with its receipt."""
BATCH_HEAD: Final = 44
PACKET: Final = 66
"""The bytes of the heads of one packet."""
PACKETS: Final = {"kept": 2, "new": 5}
"""The packets of an upload, in each direction."""
DAY: Final = 86_400


def capacity(load: Load, units: UnitCosts) -> Capacity:
    """Return what a load takes on machines of some unit costs.

    Examples
    --------
    >>> needed = capacity(Load(devices=10_000_000, every=86_400), UnitCosts.shipped())
    >>> needed.cores, [role.name for role in needed.roles]
    (1, ['collectors'])

    """
    roles, chosen = [], load.store
    if load.is_shuffled:
        load = replace(load, shufflers=load.shufflers or _shufflers(load, units))
        roles.append(_shuffler_role(load, units))
    load = replace(load, store=chosen or "sqlite")
    n = load.collectors or _collectors(load, units)
    if chosen is None and n > MOST_WORKERS:
        load = replace(load, store="postgresql")
        n = load.collectors or _collectors(load, units)
    fewest = _collectors(replace(load, collectors=None), units)
    load = replace(load, collectors=n)
    roles.append(_collector_role(load, units))
    if load.store == "postgresql":
        roles.append(_database_role(load, units))
    if load.engine != "none":
        roles.append(_engine_role(load, units))
    limits = (*_too_few(load, units, fewest), *_limits(load, roles))
    return Capacity(load, units, tuple(roles), limits)


# ---- the shuffler ----------------------------------------------------------------------------


def _shuffler_rounds(load: Load, units: UnitCosts) -> Rounds:
    upload = units.shuffler_request + load.batch * units.shuffler_report
    hold = units.hold_wall
    window = units.shuffler_gather_wall + hold
    return Rounds(units.shuffler_round, upload, window, 0.0, most=1024, wall=hold)


def _shufflers(load: Load, units: UnitCosts) -> int:
    rate = load.uploads / load.sending
    by_work = ceil(rate / (FULLEST * _shuffler_rounds(load, units).limit))
    return max(1, by_work, ceil(load.reports / MOST_HELD))


def _shuffler_role(load: Load, units: UnitCosts) -> Role:
    n = load.shufflers or 1
    rounds = _shuffler_rounds(load, units)
    rate = load.uploads / load.sending
    number = load.uploads / rounds.size(rate / n)
    parts = {
        "request": load.uploads * units.shuffler_request,
        "round": number * units.shuffler_round,
        "report": load.reports * units.shuffler_report,
        "idle": n * load.every * units.shuffler_idle,
    }
    came = rate * _bytes_in(load, load.batch)
    handed = rate * load.batch * load.report_bytes
    held = load.reports * (load.report_bytes + 16)
    memory = n * units.shuffler_bytes + load.reports * (
        units.shuffler_id_bytes + 3 * load.report_bytes
    )
    sent, is_full = handed + rate * _bytes_out(load), 1 < n <= ceil(load.reports / MOST_HELD)
    return Role("shufflers", n, n, parts, memory, 2 * held, came, sent, is_full)


# ---- the collectors --------------------------------------------------------------------------


def _together(load: Load) -> float:
    """Return the number of reports of an upload to a collector."""
    return load.mixed if load.is_shuffled else float(load.batch)


def _work(load: Load, units: UnitCosts) -> dict[str, float]:
    """Return what one report costs a collector, beside its request and its round."""
    if load.by_engine:
        return {"report": units.report}
    return {"seal": units.seal * load.sealed, "report": units.report, "count": _count(load, units)}


def _count(load: Load, units: UnitCosts) -> float:
    """Return what it costs to add the entries of a report to a tally."""
    return load.entries * (units.hashed_entry if load.hashed else units.entry)


def _collector_rounds(load: Load, units: UnitCosts) -> Rounds:
    together = _together(load)
    request = units.request_kept
    if not load.is_shuffled and load.connections == "new":
        request = units.request_new
    each = sum(_work(load, units).values())
    is_file = load.store == "sqlite"
    fixed = units.round_sqlite if is_file else units.round_postgres
    place = units.place_sqlite if is_file else units.place_postgres
    most = max(1.0, MOST_TOGETHER / together)
    rounds = Rounds(fixed, request + together * each, units.gather_wall, together * each, most=most)
    size = rounds.size(_rate(load) / (load.collectors or _fewest(load, rounds)))
    further = _places(load, size * together) - 1
    return replace(rounds, fixed=fixed + further * place)


def _places(load: Load, reports: float) -> float:
    """Return the mean number of tallies that a round of reports adds to."""
    many = float(load.places)
    return max(1.0, many * -((1 - 1 / many) ** reports - 1)) if many > 1 else 1.0


def _rate(load: Load) -> float:
    """Return the number of uploads to all collectors in a second, at the peak."""
    return load.reports / _together(load) / load.sending


def _fewest(load: Load, rounds: Rounds) -> int:
    by_work = _rate(load) / (FULLEST * rounds.limit)
    return max(1, ceil(by_work), ceil(load.reports / MOST))


def _collectors(load: Load, units: UnitCosts) -> int:
    return _fewest(load, _collector_rounds(load, units))


def _collector_role(load: Load, units: UnitCosts) -> Role:
    n, together = load.collectors or 1, _together(load)
    rounds, each, rate = _collector_rounds(load, units), _work(load, units), _rate(load)
    uploads = load.reports / together
    # Workers on one file are handed their connections by the process that listens.
    handed = load.store == "sqlite" and n > 1 and load.connections == "new"
    parts = {
        "request": uploads * (rounds.upload - together * sum(each.values())),
        "handing": uploads * units.handed_connection * handed,
        "round": uploads / rounds.size(rate / n) * rounds.fixed,
        **{name: load.reports * cost for name, cost in each.items()},
        "close": units.close
        + load.reports * (units.close_report + _scans(load) * units.scan_report),
        "idle": n * load.every * units.collector_idle,
    }
    closing = 24 * min(load.reports, AT_ONCE) + 2 * min(
        load.reports * load.content_bytes, MOST_BYTES
    )
    memory = n * (units.collector_bytes + closing) + load.reports * units.id_bytes
    received, sent = rate * _bytes_in(load, together), rate * _bytes_out(load)
    is_full, disk = 1 < n <= ceil(load.reports / MOST), _disk(load)
    if load.store == "postgresql":
        disk, sent = 0.0, sent + _stored(load)
    return Role("collectors", n, n, parts, memory, disk, received, sent, is_full)


def _scans(load: Load) -> int:
    """Return how many times the reports of a period are read once more while it closes.

    Ids are sorted a range of them at a time, twice, and contents put in order a part at a time.
    """
    by_ids = ceil(load.reports / AT_ONCE) - 1
    return 2 * by_ids + ceil(load.reports * load.content_bytes / MOST_BYTES) - 1


# ---- the database and the engine -------------------------------------------------------------


def _database_role(load: Load, units: UnitCosts) -> Role:
    n, together, rate = load.collectors or 1, _together(load), _rate(load)
    size = _collector_rounds(load, units).size(rate / n)
    number = load.reports / together / size
    places = _places(load, size * together) - 1
    parts = {
        "round": number * (units.database_round + places * units.database_place),
        "report": load.reports * units.database_report,
        "close": load.reports
        * (units.database_close_report + _scans(load) * units.database_scan_report),
    }
    coming = parts["round"] + parts["report"]
    cores = max(1, ceil((coming / load.sending + parts["close"] / load.every) / FULLEST))
    memory = 1 << 30
    return Role("database", 1, cores, parts, memory, 2 * _disk(load), _stored(load), 0.0)


def _engine_role(load: Load, units: UnitCosts) -> Role:
    factor = units.spark_factor if load.engine == "spark" else 1.0
    parts = {
        "report": factor * load.reports * units.engine_report,
        "count": factor * load.reports * _count(load, units),
    }
    if load.by_engine and load.sealed:
        parts["seal"] = load.reports * units.seal  # which is what it is, whoever opens it
    cores = max(1, ceil(sum(parts.values()) / load.every / FULLEST))
    received = load.reports * load.content_bytes / load.every
    return Role(f"engine ({load.engine})", cores, cores, parts, cores * float(1 << 30), 0, received)


# ---- bytes -----------------------------------------------------------------------------------


def _bytes_in(load: Load, together: float) -> float:
    """Return the bytes of an upload on the network."""
    body = BATCH_HEAD + together * load.report_bytes
    return body + HEAD + max(PACKETS[load.connections], body / 1400) * PACKET


def _bytes_out(load: Load) -> float:
    return HEAD + PACKETS[load.connections] * PACKET


def _stored(load: Load) -> float:
    """Return the bytes per second that collectors write to their database, at the peak."""
    return load.reports * (load.content_bytes + 16) / load.sending


def _disk(load: Load) -> float:
    """Return the bytes of what is kept, of a day if that is for ever, and of open periods."""
    periods = (DAY if isinstance(load.keep, str) else load.keep or 0) / load.every
    # What an engine counts is kept for the period that it takes.
    logged = load.reports * load.content_bytes * (1.0 if load.by_engine else periods)
    return logged + load.reports * (2 * (load.content_bytes + 16) + 8)


# ---- limits ----------------------------------------------------------------------------------


def _too_few(load: Load, units: UnitCosts, fewest: int) -> Iterator[Limit]:
    """Yield the roles that were given fewer processes than they need."""
    needed = [("collectors", load.collectors or 1, fewest)]
    if load.is_shuffled:
        needed.append(("shufflers", load.shufflers or 1, _shufflers(load, units)))
    for name, there, least in needed:
        if there < least:
            yield Limit(
                f"too few {name}",
                f"{there:,} of the {name} cannot take all of it; {least:,} or more are needed.",
            )


def _limits(load: Load, roles: list[Role]) -> Iterator[Limit]:
    """Yield what more cores do not help with."""
    closing = sum(role.parts.get("close", 0.0) for role in roles)
    if closing > FULLEST * load.every:
        yield Limit(
            "closing a period, which one process does",
            f"One process closes a period of a task, in {rounded(closing)} where a period has "
            f"{rounded(load.every)}: publish the task several times, for a part of the devices "
            "each, or let periods be longer.",
        )
    n = load.collectors or 1
    if load.store == "sqlite" and n > MOST_WORKERS:
        yield Limit(
            "one file, which one machine has",
            f"A file takes up to {MOST_WORKERS} workers of one collector, and {n:,} are needed: "
            "keep reports in a database.",
        )
    for role in roles:
        if role.name == "database" and role.cores > LARGEST_DATABASE:
            yield Limit(
                "one database",
                f"One database would need {role.cores:,} cores: publish the task several times, "
                "each with a database of its own, or let devices send batches.",
            )
    if load.is_shuffled and load.min_batch is not None:
        crowd = load.reports / (load.shufflers or 1)
        if crowd < load.min_batch:
            yield Limit(
                "too few reports for each shuffler",
                f"{crowd:,.0f} reports of a period come to each of {load.shufflers:,} shufflers, "
                f"which erase fewer than {load.min_batch:,}.",
            )
