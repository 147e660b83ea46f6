"""The checks of central noise, each with one claim.

Whether noise is epsilon-DP is decided exactly from its rational rate; Pearson's test compares the
sampler with the law of that rate, and must reject a tenth more or less.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from sfumato.arrays import Ints
from sfumato.checks.fitting import chi_squared_tail
from sfumato.checks.path_checks import every_path_adds_the_noise_of_the_law
from sfumato.checks.verdict import (
    ALARM,
    BUDGET_WASTED,
    CheckFailed,
    Verdict,
    demand,
    findings_of,
)
from sfumato.core.noise import Noise, exact_epsilon
from sfumato.errors import InputError
from sfumato.randomness import seeded

__all__ = ["NOISE_CHECKS", "check_noise"]

_DRAWS: Final = 400_000


def epsilon_is_spent_and_not_exceeded(noise: Noise) -> None:
    """Moving the integers by the sensitivity changes no probability by more than e^epsilon."""
    spent, claimed = noise.law().epsilon(noise.sensitivity), exact_epsilon(noise.epsilon)
    demand(spent <= claimed, f"the law leaks epsilon {float(spent):.9g}, more than {claimed}")
    demand(
        spent >= claimed * (1 - BUDGET_WASTED), f"only {float(spent / claimed):.6%} of it is used"
    )


def integers_in_integers_out(noise: Noise) -> None:
    """Noise on whole numbers gives whole numbers, and other numbers are refused."""
    before = np.array([[5, -3], [0, 1 << 40]])
    after = noise.add(before, seeded(1))
    demand(after.dtype.kind == "i" and after.shape == before.shape, f"they come as {after.dtype}")
    demand(before.tolist() == [[5, -3], [0, 1 << 40]], "the integers handed in were changed")
    try:
        noise.add(np.array([0.5]), seeded(1))
    except InputError:
        return
    raise CheckFailed("a floating-point number was taken")


def _fit(noise: Noise, drawn: Ints) -> float:
    """Return the p-value of Pearson's test of whether the draws follow the law."""
    law = noise.law()
    reach = 0
    while _DRAWS * law.probability(reach + 1) > 20 and reach < 10_000:
        reach += 1
    expected = _DRAWS * np.array([law.probability(z) for z in range(-reach, reach + 1)])
    inside = np.abs(drawn) <= reach
    seen = np.bincount(drawn[inside] + reach, minlength=expected.size)
    cells = np.append(expected, max(_DRAWS - expected.sum(), 1e-9))
    counts = np.append(seen, _DRAWS - np.count_nonzero(inside))
    statistic = float((((counts - cells) ** 2) / cells).sum())
    return chi_squared_tail(statistic, cells.size - 1)


def sampler_follows_its_law(noise: Noise) -> None:
    """What is added fits the stated law, and fits neither the law at 0.9 nor at 1.1 epsilon."""
    drawn = noise.add(np.zeros(_DRAWS, dtype=np.int64), seeded(2))
    p_value = _fit(noise, drawn)
    demand(p_value > ALARM, f"the noise does not follow its law (p = {p_value:.1e})")
    for factor in (0.9, 1.1):
        wrong = replace(noise, epsilon=noise.epsilon * factor)
        demand(_fit(wrong, drawn) < ALARM, f"the noise cannot be told from {factor} epsilon")


def noise_does_not_depend_on_the_integers(noise: Noise) -> None:
    """One seed gives the same noise on any integers, and two seeds give different noise."""
    before = (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    zeros, data = np.zeros(500, dtype=np.int64), np.arange(500) ** 3
    first, again = noise.add(zeros, seeded(3)), noise.add(data, seeded(3)) - data
    after = (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    demand(before == after, "global random state was used")
    demand(first.tolist() == again.tolist(), "the noise depends on what it is added to")
    demand(first.tolist() != noise.add(zeros, seeded(4)).tolist(), "two seeds gave one noise")


def noise_is_fresh_on_every_integer(noise: Noise) -> None:
    """Neighbouring integers get independent noise: products of the two average to zero."""
    drawn = noise.add(np.zeros(_DRAWS, dtype=np.int64), seeded(5)).astype(np.float64)
    products = drawn[1:] * drawn[:-1] / noise.law().variance
    demand(abs(products.mean()) < 6.5 / np.sqrt(_DRAWS), "neighbours share noise")


def configuration_round_trip(noise: Noise) -> None:
    """The configuration is plain data and rebuilds equal noise."""
    plain = json.loads(json.dumps(noise.configuration()))
    demand(plain.pop("noise") == noise.name, "the configuration does not say its name")
    demand(type(noise)(**plain) == noise, "the rebuilt noise differs")


NOISE_CHECKS: Final[tuple[Callable[[Noise], None], ...]] = (
    epsilon_is_spent_and_not_exceeded,
    integers_in_integers_out,
    every_path_adds_the_noise_of_the_law,
    sampler_follows_its_law,
    noise_does_not_depend_on_the_integers,
    noise_is_fresh_on_every_integer,
    configuration_round_trip,
)


def check_noise(noise: Noise, progress: Callable[[str], None] = lambda _: None) -> Verdict:
    """Run every check on one small instance; return the verdict with all failures."""
    findings = findings_of(NOISE_CHECKS, noise, progress)
    spent = noise.law().epsilon(noise.sensitivity)
    used = float(spent / exact_epsilon(noise.epsilon))
    return Verdict(noise, noise.epsilon, float(spent), used, *findings)
