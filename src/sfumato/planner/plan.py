"""What a task will tell, what it will cost, and what to change: before any device takes part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from sfumato import catalog
from sfumato.core.intervals import z_score
from sfumato.errors import ConfigurationError
from sfumato.planner.expected import Expected, expected, influence, networks
from sfumato.planner.pilot import Pilot
from sfumato.randomness import seeded
from sfumato.streams.horizon import QUERIES, workload
from sfumato.streams.kinds import Attributes, Binary, Items, Values, values_of
from sfumato.streams.weave.mix import best_shares
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.wire.task import Task

__all__ = ["Option", "Plan", "Reach", "plan"]

LADDER: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of changes that are tried with a pilot."""
SMALLEST_TARGET: Final = 1e-9
"""Half widths below this one are nobody's."""
LONG: Final = 256
"""From so many periods on, sums are only looked into if they are asked for."""
TUNED: Final = 128
"""Up to so many periods, shares are chosen for the very streams that are expected, too."""
TIMED: Final = 64
"""So many periods are timed on a device."""

Notice = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Option:
    """One way to run the task, and what to expect of it.

    Parameters
    ----------
    name
        What a task file calls the protocol.
    protocol
        The protocol, with its mechanism, mix and number of changes.
    errors
        The error of each kind of query.
    devices
        How many devices it is for.
    decoder
        How it is decoded: by the fusion of all reports, or the papers' path.

    """

    name: str
    protocol: Weave
    errors: Mapping[str, Expected]
    devices: int
    decoder: Literal["fusion", "path"] = "fusion"

    def half_width(self, query: str, level: float = 0.95) -> float:
        """Return how far an interval will reach to each side."""
        return float(z_score(level) * self.errors[query].reported ** 0.5)

    @property
    def carriers(self) -> tuple[str, ...]:
        """What carries differences, by name."""
        if self.protocol.mechanism != "auto":
            return () if self.protocol.spans == (SNAPSHOT,) else (self.protocol.mechanism,)
        threads = (thread for thread, _ in self.protocol.threads() if not thread.is_snapshot)
        told = (thread for thread in threads if self.protocol.edges(thread))
        return tuple(sorted({self.protocol.strand(thread).mechanism.name for thread in told}))

    @property
    def mix(self) -> dict[str, float]:
        """Which share of the devices follows which span, as a task file has it."""
        pairs = zip(self.protocol.spans, self.protocol.shares, strict=True)
        return {"snapshot" if span == SNAPSHOT else str(span): share for span, share in pairs}

    @cached_property
    def _sent(self) -> tuple[float, float, int]:
        """Messages and bytes of a device over the horizon on average, and the most messages."""
        messages = payload = 0.0
        most = 0
        for thread, share in self.protocol.threads():
            if thread.is_snapshot:
                count, size = 1, self.protocol.snapshots[thread.block].mechanism.report_bytes
            else:
                count = len(self.protocol.edges(thread))
                size = self.protocol.difference(thread).dtype.itemsize if count else 0
            messages += share * count
            payload += share * count * size
            most = max(most, count)
        return messages, payload, most

    @property
    def messages(self) -> float:
        """How many messages a device sends over the horizon, on average."""
        return self._sent[0]

    @property
    def payload(self) -> float:
        """How many bytes they have, on average, without their envelope."""
        return self._sent[1]

    @property
    def most_messages(self) -> int:
        """How many messages the busiest devices send."""
        return self._sent[2]

    @cached_property
    def influence(self) -> float:
        """How far one forged device can move the mean of a period, at most."""
        return influence(self.protocol, self.devices)

    @cached_property
    def device_seconds(self) -> float:
        """How long the busiest devices work in a period, here and now."""
        busiest = max(
            (thread for thread, share in self.protocol.threads() if share > 0),
            key=lambda thread: len(self.protocol.edges(thread)),
        )
        device = self.protocol.device(seeded(0)).on(self.protocol, busiest, seeded(1))
        rng = seeded(2)
        values = list(_looks(self.protocol.values, min(self.protocol.periods, TIMED)))
        start = time.perf_counter()
        for value in values:
            device.observe(value, rng)
        return (time.perf_counter() - start) / len(values)


