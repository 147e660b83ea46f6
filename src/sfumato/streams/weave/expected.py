"""The expected error of the actual decoder, for devices whose streams are like a sample.

Given how many devices follow each thread, an estimate is a weighted sum of independent reports
whose weights are public, so its variance follows from how often entries change in the sample.
Beyond the bound by density, three things matter: the actual number of changes, that counts are
random (and some periods may have no snapshot), and that the devices on a thread are sampled from
those whose mean is estimated. If streams change more often than differences may show, the bias is
the difference to the sample's frozen streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.outlook import Expected, Sent
from sfumato.mechanisms.sparse.subset.subset_law import SubsetLaw, pair_moments
from sfumato.streams.pilot import Sample
from sfumato.streams.posterior.information import Information, Sightings
from sfumato.streams.posterior.rounds import posterior
from sfumato.streams.weave.aligned_tree import path
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.mix import Network
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.working import Working

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["expected", "expected_posterior", "networks", "sent"]


FEW: Final = 400
"""The number of devices on an edge below which counts are drawn at random and not only expected."""
LONG: Final = 512
"""The number of periods over which random counts are averaged."""
SLIGHT: Final = 0.01
"""The share of people's own variance above which it is computed in detail."""
ENDS: Final = 48
"""The numbers of last periods, and of lengths, that represent all sums of a long horizon."""


DRAWS: Final = 3
"""The number of times that reports are drawn if an error has no formula."""


# ---- the edges of a stream -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Edges:
    """The edges from which one block's entries are estimated.

    Parameters
    ----------
    start, end, thread
        The start, end and thread of each edge; threads as indices.
    planned, actual
        The planned and the expected variance of one report, averaged over entries.
    own
        The part of that variance that comes from sampling people for the thread.
    bias
        The bias of each entry, edges x entries.

    """

    start: Ints
    end: Ints
    thread: Ints
    planned: Floats
    actual: Floats
    own: Floats
    bias: Floats

    def pick(self, chosen: Any) -> _Edges:
        columns = (getattr(self, field.name) for field in fields(self))
        return _Edges(*(column[chosen] for column in columns))


def _edges(protocol: Weave, sample: Sample, frozen: Sample, block: int) -> _Edges:
    """Return the edges of a block, sorted by their ends."""
    entries = protocol.values.blocks[block]
    means = sample.means()[:, entries]
    rows: list[tuple[Any, ...]] = []
    for index, (thread, _) in enumerate(protocol.threads()):
        if thread.is_snapshot:
            if thread.block == block:
                look, share = protocol.snapshots[block], means[thread.offset - 1]
                actual = look.variance_at_share(share).mean()
                rows.append((0, thread.offset, index, look.variance, actual, 0.0, 0 * share))
            continue
        for start, end in protocol.edges(thread):
            strand = protocol.strand(thread)
            often, mean = (part[entries] for part in frozen.changed(start, end))
            square = float((mean**2).mean())
            own = float(often.mean()) - square
            actual = strand.moment(float(often.mean())) - square
            bias = 0 * mean
            if frozen is not sample:
                bias = mean - sample.changed(start, end)[1][entries]
            rows.append((start, end, index, strand.variance, actual, own, bias))
    columns = list(zip(*rows, strict=True))
    whole = (np.array(column, dtype=np.int64) for column in columns[:3])
    real = (np.array(column, dtype=np.float64) for column in columns[3:])
    edges = _Edges(*whole, *real)  # type: ignore[arg-type]
    return edges.pick(np.argsort(edges.end, kind="stable"))


def networks(protocol: Weave, sample: Sample) -> list[tuple[float, Network]]:
    """Return the graph of each block's reports, with the noise expected for such streams."""
    threads = [thread for thread, _ in protocol.threads()]
    frozen = sample.frozen(protocol.changes)
    blocks = protocol.values.blocks
    graphs = []
    for block, entries in enumerate(blocks):
        edges = _edges(protocol, sample, frozen, block)
        indices = [protocol.spans.index(threads[thread].span) for thread in edges.thread]
        ways = [
            len(protocol.offsets(threads[thread].span))
            * (len(blocks) if threads[thread].is_snapshot else 1)
            for thread in edges.thread
        ]
        rows = list(zip(edges.start, edges.end, indices, strict=True))
        unit = 1 / (np.array(ways) * np.maximum(edges.actual, 1e-12))
        share = len(range(sample.width)[entries]) / sample.width
        network = Network(protocol.periods, protocol.spans, rows, unit.tolist())
        graphs.append((share, network))
    return graphs


# ---- the error -------------------------------------------------------------------------------


