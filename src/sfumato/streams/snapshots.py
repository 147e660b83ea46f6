"""Snapshots: a single look at a block of entries, and the oracle that carries it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.core.doubt import Doubt
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.subset_selection import SubsetSelection
from sfumato.mechanisms.sparse.subset.privset import PrivSet
from sfumato.mechanisms.sparse.subset.signed_subset import Concord

__all__ = ["Look", "Snapshot", "chosen", "of_bit", "of_category", "of_set"]

Bits = NDArray[np.int8]


@dataclass(frozen=True)
class Snapshot(ABC):
    """A single look at some entries: how it is sent and read.

    Parameters
    ----------
    mechanism
        The one-shot oracle.
    share
        The typical share of ones; devices that are looked at are a sample, of variance share (1 -
        share).
    signals
        The part of the messages that are about values; the others are dummies, drawn evenly.

    """

    mechanism: Mechanism
    share: float
    signals: float = 1.0

    @cached_property
    @abstractmethod
    def noise(self) -> float:
        """The variance of one report's estimate of an entry, given the data, on average."""

    @property
    def variance(self) -> float:
        """The variance that a plan assumes for one report, with the sampling of devices."""
        return self.noise + self.share * (1 - self.share)

    @abstractmethod
    def variance_at_share(self, share: Floats) -> Floats:
        """Return the variance of one report of a random device, by the share of ones."""

    skewed: ClassVar[bool] = False
    """Whether a report is a coin, so that its third moment follows from its variance."""

    @cached_property
    def coefficients(self) -> tuple[float, float]:
        """The base and the tilt of that variance, which is base + tilt f - f^2 at a share f."""
        none, everybody = self.variance_at_share(np.array([0.0, 1.0])).tolist()
        return none, everybody - none + 1

    def shares(self, apart: float, width: int) -> Floats:
        """Return the share of each entry if all devices but a share ``apart`` hold the same.

        Entries that are independent of each other have the share ``apart`` each.
        """
        return np.full(width, apart)

    @abstractmethod
    def encode(self, bits: Bits) -> Any:
        """Return rows of entries in the form that the mechanism takes."""

    @abstractmethod
    def read(self, tally: Tally) -> Floats:
        """Return the estimated mean of each entry."""

    @property
    def influence(self) -> float:
        """The most by which one forged message can change an estimated total."""
        return self.mechanism.influence / self.signals

    def doubt(self, tally: Tally) -> Doubt | None:
        """Return how improbable the share of each entry is if all devices are honest."""
        return self.mechanism.doubt(tally) if self.signals == 1 else None


@dataclass(frozen=True)
class Supports(Snapshot):
    """A snapshot by an oracle whose reports support items or not."""

    skewed: ClassVar[bool] = True

    @cached_property
    def noise(self) -> float:
        """The average variance of a report over the items."""
        mechanism = self.mechanism
        if self.signals < 1:
            whole = float(self.variance_at_share(np.array(self.share)))
            return whole - self.share * (1 - self.share)
        items = mechanism.dimension if isinstance(mechanism, PrivSet) else 1
        return mechanism.mse / items

    @property
    def _gap(self) -> float:
        mechanism: Any = self.mechanism
        if isinstance(mechanism, PrivSet):
            return mechanism.probabilities.gap
        return float(mechanism.gap) * self.signals

    @property
    def _rest(self) -> float:
        mechanism: Any = self.mechanism
        if isinstance(mechanism, PrivSet):
            return mechanism.probabilities.p_false
        own: float = float(mechanism.q) * self.signals
        if self.signals == 1:
            return own
        supported = 1 if isinstance(mechanism, GRR) else _size(mechanism)
        return own + (1 - self.signals) * supported / int(mechanism.size)

    def variance_at_share(self, share: Floats) -> Floats:
        """Return the variance of a coin that supports an item, by the share of ones."""
        support = self._rest + self._gap * share
        return np.asarray(support * (1 - support) / self._gap**2)

    def encode(self, bits: Bits) -> Any:
        """Return the rows unchanged."""
        return bits

    def read(self, tally: Tally) -> Floats:
        """Return the estimated shares."""
        values = self.mechanism.estimate(tally).values
        if self.signals == 1:
            return values
        # On average an even report says that each item has the same share.
        return np.asarray((values - (1 - self.signals) / values.size) / self.signals)


