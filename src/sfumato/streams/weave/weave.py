"""Weave: threads with offsets, snapshots and fusion, for values that change a few times.

Every device follows one thread. Snapshots and differences are fused by least squares on the graph
of periods. The hierarchy of the papers is the case without offsets and snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.fleet import Population
from sfumato.core.outlook import Notice, Outlook, Sent
from sfumato.core.stream import Ask
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source
from sfumato.streams import horizon
from sfumato.streams.admission import MOST_ITEMS, refuse_heavy, refuse_wide
from sfumato.streams.chaff_in_tasks import refuse_chaff
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values, values_of
from sfumato.streams.pilot import Pilot
from sfumato.streams.weave import choosing, expected, task_choice, weave_admission
from sfumato.streams.weave.decoding import WeaveDecoded
from sfumato.streams.weave.design import WeaveDesign
from sfumato.streams.weave.influence import influence
from sfumato.streams.weave.mix import Workload, best_shares
from sfumato.streams.weave.printed import printed_shares
from sfumato.streams.weave.refusals import refuse_numbers
from sfumato.streams.weave.strands import Carrier, Sized
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave_curator import WeaveCurator
from sfumato.streams.weave.weave_device import WeaveDevice
from sfumato.streams.weave.weave_fleet import WeaveFleet
from sfumato.streams.weave.working import Weights
from sfumato.wire.task import COUNTED
from sfumato.wire.values import TaskValues

__all__ = ["Weave"]

MILLION: Final = 1_000_000


@dataclass(frozen=True)
class Weave(WeaveDesign):
    """Values of many devices over a horizon, each device's whole stream epsilon-private.

    Parameters
    ----------
    values
        The kind of values that a device observes.
    periods
        The number of periods of the horizon.
    changes
        The largest number of entries that change over the horizon, counted from the empty state
        before it: a binary value that changes counts one, a category that changes counts two. Later
        changes are not seen by difference threads; snapshots see all.
    epsilon
        The privacy of a device's whole stream.
    spans, shares
        The spans (0 for snapshots), and the share of the devices that draws each.
    mechanism
        The mechanism that carries differences: auto, concord, exsub, exsub-printed or a rival.
    aligned
        Whether all difference threads start with the horizon, as in the papers' hierarchy.
    sized, looks
        The sizes of the mechanisms of differences and snapshots, once they have been chosen; see
        :meth:`resolved`.
    weights
        The variances by which reports are weighted: the ``planned`` ones, which makes estimates
        exactly unbiased, or those ``learnt`` from earlier periods; see
        :mod:`sfumato.streams.weave.working`.
    enrols
        Whether devices say once that they take part, so that means are over those who have.

    Guarantee
    ---------
    epsilon-LDP for the whole transcript of a device: its thread is drawn independently of the data,
    and what it sends along the thread is one output of one mechanism.

    Error
    -----
    The variance of the mean of a period is the effective resistance between the period and 0
    in the graph of reports; see :mod:`sfumato.streams.weave.mix`.

    Cost
    ----
    Device O(width) time per period and O(width) memory; server O(spans T^2) per period.

    Examples
    --------
    >>> stream = Weave.best(Binary(), 24, 4, 1.0)
    >>> stream.horizon, stream.guarantee.epsilon
    (24, 1.0)

    References
    ----------
    The protocol this project uses. Its relatives: rotating panel surveys; LPU of "LDP-IDS: Local
    Differential Privacy for Infinite Data Streams" (Ren et al., 2022); the aligned dyadic levels
    of Erlingsson et al. (2019), of Ohrimenko, Wirth, Wu (2022) and of "SaO2: Optimal Online
    Locally Private Data Analytics with Stronger Shuffle Amplification".

    """

    needed: ClassVar[Mapping[str, str]] = horizon.NEEDED
    optional: ClassVar[tuple[str, ...]] = (*horizon.OPTIONAL, "chaff")
    fewest_periods: ClassVar[int] = 2
    takes_pilots: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances whose transcripts can be listed, for checks."""
        yield cls(Binary(), 4, 2, 1.0, (1, 2, 0), (0.25, 0.25, 0.5))
        yield cls(Binary(), 4, 2, 1.0, (1, 2, 4), (0.5, 0.25, 0.25), "exsub", aligned=True)
        yield cls(Category(2), 3, 3, 1.0, (1, 0), (0.5, 0.5), "exsub")
        yield cls(Category(2, optional=True), 2, 2, 1.0, (1, 0), (0.5, 0.5))
        yield cls(Items(2), 2, 2, 2.0, (1, 0), (0.5, 0.5), "concord")
        yield cls(Attributes({"x": 2, "y": 2}), 2, 3, 1.0, (1, 0), (0.5, 0.5))
        yield cls(Category(2), 4, 3, 2.0, (1, 0), (0.5, 0.5), weights="learnt")
        yield cls(Binary(), 4, 2, 1.0, (1, 0), (0.5, 0.5), enrols=True)

    # ---- named configurations -------------------------------------------------------------------

    @classmethod
    def best(  # noqa: PLR0913 -- what a design depends on
        cls,
        values: Values,
        periods: int,
        changes: int,
        epsilon: float,
        *,
        workload: Workload = "online",
        mechanism: Carrier = "auto",
        weights: Weights = "learnt",
        sized_for: float | None = None,
    ) -> Weave:
        """Return the stream with the default mix for a workload.

        The mix has the least exact error for devices that make all their changes, blended with
        more snapshots if it would otherwise lose too much to snapshots alone on quiet devices; see
        :mod:`sfumato.streams.weave.regret`. Spans are powers of two (of four for long horizons);
        longer ones are tried as long as they help. With ``sized_for`` the sizes of its mechanisms
        are those that are best for that epsilon instead.
        """
        refuse_numbers(values, periods, changes, epsilon, mechanism)

        def designed(spans: Sequence[int], shares: Sequence[float]) -> Weave:
            mix = tuple(spans), tuple(shares)
            design = (values, periods, changes, sized_for or epsilon, *mix, mechanism)
            stream = cls(*design, weights=weights)
            return stream if sized_for is None else stream.resolved().fixed_at(epsilon)

        chosen = choosing.best(designed, periods, workload)
        return chosen if sized_for is None else designed(chosen.spans, chosen.shares)

    @classmethod
    def papers(
        cls,
        values: Values,
        periods: int,
        changes: int,
        epsilon: float,
        *,
        fan_out: int = 2,
        shares: Sequence[float] | str = "uniform",
        mechanism: Carrier = "exsub-printed",
    ) -> Weave:
        """Return the hierarchy of the papers: aligned levels of spans fan_out^h, no snapshots.

        The defaults are as printed: ExSub's printed size, all changes on every level, equal shares
        of the levels 0..floor(log T), including the top one. Other printed shares are chosen by
        name.
        """
        if fan_out < 2:
            raise ConfigurationError(f"fan_out is {fan_out!r}; 2 or more is expected.")
        spans = [span for span in choosing.powers(fan_out, periods) if span <= periods]
        if isinstance(shares, str):
            shares = printed_shares(shares, spans, periods, fan_out)
        return cls(
            values, periods, changes, epsilon, tuple(spans), tuple(shares), mechanism, aligned=True
        )

    @classmethod
    def tree(
        cls,
        values: Values,
        periods: int,
        changes: int,
        epsilon: float,
        *,
        fan_out: int = 2,
        workload: Workload = "online",
        mechanism: Carrier = "auto",
    ) -> Weave:
        """Return the aligned levels of the papers' hierarchy, with the best parameters.

        These are the mechanism of least exact error, no more non-zeros than a level can have, only
        levels that help, and their shares by exact error.
        """
        even = cls.papers(values, periods, changes, epsilon, fan_out=fan_out, mechanism=mechanism)
        shares, _ = best_shares(even.networks, workload)
        return even.trimmed(shares.tolist())

    def trimmed(self, shares: Sequence[float]) -> Self:
        """Return the stream with other shares, without spans that hardly any device draws.

        Shares become whole millionths, so that the last bits of a processor's arithmetic are not
        part of a task's id.
        """
        kept = [(g, share) for g, share in zip(self.spans, shares, strict=True) if share > 2e-3]
        total = sum(share for _, share in kept)
        counts = [round(MILLION * share / total) for _, share in kept]
        counts[counts.index(max(counts))] += MILLION - sum(counts)
        spans = tuple(g for g, _ in kept)
        rounded = tuple(count / MILLION for count in counts)
        return replace(self, spans=spans, shares=rounded, sized=(), looks=())

    def decoded(
        self, tallies: Tallies[Any], closed: int, enrolled: Sequence[int] | None = None
    ) -> WeaveDecoded:
        """Return the closed periods, to be read with the stream's decoders."""
        return WeaveDecoded(self, tallies, closed, enrolled)

    # ---- what a plan and a page say -------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Return the choices made: changes, mechanism and mix."""
        spans = zip(self.spans, self.shares, strict=True)
        mix = {"snapshot" if span == SNAPSHOT else str(span): share for span, share in spans}
        carried = " and ".join(self.carriers) or "none needed"
        return {"changes": self.changes, "mechanism": carried, "mix": mix}

    @property
    def sent(self) -> Sent:
        """What a device sends over the horizon."""
        return expected.sent(self)

    def about_values(self, thread: Thread) -> float:
        """Return the part of a thread's messages that are about values: all of them."""
        del thread
        return 1.0

    def planned_variance(self, devices: int) -> float:
        """Return the variance of a mean if devices make all the changes they may."""
        return self.expected_variance() / devices

    def influence(self, devices: int) -> float:
        """Return the most that one forged device can change a period's mean when it closes."""
        return influence(self, devices)

    @classmethod
    def outlook(
        cls,
        task: Mapping[str, Any],
        devices: int | None = None,
        pilot: Pilot | None = None,
        notice: Notice = lambda _: None,
    ) -> Outlook:
        """Return what to expect of a task over a horizon."""
        from sfumato.streams.weave.weave_outlook import WeaveOutlook  # noqa: PLC0415 -- it makes streams

        return WeaveOutlook(task, devices, pilot, notice)

    # ---- tasks ----------------------------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """Return the fields of a published task that belong to this stream, with all sizes."""
        fixed = self.resolved()
        return {
            # It is below the task's epsilon if the promise about shuffled reports needs that.
            "epsilon": fixed.epsilon,
            "mix": [list(pair) for pair in zip(fixed.spans, fixed.shares, strict=True)],
            "aligned": fixed.aligned,
            "mechanism": fixed.mechanism,
            "sized": [list(astuple(each)) for each in fixed.sized],
            "looks": [list(look) for look in fixed.looks],
            # Left out if planned, as in all tasks that were published before there was a choice.
            **({} if fixed.weights == "planned" else {"weights": fixed.weights}),
            **({"enrolment": COUNTED} if fixed.enrols else {}),
        }

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Weave:
        """Return the stream that a published task describes."""
        if "dummies" not in spec:
            return cls.plainly(spec)
        from sfumato.streams.weave.chaffed_weave import ChaffedWeave  # noqa: PLC0415 -- it is a Weave

        return ChaffedWeave.of(spec)

    @staticmethod
    def plainly(spec: Mapping[str, Any]) -> Weave:
        """Return the stream that a published task describes, without its chaff."""
        spans, shares = zip(*spec["mix"], strict=True)
        return Weave(
            values_of(TaskValues.of_spec(spec)),
            spec["periods"],
            spec["changes"],
            spec["epsilon"],
            tuple(spans),
            tuple(shares),
            spec["mechanism"],
            aligned=bool(spec["aligned"]),
            sized=tuple(Sized(*each) for each in spec["sized"]),
            looks=tuple((str(name), size, threshold) for name, size, threshold in spec["looks"]),
            weights=spec.get("weights", "planned"),
            enrols=spec.get("enrolment") == COUNTED,
        )

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a task over a horizon."""
        return horizon.checked(task)

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Weave:
        """Return the stream of a stranger's task; all sizes must be there, and must be small."""
        refuse_wide(spec, MOST_ITEMS)
        refuse_heavy(spec)
        weave_admission.refuse_rows(spec)
        if "dummies" in spec:
            refuse_chaff(spec)
            refuse_heavy({**spec, "payload": (2 + int(spec["dummies"])) * spec["payload"]})
        stream = cls.of(spec)
        weave_admission.refuse_sizes(stream)
        return stream

    @classmethod
    def chosen(cls, task: Mapping[str, Any]) -> Weave:
        """Return the stream of least exact error for a task's queries and promises."""
        return task_choice.chosen(cls, task)

    def spec(self) -> dict[str, Any]:
        """Return plain data that are enough to make this stream again, with all sizes."""
        described = self.values.describe().items()
        return {
            "stream": self.name,
            "values": {name: field for name, field in described if field not in ([], False)},
            "periods": int(self.periods),
            "changes": int(self.changes),
            **self.plain(),
        }

    def truth(self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None) -> Floats:
        """Return the share of devices for which each entry is 1."""
        del ask
        return np.average([self.values.encode(v) for v in held], axis=0, weights=counts)

    # ---- devices and curator --------------------------------------------------------------------

    def device(self, coins: Source, tier: int = 0) -> WeaveDevice:
        """Return a new device on a randomly drawn thread."""
        self.offer(tier)
        return WeaveDevice.join(self, coins)

    def restore(self, state: Any) -> WeaveDevice:
        """Return the device that continues from a saved state."""
        return WeaveDevice.restore(self, state)

    def fleet(self, population: Population, rng: Source) -> WeaveFleet:
        """Return simulated devices, each on a randomly drawn thread."""
        return WeaveFleet(self, population, rng)

    def curator(self) -> WeaveCurator:
        """Return a curator that releases each period's estimate when it closes."""
        return WeaveCurator(self)
