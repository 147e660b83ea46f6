"""Estimates for everybody from one cohort: unbiased, and the draw of the cohort is counted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.streams.window.people import steady

from sfumato.core.tally import Tally
from sfumato.mechanisms import GRR, OUE, Hybrid, SubsetSelection
from sfumato.randomness import seeded
from sfumato.simulation import simulate
from sfumato.simulation.drifting import DriftingLevels
from sfumato.streams.window import Window
from sfumato.streams.window.readings import Asking, Reading, planned_variance, read, sampling

Floats = NDArray[np.float64]
ALARM = 5.5
"""Standard errors: false alarms stay below 1e-7 in all."""

DEVICES, COHORT = 600, 200
HELD = np.array([330, 150, 90, 30])
SHARES = HELD / DEVICES


def cohort_readings(mechanism: Asking, times: int, seed: int) -> list[Reading]:
    """Return readings of cohorts drawn from one fixed population, without replacement."""
    rng = seeded(seed)
    draw = rng.simulator()
    samples = draw.multivariate_hypergeometric(HELD, COHORT, size=times)
    return [read(mechanism, mechanism.sample_tally(held, rng), DEVICES) for held in samples]


def mean_and_error(samples: list[float]) -> tuple[float, float]:
    return float(np.mean(samples)), float(np.std(samples) / len(samples) ** 0.5)


@pytest.mark.statistics
@pytest.mark.parametrize(
    "mechanism",
    [GRR(4.0, 4), OUE(4.0, 4), SubsetSelection(4.0, 4, 2)],
    ids=lambda mechanism: mechanism.name,
)
def test_the_average_variance_is_that_of_the_readings_with_the_draw_of_the_cohort(
    mechanism: GRR,
) -> None:
    readings = cohort_readings(mechanism, 3000, 1)
    squares = [float(np.mean((reading.values - SHARES) ** 2)) for reading in readings]
    truth, error = mean_and_error(squares)
    claimed, slack = mean_and_error([reading.average for reading in readings])
    far = ALARM * (error**2 + slack**2) ** 0.5
    assert abs(claimed - truth) < far
    assert abs(mechanism.mse / COHORT - truth) > far, "noise alone must be told from it"


def test_the_spread_is_without_bias() -> None:
    spreads = [reading.spread for reading in cohort_readings(GRR(2.0, 4), 2000, 2)]
    claimed, error = mean_and_error(spreads)
    assert abs(claimed - float(np.mean(SHARES * (1 - SHARES)))) < ALARM * error


@pytest.mark.statistics
def test_distances_are_without_bias_and_leaving_out_the_draw_is_told() -> None:
    """E[dis] is the squared distance of the truth from the last release, sign kept."""
    mechanism = GRR(3.0, 4)
    last = np.array([0.55, 0.26, 0.14, 0.05])
    truth = float(np.mean((SHARES - last) ** 2))
    curator = Window(3, 3.0, DEVICES, domain=4, method="lpd", oracle="grr").curator()
    object.__setattr__(curator.last, "values", last)
    readings = cohort_readings(mechanism, 6000, 3)
    found, error = mean_and_error([curator.dissimilarity(reading) for reading in readings])
    assert abs(found - truth) < ALARM * error
    printed = [
        float(np.mean((reading.values - last) ** 2)) - mechanism.mse / COHORT
        for reading in readings
    ]
    biased, error = mean_and_error(printed)
    assert abs(biased - truth) > ALARM * error
    cut_off, error = mean_and_error([max(0.0, curator.dissimilarity(r)) for r in readings])
    assert cut_off - truth > ALARM * error, "cutting distances off at zero must be told, too"


def test_the_planned_variance_is_the_average_one() -> None:
    mechanism = GRR(1.0, 4)
    known = Reading(SHARES, SHARES, 0.0, float(np.mean(SHARES * (1 - SHARES))), COHORT)
    expected = mechanism.mse / 50 + (550 / 599) / 50 * known.spread
    assert planned_variance(mechanism, 50, DEVICES, known) == pytest.approx(expected)
    assert planned_variance(mechanism, 50, DEVICES, None) > expected
    assert planned_variance(mechanism, 0, DEVICES, known) == np.inf


def test_everybody_leaves_nothing_to_the_draw() -> None:
    assert sampling(DEVICES, DEVICES) == 0
    assert sampling(1, DEVICES) == pytest.approx(1)
    assert sampling(DEVICES + 9, DEVICES) == 0, "more than were expected"


# ---- means ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_means_have_the_variance_they_claim(epsilon: float) -> None:
    """Cohorts of 60 out of 600 people with very different numbers."""
    mechanism = Hybrid(epsilon, 0, 10)
    numbers = np.concatenate([np.zeros(300), np.full(300, 10.0)])
    draw = np.random.default_rng(1)
    readings = []
    for seed in range(1500):
        cohort = draw.choice(numbers, 60, replace=False)
        tally = mechanism.tally(mechanism.randomize(cohort, seeded(seed)))
        readings.append(read(mechanism, tally, numbers.size))
    squares = [float((reading.values[0] - 5) ** 2) for reading in readings]
    truth, error = mean_and_error(squares)
    claimed, _ = mean_and_error([reading.average for reading in readings])
    assert abs(claimed - truth) < ALARM * error + 0.03 * truth
    bias, error = mean_and_error([float(reading.values[0] - 5) for reading in readings])
    assert abs(bias) < ALARM * error


def test_a_planned_mean_counts_the_draw() -> None:
    mechanism = Hybrid(1.0, 0, 10)
    known = Reading(np.array([4.0]), np.array([0.1]), 0.1, 25.0, 60)
    expected = mechanism.variance(4.0) / 60 + (540 / 599) / 60 * 25
    assert planned_variance(mechanism, 60, 600, known) == pytest.approx(expected)
    assert planned_variance(mechanism, 60, 600, None) >= expected


# ---- methods that never look at the data -----------------------------------------------------


@pytest.mark.parametrize("method", ["lbu", "lsp", "lpu"])
@pytest.mark.parametrize("oracle", ["grr", "oue", "auto"])
def test_methods_that_do_not_look_are_without_bias(method: str, oracle: str) -> None:
    """Averaged over many populations with one and the same truth; a tenth of a bias is told."""
    shares = np.array([0.6, 0.3, 0.1])
    errors = []
    for seed in range(60):
        people = steady(6, tuple(shares), 3000, seed)
        done = simulate(
            Window(3, 3.0, 3000, domain=3, method=method, oracle=oracle), people, seed=seed
        )
        fresh = [release.published for release in done.releases]
        errors.append((done.values - done.truth)[fresh].mean(axis=0))
    error = np.std(errors, axis=0) / len(errors) ** 0.5
    assert (np.abs(np.mean(errors, axis=0)) < ALARM * error).all()
    assert (np.abs(np.mean(errors, axis=0) + 0.1) > ALARM * error).all()


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["lbu", "lpu"])
@pytest.mark.parametrize(("epsilon", "window"), [(1.0, 20), (2.5, 5)])
def test_intervals_of_uniform_methods_cover(method: str, epsilon: float, window: int) -> None:
    """94 to 96 of 100, with the draw of the cohort; without it far fewer at large epsilon."""
    shares = tuple(np.array([0.4, 0.25, 0.2, 0.1, 0.05]))
    inside = []
    for seed in range(16):
        people = steady(3 * window, shares, 400 * window, seed)
        done = simulate(Window(window, epsilon, people.devices, domain=5, method=method), people,
                   seed=seed)  # fmt: skip
        inside.append(done.coverage(level=0.95))
    assert 0.94 <= np.mean(inside) <= 0.96


def test_intervals_without_the_draw_of_the_cohort_are_too_short() -> None:
    people = steady(60, (0.5, 0.5), 20_000, 1)
    done = simulate(Window(20, 4.0, people.devices, domain=2, method="lpu"), people, seed=1)
    assert done.coverage(level=0.95) > 0.9
    z = 1.96
    bare = [z * np.sqrt(asked.mechanism.mse / asked.received) for asked in done.asked]
    inside = np.abs(done.values - done.truth) <= np.array(bare)[:, None]
    assert inside.mean() < 0.5


def test_tally_of_nobody_is_no_reading() -> None:
    curator = Window(3, 1.0, 600, domain=4, method="lpu").curator()
    steps = curator.asked(200)
    next(steps)
    with pytest.raises(StopIteration) as done:
        steps.send(Tally.zero(4))
    assert done.value.value is None


@pytest.mark.parametrize("method", ["lbu", "lpu"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_means_over_an_interval_are_without_bias_and_covered(method: str, epsilon: float) -> None:
    inside, errors = [], []
    for seed in range(12):
        people = DriftingLevels((0.0, 40.0), devices=3000, periods=20, seed=seed)
        protocol = Window(5, epsilon, 3000, interval=(0.0, 40.0), method=method)
        done = simulate(protocol, people, seed=seed)
        inside.append(done.coverage(level=0.95))
        errors.append(((done.values - done.truth) / np.sqrt(done.variances)).ravel())
    score = np.concatenate(errors)
    assert abs(score.mean()) < ALARM / score.size**0.5
    assert 0.92 <= np.mean(inside) <= 0.98
    assert 0.9 <= score.std() <= 1.1