@dataclass(frozen=True)
class Bit(Supports):
    """A snapshot of a single entry, by randomized response."""

    def encode(self, bits: Bits) -> Any:
        """Return the single entry of each row."""
        return bits[:, 0]

    def read(self, tally: Tally) -> Floats:
        """Return the estimated share of ones."""
        return super().read(tally)[1:]

    def doubt(self, tally: Tally) -> Doubt | None:
        """Return how improbable the share of ones is if all devices are honest."""
        doubt = super().doubt(tally)
        return None if doubt is None else doubt.only(slice(1, None))


@dataclass(frozen=True)
class Item(Supports):
    """A snapshot of entries of which exactly one is 1."""

    def shares(self, apart: float, width: int) -> Floats:
        """Return 1 - apart for the first item; the other items divide ``apart`` evenly."""
        return np.array([1 - apart, *[apart / (width - 1)] * (width - 1)])

    def encode(self, bits: Bits) -> Any:
        """Return the index of the one in each row."""
        return bits.argmax(axis=1)


@dataclass(frozen=True)
class OptionalItem(Supports):
    """A snapshot of entries of which at most one is 1; none is a further item after them."""

    def shares(self, apart: float, width: int) -> Floats:
        """Return an even division of ``apart`` among the items; all other devices hold none."""
        return np.full(width, apart / width)

    def encode(self, bits: Bits) -> Any:
        """Return the index of the one in each row, or the number of entries if there is none."""
        return np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1])

    def read(self, tally: Tally) -> Floats:
        """Return the estimated shares of the real items."""
        return super().read(tally)[:-1]

    def doubt(self, tally: Tally) -> Doubt | None:
        """Return how improbable the shares of the real items are if all devices are honest."""
        doubt = super().doubt(tally)
        return None if doubt is None else doubt.only(slice(-1))


@dataclass(frozen=True)
class Signs(Snapshot):
    """A snapshot of any entries, each sent as plus (1) or minus (0), or not sent."""

    @cached_property
    def noise(self) -> float:
        """The average variance of a report over the entries: a quarter of that of signs."""
        mechanism: Any = self.mechanism
        return float(mechanism.mse / (4 * mechanism.dimension))

    def variance_at_share(self, share: Floats) -> Floats:
        """Return a quarter of the variance of a sign, by the share of ones."""
        return np.asarray((4 * self.noise + 1 - (2 * share - 1) ** 2) / 4)

    def encode(self, bits: Bits) -> Any:
        """Return a sign for every entry: 1 or -1."""
        return 2 * bits - 1

    def read(self, tally: Tally) -> Floats:
        """Return the estimated shares."""
        contrast = self.mechanism.probabilities.contrast  # type: ignore[attr-defined]
        plus, minus = tally.sums / tally.n
        return np.asarray(((plus - minus) / contrast + 1) / 2)

    def doubt(self, tally: Tally) -> Doubt | None:
        """Return how improbable the shares are if all devices are honest."""
        doubt = super().doubt(tally)
        return None if doubt is None else doubt.halved()


Look = tuple[str, int, int | None]
"""A chosen oracle: its name, its size, and its threshold if it has one."""


def chosen(snapshot: Snapshot) -> Look:
    """Return the choices made for a snapshot, so that a device need not search for them."""
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
    """Return the snapshot of one of several items; randomized response is the case of size 1."""
    kinds = items + optional
    mechanism = SubsetSelection(epsilon, kinds, None if look is None else look[1])
    return (OptionalItem if optional else Item)(mechanism, 1 / kinds)


def of_set(epsilon: float, items: int, most: int, look: Look | None = None) -> Snapshot:
    """Return the snapshot of a set: small sets by PrivSet, large ones by signs of all items."""
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
