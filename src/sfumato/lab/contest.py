"""All methods for endless streams, side by side on one population: error, intervals, events, bits.

Bits are counted as the paper counts them: a report over two items has one bit, over d items
ceil(log2 d) by randomized response and d by unary encoding; whoever is asked has been told so by
one bit more, unless everybody answers the same question in every period. Bytes are what a report
has on our wire, its envelope included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Final

import numpy as np

from sfumato.arrays import Bools, Floats
from sfumato.core.mechanism import Mechanism
from sfumato.core.projections import simplex
from sfumato.datasets.endless import Stream
from sfumato.errors import ConfigurationError
from sfumato.mechanisms import GRR, OUE
from sfumato.queries.events import ROC, Watch, roc, threshold
from sfumato.simulation import Simulation, steps
from sfumato.streams.window import METHODS, Window
from sfumato.wire.reports import Layout

__all__ = ["METHODS", "MethodScore", "bits", "contest", "lead", "livest", "summed", "wire_bytes"]


POOLED: Final = "pooled"
OURS: Final = ("filtered", POOLED)
"""The methods that are not those of papers."""
RATE: Final = 0.01
"""How often there may be an alarm in a period without an event."""
JUMP: Final = 0.15
"""How far a value moves in one period that counts as a jump, as a part of its range."""
FLOOR: Final = 0.001
"""A relative error counts at least so large a share, or part of an interval, as its truth."""


@dataclass(frozen=True, eq=False)
class MethodScore:
    """The errors and costs of one method.

    Parameters
    ----------
    method
        The method's name.
    mre, mse
        Mean relative and mean squared error over periods and items.
    projected
        The mean squared error once shares are moved to the nearest ones that are not negative and
        sum to one, which anybody can do to any release.
    coverage
        The share of 95% intervals that hold the truth.
    jump_coverage
        The same among values that have jumped in their period; nan if none has.
    curve
        The ROC curve of the watched value.
    judged
        The area under the ROC curve of the watch's own scores, which also judge unbiased answers.
    found, false_alarms
        The shares of periods with and without an event that have an alarm, at a rate of 1%.
    bits, bytes
        What one device sends and is told in one period, on average: by the paper's counting, and
        what its reports have on our wire.
    published
        The share of periods with a fresh release.
    seconds
        How long the simulation took.
    run
        Everything that came of it, period by period.

    """

    method: str
    mre: float
    mse: float
    projected: float
    coverage: float
    jump_coverage: float
    curve: ROC
    judged: float
    found: float
    false_alarms: float
    bits: float
    bytes: float
    published: float
    seconds: float
    run: Simulation

    @property
    def auc(self) -> float:
        """The area under the ROC curve."""
        return self.curve.area


def contest(  # noqa: PLR0913 - a setting of an experiment each
    stream: Stream,
    *,
    epsilon: float,
    window: int,
    methods: Sequence[str] = tuple(METHODS),
    oracle: str = "auto",
    watch: Watch | None = None,
    seed: int = 1,
    share: float | None = None,
    progress: Callable[[int], None] = lambda _period: None,
) -> list[MethodScore]:
    """Drive methods through one population, period by period.

    Parameters
    ----------
    stream
        The values of all devices in each period.
    epsilon, window, oracle
        The same as in :class:`Window`.
    methods
        The names of the methods.
    watch
        The value whose events are to be detected; by default the one that moves furthest.
    seed
        The seed of all coins; each method has its own.
    share
        The share of a window that adaptive methods spend on finding out whether to publish; by
        default what each of them usually takes.
    progress
        A function that is called after each period.

    """
    if not methods:
        raise ConfigurationError("there are no methods; at least one is expected.")
    runs = {
        method: steps(
            Window(
                window,
                epsilon,
                stream.devices,
                domain=stream.labels or None,
                interval=stream.interval,
                method=method,
                oracle=oracle,
                parameters=() if share is None else (("share", share),),
            ),
            stream,
            seed=seed + index,
        )
        for index, method in enumerate(methods)
    }
    done: dict[str, Simulation] = {}
    for period in range(1, stream.periods + 1):
        for method, run in runs.items():
            done[method] = next(run)
        progress(period)
    watched = watch or livest(next(iter(done.values())).truth)
    return [_row(method, run, stream, watched) for method, run in done.items()]


def livest(truth: Floats) -> Watch:
    """Return a watch on the value that moves furthest; of several such values, on the last."""
    reach = truth.max(axis=0) - truth.min(axis=0)
    index = int(np.flatnonzero(reach >= reach.max() - 1e-12)[-1])
    return Watch.item(index, of=reach.size)


def summed(rows: Sequence[Sequence[MethodScore]]) -> dict[str, dict[str, float]]:
    """Return the averages of each method's numbers over repeats."""
    names = (
        *("mre", "mse", "projected", "coverage", "jump_coverage"),
        *("auc", "judged", "found", "false_alarms"),
        *("bits", "bytes", "published", "seconds"),
    )
    return {
        first.method: {
            name: float(np.mean([getattr(row[index], name) for row in rows])) for name in names
        }
        for index, first in enumerate(rows[0])
    }


