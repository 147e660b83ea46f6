"""How accurate published streams are: random ranges, repeated, on real or made-up streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.datasets.amount_streams import KnownStream
from sfumato.randomness import Keyed, Source, seeded
from sfumato.streams.published import Publisher, PublishingPlan, Released, plan
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.thresholds import Fixed, candidates

__all__ = [
    "METRICS",
    "PARTS",
    "Gain",
    "MethodErrors",
    "PartGain",
    "compare",
    "gains",
    "measured",
    "part_gains",
    "parts",
]


METRICS: Final = ("mse", "mae", "mmse", "mmae")
RANGES: Final = 200


@dataclass(frozen=True)
class MethodErrors:
    """The errors of one method on one stream: of sums (mse, mae) and of means (mmse, mmae).

    ``noise`` is the standard error of ``mse``, which is a mean over repeats. ``covered`` is the
    share of 95% intervals that contain the sum of cut values; it is known where whole streams were
    published.
    """

    stream: str
    epsilon: float
    method: str
    mse: float
    mae: float
    mmse: float
    mmae: float
    noise: float
    covered: float
    threshold: float
    repeats: int


# ---- whole methods ----------------------------------------------------------------------------


def compare(
    stream: KnownStream,
    methods: list[str],
    epsilons: list[float],
    repeats: int,
    *,
    holdout: int,
    limit: int,
    step: Callable[[str], None] = lambda _: None,
) -> Iterator[MethodErrors]:
    """Yield the errors of methods; ``zero`` always answers zero, ``oracle`` knows all values.

    ToPS is measured by the values that it publishes one by one, all others by range sums. A tree
    that is not consistent answers a range by a few nodes: the noise of each range is then drawn
    from its exact law, and that of no other node is drawn.
    """
    for epsilon in epsilons:
        for method in methods:
            step(f"{stream.name}, epsilon {epsilon:g}, {method}")
            if method == "zero":
                yield measured(stream, epsilon, method, None, repeats, holdout, limit)
                continue
            name = "tuned" if method == "oracle" else method
            release = plan(name, epsilon=epsilon, bound=stream.bound, holdout=holdout, limit=limit)
            if method == "oracle":
                release = replace(release, threshold=Fixed(_best(stream, release, limit)))
            yield measured(stream, epsilon, method, release, repeats, holdout, limit)


def _best(stream: KnownStream, release: PublishingPlan, limit: int) -> int:
    """Return the threshold of least squared error in a release's tree, noise and bias together."""
    first, last = _ranges(stream.values.size, release.holdout, limit, seeded(0))
    truth = _cut_sums(stream.values, stream.bound, first, last)
    ends = (np.stack([first - 1, last]) - release.holdout) / release.block
    nodes = float(release.tree.mean_square(*ends).mean())

    def error(threshold: int) -> float:
        cut_off = truth - _cut_sums(stream.values, threshold, first, last)
        noise = release.noise(threshold).variance * nodes
        return float((cut_off.astype(np.float64) ** 2).mean()) + noise

    grid: list[int] = candidates(stream.bound, all_integers=False).tolist()
    return min(grid, key=error)


# ---- single parts, with the threshold given ---------------------------------------------------

PARTS: Final[Mapping[str, str]] = {
    "h2": "a binary tree",
    "h16": "fan-out 16",
    "h16_consistent": "and consistent",
    "tops": "and smoothed, as published",
    "tuned": "ours",
}


def parts(
    stream: KnownStream,
    epsilon: float,
    repeats: int,
    *,
    limit: int,
    step: Callable[[str], None] = lambda _: None,
) -> Iterator[MethodErrors]:
    """Yield the errors of trees alone: values and truth are cut at the 95% quantile."""
    cut = int(np.quantile(stream.values, 0.95))
    known = KnownStream(stream.name, np.minimum(stream.values, cut), cut)
    for method, what in PARTS.items():
        step(f"{stream.name}, epsilon {epsilon:g}, {what}")
        release = plan(method, epsilon=epsilon, bound=cut, limit=limit, threshold=cut)
        yield measured(known, epsilon, method, release, repeats, 0, limit)


