"""Experiments with published streams, small: what must hold on any machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.datasets.amount_streams import KnownStream
from sfumato.lab import published_accuracy as experiment
from sfumato.randomness import seeded
from sfumato.streams.published import PublishingPlan, plan

STREAM = KnownStream("small", seeded(1).simulator().exponential(40, 60_000).astype(np.int64), 3000)


def mse(rows: list[experiment.MethodErrors]) -> dict[str, float]:
    return {row.method: row.mse for row in rows}


def test_ours_beats_tops_and_tops_beats_pak_by_orders_of_magnitude() -> None:
    methods = ["tuned", "tops", "pak", "pak_clipped", "zero"]
    rows = [*experiment.compare(STREAM, methods, [0.1], 4, holdout=8192, limit=1 << 16)]
    found = mse(rows)
    assert found["tuned"] < found["tops"]
    assert found["pak_clipped"] > 100 * found["tops"]
    assert found["pak"] > 10 * found["pak_clipped"]
    assert found["zero"] > 0
    assert {row.repeats for row in rows} == {4}
    (gain,) = experiment.gains(rows)
    assert gain.mse == found["tops"] / found["tuned"]
    assert gain.tops_over_pak == found["pak"] / found["tops"]
    assert gain.beyond_noise > 0
    assert experiment.gains(rows[:2]) == []  # nothing to compare with
    assert all(row.mae**2 <= row.mse and row.mmae**2 <= row.mmse for row in rows)


def test_ours_is_near_an_oracle_that_knows_all_values() -> None:
    rows = [*experiment.compare(STREAM, ["tuned", "oracle"], [0.1], 6, holdout=8192, limit=1 << 16)]
    found = mse(rows)
    assert found["oracle"] < 1.2 * found["tuned"]
    assert found["tuned"] < 7 * found["oracle"]


def test_each_part_of_the_tree_has_its_gain() -> None:
    rows = [*experiment.parts(STREAM, 0.1, 6, limit=1 << 16)]
    found = mse(rows)
    (gain,) = experiment.part_gains(rows)
    assert gain.fanout == found["h2"] / found["h16"]
    assert gain.ours == found["tops"] / found["tuned"]
    assert found["h2"] > 2 * found["h16"]
    assert found["h16"] > 1.2 * found["h16_consistent"]
    assert found["h16_consistent"] > 1.5 * found["tops"]
    assert found["tops"] > found["tuned"] / 1.2


@pytest.mark.statistics
def test_ranges_of_plain_trees_are_drawn_with_the_law_of_published_ones() -> None:
    """The squared error of the quick way is that of really publishing the stream."""
    release = plan("h2", epsilon=0.5, bound=3000, threshold=200, limit=1 << 14)
    draw = seeded(4).simulator()
    ends = np.sort(draw.integers(1, 60_001, (60, 2)), axis=1)
    first, last = ends.T
    cut = np.append(0, np.cumsum(np.minimum(STREAM.values, 200)))
    truth = cut[last] - cut[first - 1]
    errors = []
    for way in (_quickly, _really):
        keys = (bytes(seeded(seed).take(32)) for seed in range(150))
        errors.append(np.mean([(way(release, key, first, last) - truth) ** 2 for key in keys]))
    expected = release.noise(200).variance * np.mean(release.tree.mean_square(first - 1, last))
    assert errors == pytest.approx([expected] * 2, rel=0.1)
    assert errors != pytest.approx([1.2 * expected] * 2, rel=0.1)


def _quickly(release: PublishingPlan, key: bytes, first: Any, last: Any) -> Any:
    return experiment._drawn(STREAM, release, key, first, last)[1]  # noqa: SLF001


def _really(release: PublishingPlan, key: bytes, first: Any, last: Any) -> Any:
    return experiment._published(STREAM, release, key).sums(first, last)  # noqa: SLF001
