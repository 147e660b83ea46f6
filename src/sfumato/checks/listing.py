"""Lists for checks of a small mechanism: its laws, a few inputs, and simulated people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from sfumato.arrays import Array
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism
from sfumato.randomness import Source, seeded

__all__ = ["copies", "few", "laws_of", "people", "sampler_of"]


@lru_cache(maxsize=4)
def laws_of(mechanism: Mechanism) -> list[list[Law]]:
    """Return the laws of all inputs, for each public part of a report."""
    by_value = [mechanism.laws(value) for value in mechanism.inputs()]
    return [list(laws) for laws in zip(*by_value, strict=True)]


def sampler_of(mechanism: Mechanism, values: Sequence[Any]) -> Callable[[Source], Array]:
    """Return the sampler of these values' reports, for many calls.

    Values are encoded once, without coins, unless the class randomizes in a way of its own.
    """
    if type(mechanism).randomize is not Mechanism.randomize:
        return partial(mechanism.randomize, values)
    encoded = mechanism.encode(values)
    return lambda rng: mechanism.randomize_encoded(encoded.copy(), rng)


def few(values: Sequence[Any]) -> list[int]:
    """Return the indices of a few values: the first, the middle and the last one."""
    last = len(values) - 1
    return [0, len(values) // 2, last] if last > 2 else list(range(last + 1))


def copies(value: Any, n: int) -> Array:
    """Return the values of n people who all hold one value, in a form that is fast to encode."""
    return np.repeat(np.asarray([value]), n, axis=0)


def people(mechanism: Mechanism, n: int) -> Array:
    """Return the values of n simulated people; all inputs occur, later ones less often."""
    inputs = np.asarray(mechanism.inputs())
    chance = 1 / np.arange(1, len(inputs) + 1)
    chosen = seeded(n).simulator().choice(len(inputs), size=n, p=chance / chance.sum())
    return np.asarray(inputs[chosen])