def lead(errors: Mapping[str, Mapping[str, float]]) -> tuple[str, float] | None:
    """Return the best method that is not ours, and its error divided by that of ``pooled``.

    All shares are moved to the nearest possible ones first. None if there is nothing to compare.

    Parameters
    ----------
    errors
        What :func:`summed` returns.

    """
    others = {name: each["projected"] for name, each in errors.items() if name not in OURS}
    if POOLED not in errors or not others:
        return None
    best = min(others, key=others.__getitem__)
    return best, others[best] / errors[POOLED]["projected"]


def _row(method: str, run: Simulation, stream: Stream, watch: Watch) -> MethodScore:
    values, truth = run.values, run.truth
    low, high = stream.interval or (0.0, 1.0)
    size = np.maximum(np.abs(truth), FLOOR * (high - low))
    watched = watch.of(truth)
    bar = threshold(watched)
    above = watched > bar
    alarms = np.array([event.alarm for event in watch.events(run.releases, above=bar, rate=RATE)])
    moved = np.array([simplex(row) for row in values]) if stream.labels else values
    return MethodScore(
        method=method,
        mre=float(np.mean(np.abs(values - truth) / size)),
        mse=run.mse(),
        projected=float(np.mean((moved - truth) ** 2)),
        coverage=run.coverage(),
        jump_coverage=_jump_coverage(run, JUMP * (high - low)),
        curve=roc(watch.of(values), above),
        judged=roc(np.array([watch.score(release, bar) for release in run.releases]), above).area,
        found=_share(alarms, above),
        false_alarms=_share(alarms, ~above),
        bits=bits(run, stream.devices),
        bytes=wire_bytes(run, stream.devices),
        published=run.published,
        seconds=run.seconds,
        run=run,
    )


def _jump_coverage(run: Simulation, jump: float) -> float:
    low, high = run.interval()
    held = (low <= run.truth) & (run.truth <= high)
    return _share(held[1:], np.abs(np.diff(run.truth, axis=0)) > jump)


def _share(alarms: Bools, among: Bools) -> float:
    return float(alarms[among].mean()) if among.any() else float("nan")


# ---- communication ---------------------------------------------------------------------------


def bits(run: Simulation, devices: int) -> float:
    """Return the bits that a device sends and receives in a period, as the paper counts them."""
    periods = len(run.releases)
    order: list[int] = []  # of each question: the how manieth of its period it is
    for index, asked in enumerate(run.asked):
        again = index > 0 and run.asked[index - 1].period == asked.period
        order.append(order[-1] + 1 if again else 0)
    everybody = Counter(
        question
        for asked, question in zip(run.asked, order, strict=True)
        if asked.received == devices
    )
    standing = {question for question, times in everybody.items() if times == periods}
    total = sum(
        asked.received * (_report_bits(asked.mechanism) + (question not in standing))
        for asked, question in zip(run.asked, order, strict=True)
    )
    return total / (devices * periods)


def _report_bits(mechanism: Mechanism) -> int:
    if isinstance(mechanism, GRR):
        return max(1, ceil(log2(mechanism.size)))
    if isinstance(mechanism, OUE):
        return mechanism.size
    return 8 * mechanism.report_bytes


def wire_bytes(run: Simulation, devices: int) -> float:
    """Return the bytes of reports that a device sends in a period, with their envelopes."""
    total = sum(
        asked.received * Layout(asked.mechanism.report_bytes).report_dtype.itemsize
        for asked in run.asked
    )
    return total / (devices * len(run.releases))
