"""Several streams under one epsilon: each stream has all of it, or a part if rows are in all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import Keyed, seeded
from sfumato.streams.published import Publisher, plan
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.several import MOST_STREAMS, Groups, part_of_each, together
from sfumato.streams.published.thresholds import Fixed

KEY = bytes(range(32))
DRAW = seeded(1).simulator()
NAMES = np.array(["east", "north", "west"])[DRAW.integers(0, 3, 3000)]
VALUES = DRAW.integers(0, 101, 3000)
RELEASE = plan(epsilon=0.5, bound=100, holdout=600, limit=1024, block=8)


def published(groups: Groups, cuts: list[int]) -> dict[str, Blocks]:
    """Return all blocks of all streams, fed in pieces."""
    found: dict[str, list[Blocks]] = {}
    for names, values in zip(np.split(NAMES, cuts), np.split(VALUES, cuts), strict=True):
        for name, blocks in groups.feed(names, values).items():
            found.setdefault(name, []).append(blocks)
    for name, blocks in groups.finish().items():
        found[name].append(blocks)
    return {
        name: Blocks(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        for name, parts in found.items()
    }


@pytest.mark.parametrize("reuse", [0.0, 0.25])
def test_each_stream_is_what_it_would_be_alone_under_the_common_threshold(reuse: float) -> None:
    release = plan(epsilon=0.5, bound=100, holdout=600, limit=1024, block=8, reuse=reuse)
    groups = Groups(release, KEY)
    found = published(groups, [])
    chosen = release.threshold.choose(VALUES[:600], 100, Keyed(KEY, "threshold"))
    assert groups.threshold == chosen
    for name in ("east", "north", "west"):
        own = VALUES[release.skipped :][NAMES[release.skipped :] == name]
        alone = Publisher(groups.each, bytes(Keyed(KEY, f"stream {name}").take(32)))
        first, last = alone.feed(own), alone.finish()
        assert found[name].sums.tolist() == [*first.sums.tolist(), *last.sums.tolist()]
        assert found[name].to[-1] == own.size


def test_batches_change_nothing() -> None:
    whole = published(Groups(RELEASE, KEY), [])
    pieces = published(Groups(RELEASE, KEY), [1, 599, 600, 601, 2000])
    assert {name: blocks.sums.tolist() for name, blocks in whole.items()} == {
        name: blocks.sums.tolist() for name, blocks in pieces.items()
    }


def test_every_value_is_in_the_choice_or_in_one_stream_and_no_noise_is_shared() -> None:
    """Parallel composition, counted: what one value moves has all of epsilon, and no more."""
    groups = Groups(RELEASE, KEY)
    published(groups, [])
    counts = [stream.state.count for stream in groups.streams.values()]
    assert sum(counts) + RELEASE.holdout == VALUES.size
    assert groups.guarantee.epsilon == 0.5
    assert groups.each.noise(7) == RELEASE.noise(7)
    assert isinstance(groups.each.threshold, Fixed)
    zeros = np.zeros(800, dtype=np.int64)
    known = Groups(plan(epsilon=0.5, bound=100, threshold=50, limit=1024, block=8), KEY)
    noise = known.feed(np.repeat(["a", "b"], 400), zeros)
    assert np.mean(noise["a"].sums == noise["b"].sums) < 0.1


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 0.7])
@pytest.mark.parametrize("streams", [1, 2, 3, 7, 10])
def test_parts_never_exceed_epsilon_and_lose_next_to_nothing(epsilon: float, streams: int) -> None:
    spent = streams * Fraction(repr(part_of_each(epsilon, streams)))
    exact = Fraction(repr(epsilon))
    assert exact * (1 - Fraction(1, 10**12)) < spent <= exact


def test_rows_are_promised_the_sum() -> None:
    releases = [plan("pak", epsilon=part_of_each(0.3, 3), bound=100, limit=1024)] * 3
    found = together(releases)
    assert found.epsilon == pytest.approx(0.3)
    assert found.delta == pytest.approx(3 * 1024.0**-2)
    assert "its values in all 3 streams" in str(found)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="streams is 0; a whole number from 1 on"):
        part_of_each(1.0, 0)
    short = Groups(RELEASE, KEY)
    assert short.feed(NAMES[:599], VALUES[:599]) == {}
    with pytest.raises(InputError, match="599 values came; the first 600 only choose"):
        _ = short.each
    many = Groups(plan(epsilon=1.0, bound=100, threshold=50, limit=16), KEY)
    names = np.array([str(name) for name in range(MOST_STREAMS + 1)])
    with pytest.raises(InputError, match="more than 512 streams"):
        many.feed(names, np.ones(names.size, dtype=np.int64))
