"""A threshold chosen again and again: accounted value by value, and better where values change."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from sfumato.core.noise import NoiseLaw
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source, seeded
from sfumato.streams.published import Publisher, PublishingPlan, Released, plan
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.several import Groups
from sfumato.streams.published.thresholds import ScaleFree

KEY = bytes(range(32))
RISING = np.repeat([10, 300, 40], 4000) * seeded(1).simulator().exponential(1, 12_000)
VALUES = np.minimum(RISING, 10_000).astype(np.int64)


def planned(**more: Any) -> PublishingPlan:
    given = {"epsilon": 2.0, "bound": 10_000, "holdout": 300, "limit": 4096, "block": 16}
    return plan(**(given | {"reuse": 0.2, "renew": 1000} | more))


def published(release: PublishingPlan, cuts: list[int], *, restart: bool = False) -> Released:
    publisher, found = Publisher(release, KEY), []
    for part in np.split(VALUES, cuts):
        found.append(publisher.feed(part))
        if restart:
            publisher = Publisher(release, KEY, copy.deepcopy(publisher.state))
    found.append(publisher.finish())
    blocks = Blocks(*(np.concatenate(column) for column in zip(*found, strict=True)))
    thresholds = tuple(publisher.state.thresholds)
    return Released(release, thresholds[0], blocks, thresholds=thresholds)


def test_batches_and_restarts_change_nothing() -> None:
    whole = published(planned(), [])
    pieces = published(planned(), [1, 299, 300, 301, 1299, 1300, 1301, 5000, 9300], restart=True)
    assert whole.thresholds == pieces.thresholds
    assert whole.blocks.to.tolist() == pieces.blocks.to.tolist()
    assert whole.blocks.sums.tolist() == pieces.blocks.sums.tolist()
    assert whole.blocks.to[-1] == VALUES.size


class Recorder:
    """A threshold that remembers which values each choice was made from."""

    name: ClassVar[str] = "recorder"
    epsilon: ClassVar[float] = 0.0
    delta: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self.choices: list[list[int]] = []

    def choose(self, values: Any, bound: int, rng: Source) -> int:
        del bound, rng
        self.choices.append(values.tolist())
        return 50


@pytest.mark.parametrize("renew", [200, 1000, 100_000])
def test_no_value_takes_part_in_two_choices(renew: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value carries its own number; the choices' numbers are disjoint, whatever the size."""
    monkeypatch.setattr("sfumato.streams.published.publishing_plan.MOST_WATCHED", 400)
    chooser = Recorder()
    release = PublishingPlan(
        1.0, 20_000, chooser, holdout=300, block=7, reuse=0.2, renew=renew, later=chooser
    )
    publisher = Publisher(release, KEY)
    for part in np.split(np.arange(12_000), [5, 310, 1234, 7777]):
        publisher.feed(part)
    used = [value for choice in chooser.choices for value in choice]
    assert len(used) == len(set(used))
    assert chooser.choices[0] == list(range(300))
    for place, choice in enumerate(chooser.choices[1:], start=1):
        end = 300 + place * renew
        assert choice == list(range(end - min(renew, 400), end))
    assert len(chooser.choices) == 1 + (12_000 - 300) // renew
    assert sum(part.size for part in publisher.state.held) <= 400


def test_a_value_counts_in_the_trees_of_one_chapter_by_its_threshold_at_most() -> None:
    """Without noise: moving one value moves one block of one chapter, and no threshold before."""
    release = planned()
    other = VALUES.copy()
    other[5000] = 10_000 - other[5000]
    blocks = []
    for values in (VALUES, other):
        publisher = Publisher(release, KEY)
        blocks.append(publisher.feed(values))
    moved = np.flatnonzero(blocks[0].sums != blocks[1].sums)
    chapter = release.chapter(blocks[0].to[moved])
    assert chapter[0] == release.chapter([5001])[0]
    # Later chapters may differ, by their thresholds alone: within its own there is one block.
    assert (chapter == chapter[0]).sum() == 1


