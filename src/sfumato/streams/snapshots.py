"""A single look at a block of entries: the oracle that carries it, and how it is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.subset_selection import SubsetSelection
from sfumato.mechanisms.sparse.subset.privset import PrivSet
from sfumato.mechanisms.sparse.subset.signed_subset import Concord

__all__ = ["Look", "Snapshot", "chosen", "of_bit", "of_category", "of_set"]

Bits = NDArray[np.int8]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Snapshot(ABC):
    """How one look at some entries is sent and read.

    Parameters
    ----------
    mechanism
        The one-shot oracle.
    share
        The typical share; whoever is looked at is a sample, of variance share (1 - share).

    """

    mechanism: Mechanism
    share: float

    @cached_property
    @abstractmethod
    def noise(self) -> float:
        """The variance of one report's estimate of an entry, given the data, on average."""

    @property
    def variance(self) -> float:
        """What a plan counts on."""
        return self.noise + self.share * (1 - self.share)

    @abstractmethod
    def variance_at_share(self, share: Floats) -> Floats:
        """Return the variance of one report of whoever is looked at, by the share of ones."""

    skewed: ClassVar[bool] = False
    """Whether a report is a coin, whose third moment follows from its variance."""

    @cached_property
    def coefficients(self) -> tuple[float, float]:
        """The base and the tilt of that variance, which is base + tilt f - f^2 at a share f."""
        none, everybody = self.variance_at_share(np.array([0.0, 1.0])).tolist()
        return none, everybody - none + 1

    @abstractmethod
    def encode(self, bits: Bits) -> Any:
        """Return what the mechanism takes, from rows of entries."""

    @abstractmethod
    def read(self, tally: Tally) -> Floats:
        """Return each entry's estimated mean."""


@dataclass(frozen=True)
class Supports(Snapshot):
    """By an oracle whose reports support items or not."""

    skewed: ClassVar[bool] = True

    @cached_property
    def noise(self) -> float:
        """Averaged over the items; of sets the oracle gives their sum."""
        mechanism = self.mechanism
        items = mechanism.dimension if isinstance(mechanism, PrivSet) else 1
        return mechanism.mse / items

    @property
    def _gap(self) -> float:
        mechanism: Any = self.mechanism
        if isinstance(mechanism, PrivSet):
            return mechanism.probabilities.gap
        return float(mechanism.gap)

    @property
    def _rest(self) -> float:
        mechanism: Any = self.mechanism
        if isinstance(mechanism, PrivSet):
            return mechanism.probabilities.p_false
        return float(mechanism.q)

    def variance_at_share(self, share: Floats) -> Floats:
        """Return that of a coin."""
        support = self._rest + self._gap * share
        return np.asarray(support * (1 - support) / self._gap**2)

    def encode(self, bits: Bits) -> Any:
        """Return the rows themselves."""
        return bits

    def read(self, tally: Tally) -> Floats:
        """Return shares."""
        return self.mechanism.estimate(tally).values


@dataclass(frozen=True)
class Bit(Supports):
    """Of a single entry, by randomized response."""

    def encode(self, bits: Bits) -> Any:
        """Return the entry."""
        return bits[:, 0]

    def read(self, tally: Tally) -> Floats:
        """Return the share of ones."""
        return super().read(tally)[1:]


@dataclass(frozen=True)
class Item(Supports):
    """Of entries of which exactly one is there."""

    def encode(self, bits: Bits) -> Any:
        """Return which one."""
        return bits.argmax(axis=1)


@dataclass(frozen=True)
class OptionalItem(Supports):
    """Of entries of which one is there or none: nothing is an item of its own, behind them."""

    def encode(self, bits: Bits) -> Any:
        """Return which one, or the number behind the last."""
        return np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1])

    def read(self, tally: Tally) -> Floats:
        """Return the shares of the items proper."""
        return super().read(tally)[:-1]


@dataclass(frozen=True)
class Signs(Snapshot):
    """Of any entries: each is sent as plus (there) or minus (not there), or not at all."""

    @cached_property
    def noise(self) -> float:
        """A quarter of what signs have, averaged over the entries."""
        mechanism: Any = self.mechanism
        return float(mechanism.mse / (4 * mechanism.dimension))

    def variance_at_share(self, share: Floats) -> Floats:
        """Return a quarter of what a sign has."""
        return np.asarray((4 * self.noise + 1 - (2 * share - 1) ** 2) / 4)

    def encode(self, bits: Bits) -> Any:
        """Return a sign for every entry."""
        return 2 * bits - 1

    def read(self, tally: Tally) -> Floats:
        """Return shares."""
        contrast = self.mechanism.probabilities.contrast  # type: ignore[attr-defined]
        plus, minus = tally.sums / tally.n
        return np.asarray(((plus - minus) / contrast + 1) / 2)


Look = tuple[str, int, int | None]
"""A chosen oracle: its name, its size, and its threshold if it has one."""


def chosen(snapshot: Snapshot) -> Look:
    """Return what was chosen for a snapshot, so that a device need not search for it."""
    mechanism: Any = snapshot.mechanism
    threshold = mechanism.accept_threshold if isinstance(mechanism, Concord) else None
    size = 1 if isinstance(mechanism, GRR) else _size(mechanism)
    return mechanism.name, size, threshold


def _size(mechanism: Any) -> int:
    return int(mechanism.members if isinstance(mechanism, SubsetSelection) else mechanism.size)


def of_bit(epsilon: float) -> Snapshot:
    """Return the snapshot of one entry."""
    mechanism = GRR(epsilon, 2)
    return Bit(mechanism, 0.5)


def of_category(
    epsilon: float, items: int, look: Look | None = None, *, optional: bool = False
) -> Snapshot:
    """Return the snapshot of one of several items: randomized response is the case of size 1."""
    kinds = items + optional
    mechanism = SubsetSelection(epsilon, kinds, None if look is None else look[1])
    return (OptionalItem if optional else Item)(mechanism, 1 / kinds)


def of_set(epsilon: float, items: int, most: int, look: Look | None = None) -> Snapshot:
    """Return the snapshot of a set: small sets by subsets that meet them, large ones by signs."""
    share = most / items if most < items else 0.5
    if look is None:
        signs = Concord(epsilon, items, items, exact_sparsity=True)
        mixed: Snapshot = Signs(signs, share)
        if most == items:
            return mixed
        meeting = PrivSet(epsilon, items, most)
        return min(Supports(meeting, share), mixed, key=lambda it: it.noise)
    name, size, threshold = look
    if name == PrivSet.name:
        meeting = PrivSet(epsilon, items, most, size)
        return Supports(meeting, share)
    signs = Concord(epsilon, items, items, size, exact_sparsity=True, threshold=threshold)
    return Signs(signs, share)
