"""Strands: the mechanism that carries a difference thread, and the moments of its reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Final, cast

from sfumato import mechanisms
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolMechanism
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub
from sfumato.streams.kinds import Values

__all__ = ["USUAL", "Carrier", "Sized", "Strand", "carrier", "carriers", "strand"]

Carrier = str
"""The name of a mechanism that carries differences; ``auto`` chooses one."""
USUAL: Final = ("auto", "concord", "exsub", "exsub-printed")


@cache
def _streaming() -> Mapping[str, type[SymbolMechanism]]:
    """Return all mechanisms of the catalogue that answer entry by entry, by name."""
    every = (getattr(mechanisms, public) for public in dir(mechanisms))
    return {kind.name: kind for kind in every if issubclass(kind, SymbolMechanism)}


def carriers(name: object = None) -> tuple[str, ...]:
    """Return the names of carriers; rivals are only loaded if the name is not a usual one."""
    return USUAL if name in USUAL else tuple(dict.fromkeys((*USUAL, *_streaming())))


class PrintedExSub(ExSub):
    """ExSub as the papers use it: s non-zeros on every level, even if fewer entries are left."""

    def _check_vectors(self, largest_dimension: int) -> None:
        self._check_whole("dimension", 1, largest_dimension)
        self._check_whole("sparsity", 1, largest_dimension)


@dataclass(frozen=True)
class Strand:
    """The mechanism of a difference thread, for one private vector of all its differences.

    Parameters
    ----------
    mechanism
        The mechanism, for a vector of (differences x width) entries.
    differences
        The number of differences that the thread sends.
    nonzeros
        The largest number of non-zero entries in them.
    signals
        The part of the messages that are about values; the others are dummies of one symbol each.

    """

    mechanism: SymbolMechanism
    differences: int
    nonzeros: int
    signals: float = 1.0

    @cached_property
    def contrast(self) -> float:
        """The divisor of a symbol in an estimate."""
        return self.mechanism.probabilities.contrast * self.signals

    @property
    def influence(self) -> float:
        """The most by which one forged message can change the estimated total of an entry."""
        return self.mechanism.influence / self.signals

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The second moments of one report's estimate, for a zero and for a non-zero entry."""
        law = self.mechanism.probabilities
        # A dummy is drawn evenly from both symbols of all entries and stubs.
        dummy = (1 - self.signals) / self.mechanism.padded_dimension if self.signals < 1 else 0.0
        return (
            (2 * law.p_false * self.signals + dummy) / self.contrast**2,
            ((law.p_true + law.p_reverse) * self.signals + dummy) / self.contrast**2,
        )

    def moment(self, density: float) -> float:
        """Return the second moment if this share of entries is not zero."""
        zero, other = self.moments
        return zero + density * (other - zero)

    @cached_property
    def variance(self) -> float:
        """The second moment at the largest density, which a plan assumes."""
        return self.moment(self.nonzeros / self.mechanism.dimension)


@dataclass(frozen=True)
class Sized:
    """A mechanism with its chosen size, so that a device need not search for it."""

    differences: int
    carrier: Carrier
    size: int
    threshold: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the mechanism is known; it checks the size itself."""
        known = carriers(self.carrier)[1:]
        if type(self.differences) is not int or self.carrier not in known:
            raise ConfigurationError(
                f"sized has {self.carrier!r} for {self.differences!r} differences; one of "
                f"{', '.join(known)} for a whole number of them is expected."
            )

    @classmethod
    def of(cls, strand: Strand) -> Sized:
        """Return the choices made for a strand."""
        mechanism = strand.mechanism
        name = "exsub-printed" if isinstance(mechanism, PrintedExSub) else mechanism.name
        threshold = getattr(mechanism.probabilities, "threshold", None)
        return cls(strand.differences, name, mechanism.size, threshold)

    def mechanism(self, epsilon: float, entries: int, nonzeros: int) -> SymbolMechanism:
        """Return the mechanism with this size."""
        if self.carrier == "concord":
            return Concord(epsilon, entries, nonzeros, self.size, threshold=self.threshold)
        if self.carrier not in USUAL:
            return carrier(epsilon, entries, nonzeros, self.carrier)
        kind = PrintedExSub if self.carrier == "exsub-printed" else ExSub
        return kind(epsilon, entries, nonzeros, self.size)


@lru_cache(maxsize=4096)
def carrier(epsilon: float, entries: int, nonzeros: int, name: Carrier) -> SymbolMechanism:
    """Return the mechanism for a vector with these numbers of entries and of non-zeros.

    ``auto`` is the better of Concord and ExSub by exact error. Any other mechanism that answers
    entry by entry can be named, to compare with it.
    """
    if name == "concord":
        return Concord(epsilon, entries, nonzeros)
    if name == "exsub":
        return ExSub(epsilon, entries, nonzeros)
    if name == "exsub-printed":
        return PrintedExSub(epsilon, entries, nonzeros, paper=True)
    if name == "auto":
        tried = [carrier(epsilon, entries, nonzeros, other) for other in ("concord", "exsub")]
        return min(tried, key=lambda mechanism: mechanism.mse)
    kind: Any = _streaming().get(name)
    if kind is None:
        raise ConfigurationError(f"mechanism is {name!r}; {', '.join(carriers())} are there.")
    return cast("SymbolMechanism", kind(epsilon, entries, nonzeros))


def strand(
    values: Values,
    differences: int,
    changes: int,
    epsilon: float,
    chosen: Carrier | Sized,
    *,
    anchored: bool,
) -> Strand:
    """Return the strand of a thread with these differences, by the best or a given size."""
    entries = differences * values.width
    bound = min(values.changes(changes, differences, anchored=anchored), entries)
    name = chosen if isinstance(chosen, str) else chosen.carrier
    sparsity = changes if name == "exsub-printed" else bound
    if isinstance(chosen, str):
        mechanism = carrier(epsilon, entries, sparsity, chosen)
    else:
        mechanism = chosen.mechanism(epsilon, entries, sparsity)
    return Strand(mechanism, differences, bound)
