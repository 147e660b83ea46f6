"""Checks of releases: reproducible, final, unbiased, and with the stated uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.checks.crowds import CrowdHistory, Group, Run, groups_of, periods_of, run
from sfumato.checks.verdict import CheckFailed, NotChecked, demand
from sfumato.core.estimate import Estimate
from sfumato.core.stream import Place, Stream, replay
from sfumato.core.tally import Tallies

__all__ = [
    "bytes_of",
    "estimates_are_unbiased_and_cover",
    "lived_by",
    "periods_without_reports_are_released",
    "releases_are_final",
    "replays_release_the_same",
]

RUNS: Final = 320
"""The number of simulated crowds that show the errors of estimates."""
LEVEL: Final = 0.8
"""The level of the intervals that are counted; at this level a doubled variance shows."""
ERRORS: Final = 5.8
"""The number of standard errors that chance may reach, about once in 1.5e8 times."""


def lived_by(stream: Stream, seed: int) -> Run:
    """Return the record of a crowd that holds all values."""
    crowd = CrowdHistory(stream, groups_of(stream), np.random.default_rng(seed))
    return run(stream, crowd, periods_of(stream))


def bytes_of(estimate: Estimate) -> bytes:
    """Return the values, variances and intervals of an estimate as bytes."""
    parts = (estimate.values, estimate.covariance.variances(), *estimate.interval())
    return b"".join(np.asarray(part).tobytes() for part in parts)


def replays_release_the_same(stream: Stream) -> None:
    """A curator that is led through recorded tallies again releases the same, bit for bit."""
    lived = lived_by(stream, 1)
    released = [bytes_of(estimate) for estimate in lived.estimates]
    for period, estimate in enumerate(replay(stream.curator(), lived.recorded), 1):
        demand(
            bytes_of(estimate) == released[period - 1],
            f"replaying gave another release of period {period}",
        )
    sharp = any(bool(np.isfinite(each.covariance.variances()).any()) for each in lived.estimates)
    demand(sharp, "nothing is ever released although everybody takes part")


def releases_are_final(stream: Stream) -> None:
    """The release of a period does not change, whatever is sent in later periods."""
    periods, lived = periods_of(stream), lived_by(stream, 2)
    for closed in range(periods):
        crowd = CrowdHistory(stream, groups_of(stream), np.random.default_rng(100 + closed))
        at_once: list[bytes] = []
        other = run(
            stream,
            crowd,
            periods,
            lived.recorded[:closed],
            lambda estimate: at_once.append(bytes_of(estimate)),  # noqa: B023 -- called at once
        )
        for period, (estimate, before) in enumerate(zip(other.estimates, at_once, strict=True), 1):
            demand(
                bytes_of(estimate) == before,
                f"the release of period {period} was changed after it was made",
            )
            demand(
                period > closed or before == bytes_of(lived.estimates[period - 1]),
                f"what came after period {closed} changed the release of {period}",
            )


def periods_without_reports_are_released(stream: Stream) -> None:
    """A period in which nobody reports is released too; while nobody ever has, nothing is known."""
    periods, lived, nothing = periods_of(stream), lived_by(stream, 4), Tallies[Place]({})
    middle = (periods - 1) // 2
    always = _variances(stream, [nothing] * periods)
    demand(bool(np.isposinf(always).all()), "something is known although nobody ever reported")
    once = _variances(stream, [*lived.recorded[:middle], nothing])
    demand(bool((once >= 0).all()), "the variance of a period without reports is not a number")
    usual = np.array([each.covariance.variances() for each in lived.estimates])
    demand(
        bool(np.isfinite(once[middle + 1 :]).any() or not np.isfinite(usual[middle + 1 :]).any()),
        f"nothing is released any more once nobody reported in period {middle + 1}",
    )


def _variances(stream: Stream, before: Sequence[Tallies[Place]]) -> Floats:
    """Return the variances of all releases, after these tallies of the first periods."""
    crowd = CrowdHistory(stream, groups_of(stream), np.random.default_rng(5))
    try:
        released = run(stream, crowd, periods_of(stream), before).estimates
    except Exception as error:
        raise CheckFailed(
            f"a period without reports is not released: {type(error).__name__}: {error}"
        ) from error
    return np.array([estimate.covariance.variances() for estimate in released])


def estimates_are_unbiased_and_cover(stream: Stream) -> None:
    """Errors average to zero and vary as stated; intervals cover, and are not too wide.

    Each crowd is compared with the truth in one period and one entry, so that the terms of the sum
    over crowds are independent.
    """
    groups, periods = groups_of(stream), periods_of(stream)
    errors, stated, hits = [], [], 0
    spots: list[tuple[int, int]] = []
    for number in range(RUNS):
        crowd = CrowdHistory(stream, groups, np.random.default_rng([number, 3]))
        lived = run(stream, crowd, periods)
        truth = _truth(stream, groups, lived)
        if truth is None:
            raise NotChecked(
                "the stream has no truth to compare with; `truth` returns it where estimates are "
                "unbiased."
            )
        values = np.array([estimate.values for estimate in lived.estimates])
        variances = np.array([each.covariance.variances() for each in lived.estimates])
        if not number:
            known = np.isfinite(truth) & np.isfinite(variances) & (variances > 0)
            spots = [(int(period), int(entry)) for period, entry in np.argwhere(known)]
            demand(bool(spots), "nothing is ever released although everybody takes part")
        period, entry = spots[number % len(spots)]
        errors.append([values[spot] - truth[spot] for spot in spots])
        stated.append(errors[-1][number % len(spots)] ** 2 / variances[period, entry])
        low, high = lived.estimates[period].interval(LEVEL)
        hits += bool(low[entry] <= truth[period, entry] <= high[entry])
    _judge(np.array(errors), np.array(stated), hits)


def _truth(stream: Stream, groups: Sequence[Group], lived: Run) -> Floats | None:
    """Return the truth behind each period's release; None if the stream claims nothing."""
    counts = [group.count for group in groups]
    truths = []
    for period, asks in enumerate(lived.asked):
        held = [group.devices.values[group.held[period]] for group in groups]
        truth = stream.truth(held, counts, asks[-1] if asks else None)
        if truth is None:
            return None
        truths.append(truth)
    return np.array(truths)


def _judge(errors: Floats, stated: Floats, hits: int) -> None:
    runs = len(errors)
    drift = np.abs(errors.mean(axis=0)) / (errors.std(axis=0, ddof=1) / math.sqrt(runs))
    demand(bool((drift < ERRORS).all()), f"estimates are biased by {drift.max():.1f} sigma")
    spread = float(stated.mean())
    # The cube root of chi-squared is nearly normal (Wilson and Hilferty).
    narrow = 2 / (9 * runs)
    low, high = ((1 - narrow + side * ERRORS * math.sqrt(narrow)) ** 3 for side in (-1, 1))
    demand(
        low < spread < high,
        f"the true variance is {spread:.2f} times the stated one",
    )
    share, reach = hits / runs, ERRORS * math.sqrt(LEVEL * (1 - LEVEL) / runs)
    demand(abs(share - LEVEL) < reach, f"{LEVEL:.0%} intervals cover {share:.1%}")
