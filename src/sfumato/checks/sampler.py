"""Checks of the sampler: reports follow the law, and all coins come from the argument."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np

from sfumato.arrays import Array
from sfumato.checks.fitting import Counted, must_fit, must_fit_input
from sfumato.checks.listing import copies, few, people, sampler_of
from sfumato.checks.verdict import ALARM, demand
from sfumato.core.mechanism import Mechanism
from sfumato.randomness import seeded

__all__ = [
    "one_report_is_as_private_as_many",
    "people_do_not_touch_each_other",
    "same_seed_same_reports",
    "sampler_follows_its_law",
]


def sampler_follows_its_law(mechanism: Mechanism) -> None:
    """Reports fit the stated law, and fit neither the law at 0.9 nor at 1.1 epsilon.

    A few inputs are drawn so many times that a tenth of epsilon shows; all other inputs, and values
    between them, are drawn often enough to show one that is treated differently.
    """
    draws = 400_000
    rejected = dict.fromkeys((0.9, 1.1), False)
    inputs = mechanism.inputs()
    for seed, index in enumerate(few(inputs)):
        counted = Counted(mechanism.randomize(copies(inputs[index], draws), seeded(seed)))
        must_fit_input(mechanism, index, counted)
        for factor in [factor for factor, caught in rejected.items() if not caught]:
            wrong = replace(mechanism, epsilon=mechanism.epsilon * factor)
            if wrong.report_dtype == mechanism.report_dtype:
                rejected[factor] = counted.fit(wrong.laws(inputs[index])) < ALARM
            else:
                rejected[factor] = True
    for factor, caught in rejected.items():
        demand(caught, f"{draws} reports cannot be told from {factor} epsilon")
    for index, value in enumerate(inputs):
        reports = mechanism.randomize(copies(value, 4_000), seeded(100 + index))
        must_fit_input(mechanism, index, reports)
    for index, value in enumerate(mechanism.probes(), len(inputs)):
        must_fit(mechanism, value, mechanism.randomize(copies(value, 4_000), seeded(100 + index)))


def one_report_is_as_private_as_many(mechanism: Mechanism) -> None:
    """A batch of one, as on a device, follows the law too, whatever was drawn before.

    Sending a value in the clear instead of with probability 3/4 would give a chi-squared of 83
    here.
    """
    inputs, rng = mechanism.inputs(), seeded(12)
    drawn: dict[int, list[Array]] = {index: [] for index in few(inputs)}
    samplers = {index: sampler_of(mechanism, [inputs[index]]) for index in drawn}
    for _ in range(250):
        for index, reports in drawn.items():
            reports.append(samplers[index](rng))
    for index, reports in drawn.items():
        must_fit_input(mechanism, index, np.concatenate(reports))


def same_seed_same_reports(mechanism: Mechanism) -> None:
    """All coins come from the argument: one seed gives one outcome, two seeds give two."""
    crowd = people(mechanism, 500)
    before = (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    first, again = (mechanism.randomize(crowd, seeded(3)) for _ in range(2))
    after = (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    demand(before == after, "global random state was used")
    demand(first.tobytes() == again.tobytes(), "one seed gave two different outcomes")
    other = mechanism.randomize(crowd, seeded(4))
    demand(first.tobytes() != other.tobytes(), "two seeds gave one outcome: no coins are used")


def people_do_not_touch_each_other(mechanism: Mechanism) -> None:
    """Changing one person's value changes that person's report and nobody else's.

    This holds coin by coin, so a report depends neither on another person's value nor on a number
    of coins that depends on data. Many seeds are tried, because some coins may hide a fault.
    """
    crowd = people(mechanism, 64)
    for seed in range(24):
        rng = seeded(seed)
        before, next_coins = mechanism.randomize(crowd, rng), rng.take(8)
        for changed, index in product((0, 31, 63), few(mechanism.inputs())):
            value = mechanism.inputs()[index]
            altered = crowd.copy()
            altered[changed] = value
            rng = seeded(seed)
            after = mechanism.randomize(altered, rng)
            same = np.arange(64) != changed
            demand(
                before[same].tobytes() == after[same].tobytes() and rng.take(8) == next_coins,
                f"person {changed} holding {value!r} changed somebody else's report or coins",
            )
