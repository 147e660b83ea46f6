"""Ranges of a published stream: exact sums where noise is none, intervals that cover."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import seeded
from sfumato.streams.published import Publisher, PublishingPlan, Released, plan
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.thresholds import Fixed

KEY = bytes(range(32))
VALUES = seeded(1).simulator().integers(0, 60, 1003)


def noiseless(block: int, **more: Any) -> Released:
    """Return a stream whose published sums are the true ones."""
    release = PublishingPlan(1.0, 100, Fixed(60), tree=Tree(4, 3), block=block, **more)
    to = np.append(np.arange(block, 1003, block), 1003)
    sums = np.add.reduceat(VALUES, np.append(0, to[:-1])).astype(float)
    return Released(release, 60, Blocks(to, sums))


def test_sums_at_the_ends_of_blocks_are_exact() -> None:
    released = noiseless(8)
    prefix = np.append(0, np.cumsum(VALUES))
    for first, last in ((1, 8), (1, 1003), (9, 800), (993, 1000), (1001, 1003)):
        assert released.sums([first], [last])[0] == prefix[last] - prefix[first - 1]


def test_inside_of_a_block_sums_are_interpolated() -> None:
    released = noiseless(8)
    block = VALUES[8:16].sum()
    assert released.sums([9], [12])[0] == pytest.approx(block / 2)
    assert released.sums([11], [11])[0] == pytest.approx(block / 8)
    last = VALUES[1000:].sum()  # the last block has three values
    assert released.sums([1002], [1002])[0] == pytest.approx(last / 3)


def test_many_ranges_at_once_are_the_same() -> None:
    released = noiseless(8)
    ends = np.sort(seeded(2).simulator().integers(1, 1004, (50, 2)), axis=1)
    sums = released.sums(*ends.T)
    assert sums.tolist() == [released.sum(int(i), int(j)).value for i, j in ends]


def test_means_running_averages_and_units() -> None:
    released = replace(noiseless(1), unit=0.25)
    answer = released.sum(11, 20).mean
    assert answer.value == pytest.approx(VALUES[10:20].mean() / 4)
    assert answer.low < answer.value < answer.high
    assert answer.cut_off == (100 - 60) / 4
    ends, means = released.running(100, every=50)
    assert ends[:3].tolist() == [100, 150, 200]
    assert means[1] == pytest.approx(VALUES[50:150].mean() / 4)


def test_the_online_values_add_up_to_the_blocks() -> None:
    released = noiseless(8)
    online = released.online()
    assert online.size == 1003
    assert online[:7].tolist() == [30.0] * 7  # half the threshold, before anything is known
    blocks = np.add.reduceat(online, np.arange(0, 1003, 8))
    assert blocks.tolist() == pytest.approx(released.blocks.sums.tolist())


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        (0, 5, "the range is 0..5; published are the positions 1..1003."),
        (5, 1004, "the range is 5..1004; published are the positions 1..1003."),
        (7, 6, "the range is 7..6; its first position must not be larger."),
    ],
)
def test_a_range_that_is_not_there_is_refused(first: int, last: int, says: str) -> None:
    for ask in (
        lambda: noiseless(8).sum(first, last),
        lambda: noiseless(8).sums([1, first], [2, last]),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value) == says


def test_values_held_out_are_named() -> None:
    released = noiseless(8, holdout=5)
    with pytest.raises(InputError, match=r"6..1003; the first 5 values chose the threshold"):
        released.sum(3, 9)


def test_a_level_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"level is 1\.5"):
        noiseless(8).sum(1, 9, level=1.5)
    with pytest.raises(InputError, match="window is 2000"):
        noiseless(8).running(2000, 1)


# ---- coverage ---------------------------------------------------------------------------------


def coverage(release: PublishingPlan, values: Any, ranges: Any, rounds: int, level: float) -> float:
    """Return how often intervals contain the sums of cut values."""
    threshold = release.threshold.threshold  # type: ignore[attr-defined]
    prefix = np.append(0, np.cumsum(np.minimum(values, threshold)))
    inside = total = 0
    for seed in range(rounds):
        key = bytes(seeded(seed).take(32))
        released = Released(release, threshold, Publisher(release, key).feed(values))
        for first, last in ranges:
            answer = released.sum(first, last, level)
            inside += bool(answer.low <= prefix[last] - prefix[first - 1] <= answer.high)
            total += 1
    return inside / total


RANGES = [(1, 64), (65, 128), (1, 4096), (641, 1152), (100, 200), (1000, 3003), (77, 4000)]


@pytest.mark.statistics
@pytest.mark.parametrize(
    "tree", [Tree(4, 4), Tree(8, 2), Tree(4, 1), Tree(2, 5, consistent=False)], ids=str
)
def test_intervals_cover_the_sums_of_cut_values(tree: Tree) -> None:
    """Few nodes or many, whole blocks or parts: 95% is 95%, within a point."""
    release = PublishingPlan(1.0, 100, Fixed(50), tree=tree, block=64)
    values = seeded(3).simulator().integers(0, 101, 4096)
    rounds = 600
    found = coverage(release, values, RANGES, rounds, 0.95)
    # ranges of one round share noise: count rounds only
    assert abs(found - 0.95) < 0.01 + 3 * np.sqrt(0.95 * 0.05 / (rounds * len(RANGES)))


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["tuned", "tops"])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_intervals_of_whole_plans_cover_from_94_to_96_percent(method: str, epsilon: float) -> None:
    """The default and the paper's configuration, as planned for ranges of up to 2^20 values."""
    values = np.minimum(seeded(6).simulator().exponential(300, 3 << 18), 9999).astype(np.int64)
    release = plan(method, epsilon=epsilon, bound=10_000, threshold=2000)
    ends = np.sort(seeded(7).simulator().integers(1, values.size + 1, (40, 2)), axis=1)
    # cut and summed up once: noise does not depend on the values
    width = release.block
    true = np.minimum(values, 2000).reshape(-1, width).sum(axis=1)
    whole = Publisher(release, KEY).feed(values)
    quiet = whole.sums - _noise(release, KEY, true.size)
    assert np.abs(quiet - true).max() < 1e-3
    prefix = np.append(0, np.cumsum(np.minimum(values, 2000)))
    inside = []
    for seed in range(250):
        sums = true + _noise(release, bytes(seeded(seed).take(32)), true.size)
        released = Released(release, 2000, Blocks(whole.to, sums))
        answers = [released.sum(int(i), int(j)) for i, j in ends]
        inside += [a.low <= prefix[a.last] - prefix[a.first - 1] <= a.high for a in answers]
    assert 0.94 <= np.mean(inside) <= 0.96


def _noise(release: PublishingPlan, key: bytes, blocks: int) -> Any:
    """Return the noise that a key leads to, published on a stream of zeros."""
    tiny = replace(release, block=1)
    return Publisher(tiny, key).feed(np.zeros(blocks, dtype=np.int64)).sums


def test_half_the_interval_does_not_pass_for_the_whole() -> None:
    release = PublishingPlan(1.0, 100, Fixed(50), tree=Tree(4, 4), block=64)
    values = seeded(3).simulator().integers(0, 101, 4096)
    assert coverage(release, values, RANGES, 100, 0.675) < 0.85


def test_the_planned_release_answers_a_million_values() -> None:
    values = np.minimum(seeded(5).simulator().exponential(300, 1 << 20), 9999).astype(np.int64)
    release = plan(epsilon=0.5, bound=10_000)
    publisher = Publisher(release, bytes(32))
    blocks = publisher.feed(values)
    released = Released(release, publisher.state.threshold or 0, blocks)
    answer = released.sum(70_000, 900_000)
    true = float(values[69_999:900_000].sum())
    assert abs(answer.value - true) < 0.02 * true
    assert answer.low < true < answer.high + answer.cut_off
