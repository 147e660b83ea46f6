"""Randomizers that break their promise of epsilon 1, each in a way that was seen somewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from tests.mechanisms.sparse.subset.test_subset_stream import AsPrinted

from sfumato.audit.visible import Outputs, array_batch
from sfumato.mechanisms import GRR, ExSub
from sfumato.mechanisms.frequency.oracle import kept_threshold
from sfumato.mechanisms.sparse.subset.subset_stream import SubsetStream
from sfumato.randomness import Coins, Seeded, seeded

E = math.e


class TenthMore(GRR):
    """Randomized response that keeps its item as often as a tenth more epsilon allows."""

    @cached_property
    def kept(self) -> int:
        return kept_threshold(1.1 * self.epsilon, self.size)


@dataclass
class UnaryCode:
    """A unary code whose bits are each kept with a share of epsilon: two of them tell items apart.

    Half of epsilon for each bit is right, all of it is wrong.
    """

    epsilon_of_a_bit: float
    size: int = 6

    def __call__(self, value: int, rng: np.random.Generator) -> list[int]:
        flips = rng.random(self.size) < 1 / (1 + math.exp(self.epsilon_of_a_bit))
        return [int((item == value) ^ flip) for item, flip in enumerate(flips.tolist())]


class OneBitShort(UnaryCode):
    """The loop that flips bits ends one bit too early: the last one is sent as it is."""

    def __call__(self, value: int, rng: np.random.Generator) -> list[int]:
        return [*super().__call__(value, rng)[:-1], int(value == self.size - 1)]


@dataclass
class OnlineSubsets:
    """ExSub, entry by entry."""

    kind: type[SubsetStream]
    coins: Seeded = field(default_factory=lambda: seeded(3))
    mechanism: ExSub = field(default_factory=lambda: ExSub(1.0, 4, 2, subset_size=2))

    def __call__(self, value: Sequence[int]) -> tuple[int, ...]:
        stream, coins = self.kind.begin(self.mechanism, self.coins), Coins(self.coins)
        return tuple(stream.observe(entry, coins) for entry in value)


PRINTED = OnlineSubsets(AsPrinted)


@dataclass
class AmplifiedResponse:
    """PCKV-AGRR: randomized response on one of s padded entries, with more epsilon than 1.

    The padding must be s symbols of its own; a single one that is shared comes too often.
    """

    dummies: int
    sparsity: int = 3

    def __call__(self, value: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
        held = [(place, sign) for place, sign in enumerate(value) if sign]
        missing = self.sparsity - len(held)
        padded = [*held, *((-1 - number % self.dummies, 1) for number in range(missing))]
        symbols = [(place, sign) for place in range(len(value)) for sign in (-1, 1)]
        symbols += [(-1 - number, 1) for number in range(self.dummies)]
        strength = self.sparsity * (E - 1) + 1
        if rng.random() < (strength - 1) / (strength - 1 + len(symbols)):
            return padded[rng.integers(self.sparsity)]
        return symbols[rng.integers(len(symbols))]


@dataclass
class RawOnceIn:
    """A sparse randomizer (PCKV-UE) that sends the vector itself, once in a while."""

    often: float = math.inf
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))

    def __call__(self, value: Sequence[int], n: int) -> Outputs:
        raw = np.array(value, np.int8)
        sent = self._signs((n, raw.size)) * (self.rng.random((n, raw.size)) < 2 / (E + 3))
        key = self.rng.choice(np.flatnonzero(raw), n)
        kept = np.where(self.rng.random(n) < E / (E + 1), raw[key], -raw[key])
        sent[np.arange(n), key] = kept * (self.rng.random(n) < 0.5)
        sent[self.rng.random(n) < 1 / self.often] = raw
        return array_batch(sent.astype(np.int8).view([("entries", "i1", (raw.size,))])[:, 0])

    def _signs(self, shape: tuple[int, int]) -> Any:
        return 2 * self.rng.integers(2, size=shape, dtype=np.int8) - 1


SPARSE = ((1, -1, *[0] * 22), (*[0] * 22, 1, -1))
