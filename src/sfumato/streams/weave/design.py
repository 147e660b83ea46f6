"""The public design of Weave: its threads, their mechanisms, and the graph of reports.

Everything follows from a few published numbers, so that devices, curator and planner agree without
communication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, Self

import numpy as np

from sfumato.accounting.shuffle import Hiding, Levels
from sfumato.core.domain import Label
from sfumato.core.doubt import Doubt
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Form, Place, Stream
from sfumato.core.tally import ENROLMENT, Tally
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source
from sfumato.streams.kinds import Values
from sfumato.streams.snapshots import Look, Snapshot, chosen
from sfumato.streams.weave import enrolled
from sfumato.streams.weave.messages import Difference
from sfumato.streams.weave.mix import Network, Workload, variance
from sfumato.streams.weave.refusals import refuse_numbers, refuse_spans, refuse_weights
from sfumato.streams.weave.strands import Carrier, Sized, Strand, strand
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.working import Weights
from sfumato.wire.canonical import canonical

__all__ = ["WeaveDesign"]

SHARE_UNITS: Final = 1 << 32


@dataclass(frozen=True)
class WeaveDesign(Stream):
    """The public numbers of a :class:`~sfumato.streams.weave.weave.Weave`, and what follows.

    The parameters are those of a Weave.
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
    weights: Weights = "planned"
    enrols: bool = False

    name: ClassVar[str] = "weave"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        refuse_numbers(self.values, self.periods, self.changes, self.epsilon, self.mechanism)
        refuse_spans(self.spans, self.shares, self.periods, aligned=self.aligned)
        if self.looks and len(self.looks) != len(self.values.blocks):
            raise ConfigurationError(
                f"looks has {len(self.looks)} entries; {len(self.values.blocks)} are expected."
            )
        refuse_weights(self.weights, aligned=self.aligned)
        if self.enrols:
            enrolled.refuse_enrolment(always_there=self.values.always_there, shuffled=False)
        object.__setattr__(self, "spans", tuple(int(span) for span in self.spans))
        object.__setattr__(self, "shares", tuple(float(share) for share in self.shares))

    @classmethod
    def refuse_enrolment(cls, task: Mapping[str, Any]) -> None:
        """Raise ConfigurationError unless devices can be empty, and reports are not shuffled."""
        enrolled.refuse_task(task)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device."""
        return Guarantee.of_stream(self.periods, self.epsilon)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the entries."""
        return tuple(self.values.labels)

    @property
    def horizon(self) -> int:
        """The number of periods."""
        return self.periods

    @property
    def decodes(self) -> bool:
        """Whether later reports improve estimates of earlier periods: yes."""
        return True

    @property
    def wholes(self) -> tuple[slice, ...]:
        """The blocks of entries of which each device holds exactly one."""
        return self.values.blocks if self.values.always_there else ()

    @cached_property
    def anchored(self) -> bool:
        """Whether threads leave out their first look.

        Snapshots then show the level, and one change is saved if all streams use it for their first
        value. For a binary value that may be off, or a set that may be empty, the first look is
        worth more than it costs.
        """
        shares = dict(zip(self.spans, self.shares, strict=True))
        there = shares.get(SNAPSHOT, 0.0) > 0
        return there and not self.aligned and self.values.always_there

    def describe(self) -> dict[str, Any]:
        """Return the public design as plain data, with everything that a device depends on."""
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

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that identify the design; a device saves them."""
        return hashlib.sha256(canonical(self.describe())).hexdigest()[:16]

    @property
    def carriers(self) -> tuple[str, ...]:
        """The names of the mechanisms that carry differences."""
        if self.mechanism != "auto":
            return () if self.spans == (SNAPSHOT,) else (self.mechanism,)
        sending = (t for t, _ in self.threads() if not t.is_snapshot and self.edges(t))
        return tuple(sorted({self.strand(thread).mechanism.name for thread in sending}))

    def inputs(self) -> Sequence[Any]:
        """Return every value that a device can hold."""
        return self.values.inputs()

    def check(self, value: Any) -> None:
        """Raise InputError unless a value is one that the stream knows."""
        self.values.encode(value)

    @property
    def default(self) -> Any:
        """The value of a device before its first observation, if it always holds one."""
        return self.values.default

    @property
    def work(self) -> int:
        """The number of entries that a device processes in each period."""
        return self.values.width

    # ---- threads and their mechanisms -----------------------------------------------------------

    def offsets(self, span: int) -> range:
        """Return the offsets of the threads of a span."""
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
        """Return the pairs of periods whose differences the thread sends."""
        return thread.edges(self.periods, anchored=self.anchored)

    def strand(self, thread: Thread) -> Strand:
        """Return the strand of a difference thread, with the mechanism that carries it."""
        return self._strand(thread.differences(self.periods, anchored=self.anchored))

    def _strand(self, differences: int) -> Strand:
        strands: dict[int, Strand] = self._strands
        if differences not in strands:
            fixed = {each.differences: each for each in self.sized}
            strands[differences] = strand(
                self.values,
                differences,
                self.changes,
                self.epsilon,
                fixed.get(differences, self.mechanism),
                anchored=self.anchored,
            )
        return strands[differences]

    @cached_property
    def _strands(self) -> dict[int, Strand]:
        return {}

    @cached_property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshot of each block."""
        blocks = range(len(self.values.blocks))
        looks = self.looks or (None,) * len(blocks)
        return tuple(
            self.values.snapshot(self.epsilon, block, look)
            for block, look in zip(blocks, looks, strict=True)
        )

    def resolved(self) -> Self:
        """Return the same stream with all sizes written out, so that a device chooses nothing."""
        counts = {len(self.edges(thread)) for thread, _ in self.threads() if thread.span}
        return replace(
            self,
            sized=tuple(Sized.of(self._strand(count)) for count in sorted(counts) if count),
            looks=tuple(map(chosen, self.snapshots)) if SNAPSHOT in self.spans else (),
        )

    @cached_property
    def payload(self) -> int:
        """The number of bytes of the longest message of any thread."""
        sizes = [look.mechanism.report_bytes for look in self.snapshots if SNAPSHOT in self.spans]
        firsts = {(t.span, len(self.edges(t))): t for t, _ in self.threads() if t.span}
        sizes += [self.difference(t).dtype.itemsize for t in firsts.values() if self.edges(t)]
        return max(sizes)

    @property
    def tracks(self) -> tuple[tuple[int, int], ...]:
        """The spans and parts of places: snapshots by block, and differences by span."""
        tracks = tuple(
            (span, part)
            for span in self.spans
            for part in range(len(self.values.blocks) if span == SNAPSHOT else 1)
        )
        return (*tracks, (ENROLMENT, 0)) if self.enrols else tracks

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return the form of the snapshots or differences of a place; None if none are due."""
        del ask
        span, period, part = place
        if (span, part) not in self.tracks or not 1 <= period <= self.periods:
            return None
        if span == ENROLMENT:
            return enrolled.FORM
        if span == SNAPSHOT:
            return Form.of(self.snapshots[part].mechanism)
        thread = Thread(span, period % span)
        if thread.offset not in self.offsets(span):
            return None
        if all(end != period for _, end in self.edges(thread)):
            return None
        written = self.difference(thread)
        return Form(written.dtype, written.valid, written.counted)

    def doubt(self, place: Place, tally: Tally, ask: Ask | None = None) -> Doubt | None:
        """Return how improbable the reports of a place are if all devices are honest."""
        del ask
        if place.span == ENROLMENT:
            return enrolled.doubt_of_crowd(tally, enrolled.due_share(self, place.period))
        if place.span == SNAPSHOT:
            return self.snapshots[place.part].doubt(tally)
        strand = self.strand(Thread(place.span, place.period % place.span))
        doubt = strand.mechanism.doubt(tally)
        periods = "one period" if place.span == 1 else f"{place.span:,} periods"
        return None if doubt is None else replace(doubt, what=f"the change over {periods}")

    def reports_once(self, place: Place) -> bool:
        """Return whether reports are snapshots, of which a device sends one over the horizon."""
        return place.span == SNAPSHOT

    def difference(self, thread: Thread) -> Difference:
        """Return the form of a thread's differences."""
        return Difference(self.values.width, self.strand(thread).mechanism.sends_every_entry)

    @property
    def persistence(self) -> float:
        """The correlation of a device's entry with itself one period later, for even changes."""
        typical = self.snapshots[0].share
        flips = self.changes / (self.periods * self.values.width)
        return max(0.0, 1 - flips / (2 * typical * (1 - typical)))

    def message(self) -> Hiding:
        """Return everything that a device sends as one message: its thread, and one output.

        The chance of each thread is exactly the one with which :meth:`draw` draws it.
        """
        levels: list[tuple[Fraction, Mechanism]] = []
        silent = Fraction(0)
        chances = dict(zip(self.spans, self._chances, strict=True))
        for thread, _ in self.threads():
            blocks = len(self.values.blocks) if thread.span == SNAPSHOT else 1
            chance = chances[thread.span] / (len(self.offsets(thread.span)) * blocks)
            if thread.span == SNAPSHOT:
                levels.append((chance, self.snapshots[thread.block].mechanism))
            elif self.edges(thread):
                levels.append((chance, self.strand(thread).mechanism))
            else:
                silent += chance  # a thread that never reports reveals less than any other
        (chance, first), *others = [level for level in levels if level[0]]
        return Levels([(chance + silent, first), *others])

    @property
    def _chances(self) -> list[Fraction]:
        """The exact chance with which a device draws each span."""
        ends = [0, *map(int, self._bounds.tolist()), SHARE_UNITS]
        return [Fraction(high - low, SHARE_UNITS) for low, high in pairwise(ends)]

    def draw(self, rng: Source) -> Thread:
        """Draw a thread from the public mix, independently of the data."""
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

    @property
    def brief(self) -> str:
        """The design in a few words."""
        mix = ", ".join(
            f"{share:.0%} {'snapshots' if span == SNAPSHOT else f'span {span}'}"
            for span, share in zip(self.spans, self.shares, strict=True)
        )
        return f"{self.values.kind}, {self.periods} periods, {self.changes} changes: {mix}"

    def at(self, epsilon: float) -> Self:
        """Return the same stream at another epsilon, with sizes chosen again."""
        return replace(self, epsilon=epsilon, sized=(), looks=())

    def fixed_at(self, epsilon: float) -> Self:
        """Return the same stream at another epsilon, with the sizes that it has."""
        return replace(self, epsilon=epsilon)

    # ---- the graph of reports -------------------------------------------------------------------

    @cached_property
    def network(self) -> Network:
        """The graph of the reports of the first block, for any shares of the spans."""
        return self.block_network(0)

    @property
    def networks(self) -> tuple[tuple[float, Network], ...]:
        """The graphs of all blocks, each with its share of the entries."""
        return tuple((share, network) for share, _, network in self.distinct)

    @cached_property
    def distinct(self) -> tuple[tuple[float, int, Network], ...]:
        """The distinct blocks: their share of the entries, the first of them, and its graph."""
        counts: dict[int, int] = {}
        alike: dict[tuple[int, Snapshot], int] = {}
        for block, entries in enumerate(self.values.blocks):
            width = entries.stop - entries.start
            first = alike.setdefault((width, self.snapshots[block]), block)
            counts[first] = counts.get(first, 0) + width
        return tuple(
            (count / self.values.width, block, self.block_network(block))
            for block, count in counts.items()
        )

    def block_network(self, block: int) -> Network:
        """Return the graph of one block's entries."""
        edges: list[tuple[int, int, int]] = []
        unit: list[float] = []
        indices = {span: index for index, span in enumerate(self.spans)}
        blocks = len(self.values.blocks)
        for span in self.spans:
            for offset in self.offsets(span):
                thread = Thread(span, offset, block if span == SNAPSHOT else 0)
                sent = self.edges(thread)
                if span == SNAPSHOT:
                    noise = self.snapshots[block].variance * blocks
                else:
                    noise = self.strand(thread).variance if sent else 1.0
                edges += [(start, end, indices[span]) for start, end in sent]
                unit += [1 / (len(self.offsets(span)) * noise)] * len(sent)
        return Network(self.periods, self.spans, edges, unit, aligned=self.aligned)

    def expected_variance(self, workload: Workload = "online") -> float:
        """Return n times the average variance of the workload's queries, with the best weights."""
        return variance(self.networks, np.array(self.shares), workload)[0]