def measured(  # noqa: PLR0913 - what an experiment varies
    stream: KnownStream,
    epsilon: float,
    method: str,
    release: PublishingPlan | None,
    repeats: int,
    holdout: int,
    limit: int,
    *,
    ranges: tuple[Ints, Ints] | None = None,
) -> MethodErrors:
    """Return the errors of one release, of random ranges or of those that are named.

    Without a release all answers are zero.
    """
    prefix = np.concatenate([[0], np.cumsum(stream.values)])
    errors, thresholds, covered = [], [], []
    for repeat in range(repeats):
        rng = seeded(repeat)
        first, last = ranges or _ranges(stream.values.size, holdout, limit, rng)
        truth = prefix[last] - prefix[first - 1]
        answers = np.zeros(first.size)
        if release is not None and not getattr(release.tree, "consistent", True):
            threshold, answers = _drawn(stream, release, bytes(rng.take(32)), first, last)
            thresholds.append(threshold)
        elif release is not None:
            released = _published(stream, release, bytes(rng.take(32)))
            thresholds.append(released.threshold)
            answers = _answers(released, method, first, last)
            covered.append(_covered(stream, released, first, last))
        errors.append(_errors(answers - truth, last - first + 1))
    mse, mae, mmse, mmae = np.mean(errors, axis=0).tolist()
    noise = float(np.std(errors, axis=0, ddof=1)[0]) / repeats**0.5 if repeats > 1 else 0.0
    middle = float(np.median(thresholds)) if thresholds else 0.0
    share = float(np.mean(covered)) if covered else 0.0
    return MethodErrors(
        stream.name, epsilon, method, mse, mae, mmse, mmae, noise, share, middle, repeats
    )


def _ranges(n: int, holdout: int, limit: int, rng: Source) -> tuple[Ints, Ints]:
    """Return random ranges within the published part, none longer than the limit."""
    ends = np.sort(rng.simulator().integers(holdout + 1, n + 1, (RANGES, 2)), axis=1)
    return ends[:, 0], np.minimum(ends[:, 1], ends[:, 0] + limit - 1)


def _published(stream: KnownStream, release: PublishingPlan, key: bytes) -> Released:
    publisher = Publisher(release, key)
    first, last = publisher.feed(stream.values), publisher.finish()
    to, sums = (np.concatenate(pair) for pair in zip(first, last, strict=True))
    return Released(release, publisher.state.threshold or 0, type(first)(to, sums))


def _drawn(
    stream: KnownStream, release: PublishingPlan, key: bytes, first: Ints, last: Ints
) -> tuple[int, Floats]:
    """Return a threshold, and answers drawn from the law of each range's nodes."""
    held, skipped = stream.values[: release.holdout], release.skipped
    threshold = release.threshold.choose(held, release.bound, Keyed(key, "threshold"))
    law = release.noise(threshold)
    assert isinstance(release.tree, Tree)  # noqa: S101 - the methods of the paper have trees
    ends = [(first - 1 - skipped) / release.block, (last - skipped) / release.block]
    ranges = [
        [*release.tree.weights(i, j)] for i, j in zip(*(e.tolist() for e in ends), strict=True)
    ]
    weights = np.array([weight for nodes in ranges for weight, _ in nodes])
    counts = np.array([count for nodes in ranges for _, count in nodes], dtype=np.int64)
    whose = np.repeat(np.arange(len(ranges)), [len(nodes) for nodes in ranges])
    drawn = law.draw(int(counts.sum()), Keyed(key, "ranges"))
    noise = np.bincount(np.repeat(whose, counts), np.repeat(weights, counts) * drawn, len(ranges))
    true = _cut_sums(stream.values, threshold, first, last)
    return threshold, np.asarray(true + noise, dtype=np.float64)


