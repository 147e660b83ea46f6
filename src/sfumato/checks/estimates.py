"""Checks of estimates: no bias, the stated variance, coverage, and simulated tallies."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from sfumato.checks.listing import people
from sfumato.checks.verdict import ALARM, demand
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.randomness import seeded

__all__ = ["estimates_are_unbiased_and_cover", "simulated_tallies_agree"]


_PEOPLE: Final = 400
_ROUNDS: Final = 600


@lru_cache(maxsize=2)
def _collections(mechanism: Mechanism) -> list[Tally]:
    """Return the tallies of many collections from the same people, drawn in one call."""
    crowd = people(mechanism, _PEOPLE)
    reports = mechanism.randomize(np.concatenate([crowd] * _ROUNDS), seeded(1000))
    return [mechanism.tally(part) for part in reports.reshape(_ROUNDS, _PEOPLE)]


def estimates_are_unbiased_and_cover(mechanism: Mechanism) -> None:
    """Over many collections, errors average to zero, vary as stated, and intervals cover."""
    tallies = _collections(mechanism)
    rounds = len(tallies)
    truth = mechanism.truth(people(mechanism, _PEOPLE))
    estimates, sums = [], []
    covered, reached = 0, 0.0
    weights = 1 + seeded(13).simulator().normal(size=truth.size) / 2
    for tally in tallies:
        estimate = mechanism.estimate(tally)
        low, high = estimate.interval(0.95)
        covered += int(((low <= truth) & (truth <= high)).sum())
        reached += float(((high - low) / (2 * 1.96 * estimate.standard_errors)).sum())
        error = estimate.values - truth
        estimates.append(error / estimate.standard_errors)
        if estimate.covariance.joint:
            sums.append(float(weights @ error) / math.sqrt(float(estimate.variance_of(weights))))
    z = np.array(estimates)
    limit = -NormalDist().inv_cdf(ALARM / (2 * truth.size))
    drift = np.abs(z.mean(axis=0)) * math.sqrt(rounds)
    # A standardized error has variance 1; 1.15 leaves room for the estimated standard error.
    demand(bool((drift < 1.15 * limit).all()), f"estimates are biased by {drift.max():.1f} sigma")
    spread = (z**2).mean(axis=0)
    reach = limit * math.sqrt(2.6 / rounds)
    demand(
        bool(((spread > 1 - reach) & (spread < 1 + reach)).all()),
        f"the true variance is {spread.min():.2f} to {spread.max():.2f} times the stated one",
    )
    together = float(np.mean(np.square(sums))) if sums else 1.0
    demand(
        abs(together - 1) < reach,
        f"the true variance of a weighted sum is {together:.2f} times the stated one",
    )
    share = covered / (rounds * truth.size)
    demand(share > 0.92, f"95% intervals cover {share:.1%}")
    wide = reached / (rounds * truth.size)
    demand(wide < 1.5, f"95% intervals are {wide:.2f} times as wide as the noise")


def simulated_tallies_agree(mechanism: Mechanism) -> None:
    """sample_tally has the mean and the spread of real tallies; the default draws real ones."""
    n = _PEOPLE
    crowd = people(mechanism, n)
    same = [(crowd == value).reshape(n, -1).all(axis=1) for value in mechanism.inputs()]
    histogram = np.array([int(rows.sum()) for rows in same])
    if type(mechanism).sample_tally is Mechanism.sample_tally:
        ordered = np.concatenate([crowd[rows] for rows in same])
        for seed in range(20_000, 20_010):
            real = mechanism.tally(mechanism.randomize(ordered, seeded(seed)))
            demand(
                mechanism.sample_tally(histogram, seeded(seed)) == real, "no real tally is drawn"
            )
        return
    tallies = _collections(mechanism)[:400]
    rounds = len(tallies)
    drawn, real = np.empty((2, rounds, *mechanism.tally_shape))
    for index in range(rounds):
        sample = mechanism.sample_tally(histogram, seeded(20_000 + index))
        demand(isinstance(sample, Tally) and sample.n == n, f"a sample of {n} says n = {sample.n}")
        drawn[index] = sample.sums
        real[index] = tallies[index].sums
    limit = -NormalDist().inv_cdf(ALARM / (4 * drawn[0].size))
    variance = (drawn.var(axis=0, ddof=1) + real.var(axis=0, ddof=1)) / 2
    apart = np.abs(drawn.mean(axis=0) - real.mean(axis=0))
    demand(
        bool((apart <= 1.1 * limit * np.sqrt(2 * variance / rounds)).all()),
        "simulated and real tallies differ in the mean",
    )
    ratio = (drawn.var(axis=0, ddof=1) + 1e-12) / (real.var(axis=0, ddof=1) + 1e-12)
    reach = 1.2 * limit * math.sqrt(4 / rounds)
    demand(bool((np.abs(np.log(ratio)) < reach).all()), "they differ in the spread")
