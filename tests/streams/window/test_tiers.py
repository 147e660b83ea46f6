from __future__ import annotations

import numpy as np
import pytest
from tests.streams.window.driving import released, saying
from tests.streams.window.people import steady

from sfumato.core.stream import Ask, Timestep
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.simulation import simulate
from sfumato.streams.window import TieredEstimate, Tiers, Window
from sfumato.streams.window.tiers import combined

STRICT = Window(8, 0.5, 4000, domain=3, method="lpu")
USUAL = Window(4, 1.0, 6000, domain=3, method="lpd")
OPEN = Window(2, 3.0, 2000, domain=3, method="lbu")


def test_each_device_has_the_ledger_of_the_tier_that_was_picked() -> None:
    tiers = Tiers((STRICT, USUAL, OPEN))
    found = [tiers.device(seeded(0), tier).ledger for tier in range(3)]
    assert [(ledger.window, ledger.epsilon) for ledger in found] == [(8, 0.5), (4, 1.0), (2, 3.0)]


def test_questions_say_which_tier_they_are_for() -> None:
    curator = Tiers((STRICT, USUAL)).curator()
    step = Timestep(curator, 1)
    first = step.question
    assert isinstance(first, Ask)
    assert (first.tier, first.mechanism.epsilon, first.probability) == (0, 0.5, 1 / 8)
    step.answer(saying(first.mechanism, np.full(3, 1 / 3), 500))
    second = step.question
    assert isinstance(second, Ask)
    assert (second.tier, second.mechanism.epsilon) == (1, 1.0)


def test_releases_are_weighed_by_how_sure_they_are() -> None:
    sure = released([0.2, 0.8], [0.01, 0.04])
    unsure = released([0.5, 0.5], [0.03, 0.04], published=False)
    both = combined([sure, unsure])
    assert both.values == pytest.approx([0.275, 0.65])
    assert both.variance == pytest.approx([0.0075, 0.02])
    assert both.published
    assert both.tiers == (sure, unsure)


def test_a_tier_without_a_release_does_not_count() -> None:
    nothing = released([0.0, 0.0], np.inf, published=False)
    sure = released([0.2, 0.8], [0.01, 0.04])
    assert combined([nothing, sure]).values == pytest.approx([0.2, 0.8])
    assert np.isinf(combined([nothing, nothing]).variance).all()


def test_nobody_in_a_tier_changes_nothing_for_the_others() -> None:
    curator = Tiers((STRICT, USUAL)).curator()
    step = Timestep(curator, 1)
    step.answer(Tally.zero(3))
    assert isinstance(step.question, Ask)
    assert step.question.tier == 1


@pytest.mark.statistics
def test_tiers_together_are_as_good_as_they_say() -> None:
    """Errors, combined and of each tier, have the variance that is claimed; intervals cover."""
    tiers = Tiers((STRICT, Window(4, 1.0, 6000, domain=3, method="lpu")))
    ratios, inside = [], []
    for seed in range(30):
        people = steady(16, (0.5, 0.3, 0.2), 10_000, seed)
        done = simulate(tiers, people, seed=seed)
        ratios.append(np.mean((done.values - done.truth) ** 2 / done.variances))
        inside.append(done.coverage(level=0.95))
        parts = [r.tiers for r in done.releases if isinstance(r, TieredEstimate)]
        for tier in range(2):
            alone = np.array([part[tier].variance for part in parts])
            assert (done.variances < alone).all()
    assert np.mean(ratios) == pytest.approx(1, abs=0.1)
    assert 0.94 <= np.mean(inside) <= 0.96


def test_as_many_devices_are_in_a_tier_as_picked_it() -> None:
    tiers = Tiers((Window(2, 0.5, 300, domain=3, method="lbu"), OPEN))
    done = simulate(tiers, steady(1, (0.5, 0.3, 0.2), 2300), seed=1)
    assert [asked.received for asked in done.asked] == [300, 2000]


@pytest.mark.parametrize(
    ("tiers", "sentence"),
    [
        ((), "tiers has 0; 1..4 are possible"),
        ((STRICT,) * 5, "tiers has 5; 1..4 are possible"),
        ((STRICT, STRICT), r"tiers\[1\] has window 8 and epsilon 0.5 once more"),
        ((STRICT, Window(4, 1.0, 6000, domain=4)), r"tiers\[1\] asks about something else than"),
    ],
)
def test_tiers_that_do_not_belong_together_are_refused(
    tiers: tuple[Window, ...], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Tiers(tiers)


def test_a_tier_that_is_not_there_cannot_be_picked() -> None:
    with pytest.raises(ConfigurationError, match="tier is 2; 0, 1 are there"):
        Tiers((STRICT, USUAL)).device(seeded(0), 2)