def expected(
    protocol: Weave,
    devices: int,
    sample: Sample,
    workloads: Sequence[str] = ("online",),
    seed: int = 0,
    decoder: str = "fusion",
) -> dict[str, Expected]:
    """Return the expected error of each workload's queries.

    The decoder is the fusion of all reports, or the path of the papers' hierarchy.
    """
    shares = np.array([share for _, share in protocol.threads()])
    draws = [devices * shares]
    if devices * shares[shares > 0].min() < FEW:
        draw = np.random.default_rng(seed)
        count = max(1, LONG // protocol.periods)  # long horizons average over chance themselves
        reports = round(devices * shares.sum())  # with dummies there are more than devices
        draws = [draw.multinomial(reports, shares / shares.sum()) for _ in range(count)]
    frozen = sample.frozen(protocol.changes)
    pairs = _pairs(protocol)
    figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in workloads}
    weights = []
    for block, entries in enumerate(protocol.values.blocks):
        edges = _edges(protocol, sample, frozen, block)
        for counts in draws:
            there = edges.pick(counts[edges.thread] > 0)
            reports = counts[there.thread].astype(np.float64)
            working = _working(protocol, block, there, reports, sample)
            answers = _Answers(there, reports, working, frozen, entries, pairs)
            weights.append(len(range(sample.width)[entries]))
            for name in workloads:
                figures[name].append(_error(answers, name, decoder))
    errors = {}
    for name in workloads:
        variance, *others = np.average(figures[name], axis=0, weights=weights).tolist()
        # A device on one thread is not on another; together the threads have all devices.
        variance -= sample.spread(name) / devices
        errors[name] = Expected(variance, *others)
    return errors


@lru_cache(maxsize=1)  # a plan asks twice
def expected_posterior(
    protocol: Weave, devices: int, sample: Sample, draws: int = DRAWS, seed: int = 0
) -> Expected:
    """Return the expected error of each period under a prior, once all periods have closed.

    How well a prior fits depends on the curves, so similar reports are drawn and decoded a few
    times.
    """
    draw = np.random.default_rng(seed)
    shares = np.array([share for _, share in protocol.threads()])
    frozen, truth = sample.frozen(protocol.changes), sample.means()
    before = np.concatenate([np.zeros((1, sample.width)), truth])
    squares, stated = np.zeros((2, *truth.shape))
    for block, entries in enumerate(protocol.values.blocks):
        edges = _edges(protocol, sample, frozen, block)
        for _ in range(draws):
            counts = draw.multinomial(round(devices * shares.sum()), shares / shares.sum())
            there = edges.pick(counts[edges.thread] > 0)
            reports = counts[there.thread].astype(np.float64)
            known = _working(protocol, block, there, reports, sample) / reports
            mean = (before[there.end] - before[there.start])[:, entries] + there.bias
            noise = np.broadcast_to((there.actual / reports)[:, None], mean.shape)
            value = mean + draw.normal(size=mean.shape) * np.sqrt(noise)
            sightings = Sightings(there.start, there.end, value, known, noise)
            seen = Information.of(np.ones(len(truth)), sightings)
            if not seen.grounded:
                return Expected(np.inf, np.inf)
            values, variances = posterior(seen).combined(np.eye(len(truth)))
            squares[:, entries] += (values - truth[:, entries]) ** 2 / draws
            stated[:, entries] += variances / draws
    return Expected(float(squares.mean()), float(stated.mean()))


def _working(protocol: Weave, block: int, edges: _Edges, count: Floats, sample: Sample) -> Floats:
    """Return the variances that weights assume: planned or, if weights are learnt, expected."""
    if protocol.weights == "planned":
        return edges.planned
    spans = [thread.span for thread, _ in protocol.threads()]
    means = sample.means()[:, protocol.values.blocks[block]]
    working = Working(protocol.snapshots[block], protocol.weights)
    learnt = np.empty(edges.end.size)
    for index, (thread, end) in enumerate(zip(edges.thread, edges.end, strict=True)):
        span, n, planned = spans[thread], float(count[index]), float(edges.planned[index])
        if span == SNAPSHOT:
            learnt[index] = working.of_look()
            working.take_look(n, means[end - 1])
        else:
            learnt[index] = working.of_difference(span, planned)
            working.take_difference(span, n, float(edges.actual[index]) / planned * (n - 1) / n)
    return learnt


def _pairs(protocol: Weave) -> Floats:
    """Return the mean product of two of a device's reports on each thread, for changes of 1."""
    ratios = []
    for thread, _ in protocol.threads():
        ratio = 1.0
        if not thread.is_snapshot and len(protocol.edges(thread)) > 1:
            law = protocol.strand(thread).mechanism.probabilities
            if isinstance(law, SubsetLaw):  # others are taken for independent
                ratio = pair_moments(protocol.epsilon, law)[0] / law.contrast**2
        ratios.append(ratio)
    return np.array(ratios)