@pytest.mark.parametrize(("epsilon", "reuse"), [(0.1, 0.2), (0.3, 0.1), (1.0, 1 / 3)])
@pytest.mark.parametrize("people", [0, 3])
def test_the_shares_of_a_value_add_up_to_epsilon_exactly(
    epsilon: float, reuse: float, people: int
) -> None:
    release = planned(epsilon=epsilon, reuse=reuse, per_person=people)
    law, tree = release.noise(7), release.tree
    assert isinstance(law, NoiseLaw)
    assert isinstance(tree, Tree)
    noise = law.epsilon(7 * tree.layers)
    for choice in (release.threshold, release.later):
        assert isinstance(choice, ScaleFree)
        spent = (Fraction(repr(choice.epsilon)) + noise) * max(people, 1)
        assert Fraction(repr(epsilon)) * (1 - Fraction(1, 10**12)) < spent
        assert spent <= Fraction(repr(epsilon))
    assert PublishingPlan.from_configuration(release.configuration()) == release


def test_pak_renewed_keeps_its_delta() -> None:
    release = planned(method="pak", epsilon=0.5)
    assert release.guarantee.delta == 4096.0**-2


def test_the_threshold_follows_the_values() -> None:
    found = published(planned(), [])
    low, high, middle = (np.median(found.thresholds[part]) for part in _thirds(found.thresholds))
    assert high > 5 * low
    assert high > 3 * middle
    fixed = Publisher(planned(renew=0), KEY)
    stays = Released(fixed.release, 0, fixed.feed(VALUES))
    true = VALUES[4000:8000].sum()
    lost = true - stays.sums([4001], [8000])[0]
    kept = true - found.sums([4001], [8000])[0]
    assert lost > 0.5 * true
    assert kept < 0.5 * lost


def _thirds(thresholds: tuple[int, ...]) -> list[slice]:
    size = len(thresholds)
    return [slice(1, size // 3), slice(size // 3 + 2, 2 * size // 3), slice(-2, size)]


def test_no_holdout_at_all_if_a_rough_threshold_is_known() -> None:
    release = planned(threshold=100)
    assert release.holdout == release.skipped == 0
    found = published(release, [])
    assert found.thresholds[0] == 100
    assert max(found.thresholds) > 500
    assert found.first == 1


@pytest.mark.statistics
def test_intervals_cover_across_chapters() -> None:
    release = planned(epsilon=1.0)
    ends = np.sort(seeded(3).simulator().integers(1, VALUES.size + 1, (12, 2)), axis=1)
    inside = []
    for seed in range(120):
        publisher = Publisher(release, bytes(seeded(seed).take(32)))
        first, last = publisher.feed(VALUES), publisher.finish()
        blocks = Blocks(*(np.concatenate(pair) for pair in zip(first, last, strict=True)))
        thresholds = np.array(publisher.state.thresholds)
        cut = np.minimum(VALUES, thresholds[release.chapter(np.arange(1, VALUES.size + 1))])
        prefix = np.append(0, np.cumsum(cut))
        found = Released(release, 0, blocks, thresholds=tuple(thresholds.tolist()))
        for i, j in ends.tolist():
            answer = found.sum(i, j)
            inside.append(answer.low <= prefix[j] - prefix[i - 1] <= answer.high)
    assert 0.94 <= np.mean(inside) <= 0.96


def test_what_is_cut_off_is_bounded_chapter_by_chapter() -> None:
    found = published(planned(), [])
    cuts = found.cuts(1, VALUES.size)
    assert [count for _, count in cuts] == [1300, *[1000] * 10, 700]
    assert tuple(cut for cut, _ in cuts) == found.thresholds
    assert found.cuts(1301, 1302) == [(found.thresholds[1], 2)]
    lost = sum((10_000 - min(cut, 10_000)) * count for cut, count in cuts)
    assert found.sum(1, VALUES.size).cut_off == lost
    assert found.online().size == VALUES.size


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="renew is 1000 and reuse 0; choosing"):
        planned(reuse=0.0)
    with pytest.raises(ConfigurationError, match="renew is -1; a whole number from 0 on"):
        planned(renew=-1)
    with pytest.raises(ConfigurationError, match="needs a threshold known in advance"):
        Groups(planned(), KEY)
