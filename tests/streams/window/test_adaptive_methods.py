"""LBD, LBA, LPD and LPA hand out their parts as the corrected pseudo-code says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from tests.streams.window.driving import Question, deciding, drive, saying
from tests.streams.window.people import steady

from sfumato.core.stream import Ask
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.simulation import simulate
from sfumato.streams.window import Window
from sfumato.streams.window.adaptive_methods import Absorption, Halving


def asked(
    method: str, window: int, epsilon: float, devices: int, publish: str, **parameters: float
) -> list[Question]:
    """Return what is asked if the truth moves away in the periods marked with P."""
    given = tuple(parameters.items())
    protocol = Window(window, epsilon, devices, domain=2, method=method, parameters=given)
    curator = protocol.curator()
    questions, releases = drive(
        curator, len(publish), deciding(curator, lambda period: publish[period - 1] == "P", devices)
    )
    del releases
    return questions


def spent(questions: Sequence[Question]) -> list[tuple[int, ...]]:
    """Return the units asked for in each period."""
    last = questions[-1].period
    return [
        tuple(q.units for q in questions if q.period == period) for period in range(1, last + 1)
    ]


def cohorts(questions: Sequence[Question], window: int, devices: int) -> list[tuple[float, ...]]:
    """Return the expected sizes of cohorts: who answered in the last w - 1 periods is not free."""
    sizes: list[tuple[int, float]] = []
    for question in questions:
        busy = sum(size for period, size in sizes if period > question.period - window)
        sizes.append((question.period, question.ask.probability * (devices - busy)))
    last = questions[-1].period
    return [tuple(s for p, s in sizes if p == period) for period in range(1, last + 1)]


# ---- traces worked out by hand ---------------------------------------------------------------


def test_lbd_publishes_with_half_of_what_the_window_has_left() -> None:
    """Epsilon 1.5 over 3 periods: 0.25 for each look, 0.75 for publications."""
    look = 250_000
    assert spent(asked("lbd", 3, 1.5, 100_000, "PPPPP-P")) == [
        (look, 375_000),
        (look, 187_500),
        (look, 93_750),
        (look, 234_375),  # of 0.75 - 0.1875 - 0.09375, as the first has left the window
        (look, 210_937),  # of 0.75 - 0.09375 - 0.234375 = 0.421875
        (look,),
        (look, 269_531),  # of 0.75 - 0.210937 = 0.539063
    ]


def test_lba_absorbs_what_was_not_used_and_gives_back_what_was_absorbed() -> None:
    """Epsilon 1.5 over 3 periods: a unit is 0.25."""
    look = unit = 250_000
    assert spent(asked("lba", 3, 1.5, 100_000, "-PPPP----P")) == [
        (look,),
        (look, 2 * unit),  # its own and the first period's
        (look,),  # nullified
        (look, unit),
        (look, unit),
        (look,),
        (look,),
        (look,),
        (look,),
        (look, 3 * unit),  # never more than a window's
    ]


def test_lba_has_no_unit_from_before_the_first_period() -> None:
    assert spent(asked("lba", 4, 1.0, 100_000, "P"))[0] == (125_000, 125_000)


def test_lpd_asks_half_of_the_devices_left() -> None:
    """8000 devices, 4 periods: 1000 for each look, 4000 for publications."""
    found = asked("lpd", 4, 1.0, 8000, "PPPPP-P")
    assert [tuple(sizes) for sizes in cohorts(found, 4, 8000)] == [
        pytest.approx(sizes)
        for sizes in (
            (1000, 2000),
            (1000, 1000),
            (1000, 500),
            (1000, 250),
            (1000, 1125),  # of 4000 - 1000 - 500 - 250
            (1000,),
            (1000, 1312),  # of 4000 - 250 - 1125 = 2625
        )
    ]
    probabilities = [question.ask.probability for question in found[:4]]
    assert probabilities == pytest.approx([1000 / 8000, 2000 / 7000, 1000 / 5000, 1000 / 4000])
    assert {question.units for question in found} == {1_000_000}


def test_lpa_asks_the_devices_of_periods_that_did_not_publish() -> None:
    found = asked("lpa", 4, 1.0, 8000, "--PPPP-P")
    assert [tuple(sizes) for sizes in cohorts(found, 4, 8000)] == [
        pytest.approx(sizes)
        for sizes in (
            (1000,),
            (1000,),
            (1000, 3000),
            (1000,),  # nullified
            (1000,),  # nullified
            (1000, 1000),
            (1000,),
            (1000, 2000),
        )
    ]


def test_sizes_are_rounded_down_as_in_the_pseudo_code() -> None:
    found = asked("lpd", 3, 1.0, 1001, "PP")
    assert [tuple(sizes) for sizes in cohorts(found, 3, 1001)] == [
        pytest.approx(sizes) for sizes in ((166, 250), (166, 125))
    ]


def test_the_share_of_looking_can_be_told() -> None:
    assert spent(asked("lbd", 4, 1.0, 100_000, "P", share=0.25))[0] == (62_500, 375_000)
    found = asked("lpa", 4, 1.0, 8000, "-P", share=0.25)
    assert cohorts(found, 4, 8000)[1] == pytest.approx((500, 3000))


def test_a_publication_by_fewer_than_the_least_is_left_out() -> None:
    found = asked("lpd", 4, 1.0, 8000, "PPP", least=600)
    assert [len(sizes) for sizes in cohorts(found, 4, 8000)] == [2, 2, 1]


# ---- every pattern ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Halving, Absorption])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5])
def test_no_window_has_more_than_the_whole(kind: type[Halving | Absorption], window: int) -> None:
    whole = 60 * window
    for pattern in product((False, True), repeat=2 * window + 2):
        parts, taken = kind(window, whole), []
        for period, publishes in enumerate(pattern, 1):
            offered = parts.offer(period)
            if publishes and offered:
                parts.take(period, offered)
            taken.append(offered if publishes else 0)
        sums = [sum(taken[start : start + window]) for start in range(len(taken))]
        assert max(sums) <= whole


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["lpd", "lpa"])
def test_there_are_always_enough_free_devices(method: str) -> None:
    """So cohorts have the sizes of the pseudo-code, in expectation."""
    for pattern in product("-P", repeat=8):
        found = asked(method, 3, 1.0, 6000, "".join(pattern))
        sizes = cohorts(found, 3, 6000)
        assert all(question.ask.probability < 1 + 1e-12 for question in found)
        for start in range(len(sizes)):
            assert sum(map(sum, sizes[start : start + 3])) <= 6000 + 1e-6
        assert all(period[0] == pytest.approx(1000) for period in sizes)


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["lpd", "lpa"])
def test_cohorts_of_devices_have_the_expected_sizes(method: str) -> None:
    """Real coins: over many populations the mean size of each cohort is the planned one."""
    runs = [
        simulate(
            Window(3, 4.0, 900, domain=2, method=method),
            steady(6, (0.5, 0.5), 900, seed),
            seed=seed,
        )
        for seed in range(120)
    ]
    looks = np.array(
        [
            [next(a.received for a in done.asked if a.period == t) for t in range(1, 7)]
            for done in runs
        ]
    )
    error = looks.std(axis=0) / len(runs) ** 0.5
    assert (np.abs(looks.mean(axis=0) - 150) < 5.5 * error).all()
    assert (np.abs(looks.mean(axis=0) - 160) > 5.5 * error).all()


# ---- distances -------------------------------------------------------------------------------


def test_a_release_that_is_near_enough_is_repeated_with_what_is_known_of_its_error() -> None:
    protocol = Window(3, 1.0, 60_000, domain=2, method="lpd")
    curator = protocol.curator()
    _, releases = drive(curator, 2, deciding(curator, lambda period: period == 1, 10_000))
    assert [release.published for release in releases] == [True, False]
    assert np.array_equal(releases[0].values, releases[1].values)
    assert (releases[1].variance >= releases[0].variance).all()


def test_nobody_answering_changes_nothing() -> None:
    protocol = Window(3, 1.0, 60_000, domain=2, method="lpa")
    curator = protocol.curator()

    def answer(period: int, place: int, ask: Ask) -> Tally:
        if period == 1:
            return saying(ask.mechanism, np.array([0.2, 0.8]), 10_000)
        del place
        return Tally.zero(2)

    _, releases = drive(curator, 3, answer)
    assert np.array_equal(releases[2].values, releases[0].values)
    assert not releases[2].published


@pytest.mark.parametrize("share", [0, 1, -0.5, "half", None])
def test_the_share_is_between_nothing_and_everything(share: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"share is .*; a number between 0 and 1 is expected"
    ):
        Window(3, 1.0, 6000, domain=2, method="lbd", parameters=(("share", share),))


def test_too_few_devices_are_said() -> None:
    with pytest.raises(ConfigurationError, match="devices is 39 over a window of 20; lpd needs 40"):
        Window(20, 1.0, 39, domain=2, method="lpd")


def test_a_parameter_that_a_method_does_not_have_is_said() -> None:
    with pytest.raises(ConfigurationError, match="lbd has no parameter 'least'; it takes share"):
        Window(3, 1.0, 6000, domain=2, method="lbd", parameters=(("least", 3),))