class _Answers:
    """The variance and bias of weighted sums of reports, given the number of reports."""

    def __init__(
        self,
        edges: _Edges,
        count: Floats,
        working: Floats,
        frozen: Sample,
        entries: slice,
        pairs: Floats,
    ) -> None:
        self._edges = edges
        self._pairs = pairs
        self._count = count
        self._frozen = frozen
        self._entries = entries
        self.fusion = Fusion(frozen.periods, edges.start, edges.end, count / working)

    def variances(self, weights: Floats) -> tuple[float, float]:
        """Return the sums of the true variances of answers, and of those that intervals state."""
        squares = (weights**2).sum(axis=0) / self._count
        reported = total = float(squares @ self._edges.actual)
        if float(squares @ self._edges.own) > SLIGHT * total:
            for which, covariance in self._together:
                part = weights[:, which]
                total += float(((part @ covariance) * part).sum())
        return total, reported

    @cached_property
    def _together(self) -> list[tuple[Ints, Floats]]:
        """The edges of each thread with several, and the covariance between different ones."""
        groups = []
        order = np.argsort(self._edges.thread, kind="stable")
        cuts = np.flatnonzero(np.diff(self._edges.thread[order])) + 1
        for which in np.split(order, cuts):
            if which.size > 1:
                start, end = self._edges.start[which], self._edges.end[which]
                pair = float(self._pairs[self._edges.thread[which[0]]])
                covariance = self._frozen.together(start, end, self._entries, pair)
                np.fill_diagonal(covariance, 0.0)
                groups.append((which, covariance / self._count[which[0]]))
        return groups

    def squared_bias(self, weights: Floats) -> float:
        """Return the sum of the squared biases of answers, averaged over entries."""
        if not self._edges.bias.any():
            return 0.0
        return float(((weights @ self._edges.bias) ** 2).mean(axis=1).sum())


def _error(answers: _Answers, workload: str, decoder: str) -> tuple[float, ...]:
    """Return variance, stated variance and squared bias of an answer, and the unknown share."""
    total = np.zeros(3)
    queries = unknown = 0
    asked = _along if decoder == "path" else _asked
    for weights in asked(answers.fusion, workload):
        known = ~np.isnan(weights).any(axis=1)
        queries += len(weights)
        unknown += len(weights) - int(known.sum())
        total[:2] += answers.variances(weights[known])
        total[2] += answers.squared_bias(weights[known])
    return *(total / max(queries - unknown, 1)).tolist(), unknown / queries


def _asked(fusion: Fusion, workload: str) -> Iterator[Floats]:
    """Yield the weights of all edges in the answers to a workload's queries, in parts.

    For long horizons some sums represent all: those that end in selected periods, spaced evenly
    among all queries (more ranges end in later periods).
    """
    if workload == "online":
        yield fusion.online()
        return
    if workload == "history":
        yield fusion.weights(fusion.periods)
        return
    size, ends = _some_ends(fusion.periods, workload)
    for state in fusion.growing():
        if state.period not in ends:
            continue
        ended = fusion.end <= state.period
        potential = np.cumsum(state.covariance[:, :0:-1], axis=1)
        known = np.logical_and.accumulate(state.known[state.period : 0 : -1])
        if workload == "prefix":
            potential, known = potential[:, -1:], known[-1:]
        elif size < fusion.periods:
            lengths = np.unique(np.linspace(0, state.period - 1, size).astype(int))
            potential, known = potential[:, lengths], known[lengths]
        drop = potential[fusion.end[ended]] - potential[fusion.start[ended]]
        weights = np.zeros((potential.shape[1], fusion.start.size))
        weights[:, ended] = drop.T * fusion.conductance[ended]
        weights[~known] = np.nan
        yield weights


def _some_ends(periods: int, workload: str) -> tuple[int, set[int]]:
    """Return the number of lengths that represent all sums, and the periods they end in."""
    size = ENDS if periods > 2 * ENDS else periods
    even = (np.arange(size) + 0.5) / size
    some = np.sqrt(even) if workload == "ranges" and size < periods else even
    return size, set(np.ceil(some * periods).astype(int).tolist())


def _along(fusion: Fusion, workload: str) -> Iterator[Floats]:
    """Yield the weights of the papers' path, which later reports never change."""
    rows = path(fusion)
    if workload in ("online", "history"):
        yield rows
        return
    size, ends = _some_ends(fusion.periods, workload)
    for end in sorted(ends):
        summed = np.cumsum(rows[:end][::-1], axis=0)
        if workload == "prefix":
            yield summed[-1:]
        else:
            yield summed[np.unique(np.linspace(0, end - 1, min(size, end)).astype(int))]


def sent(protocol: Weave) -> Sent:
    """Return the messages and bytes that a device sends over the horizon."""
    messages = payload = 0.0
    most = 0
    for thread, share in protocol.threads():
        if thread.is_snapshot:
            count, size = 1, protocol.snapshots[thread.block].mechanism.report_bytes
        else:
            count = len(protocol.edges(thread))
            size = protocol.difference(thread).dtype.itemsize if count else 0
        messages += share * count
        payload += share * count * size
        most = max(most, count)
    return Sent(messages, payload, most)
