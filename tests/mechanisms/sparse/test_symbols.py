"""Shares of symbols, and the expected absolute errors of means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.core.absolute_errors import largest
from sfumato.errors import ConfigurationError
from sfumato.mechanisms import DDRM, KVUE, PCKVUE, CoCo, Collision, Concord, ExSub
from sfumato.queries import postprocess
from sfumato.randomness import seeded

N, ROUNDS = 400, 1_500
VECTORS = np.array(
    [[1, 0, 0, -1, 0, 0], [0, -1, 0, 0, 0, 0], [1, -1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]]
)


@pytest.mark.statistics
@pytest.mark.parametrize(
    "mechanism",
    [ExSub(3.0, 6, 2, subset_size=2), KVUE(3.0, 6, 2), PCKVUE(3.0, 6, 2), Collision(3.0, 6, 2)],
    ids=lambda mechanism: mechanism.name,
)
def test_shares_of_symbols_are_unbiased_and_vary_as_stated(mechanism: Any) -> None:
    people = np.tile(VECTORS, (N // 4, 1))
    reports = mechanism.randomize(np.tile(people, (ROUNDS, 1)), seeded(1)).reshape(ROUNDS, N)
    estimates = [mechanism.symbols(mechanism.tally(part)) for part in reports]
    values = np.array([estimate.values for estimate in estimates])
    truth = np.concatenate([(people > 0).mean(axis=0), (people < 0).mean(axis=0)])
    stated = np.mean([estimate.covariance.variances() for estimate in estimates], axis=0)
    assert (np.abs(values.mean(axis=0) - truth) < 5.8 * np.sqrt(stated / ROUNDS)).all()
    # Shares are cut to 0..1 before their variance is computed, which moves it by a few percent.
    assert (np.abs(values.var(axis=0) / stated - 1) < 5.8 * math.sqrt(2.5 / ROUNDS) + 0.06).all()
    plus, minus = np.split(values.mean(axis=0), 2)
    tally = mechanism.tally(reports[0])
    assert np.subtract(*np.split(estimates[0].values, 2)) == pytest.approx(
        mechanism.estimate(tally).values
    )
    assert plus.sum() > minus.sum()
    assert estimates[0].labels[:2] == ("0+", "1+")


def test_projected_shares_are_nearer_to_the_truth() -> None:
    mechanism = ExSub(1.0, 50, 2, exact_sparsity=True)
    vector = np.zeros(50, dtype=int)
    vector[[3, 7]] = 1, -1
    shares = mechanism.symbols(mechanism.tally(mechanism.randomize([vector] * 2_000, seeded(1))))
    truth = np.concatenate([vector > 0, vector < 0]).astype(float)
    possible = postprocess(shares, "capped_simplex", total=2).values
    assert possible.sum() == pytest.approx(2)
    assert np.square(possible - truth).sum() < np.square(shares.values - truth).sum()


@pytest.mark.parametrize("mechanism", [DDRM(1.0, 6, 2), Concord.dense(1.0, 2, 6)], ids=str)
def test_signs_for_every_entry_tell_no_shares(mechanism: Any) -> None:
    tally = mechanism.tally(mechanism.randomize(VECTORS, seeded(1)))
    with pytest.raises(ConfigurationError, match="sends something for every entry"):
        mechanism.symbols(tally)


@pytest.mark.statistics
@pytest.mark.parametrize("kind", [ExSub, Concord, CoCo, DDRM])
def test_expected_absolute_errors_are_those_of_simulated_people(kind: Any) -> None:
    mechanism, n, rounds = kind(1.0, 40, 4, exact_sparsity=True), 1_000, 60
    draw = np.random.default_rng(1)
    people = np.zeros((n, 40), dtype=np.int8)
    places = np.argsort(draw.random((n, 40)), axis=1)[:, :4]
    np.put_along_axis(people, places, draw.choice([-1, 1], (n, 4)).astype(np.int8), axis=1)
    truth = mechanism.truth(people)
    errors = np.array(
        [
            np.abs(
                mechanism.estimate(
                    mechanism.tally(mechanism.randomize(people, seeded(seed)))
                ).values
                - truth
            )
            for seed in range(rounds)
        ]
    )
    noise = mechanism.expected_noise(n)
    spread = noise * math.sqrt((1 - 2 / math.pi) * 40 / rounds)
    assert abs(errors.sum(axis=1).mean() - mechanism.expected_tve(n)) < 5.8 * spread
    assert 5.8 * spread < 0.1 * mechanism.expected_tve(n)  # so that a tenth would show
    highest, deviation = (noise * number for number in largest(40))
    assert mechanism.expected_mae(n) == pytest.approx(highest)
    assert abs(errors.max(axis=1).mean() - highest) < 5.8 * deviation / math.sqrt(rounds)
    assert mechanism.facts()["tve_at_10000"] == pytest.approx(mechanism.expected_tve(10_000))


def test_the_printed_error_of_exsub_is_that_of_fifty_thousand_people() -> None:
    """The caption says 10,000; the numbers 3.64 and 0.84 are those of 50,000."""
    for epsilon, printed in ((1.0, 3.64), (3.0, 0.84)):
        mechanism = ExSub(epsilon, 128, 8, exact_sparsity=True)
        assert mechanism.expected_tve(50_000) == pytest.approx(printed, rel=0.03)
        assert mechanism.expected_tve(10_000) > 2 * printed
