"""A running task as what a page shows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Final

import numpy as np

from sfumato.core.computed import Computed
from sfumato.core.duration import ago, length
from sfumato.core.estimate import Covariance, Estimate
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.pages.moments import clock
from sfumato.pages.subject import (
    Axis,
    Columns,
    Flag,
    LastKnown,
    PageState,
    PageSubject,
    Promise,
    Range,
    Way,
)
from sfumato.queries.honesty import Suspicion
from sfumato.service.effort import refuse_long
from sfumato.service.event_stream import answers
from sfumato.service.lenses import ways_of
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.query_parameters import kept
from sfumato.service.rereading import PLAIN, Lens, Reread
from sfumato.service.running_task import RunningTask
from sfumato.service.task_driving import LEVEL
from sfumato.service.task_promises import explained
from sfumato.store import Release
from sfumato.streams.amplification import TOO_FEW
from sfumato.streams.posterior.believed import FILTERED, POSTERIOR

__all__ = ["TaskSubject", "counted_words"]

SHORT: Final = 20
"""The number of periods without a number that are listed."""

SOON: Final = 5.0
"""After how many seconds it is worth to look again whether an engine has counted."""
FLAGGED: Final = 20
"""The number of flagged periods that are listed."""
ADVICE: Final = (
    "Somebody may be forging reports, or an app is broken: look at who can send to this task, and "
    "do not rest a decision on these periods."
)
"""What to do about reports that are not what honest devices send."""

WIDE: Final = 0.15
"""An interval is called wide if its half width exceeds this part of the range of values."""


class TaskSubject(PageSubject):
    """A running task, seen through a lens; by default what was released.

    Parameters
    ----------
    running
        The task.
    metrics
        What the collector has counted.
    lens, seen
        How the task is looked at, and its periods so.
    at_once
        Whether TakesLong is raised for answers that take longer than others can wait.

    """

    def __init__(
        self,
        running: RunningTask,
        metrics: CollectorMetrics,
        lens: Lens = PLAIN,
        seen: Reread | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        spec = running.published.spec
        self.running, self.metrics, self.lens = running, metrics, lens
        self._at_once = at_once
        self.seen = Reread(tuple(running.releases[: running.closed])) if seen is None else seen
        self.address = f"/tasks/{running.name}"
        self.title = spec["title"]
        self.measured = _measured(running)
        self.quantity = running.protocol.quantity
        self.labels = tuple(map(str, running.labels))
        self.axis = Axis(spec["start"], spec["period_seconds"], running.periods)
        releases = self.seen.releases
        self.closed = len(releases)
        self.n = releases[-1].n if releases else 0
        self.level = LEVEL
        self.is_live = not running.is_over or self.seen.is_waiting
        self.listens_at = f"/v1{self.address}/events"

    # ---- numbers -----------------------------------------------------------------------------

    def columns(self, items: Sequence[int], periods: slice = slice(None)) -> Columns:
        """Return some items in the closed periods, or in some of these, with their intervals."""
        releases, chosen = self.seen.releases[periods], np.asarray(list(items), dtype=np.int64)
        shape = (len(releases), chosen.size)
        values = np.array([each.values[chosen] for each in releases]).reshape(shape)
        variances = np.array([each.variances[chosen] for each in releases]).reshape(shape)
        low, high = self._intervals(values, variances)
        for row, each in enumerate(releases):
            if each.ends is not None:
                low[row], high[row] = each.ends[0][chosen], each.ends[1][chosen]
        unknown = ~(np.isfinite(values) & np.isfinite(low) & np.isfinite(high))
        return Columns(*(np.where(unknown, np.nan, side) for side in (values, low, high)))

    def _intervals(self, values: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the ends of the intervals of many released values at once."""
        estimate = Estimate(
            values.ravel(),
            Covariance(variances.ravel(), joint=False),
            tuple(range(values.size)),
            self.n,
            self.running.protocol.guarantee,
            quantity=self.quantity,
        )
        low, high = estimate.interval(LEVEL) if values.size else (values, values)
        return low.reshape(values.shape).copy(), high.reshape(values.shape).copy()

    @Computed
    def _known(self) -> LastKnown:
        releases, size = self.seen.releases, len(self.labels)
        values, low, high = np.full((3, size), np.nan)
        periods = np.zeros(size, dtype=np.int64)
        for release in reversed(releases):
            finite = np.isfinite(release.values) & np.isfinite(release.variances)
            new = np.flatnonzero(finite & (periods == 0))
            if new.size:
                own = answers(self.running, release)
                values[new], low[new], high[new] = own.values[new], own.low[new], own.high[new]
                periods[new] = release.period
            if periods.all():
                break
        nothing = np.full(size, np.nan)
        latest = answers(self.running, Release(len(releases), self.n, nothing, nothing))
        return LastKnown(replace(latest, values=values, low=low, high=high), periods)

    def last_known(self) -> LastKnown:
        """Return the last known value of each item."""
        return self._known

    def between(self, first: int, last: int, items: Sequence[int]) -> Range | str:
        """Return the answer about a range of periods, or a sentence that says why there is none."""
        silent = [period for period in self.problems if first <= period <= last]
        if silent:
            return f"period {silent[0]:,} has {TOO_FEW}, so nothing is said of this range."
        decoder, projection = self.lens.decoder, self.lens.projection
        if decoder == FILTERED:  # one joint posterior answers about all ranges
            decoder = POSTERIOR
        if self._at_once:
            is_projected = projection is not None
            refuse_long(self.running, decoder, {first, last}, is_projected=is_projected)
        try:
            history = self.running.history(decoder)
            average = history.range(
                first, last, average=True, decoder=decoder, level=LEVEL, projection=projection
            )
            change = None
            if first < last and projection is None:
                change = history.difference(first, last, decoder, LEVEL).pick(list(items))
        except MismatchError:
            return "no report has been counted for this range; its average is unknown."
        except ConfigurationError as error:
            return str(error)
        return Range(average.pick(list(items)), change)

    # ---- state -------------------------------------------------------------------------------

    def state(self, now: float) -> PageState:
        """Return the state at a time."""
        running, releases = self.running, self.seen.releases
        if self.seen.is_waiting:
            return _waiting(running, releases, now)
        if running.is_over:
            return _over(running)
        if running.lag is not None:
            waits = running.lag.words(now)
            return PageState("uncounted", f"{waits[0].upper()}{waits[1:]}.", now + SOON)
        if not releases:
            first = running.closes_at(1)
            when = clock(first)
            return PageState(
                "empty", f"No period has closed yet. The first estimate comes at {when}.", first
            )
        last = releases[-1]
        seconds, at = running.published.spec["period_seconds"], running.closes_at(last.period)
        age, late = now - at, 2 * seconds + 5
        when = _ago(at, now)
        if age > late:
            text = (
                f"Period {last.period} closed {when} and none since; the collector may be behind."
            )
            return PageState("stale", text, now + seconds)
        return self._open(last, when, at + seconds)

    def _open(self, last: Release, when: str, following: float) -> PageState:
        """Return the state while periods close as they should."""
        running = self.running
        if not np.isfinite(running.releases[last.period - 1].values).any():
            return PageState("few", self._silent(last), following)
        end = running.published.last_period
        last_one = "" if end is None else f" The task was ended: period {end:,} is its last one."
        closed = f"Period {last.period} of {running.periods:,} closed {when}.{last_one}"
        reach, span = self._known.answers.typical, _span(running)
        if span and reach > WIDE * span:
            text = self.quantity.changed.text(reach, self._known.answers.decimals)
            wide = f"Intervals are wide, ± {escape(text)}, until more devices have reported."
            return PageState("few", f"{closed} {wide}", following)
        return PageState("live", closed, following)

    def _silent(self, last: Release) -> str:
        known = "Nothing is known"
        if np.isfinite(last.values).any():
            known = "What is shown of it follows from other periods"
        elif self._known.periods.any():
            known = "The table shows what was last known"
        count = self.participation.get(last.period, 0)
        reports = f"{count:,} {'report' if count == 1 else 'reports'}" if count else "no reports"
        there = self.problems.get(last.period, reports)
        return (
            f"Period {last.period} tells nothing: it has {there}. {known}; it goes on when devices "
            "take part."
        )

    # ---- words -------------------------------------------------------------------------------

    @property
    def promises(self) -> tuple[str, ...]:
        """The guarantees in their exact words."""
        return tuple(map(str, self.running.protocol.offers))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences below the guarantees."""
        running = self.running
        mixed = []
        if running.is_mixed:
            mixed.append(kept(running))
            short = list(self.problems)
            listed = ", ".join(map(str, short[:SHORT])) + ", ..." * (len(short) > SHORT)
            mixed += [f"Without a number, with {TOO_FEW}: period {listed}."] if short else []
        if running.gaps:
            spans = ", ".join(f"{first:,} to {last:,}" for first, last in running.gaps)
            mixed.append(
                f"The collector was brought back from a backup: periods {spans} may lack reports "
                "that were sent, and their numbers are of those that are there."
            )
        if running.protocol.enrols and running.closed:
            mixed.append(
                f"Means are {running.over(running.closed)}: those that have said once that they "
                "take part. Those whose reports are missing are taken to be like the others."
            )
        how = "sealed on the device and opened" if running.keys else "read"
        who = "this collector" if running.opens else "the task's engine"
        return (
            *mixed,
            (
                f"Reports are {how} by {who} only. Every number here is an estimate with "
                "its 95% interval."
            ),
        )

    @property
    def explained(self) -> tuple[Promise, ...]:
        """What the guarantees mean, for people."""
        return explained(self.running)

    @property
    def ways(self) -> tuple[tuple[Way, bool], ...]:
        """The ways to look at the task, each with whether it is the present one."""
        return ways_of(self.running, self.lens)

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What honest devices would not send, latest first."""
        latest = sorted(self.running.suspicions().items(), reverse=True)[:FLAGGED]
        return tuple(Flag(period, _odd(suspicions), ADVICE) for period, suspicions in latest)

    @Computed
    def participation(self) -> dict[int, int]:
        """The number of reports of each period."""
        return self.running.participation()

    @property
    def refused(self) -> str:
        """The refused reports in words."""
        return counted_words(self.metrics.refused(self.running))

    @Computed
    def problems(self) -> dict[int, str]:
        """The closed periods without a number, each with its reason."""
        return dict.fromkeys(self.running.short_periods(), TOO_FEW)

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Addresses and names of further pages."""
        task = f"/v1{self.address}"
        query = f"&{self.lens.query}" if self.lens.query else ""
        last = f"{task}/answers?query=mean&period={max(self.running.closed, 1)}{query}"
        return (
            ("/", "All tasks"),
            (task, "The task as devices see it"),
            (last, "The last answer as data"),
        )


def _over(running: RunningTask) -> PageState:
    """Return the state when no further period closes."""
    text = f"All {running.periods:,} periods have closed; these numbers are final."
    if running.was_ended:
        many = f"{running.closed:,} of {running.periods:,} periods have"
        closed = f"{many} closed, and these numbers are final"
        text = f"This task was ended: {closed if running.closed else 'no period has closed'}."
    if running.is_archived:
        return PageState("archived", f"{text} It is archived: its reports have been erased.")
    return PageState("over", text)


def _odd(suspicions: Sequence[Suspicion]) -> str:
    """Return the most improbable of some suspicions in words, and how many others there are."""
    others = len(suspicions) - 1
    numbers, be = ("number", "is") if others == 1 else ("numbers", "are")
    more = f" {others:,} more {numbers} of this period {be} as improbable." * bool(others)
    return f"{suspicions[0].sentence}{more}"


def _waiting(running: RunningTask, releases: Sequence[Release], now: float) -> PageState:
    """Return the state while periods are being read again."""
    text = f"The curves up to period {running.closed:,} are being computed."
    if releases:
        last = releases[-1].period
        text = f"These curves go up to period {last:,}; the periods since are being added."
    return PageState("waiting", text, now + 1)


def _ago(at: float, now: float) -> str:
    """Return how long ago something was, as an element that a script keeps up to date."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return f'<time datetime="{stamp}" data-at="{at:.3f}" data-style="ago">{ago(now - at)}</time>'


