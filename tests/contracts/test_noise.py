"""Every check on all central noise; and broken noise that the checks must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import catalog
from sfumato.checks import NOISE_CHECKS, CheckFailed, check_noise
from sfumato.core.noise import Noise, NoiseLaw
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.randomness import Source, seeded

EXAMPLES = [example for kind in catalog.NOISES.values() for example in kind.examples()]


@pytest.mark.parametrize("check", NOISE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("noise", EXAMPLES, ids=str)
def test_every_example_passes_every_check(check: Callable[[Noise], None], noise: Noise) -> None:
    check(noise)


@dataclass(frozen=True)
class ForgetsTheSensitivity(DiscreteLaplace):
    """As ToPS prints it: the noise of a tree without its threshold."""

    def law(self) -> NoiseLaw:
        return NoiseLaw(Fraction(repr(self.epsilon)))


@dataclass(frozen=True)
class DrawsTooLittle(DiscreteLaplace):
    """States one law and draws another."""

    def add(self, integers: NDArray[np.int64], rng: Source) -> NDArray[np.int64]:
        return super().add(integers, rng) // 2


@dataclass(frozen=True)
class OneNoiseForAll(DiscreteLaplace):
    """Every second integer shares its neighbour's noise."""

    def add(self, integers: NDArray[np.int64], rng: Source) -> NDArray[np.int64]:
        super().add(np.asarray([0]), rng)
        drawn = super().add(np.zeros((integers.size + 1) // 2, dtype=np.int64), rng)
        return integers + np.repeat(drawn, 2)[: integers.size].reshape(integers.shape)


@dataclass(frozen=True)
class LooksAtTheData(DiscreteLaplace):
    """Has noise of its own for everything but zeros."""

    def add(self, integers: NDArray[np.int64], rng: Source) -> NDArray[np.int64]:
        words = seeded(int(abs(integers).sum())) if integers.any() else rng
        return super().add(integers, words)


@pytest.mark.parametrize(
    ("mutant", "caught_by"),
    [
        (ForgetsTheSensitivity(1.0, 3), "epsilon_is_spent_and_not_exceeded"),
        (DrawsTooLittle(1.0, 3), "sampler_follows_its_law"),
        (OneNoiseForAll(1.0, 3), "noise_is_fresh_on_every_integer"),
        (LooksAtTheData(1.0, 3), "noise_does_not_depend_on_the_integers"),
    ],
)
def test_broken_noise_is_caught(mutant: Noise, caught_by: str) -> None:
    by_name = {check.__name__: check for check in NOISE_CHECKS}
    with pytest.raises(CheckFailed):
        by_name[caught_by](mutant)


def test_the_verdict_names_the_checks_that_failed() -> None:
    verdict = check_noise(ForgetsTheSensitivity(1.0, 3))
    assert "epsilon_is_spent_and_not_exceeded" in {name for name, _ in verdict.failures}