def _looks(values: Values, count: int) -> Iterator[Any]:
    """Yield values that a device may observe."""
    for index in range(count):
        label = values.labels[index // 8 % values.width]
        if isinstance(values, Binary):
            yield index // 8 % 2
        elif isinstance(values, Items):
            yield [label]
        elif isinstance(values, Attributes):
            yield {name: items.labels[0] for name, items in values.categories}
        else:
            yield label


@dataclass(frozen=True)
class Reach:
    """What reaches a target: each for itself, all else as it is; None if nothing does.

    Parameters
    ----------
    half_width
        The target: how far a 95% interval reaches to each side.
    query
        The queries that the target is for.
    devices, epsilon, periods
        How many devices, how much privacy loss, how few periods.

    """

    half_width: float
    query: str
    devices: int | None
    epsilon: float | None
    periods: int | None


@dataclass(frozen=True, eq=False)
class Plan:
    """What to expect of a task, and what to do.

    Parameters
    ----------
    task, devices, pilot
        What was asked.
    options
        All that was tried, best first.
    second_horizon
        How many times as large errors are if epsilon has to last for two horizons.
    reach
        What reaches the target, if there is one.

    """

    task: Task
    devices: int
    pilot: Pilot
    options: tuple[Option, ...]
    second_horizon: float
    reach: Reach | None

    @property
    def main(self) -> str:
        """The kind of query that matters most."""
        asked: dict[str, float] = dict(self.task.design["queries"])
        return max(asked, key=lambda name: asked[name])

    @property
    def chosen(self) -> Option:
        """The recommended option."""
        return self.options[0]

    @property
    def recommended(self) -> Task:
        """The task with all that was left open written down."""
        best = self.chosen
        mix = tuple(sorted(zip(best.protocol.spans, best.protocol.shares, strict=True)))
        design = self.task.design
        decoder = "smoothed" if "history" in dict(design["queries"]) else design["decoder"]
        woven = not best.protocol.aligned
        return catalog.changed(
            self.task,
            protocol="weave" if woven else best.name,
            mechanism=best.protocol.mechanism,
            changes=best.protocol.changes,
            decoder=decoder,
            fan_out=design.get("fan_out") if not woven else None,
            mix=mix if woven else None,
        )


def plan(
    task: Task,
    devices: int,
    *,
    pilot: Pilot | None = None,
    target: float | None = None,
    notice: Notice = lambda _: None,
) -> Plan:
    """Return what to expect of a task with so many devices, and what to do.

    Parameters
    ----------
    task
        What is asked.
    devices
        How many will take part.
    pilot
        What is known of people's streams. Without one, every device is taken to make all the
        changes it may, at random times; with one, the number of changes is chosen, too.
    target
        How far a 95% interval may reach to each side.
    notice
        Is told what is being looked into.

    """
    if task.stream not in ("weave", "flat"):
        raise ConfigurationError(f"stream is {task.stream!r}; weave is what can be planned.")
    if task.values.kind == "moves":
        raise ConfigurationError(
            "values.kind is 'moves'; their one protocol needs no plan (sfumato compare "
            "--dimension tells its error)."
        )
    if devices < 1:
        raise ConfigurationError(f"devices is {devices}; at least one is expected.")
    if target is not None and not SMALLEST_TARGET <= target < np.inf:
        raise ConfigurationError(
            f"target is {target!r}; a number of {SMALLEST_TARGET:g} or more is expected."
        )
    values = values_of(task.values)
    if pilot is None:
        pilot = Pilot.assumed(values, task.periods, task.design["changes"])
    judge = _Judge(task, devices, values, pilot, notice)
    options = judge.ranked(_options(judge))
    best = options[0]
    notice("a second horizon")
    halved = Weave.best(
        values,
        task.periods,
        best.protocol.changes,
        best.protocol.epsilon / 2,
        workload=workload(task.design["queries"]),
    )
    query = judge.main
    ratio = halved.expected_variance(query) / best.protocol.expected_variance(query)
    reach = None
    if target is not None:
        notice("the target")
        reach = _reach(judge, best, target)
    return Plan(task, devices, pilot, tuple(options), float(ratio**0.5), reach)


class _Judge:
    """Judges options by the error of what the task asks for."""

    def __init__(
        self, task: Task, devices: int, values: Values, pilot: Pilot, notice: Notice
    ) -> None:
        self.task = task
        self.devices = devices
        self.values = values
        self.pilot = pilot
        self.notice = notice
        self.asked: dict[str, float] = dict(task.design["queries"])
        self.main = max(self.asked, key=lambda name: self.asked[name])
        self.shown = [
            name
            for name in QUERIES
            if name in ("online", "history") or name in self.asked or task.periods < LONG
        ]
        self._unit: Mapping[str, Expected] | None = None

    def option(
        self,
        name: str,
        protocol: Weave,
        queries: Sequence[str] | None = None,
        decoder: Literal["fusion", "path"] = "fusion",
    ) -> Option:
        """Return an option with the errors of these queries."""
        asked = self.shown if queries is None else queries
        found = expected(protocol, self.devices, self.pilot.sample, asked, decoder=decoder)
        return Option(name, protocol, found, self.devices, decoder)

    def score(self, option: Option) -> float:
        """Return the squared error of all that is asked, each in units of snapshots' alone."""
        if self._unit is None:
            alone = self.made("snapshots", self.task.design["changes"])
            self._unit = self.option("snapshots", alone, list(self.asked)).errors
        return sum(
            weight * option.errors[name].mse / self._unit[name].mse
            for name, weight in self.asked.items()
        )

    def made(
        self, name: str, changes: int, mechanism: str = "", periods: int | None = None
    ) -> Weave:
        """Return a protocol by its name."""
        design = self.task.design
        asked = catalog.changed(
            self.task,
            protocol=name,
            periods=periods or self.task.periods,
            changes=changes,
            mechanism=mechanism or design["mechanism"],
            mix=None,
            fan_out=design.get("fan_out") if name in ("tree", "hierarchy") else None,
        )
        protocol = catalog.stream(asked)
        assert isinstance(protocol, Weave)  # noqa: S101 -- the only others are for moves
        return protocol

    def ranked(self, options: Sequence[Option]) -> list[Option]:
        """Return the options, best first."""
        return sorted(options, key=self.score)


def _options(judge: _Judge) -> list[Option]:
    task, design = judge.task, judge.task.design
    changes = design["changes"]
    found: list[Option] = []
    if judge.pilot.is_data:
        changes = _best_changes(judge)
    for name in ("weave", "snapshots", "tree", "hierarchy"):
        judge.notice(name)
        found.append(judge.option(name, judge.made(name, changes)))
    found.append(judge.option("hierarchy", found[-1].protocol, decoder="path"))
    if changes != design["changes"]:
        judge.notice(f"weave, changes = {design['changes']}")
        found.append(judge.option("weave", judge.made("weave", design["changes"])))
    woven = found[0].protocol
    judge.notice("weave, for streams like these")
    tuned = min(_tuned(judge, changes), key=judge.score, default=None)
    if tuned is not None:
        found.append(judge.option("weave", tuned.protocol))
    if design["mechanism"] == "auto" and len(woven.spans) > 1:
        for mechanism in ("concord", "exsub"):
            if found[0].carriers != (mechanism,):
                judge.notice(f"weave with {mechanism}")
                found.append(judge.option("weave", judge.made("weave", changes, mechanism)))
    if "mix" in design:
        judge.notice("the mix of the task file")
        given = catalog.stream(task)
        assert isinstance(given, Weave)  # noqa: S101 -- moves have no mix
        found.append(judge.option("weave", given))
    if woven.spans == (SNAPSHOT,):  # then weave is snapshots alone
        del found[0]
    return found


def _tuned(judge: _Judge, changes: int) -> Iterator[Option]:
    """Yield Weave with each mechanism, its shares the best for streams like those expected."""
    task = judge.task
    design = task.design
    if "shuffle" in design or task.periods > TUNED:
        return
    spans = [span for span in (1, 2, 4, 8, 16) if 2 * span <= task.periods]
    even = (1 / (len(spans) + 1),) * (len(spans) + 1)
    asked = (judge.values, task.periods, changes, task.epsilon, (*spans, SNAPSHOT), even)
    mechanisms: tuple[Any, ...] = ("concord", "exsub")
    told = design["mechanism"]
    for mechanism in mechanisms if told == "auto" else (told,):
        whole = Weave(*asked, mechanism)
        asked_for = workload(design["queries"])
        shares, _ = best_shares(networks(whole, judge.pilot.sample), asked_for)
        yield judge.option("weave", whole.trimmed(shares.tolist()), list(judge.asked))


def _best_changes(judge: _Judge) -> int:
    """Return the number of changes of least error: noise grows with it, and clipping falls."""
    most = max(judge.pilot.most_changes, judge.values.least_changes)
    least = judge.values.least_changes
    asked: int = judge.task.design["changes"]
    tried = sorted({s for s in (*LADDER, asked, most) if least <= s <= most} | {least})
    best, lowest, worse = asked, np.inf, 0
    for changes in tried:
        judge.notice(f"changes = {changes}")
        option = judge.option("weave", judge.made("weave", changes), list(judge.asked))
        score = min(map(judge.score, (option, *_tuned(judge, changes))))
        worse = worse + 1 if score > 1.001 * lowest else 0  # snapshots alone tie with themselves
        if score < lowest:
            best, lowest = changes, score
        if worse == 3:
            break
    return best


# ---- targets ---------------------------------------------------------------------------------


def _reach(judge: _Judge, best: Option, target: float) -> Reach:
    query = judge.main
    aim = (target / z_score(0.95)) ** 2
    now = best.errors[query].reported
    return Reach(
        target,
        query,
        devices=_enough_devices(judge, best, aim),
        epsilon=_enough_epsilon(judge, best, aim / now),
        periods=_few_periods(judge, best, aim / now),
    )


def _enough_devices(judge: _Judge, best: Option, aim: float) -> int | None:
    """Return how many devices have this variance, in two digits."""
    needed = judge.devices * best.errors[judge.main].reported / aim
    for _ in range(2):  # nearly proportional, but few devices leave some periods with none
        count = max(1, round(needed))
        if count > 10**12:
            return None
        found = expected(best.protocol, count, judge.pilot.sample, [judge.main])
        needed = count * found[judge.main].reported / aim
    scale = 10 ** max(0, int(np.log10(max(needed, 1))) - 1)
    return int(np.ceil(needed / scale) * scale)


def _enough_epsilon(judge: _Judge, best: Option, factor: float) -> float | None:
    """Return an epsilon at which the variance is this multiple of what it is, or less.

    With the same mix, so a plan made for that epsilon may do with a little less.
    """
    protocol, now = best.protocol, best.protocol.epsilon
    unit = protocol.expected_variance(judge.main)

    def variance(epsilon: float) -> float:
        return replace(protocol, epsilon=epsilon).expected_variance(judge.main) / unit

    low, high = (0.01, now) if factor >= 1 else (now, 16.0)
    if variance(high) > factor:
        return None
    if variance(low) < factor:
        return low
    while high / low > 1.005:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if variance(middle) <= factor else (middle, high)
    return float(f"{high:.3g}")


def _few_periods(judge: _Judge, best: Option, factor: float) -> int | None:
    """Return the longest horizon, by halving, on which the variance is so small."""
    task = judge.task
    unit = best.protocol.expected_variance(judge.main)
    periods = task.periods
    while factor < 1:
        periods //= 2
        least = judge.values.width * periods
        if periods < 2 or best.protocol.changes > least:
            return None
        made = judge.made("weave", best.protocol.changes, periods=periods)
        if made.expected_variance(judge.main) / unit <= factor:
            break
    return periods
