"""Checks of all paths of a sampler: outcomes have exactly the stated probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from math import prod
from typing import Any, Final

import numpy as np

from sfumato.arrays import Ints
from sfumato.checks.branching import STEP, PathLaw, path_law
from sfumato.checks.listing import sampler_of
from sfumato.checks.paths import Unlisted
from sfumato.checks.verdict import CheckFailed, demand
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.randomness import Source

__all__ = ["every_path_adds_the_noise_of_the_law", "every_path_follows_the_law"]


ROOM: Final = 8_000  # the number of paths that the batches of one instance should not exceed
ALONE: Final = 1_500  # the number of paths of one instance after which no further value is started
LEFT: Final = Fraction(1, 1 << 20)  # the largest weight of loop paths that were not followed
BATCHES: Final = ((0, 1), (0, 0), (0, 2, 1))  # the indices of values that are randomized together


def every_path_follows_the_law(mechanism: Mechanism) -> None:
    """Reports have exactly the stated probabilities, alone and together in a batch.

    The reports of two and of three people must be independent, so that their probabilities
    multiply. For large instances only one person's paths are followed, for as many values as
    possible.
    """
    values = _ends_first(mechanism)
    law_of = lru_cache(lambda index: _stated(mechanism, values[index]))
    counts: list[int] = []

    def follow(indices: Sequence[int]) -> int:
        return _follow(mechanism, [values[p] for p in indices], [law_of(p) for p in indices])

    for index in range(len(values)):
        counts.append(follow([index]))
        if sum(counts) > ALONE:
            break
    followed = sum(counts)
    for batch in BATCHES:
        if max(batch) < len(counts) and followed + prod(counts[p] for p in batch) <= ROOM:
            followed += follow(batch)


def _ends_first(mechanism: Mechanism) -> list[Any]:
    """Return the values to check: the ends and the middle of the inputs first, then all others."""
    inputs = mechanism.inputs()
    front = list(dict.fromkeys((0, len(inputs) - 1, len(inputs) // 2)))
    rest = [value for index, value in enumerate(inputs) if index not in front]
    return [*(inputs[index] for index in front), *mechanism.probes(), *rest]


def _stated(mechanism: Mechanism, value: Any) -> dict[bytes, Fraction]:
    """Return the probability of each report of a value, including its public part."""
    laws = mechanism.laws(value)
    chances: dict[bytes, Fraction] = {}
    for law in laws:
        for output, numerator in zip(law.outputs, law.numerators, strict=True):
            chances[output.tobytes()] = Fraction(numerator, law.denominator * len(laws))
    return chances


def _follow(mechanism: Mechanism, batch: list[Any], laws: list[dict[bytes, Fraction]]) -> int:
    """Compare the law of a batch's reports with its values' laws; return the number of paths."""
    size, sampler = mechanism.report_bytes, sampler_of(mechanism, batch)
    try:
        listed = path_law(lambda rng: sampler(rng).tobytes())
    except Unlisted as reason:
        raise CheckFailed(f"the paths of {batch} cannot be followed: {reason}") from reason

    def stated(sent: bytes) -> Fraction:
        parts = [sent[start : start + size] for start in range(0, len(sent), size)]
        return prod(
            (law.get(part, Fraction(0)) for law, part in zip(laws, parts, strict=True)),
            start=Fraction(1),
        )

    def shown(sent: bytes) -> str:
        return f"{batch} sends {np.frombuffer(sent, dtype=mechanism.report_dtype).tolist()}"

    _compare(listed, stated, shown)
    return listed.paths


def _compare(
    listed: PathLaw, stated: Callable[[Any], Fraction], shown: Callable[[Any], str]
) -> None:
    """Raise CheckFailed unless every outcome has its stated probability.

    The listed probabilities and the part that was not followed sum to one. So if none exceeds what
    is stated, outcomes that were not seen have at most the probability of that part.
    """
    demand(listed.left <= LEFT, f"paths of weight {float(listed.left):.2g} are too long to follow")
    for outcome, chance in listed.chances.items():
        law = stated(outcome)
        if not law - listed.left <= chance <= law:
            raise CheckFailed(
                f"{shown(outcome)} with probability {float(chance):.9g}, which is "
                f"{float(chance - law):+.2g} off the law"
            )


def every_path_adds_the_noise_of_the_law(noise: Noise) -> None:
    """The noise on one and on two integers has exactly the stated probabilities.

    These are powers of x = e^-rate; see :class:`Branching` for the x that is used.
    """
    for integers in ([5], [-3, 1 << 40]):
        before = np.array(integers)
        try:
            listed = path_law(partial(_added, noise, before), unit=noise.law().rate)
        except Unlisted as reason:
            raise CheckFailed(f"the noise on {integers} cannot be followed: {reason}") from reason
        _compare(listed, _laplace, partial("to {} is added {}".format, integers))


def _added(noise: Noise, integers: Ints, rng: Source) -> tuple[int, ...]:
    return tuple((noise.add(integers, rng) - integers).tolist())


def _laplace(numbers: tuple[int, ...]) -> Fraction:
    """Return the probability of independent two-sided geometric numbers."""
    zero = Fraction(STEP - 1, STEP + 1)
    return prod((zero / STEP ** abs(z) for z in numbers), start=Fraction(1))