def _span(running: RunningTask) -> float | None:
    """Return the largest distance of two values of a task; None if it is not known."""
    values = running.published.spec["values"]
    spans = {"share": 1.0, "move": 2.0}
    if running.protocol.quantity.kind == "mean":
        return float(values["high"] - values["low"])
    return spans.get(running.protocol.quantity.kind)


def _measured(running: RunningTask) -> str:
    spec = running.published.spec
    values = spec["values"]
    kinds = {
        "binary": "which share of the devices is on",
        "category": "which share of the devices holds each item",
        "set": "which share of the devices has each item",
        "attributes": "which share of the devices holds each item, attribute by attribute",
        "moves": "how much each item moves on average",
        "number": f"the {running.labels[0]} of a number that devices hold",
    }
    what = kinds.get(values["kind"], "what devices hold")
    if values["kind"] == "number":
        unit = f" {values['unit']}" if "unit" in values else ""
        what += f", from {values['low']:g} to {values['high']:g}{unit}"
    return f"Measures {what}, in {spec['periods']:,} periods of {length(spec['period_seconds'])}."


def counted_words(reasons: Mapping[str, int]) -> str:
    """Return the number of refusals for each reason, in words."""
    counts = sorted((reason, n) for reason, n in reasons.items() if n)
    words = (f"{n:,} {reason.replace('_', ' ').replace('-', ' ')}" for reason, n in counts)
    return ", ".join(words) or "none"