def _cut_sums(values: Ints, threshold: int, first: Ints, last: Ints) -> Ints:
    """Return the sums of cut values in some ranges."""
    positions, where = np.unique(np.concatenate([first - 1, last]), return_inverse=True)
    cut = np.minimum(values[: positions[-1]], threshold)
    between = np.add.reduceat(cut, positions[:-1])
    prefix = np.append(0, np.cumsum(between))
    return np.asarray(prefix[where[first.size :]] - prefix[where[: first.size]])


def _answers(released: Released, method: str, first: Ints, last: Ints) -> Floats:
    if method != "tops" or released.release.block == 1:
        return released.sums(first, last)
    sums = np.concatenate([[0.0], np.cumsum(released.online())])
    start = released.release.holdout
    return np.asarray(sums[last - start] - sums[first - 1 - start])


def _covered(stream: KnownStream, released: Released, first: Ints, last: Ints) -> float:
    """Return the share of intervals, for some of the ranges, that contain the sum of cut values."""
    i, j = first[:40], last[:40]
    truth = _cut_sums(stream.values, released.threshold, i, j)
    answers = map(released.sum, i.tolist(), j.tolist())
    pairs = zip(answers, truth.tolist(), strict=True)
    return float(np.mean([answer.low <= true <= answer.high for answer, true in pairs]))


def _errors(off: Floats, lengths: Ints) -> tuple[float, ...]:
    mean = off / lengths
    return (
        float((off**2).mean()),
        float(np.abs(off).mean()),
        float((mean**2).mean()),
        float(np.abs(mean).mean()),
    )


# ---- what is gained ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """The factors by which errors on one stream fall: from PAK to ToPS, and from ToPS to ours.

    ``beyond_noise`` is the number of standard errors by which ToPS has the larger squared error.
    """

    stream: str
    epsilon: float
    tops_over_pak: float
    tops_over_pak_clipped: float
    ours_over_pak: float
    mse: float
    mae: float
    mmse: float
    mmae: float
    beyond_noise: float


@dataclass(frozen=True)
class PartGain:
    """The factors by which each part of a tree reduces the squared error."""

    stream: str
    epsilon: float
    fanout: float
    consistency: float
    smoothing: float
    ours: float


def gains(rows: list[MethodErrors]) -> list[Gain]:
    """Return the gains wherever ours, ToPS and both kinds of PAK were measured."""
    listed = []
    for (stream, epsilon), by in _cells(rows).items():
        if {"tuned", "tops", "pak", "pak_clipped"} <= by.keys():
            ours, tops = by["tuned"], by["tops"]
            noise = (ours.noise**2 + tops.noise**2) ** 0.5
            listed.append(
                Gain(
                    stream,
                    epsilon,
                    tops_over_pak=by["pak"].mse / tops.mse,
                    tops_over_pak_clipped=by["pak_clipped"].mse / tops.mse,
                    ours_over_pak=by["pak"].mse / ours.mse,
                    **{name: getattr(tops, name) / getattr(ours, name) for name in METRICS},
                    beyond_noise=(tops.mse - ours.mse) / noise if noise else 0.0,
                )
            )
    return listed


def part_gains(rows: list[MethodErrors]) -> list[PartGain]:
    """Return the gains of the parts of a tree, one after the other."""
    listed = []
    for (stream, epsilon), by in _cells(rows).items():
        chain = [by[part].mse for part in PARTS]
        ratios = (before / after for before, after in pairwise(chain))
        listed.append(PartGain(stream, epsilon, *ratios))
    return listed


def _cells(rows: list[MethodErrors]) -> dict[tuple[str, float], dict[str, MethodErrors]]:
    """Return the rows by stream and epsilon, and there by method."""
    cells: dict[tuple[str, float], dict[str, MethodErrors]] = {}
    for row in rows:
        cells.setdefault((row.stream, row.epsilon), {})[row.method] = row
    return cells
