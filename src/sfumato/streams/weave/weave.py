"""Weave: threads with offsets, snapshots and fusion, for values that change a few times.

Every device follows one thread. Its snapshots and differences are fused by least squares on the
graph of periods. The hierarchy of the papers is the case without offsets and snapshots.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.shuffle import Levels, Requirement
from sfumato.core.domain import Label
from sfumato.core.exact import is_finite_number
from sfumato.core.fleet import Population
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.outlook import Notice, Outlook, Sent
from sfumato.core.stream import Ask, Form, Place, Stream
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source
from sfumato.streams import horizon
from sfumato.streams.admission import MOST_ITEMS, refuse_heavy, refuse_wide
from sfumato.streams.amplification import shuffled
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values, values_of
from sfumato.streams.pilot import Pilot
from sfumato.streams.snapshots import Look, Snapshot, chosen
from sfumato.streams.weave import expected, weave_admission
from sfumato.streams.weave.decoding import WeaveDecoded
from sfumato.streams.weave.messages import Difference
from sfumato.streams.weave.mix import Network, Workload, best_shares, variance
from sfumato.streams.weave.printed import printed_shares
from sfumato.streams.weave.strands import CARRIERS, Carrier, Sized, Strand, strand
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave_curator import WeaveCurator
from sfumato.streams.weave.weave_device import WeaveDevice
from sfumato.streams.weave.weave_fleet import WeaveFleet
from sfumato.wire.canonical import canonical
from sfumato.wire.values import TaskValues

__all__ = ["Weave"]

Floats = NDArray[np.float64]

LONGEST: Final = 1 << 14
SHARE_UNITS: Final = 1 << 32


@dataclass(frozen=True)
class Weave(Stream):
    """Values of many devices over a horizon, each device's whole stream epsilon-private.

    Parameters
    ----------
    values
        What a device observes in each period.
    periods
        How many periods the horizon has.
    changes
        How many entries change over the horizon, at most, counted from the empty state before
        it: a thing that turns on or off counts one, a category that moves counts two. Later
        changes are not seen by difference threads; snapshots see all.
    epsilon
        Privacy of a device's whole stream.
    spans, shares
        Which spans there are (0 for snapshots) and which share of the devices draws each.
    mechanism
        What carries differences: auto, concord, exsub or exsub-printed.
    aligned
        Whether all difference threads start with the horizon, as in the papers' hierarchy.
    sized, looks
        The sizes of the mechanisms of differences and snapshots, once they have been chosen; see
        :meth:`resolved`.

    Guarantee
    ---------
    epsilon-LDP for the whole transcript of a device: its thread is drawn before and without the
    data, and what it sends along the thread is one output of one mechanism.

    Error
    -----
    The variance of the mean of a period is the effective resistance between the period and 0
    in the graph of reports; see :mod:`sfumato.streams.weave.mix`.

    Cost
    ----
    Device O(width) time per period and O(width) memory; server O(spans T^2) per period.

    References
    ----------
    The protocol this project uses. Its relatives: rotating panel surveys; LPU of "LDP-IDS: Local
    Differential Privacy for Infinite Data Streams" (Ren et al., 2022); the aligned dyadic levels
    of Erlingsson et al. (2019), of Ohrimenko, Wirth, Wu (2022) and of "SaO2: Optimal Online
    Locally Private Data Analytics with Stronger Shuffle Amplification".

    """

    values: Values
    periods: int
    changes: int
    epsilon: float
    spans: tuple[int, ...]
    shares: tuple[float, ...]
    mechanism: Carrier = "auto"
    aligned: bool = False
    sized: tuple[Sized, ...] = ()
    looks: tuple[Look, ...] = ()

    name: ClassVar[str] = "weave"
    needed: ClassVar[Mapping[str, str]] = horizon.NEEDED
    optional: ClassVar[tuple[str, ...]] = horizon.OPTIONAL
    fewest_periods: ClassVar[int] = 2
    takes_pilots: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what no stream can have."""
        _check(self.values, self.periods, self.changes, self.epsilon, self.mechanism)
        if not all(_whole(span) for span in self.spans):
            raise ConfigurationError(f"spans are {list(self.spans)}; whole numbers are expected.")
        if len(self.spans) != len(self.shares) or not self.spans:
            raise ConfigurationError(
                f"spans are {list(self.spans)} and shares {list(self.shares)}; one share for each "
                "span is expected."
            )
        if len(set(self.spans)) < len(self.spans):
            raise ConfigurationError(f"spans are {list(self.spans)}; each may be there once.")
        for span in self.spans:
            if not self.aligned and span and 2 * span > self.periods:
                raise ConfigurationError(
                    f"spans has {span}; two looks must fit into {self.periods} periods."
                )
            if not 0 <= span <= self.periods:
                raise ConfigurationError(f"spans has {span}; 0..{self.periods} is expected.")
        if not all(is_finite_number(share) and share >= 0 for share in self.shares):
            raise ConfigurationError(
                f"shares are {list(self.shares)}; numbers from 0 to 1 are expected."
            )
        if abs(sum(self.shares) - 1) > 1e-6:
            raise ConfigurationError(f"shares sum to {sum(self.shares):.6g}; 1 is expected.")
        if self.looks and len(self.looks) != len(self.values.blocks):
            raise ConfigurationError(
                f"looks has {len(self.looks)} entries; {len(self.values.blocks)} are expected."
            )
        object.__setattr__(self, "spans", tuple(int(span) for span in self.spans))
        object.__setattr__(self, "shares", tuple(float(share) for share in self.shares))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Small instances whose transcripts can be listed: for checks."""
        yield cls(Binary(), 4, 2, 1.0, (1, 2, 0), (0.25, 0.25, 0.5))
        yield cls(Binary(), 4, 2, 1.0, (1, 2, 4), (0.5, 0.25, 0.25), "exsub", aligned=True)
        yield cls(Category(2), 3, 3, 1.0, (1, 0), (0.5, 0.5), "exsub")
        yield cls(Category(2, optional=True), 2, 2, 1.0, (1, 0), (0.5, 0.5))
        yield cls(Items(2), 2, 2, 2.0, (1, 0), (0.5, 0.5), "concord")
        yield cls(Attributes({"x": 2, "y": 2}), 2, 3, 1.0, (1, 0), (0.5, 0.5))

    # ---- named configurations --------------------------------------------------------------

    @classmethod
    def best(
        cls,
        values: Values,
        periods: int,
        changes: int,
        epsilon: float,
        *,
        workload: Workload = "online",
        mechanism: Carrier = "auto",
    ) -> Weave:
        """Return the protocol whose shares have the least exact error for a workload.

        Spans are powers of two (of four for long horizons); longer ones are tried for as long as
        they are of use. Snapshots alone are among the candidates; and as they are better than
        planned where nearly all devices hold the same, no mix is chosen that would then be
        worse by more than 1%.
        """
        _check(values, periods, changes, epsilon, mechanism)

        def made(spans: Sequence[int], shares: Sequence[float]) -> Weave:
            return cls(values, periods, changes, epsilon, tuple(spans), tuple(shares), mechanism)

        factor = 2 if periods <= 256 else 4
        longest = 16
        found: dict[int, float] = {}
        while True:
            spans = [span for span in _powers(factor, longest) if 2 * span <= periods]
            even = made([*spans, SNAPSHOT], [1 / (len(spans) + 1)] * (len(spans) + 1))
            start = [found.get(span, 0.02) for span in even.spans] if found else None
            shares, _ = best_shares(even.networks, workload, start=start)
            found = dict(zip(even.spans, shares.tolist(), strict=True))
            if shares[-2] < 0.01 or 2 * factor * spans[-1] > periods:
                break
            longest *= 4
        # Spans that hardly anybody draws are left out, and the others' shares made exact.
        kept = [g for g, share in found.items() if share > 0.005 or g in (1, SNAPSHOT)]
        even = made(kept, [1 / len(kept)] * len(kept))
        start = [max(found[span], 0.02) for span in kept]
        shares, _ = best_shares(even.networks, workload, start=start, tolerance=0.001)
        alone = np.array([float(span == SNAPSHOT) for span in kept])
        for more in (0.0, 0.25, 0.5, 0.7, 0.85, 0.95):
            mixed = (1 - more) * shares + more * alone
            if even.is_safe(mixed, alone, workload):
                return even.trimmed(mixed.tolist())
        return even.trimmed(alone.tolist())

    def is_safe(self, shares: Floats, alone: Floats, workload: Workload) -> bool:
        """Return whether shares make no more error than snapshots alone do, whatever devices hold.

        The noise of differences is at most as planned. That of snapshots is least if devices do
        not differ, for both in proportion.
        """
        total, parts = variance(self.networks, shares, workload)
        planned, _ = variance(self.networks, alone, workload)
        least = min(look.noise / look.variance for look in self.snapshots)
        looks = float(parts @ alone)
        return total <= planned and total - looks + least * looks <= 1.01 * least * planned

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

        By default as printed: ExSub's printed size, all changes on every level, equal shares of
        the levels 0..floor(log T), the top one included. Other printed shares go by their name.
        """
        if fan_out < 2:
            raise ConfigurationError(f"fan_out is {fan_out!r}; 2 or more is expected.")
        spans = [span for span in _powers(fan_out, periods) if span <= periods]
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
        """Return the aligned levels of the papers' hierarchy, at their best.

        The mechanism of least exact error, no more non-zeros than a level can have, only levels
        that help, and their shares by exact error.
        """
        even = cls.papers(values, periods, changes, epsilon, fan_out=fan_out, mechanism=mechanism)
        shares, _ = best_shares(even.networks, workload)
        return even.trimmed(shares.tolist())

    def trimmed(self, shares: Sequence[float]) -> Weave:
        """Return the protocol with other shares, without the spans that hardly anybody draws."""
        kept = [(g, share) for g, share in zip(self.spans, shares, strict=True) if share > 2e-3]
        total = sum(share for _, share in kept)
        return type(self)(
            self.values,
            self.periods,
            self.changes,
            self.epsilon,
            tuple(g for g, _ in kept),
            tuple(share / total for _, share in kept),
            self.mechanism,
            self.aligned,
        )

    # ---- the public design -----------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device."""
        return Guarantee.of_stream(self.periods, self.epsilon)

    @property
    def labels(self) -> tuple[Label, ...]:
        """What the entries are called."""
        return tuple(self.values.labels)

    @property
    def horizon(self) -> int:
        """How many periods there are."""
        return self.periods

    @property
    def decodes(self) -> bool:
        """Later reports sharpen what is known of earlier periods."""
        return True

    @property
    def wholes(self) -> tuple[slice, ...]:
        """The blocks of which each device has exactly one entry."""
        return self.values.blocks if self.values.always_there else ()

    def decoded(
        self, tallies: Tallies[Any], closed: int, enrolled: Sequence[int] | None = None
    ) -> WeaveDecoded:
        """Return the periods that have closed: online, smoothed and filtered."""
        return WeaveDecoded(self, tallies, closed, enrolled)

    @cached_property
    def anchored(self) -> bool:
        """Whether threads leave out their first look.

        Snapshots then tell the level, and one change is saved if all streams spend it on their
        first value; of a thing that may be off or a set that may be empty the first look tells
        more than it costs.
        """
        shares = dict(zip(self.spans, self.shares, strict=True))
        there = shares.get(SNAPSHOT, 0.0) > 0
        return there and not self.aligned and self.values.always_there

    def describe(self) -> dict[str, Any]:
        """Return the whole public design as plain data."""
        return {
            "protocol": self.name,
            "values": self.values.describe(),
            "periods": int(self.periods),
            "changes": int(self.changes),
            "epsilon": float(self.epsilon),
            "spans": list(self.spans),
            "shares": list(self.shares),
            "mechanism": self.mechanism,
            "aligned": bool(self.aligned),
            "sized": [list(astuple(each)) for each in self.sized],
            "looks": [list(look) for look in self.looks],
        }

    @property
    def carriers(self) -> tuple[str, ...]:
        """What carries differences, by name."""
        if self.mechanism != "auto":
            return () if self.spans == (SNAPSHOT,) else (self.mechanism,)
        sending = (t for t, _ in self.threads() if not t.is_snapshot and self.edges(t))
        return tuple(sorted({self.strand(thread).mechanism.name for thread in sending}))

    def facts(self) -> dict[str, Any]:
        """Return what was chosen: who sends what, and what carries differences."""
        spans = zip(self.spans, self.shares, strict=True)
        mix = {"snapshot" if span == SNAPSHOT else str(span): share for span, share in spans}
        carried = " and ".join(self.carriers) or "none needed"
        return {"changes": self.changes, "mechanism": carried, "mix": mix}

    @property
    def sent(self) -> Sent:
        """What a device sends over the horizon."""
        return expected.sent(self)

    def planned_variance(self, devices: int) -> float:
        """Return the variance of a mean, if devices make all the changes they may."""
        return self.expected_variance() / devices

    def influence(self, devices: int) -> float:
        """Return how far one forged device can move the mean of a period, when that closes."""
        return expected.influence(self, devices)

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

    def plain(self) -> dict[str, Any]:
        """Return the whole design as a published task has it, with all sizes written out."""
        fixed = self.resolved()
        return {
            # Below the task's epsilon if less is enough, because reports are mixed.
            "epsilon": fixed.epsilon,
            "mix": [list(pair) for pair in zip(fixed.spans, fixed.shares, strict=True)],
            "aligned": fixed.aligned,
            "mechanism": fixed.mechanism,
            "sized": [list(astuple(each)) for each in fixed.sized],
            "looks": [list(look) for look in fixed.looks],
        }

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a published task."""
        spans, shares = zip(*spec["mix"], strict=True)
        return cls(
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
        )

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a task over a horizon."""
        return horizon.checked(task)

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a task from a stranger, if all its sizes are there and are small."""
        refuse_wide(spec, MOST_ITEMS)
        refuse_heavy(spec)
        weave_admission.refuse_rows(spec)
        stream = cls.of(spec)
        weave_admission.refuse_sizes(stream)
        return stream

    @classmethod
    def chosen(cls, task: Mapping[str, Any]) -> Weave:
        """Return the stream of least exact error for a task's queries.

        If reports are shuffled, epsilon is the largest one up to the task's that keeps what the
        task promises of shuffled reports.
        """
        stream = cls._chosen(task, task["epsilon"])
        if "shuffle" not in task:
            return stream
        required = Requirement.of(dict(task["shuffle"]))
        # The mix that is best at the lower epsilon may hide a little less: once more.
        lower = shuffled(stream, required).epsilon
        return shuffled(cls._chosen(task, lower), required)

    @classmethod
    def _chosen(cls, task: Mapping[str, Any], epsilon: float) -> Weave:
        design: dict[str, Any] = {
            "values": values_of(TaskValues.of_spec(task)),
            "periods": task["periods"],
            "changes": task["changes"],
            "epsilon": epsilon,
            "mechanism": task["mechanism"],
        }
        named = task["protocol"]
        workload: Any = horizon.workload(task["queries"])
        if "mix" in task:
            spans, shares = zip(*task["mix"], strict=True)
            return cls(spans=spans, shares=shares, **design)
        if named == "weave":
            return cls.best(workload=workload, **design)
        if named == "snapshots":
            return cls(spans=(SNAPSHOT,), shares=(1.0,), **design)
        fan_out = task.get("fan_out", 2)
        if named == "tree":
            return cls.tree(fan_out=fan_out, workload=workload, **design)
        if design["mechanism"] == "auto":
            design["mechanism"] = "exsub-printed"
        return cls.papers(fan_out=fan_out, **design)

    def spec(self) -> dict[str, Any]:
        """Return plain data that make this stream, with all sizes written out."""
        described = self.values.describe().items()
        return {
            "stream": self.name,
            "values": {name: told for name, told in described if told not in ([], False)},
            "periods": int(self.periods),
            "changes": int(self.changes),
            **self.plain(),
        }

    @property
    def brief(self) -> str:
        """The design in a few words."""
        mix = ", ".join(
            f"{share:.0%} {'snapshots' if span == SNAPSHOT else f'span {span}'}"
            for span, share in zip(self.spans, self.shares, strict=True)
        )
        return f"{self.values.kind}, {self.periods} periods, {self.changes} changes: {mix}"

    def truth(
        self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None
    ) -> NDArray[np.float64]:
        """Return the share of devices that each entry is on for."""
        del ask
        return np.average([self.values.encode(v) for v in held], axis=0, weights=counts)

    def at(self, epsilon: float) -> Weave:
        """Return the same stream at another epsilon, its sizes chosen anew."""
        return replace(self, epsilon=epsilon, sized=(), looks=())

    def message(self) -> Levels:
        """Return all that a device sends: which thread, and one output along it."""
        shares: defaultdict[Mechanism, float] = defaultdict(float)
        silent = 0.0
        for thread, share in self.threads():
            if thread.span == SNAPSHOT:
                shares[self.snapshots[thread.block].mechanism] += share
            elif self.edges(thread):
                shares[self.strand(thread).mechanism] += share
            else:
                silent += share  # a thread that never reports tells less than any other
        first = next(iter(shares))
        shares[first] += silent
        return Levels([(share, mechanism) for mechanism, share in shares.items()])

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that no other design has: a device saves them."""
        return hashlib.sha256(canonical(self.describe())).hexdigest()[:16]

    def offsets(self, span: int) -> range:
        """Return the offsets of a span's threads."""
        if span == SNAPSHOT:
            return range(1, self.periods + 1)
        return range(1 if self.aligned else span)

    def threads(self) -> Iterator[tuple[Thread, float]]:
        """Yield every thread with the share of devices that draw it."""
        for span, share in zip(self.spans, self.shares, strict=True):
            blocks = range(len(self.values.blocks) if span == SNAPSHOT else 1)
            each = share / (len(self.offsets(span)) * len(blocks))
            for offset in self.offsets(span):
                for block in blocks:
                    yield Thread(span, offset, block), each

    def edges(self, thread: Thread) -> tuple[tuple[int, int], ...]:
        """Return the pairs of periods whose difference the thread sends."""
        return thread.edges(self.periods, anchored=self.anchored)

    def strand(self, thread: Thread) -> Strand:
        """Return what carries a difference thread."""
        return self._strand(thread.differences(self.periods, anchored=self.anchored))

    def _strand(self, differences: int) -> Strand:
        made: dict[int, Strand] = self._strands
        if differences not in made:
            fixed = {each.differences: each for each in self.sized}
            made[differences] = strand(
                self.values,
                differences,
                self.changes,
                self.epsilon,
                fixed.get(differences, self.mechanism),
                anchored=self.anchored,
            )
        return made[differences]

    @cached_property
    def _strands(self) -> dict[int, Strand]:
        return {}

    @cached_property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The single look at each block."""
        blocks = range(len(self.values.blocks))
        looks = self.looks or (None,) * len(blocks)
        return tuple(
            self.values.snapshot(self.epsilon, block, look)
            for block, look in zip(blocks, looks, strict=True)
        )

    def resolved(self) -> Weave:
        """Return the same protocol with all sizes written out: a device then only has to obey."""
        counts = {len(self.edges(thread)) for thread, _ in self.threads() if thread.span}
        return replace(
            self,
            sized=tuple(Sized.of(self._strand(count)) for count in sorted(counts) if count),
            looks=tuple(map(chosen, self.snapshots)) if SNAPSHOT in self.spans else (),
        )

    @cached_property
    def payload(self) -> int:
        """The bytes of the longest message of any thread."""
        sizes = [look.mechanism.report_bytes for look in self.snapshots if SNAPSHOT in self.spans]
        firsts = {(t.span, len(self.edges(t))): t for t, _ in self.threads() if t.span}
        sizes += [self.difference(t).dtype.itemsize for t in firsts.values() if self.edges(t)]
        return max(sizes)

    @property
    def tracks(self) -> tuple[tuple[int, int], ...]:
        """The snapshots of each block, and the differences of each span."""
        return tuple(
            (span, part)
            for span in self.spans
            for part in range(len(self.values.blocks) if span == SNAPSHOT else 1)
        )

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return how the snapshots or differences of a place are read; None if none are due."""
        del ask
        span, period, part = place
        if (span, part) not in self.tracks or not 1 <= period <= self.periods:
            return None
        if span == SNAPSHOT:
            return Form.of(self.snapshots[part].mechanism)
        thread = Thread(span, period % span)
        if thread.offset not in self.offsets(span):
            return None
        if all(end != period for _, end in self.edges(thread)):
            return None
        written = self.difference(thread)
        return Form(written.dtype, written.valid, written.counted)

    @property
    def persistence(self) -> float:
        """How a device's entry goes with itself a period later, if all changes come evenly."""
        typical = self.snapshots[0].share
        flips = self.changes / (self.periods * self.values.width)
        return max(0.0, 1 - flips / (2 * typical * (1 - typical)))

    def difference(self, thread: Thread) -> Difference:
        """Return how the differences of a thread are written."""
        return Difference(self.values.width, self.strand(thread).mechanism.form.dense)

    @cached_property
    def network(self) -> Network:
        """The graph that reports make, for any shares of the spans (of the first block)."""
        return self.block_network(0)

    @cached_property
    def networks(self) -> tuple[tuple[float, Network], ...]:
        """The graphs of all blocks, each with the share of the entries that have it."""
        counts: dict[int, int] = {}
        alike: dict[tuple[int, Snapshot], int] = {}
        for block, entries in enumerate(self.values.blocks):
            width = entries.stop - entries.start
            first = alike.setdefault((width, self.snapshots[block]), block)
            counts[first] = counts.get(first, 0) + width
        return tuple(
            (count / self.values.width, self.block_network(block))
            for block, count in counts.items()
        )

    def block_network(self, block: int) -> Network:
        """Return the graph of one block's entries."""
        edges: list[tuple[int, int, int]] = []
        unit: list[float] = []
        places = {span: place for place, span in enumerate(self.spans)}
        blocks = len(self.values.blocks)
        for span in self.spans:
            for offset in self.offsets(span):
                thread = Thread(span, offset, block if span == SNAPSHOT else 0)
                told = self.edges(thread)
                if span == SNAPSHOT:
                    noise = self.snapshots[block].variance * blocks
                else:
                    noise = self.strand(thread).variance if told else 1.0
                edges += [(start, end, places[span]) for start, end in told]
                unit += [1 / (len(self.offsets(span)) * noise)] * len(told)
        return Network(self.periods, self.spans, edges, unit, aligned=self.aligned)

    def expected_variance(self, workload: Workload = "online") -> float:
        """Return n times the average variance of the workload's queries, by the best weights."""
        return variance(self.networks, np.array(self.shares), workload)[0]

    # ---- devices and curator ---------------------------------------------------------------

    def draw(self, rng: Source) -> Thread:
        """Draw a thread from the public mix, without the data."""
        coins = rng.coins()
        drawn = coins.below(SHARE_UNITS)
        ends = zip(self.spans, self._bounds.tolist(), strict=False)
        span = next((span for span, end in ends if drawn < end), self.spans[-1])
        offset = self.offsets(span)[coins.below(len(self.offsets(span)))]
        blocks = range(len(self.values.blocks) if span == SNAPSHOT else 1)
        return Thread(span, offset, blocks[coins.below(len(blocks))])

    @cached_property
    def _bounds(self) -> Any:
        units = np.floor(np.cumsum(self.shares) / sum(self.shares) * SHARE_UNITS).astype(np.int64)
        return units[:-1]

    def inputs(self) -> Sequence[Any]:
        """Return every value that a device can hold."""
        return self.values.inputs()

    def check(self, value: Any) -> None:
        """Raise InputError if the stream knows no such value."""
        self.values.encode(value)

    @property
    def default(self) -> Any:
        """What a device holds before its first value, if it always holds one."""
        return self.values.default

    @property
    def work(self) -> int:
        """How many entries a device goes through in each period."""
        return self.values.width

    def device(self, coins: Source, tier: int = 0) -> WeaveDevice:
        """Return a new device on a thread of its own."""
        self.offer(tier)
        return WeaveDevice.join(self, coins)

    def restore(self, state: Any) -> WeaveDevice:
        """Return the device that goes on from a saved state."""
        return WeaveDevice.restore(self, state)

    def fleet(self, population: Population, rng: Source) -> WeaveFleet:
        """Return simulated devices, each on a thread of its own."""
        return WeaveFleet(self, population, rng)

    def curator(self) -> WeaveCurator:
        """Return a curator that releases each period's estimate when it closes."""
        return WeaveCurator(self)


def _powers(base: int, largest: int) -> list[int]:
    powers = [1]
    while powers[-1] * base <= largest:
        powers.append(powers[-1] * base)
    return powers


def _check(values: Values, periods: int, changes: int, epsilon: float, mechanism: str) -> None:
    if not _whole(periods) or not 2 <= periods <= LONGEST:
        raise ConfigurationError(
            f"periods is {periods!r}; a whole number in 2..{LONGEST} is expected."
        )
    least = values.least_changes
    if not _whole(changes) or not least <= changes <= values.width * periods:
        raise ConfigurationError(
            f"changes is {changes!r}; a whole number in {least}..{values.width * periods} is "
            "expected."
        )
    if not is_finite_number(epsilon) or epsilon <= 0:
        raise ConfigurationError(f"epsilon is {epsilon!r}; a positive number is expected.")
    if mechanism not in CARRIERS:
        raise ConfigurationError(f"mechanism is {mechanism!r}; {', '.join(CARRIERS)} are there.")


def _whole(given: object) -> bool:
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)
