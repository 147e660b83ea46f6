"""`sfumato plan --capacity`: the cores, memory, disk and network that a task takes, by role."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table as Printed

from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.core.duration import length
from sfumato.errors import ConfigurationError, InputError
from sfumato.wire import fields as field_of
from sfumato.wire.task import FOR_EVER, MOST_PEOPLE

if TYPE_CHECKING:
    from sfumato.planner import Capacity, Load, Role, UnitCosts

__all__ = ["NOWHERE", "SizingOptions", "is_named", "number_of_devices", "size"]

_EACH: Final = {"hourly": "1 hour", "daily": "1 day", "weekly": "1 week"}
_SHORT: Final = {
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
}
_OFTEN: Final = {3600: "hourly", 86_400: "daily", 604_800: "weekly"}
_BYTES: Final = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@dataclass(frozen=True)
class SizingOptions:
    """What it takes to run it."""

    capacity: bool = False
    """Say how many cores, how much memory, disk and network it takes, and what limits it."""
    every: str | None = None
    """The length of a period, as in 1h, "15 minutes" or daily; a task file says it itself."""
    grace: str | None = None
    """In how long after a period its reports come; the peak follows from it."""
    peak: float | None = None
    """The peak of uploads, as a multiple of their mean; 3 unless the grace says it."""
    batch: int | None = None
    """The number of reports in an upload; 1 unless a gateway joins those of many devices."""
    connections: str | None = None
    """Whether uploads come on kept connections, as from a proxy, or on new ones; kept."""
    store: str | None = None
    """Where reports are kept: sqlite (one file) or postgresql; a file while one machine does."""
    collectors: int | None = None
    """The number of collector processes; as many as are needed."""
    min_batch: int | None = None
    """Reports come through a shuffler that hands on so many at least; a task file says it."""
    shufflers: int | None = None
    """The number of shuffler processes; as many as are needed."""
    unsealed: bool = False
    """Reports are not sealed."""
    payload: int | None = None
    """The bytes of a report's payload; 8, or what the task's have."""
    items: int | None = None
    """The number of items of a value, each of which is counted; 16, or what the task has."""
    keep: str | None = None
    """How long contents are kept, as in "30 days" or "for ever"; until their period closes unless
    the task says it."""
    engine: str | None = None
    """Who counts what was kept: local or spark."""
    units: Path | None = None
    """A file of unit costs; those that ./run bench --units has kept here, or the shipped ones."""


NOWHERE: Final = SizingOptions()


def is_named(asked: Any) -> str:
    """Return the first of some options that is not as usual; empty if all are."""
    for field in fields(asked):
        if getattr(asked, field.name) != field.default:
            return f"--{field.name.replace('_', '-')}"
    return ""


def number_of_devices(text: str) -> int:
    """Return the number that somebody typed, as in 250000, 250,000 or 1e9."""
    try:
        number = float(text.replace(",", "").replace("_", ""))
        if number == int(number) and 1 <= number <= MOST_PEOPLE:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise InputError(
        f"--devices is {text!r}; a whole number from 1 to {MOST_PEOPLE:g} is expected, as in "
        "250000 or 1e9."
    )


def _seconds(name: str, text: str) -> int:
    """Return a length of time that somebody typed, in seconds."""
    words = _EACH.get(text.strip().lower(), text.strip().lower())
    parsed = re.fullmatch(r"(\d+) *([a-z]+)", words)
    if parsed is not None and parsed[2] in _SHORT:
        words = f"{parsed[1]} {_SHORT[parsed[2]]}"
    try:
        return field_of.seconds(words, (name,))
    except ConfigurationError:
        raise InputError(
            f"--{name} is {text!r}; a length of time is expected, as in 30s, 15min, 1h, 1d, 1w, "
            '"15 minutes" or daily.'
        ) from None


def size(task: Path | None, devices: str | None, asked: SizingOptions) -> Result:
    """Return what the load takes that somebody asks about, with a task file or without."""
    from sfumato.planner import UnitCosts, capacity, kept_units

    units = kept_units() if asked.units is None else UnitCosts.read(asked.units)
    try:
        load = _load(task, devices, asked)
    except ConfigurationError as error:
        raise InputError(f"--{_as_typed(str(error))}") from None
    needed = capacity(load, units)
    return Result(
        {"sentence": _sentence(needed), **needed.plain(), "measured": units.sentence()},
        _text(needed, units),
    )


def _as_typed(words: str) -> str:
    """Return a sentence about a field of a load with the option that it is typed as."""
    for field, option in (("sealed is False", "unsealed is set"), ("entries is", "items is")):
        words = words.replace(field, option, 1) if words.startswith(field) else words
    name, is_, rest = words.partition(" is ")
    return f"{name.replace('_', '-')}{is_}{rest}"


def _load(task: Path | None, devices: str | None, asked: SizingOptions) -> Load:
    from sfumato.planner import Load

    plain = ("batch", "connections", "store", "collectors", "min_batch", "shufflers", "payload")
    run: dict[str, Any] = {
        name: getattr(asked, name)
        for name in (*plain, "engine")
        if getattr(asked, name) is not None
    }
    for name in ("every", "keep"):
        if (text := getattr(asked, name)) is not None:
            run[name] = text if (name, text) == ("keep", FOR_EVER) else _seconds(name, text)
    if asked.items is not None:
        run["entries"] = asked.items
    if asked.unsealed:
        run["sealed"] = False
    if task is None:
        if devices is None or asked.every is None:
            missing = "--devices" if devices is None else "--every"
            raise InputError(
                f"{missing} is missing; name it, as in --devices 1e9 --every 1h, or a task file."
            )
        return Load(number_of_devices(devices), **run | _peak(asked, run["every"]))
    return _load_of_task(task, devices, asked, run)


def _load_of_task(
    path: Path, devices: str | None, asked: SizingOptions, run: dict[str, Any]
) -> Load:
    from sfumato import catalog
    from sfumato.planner import Load

    task = catalog.read(path)
    with console.waiting("choosing what the task leaves open"):
        stream = catalog.stream(task)
    many = stream.counts_on if devices is None else number_of_devices(devices)
    if many is None:
        raise InputError("--devices is missing; how many will take part is expected.")
    return Load.of(task, stream.expecting(many), many, **run | _peak(asked, task.period_seconds))


def _peak(asked: SizingOptions, every: int) -> dict[str, float]:
    """Return the peak that somebody asks for, or that follows from the grace."""
    if asked.grace is None:
        return {} if asked.peak is None else {"peak": asked.peak}
    grace = _seconds("grace", asked.grace)
    if grace > every:
        raise InputError(
            f"--grace is {length(grace)} where a period is {length(every)}; as long as a period at "
            "most is expected."
        )
    least = every / grace
    if asked.peak is not None and asked.peak < least:
        raise InputError(
            f"--peak is {asked.peak:g} where all reports of {length(every)} come within "
            f"{length(grace)}; {least:g} or more is expected, or no --peak."
        )
    return {"peak": asked.peak or least}


# ---- for people ------------------------------------------------------------------------------


def _sentence(needed: Capacity) -> str:
    often = _OFTEN.get(needed.load.every, f"every {length(needed.load.every)}")
    cores = f"{needed.cores:,} core{'s' * (needed.cores != 1)}"
    return (
        f"{_short(needed.load.devices)} devices {often}: {cores}, bottleneck: {needed.bottleneck}."
    )


def _short(number: int) -> str:
    """Return a number as short as it gets: 1e9, 2.5e8, or 12,345."""
    digits = f"{number:.2e}"
    mantissa, _, power = digits.partition("e")
    written = f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    return written if number >= 1_000_000 and float(written) == number else f"{number:,}"


def _text(needed: Capacity, units: UnitCosts) -> Parts:
    load = needed.load
    yield f"{_sentence(needed)}\n"
    yield _roles(needed)
    mean = load.reports / load.every
    uploads = load.uploads / load.sending
    yield (
        f"\nReports: {_rate(mean)} on average, of {load.report_bytes} bytes each; "
        f"{_rate(uploads)} uploads at the peak, {load.peak:g} times the mean."
    )
    yield console.bold("\nWhere the processor time goes")
    yield _parts(needed)
    if needed.limits:
        yield console.bold("\nWhat more cores do not help with")
        yield from (f"- {limit.sentence}" for limit in needed.limits)
    yield (
        "\ncores: as many as processes, each with 70% of the uploads that it could take at most. "
        "mean: cores that are at work on average over a period. disk: "
        + _kept(load)
        + ". in, out: at the peak. Not in it: the proxy that ends TLS, pages and queries."
    )
    yield f"Unit costs: {units.sentence()}."


def _kept(load: Load) -> str:
    """Return what takes disk, in words."""
    if load.by_engine:
        return "open periods, and what waits for the engine"
    if load.keep is None:
        return "open periods"
    days = "a day, of all that are kept" if isinstance(load.keep, str) else length(load.keep)
    return f"open periods, and contents of {days}"


def _rate(number: float) -> str:
    return f"{number:,.0f} a second" if number >= 10 else f"{number:.2g} a second"


def _roles(needed: Capacity) -> Printed:
    headings = ("role", ">processes", ">cores", ">mean", ">memory", ">disk", ">in", ">out")
    every = needed.load.every
    return text_tables.grid(headings, (_row(role, every) for role in needed.roles))


def _row(role: Role, every: int) -> tuple[str, ...]:
    mean = role.seconds / every
    return (
        role.name,
        f"{role.processes:,}",
        f"{role.cores:,}",
        f"{mean:.2g}" if mean < 100 else f"{mean:,.0f}",
        _bytes(role.memory),
        _bytes(role.disk),
        *(f"{_bytes(each)}/s" if each else "-" for each in (role.received, role.sent)),
    )


def _parts(needed: Capacity) -> Printed:
    from sfumato.planner.capacity_roles import WORDS

    total = sum(role.seconds for role in needed.roles)
    rows = sorted(
        ((cost, part, role.name) for role in needed.roles for part, cost in role.parts.items()),
        reverse=True,
    )
    reports = needed.load.reports
    return text_tables.grid(
        ("what", "where", ">us a report", ">share"),
        (
            (WORDS[part], where, f"{1e6 * cost / reports:.3g}", f"{cost / total:.1%}")
            for cost, part, where in rows
            if cost >= 0.001 * total
        ),
    )


def _bytes(number: float) -> str:
    for least, unit in _BYTES:
        if number >= least:
            return f"{number / least:.3g} {unit}"
    return f"{number:.0f} B" if number else "-"
