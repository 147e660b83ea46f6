"""The base of mechanisms for sparse vectors: inputs, padding, estimates from symbol counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import ceil, comb, inf, sqrt
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from sfumato.arrays import Array, Floats
from sfumato.core.doubt import Doubt
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.exact import exp_above
from sfumato.core.field_checks import check_one_of
from sfumato.core.mechanism import Mechanism
from sfumato.core.quantity import AMOUNT, SHARE
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse import ternary
from sfumato.mechanisms.sparse.entry_streams import EntryStream
from sfumato.randomness import ONE, Source

__all__ = [
    "EntryLaw",
    "SparseInput",
    "SparseMechanism",
    "SymbolLaw",
    "SymbolMechanism",
    "tells_presence",
    "weight_above",
]

LISTED_INPUTS: Final = 20_000


class EntryLaw(ABC):
    """The law of the two counts of an entry: how often a report supports plus and minus."""

    sparsity: int
    """The number of non-zeros of the padded vector."""
    p_false: float
    """The probability that a report supports a given symbol of a zero entry."""
    contrast: float
    """How much more probable a report's support of an entry's symbol is than of the opposite."""
    presence: float
    """How much more probable support of either symbol is for a non-zero than for a zero."""

    @abstractmethod
    def value_variances(self) -> tuple[float, float]:
        """Return the variance of the value estimate at a zero and at a non-zero entry."""

    @abstractmethod
    def presence_variances(self) -> tuple[float, float]:
        """Return the variance of the presence estimate at a zero and at a non-zero entry."""

    @property
    def covariance(self) -> float:
        """The covariance of the presence and the value estimate of an entry of 1."""
        return (1 - 2 * self.p_false) / self.presence - 1

    def mse(self, estimate: str, entries: int) -> float:
        """Return the total variance over ``entries`` real entries, s of which are non-zero."""
        both = self.value_variances() if estimate == "value" else self.presence_variances()
        return (entries - self.sparsity) * both[0] + self.sparsity * both[1]


def weight_above(logarithm: Fraction | float) -> int:
    """Return e^logarithm in units of 2^-64, rounded up, for a logarithm of 0 or less."""
    return ceil(ONE * exp_above(logarithm))


def tells_presence(law: EntryLaw) -> bool:
    """Return whether an entry that is held is supported noticeably more often than another."""
    return law.presence > 1e-9 * law.p_false


@dataclass(frozen=True, kw_only=True)
class SymbolLaw(EntryLaw):
    """The law of an entry of which a report sends plus, minus or nothing.

    Parameters
    ----------
    sparsity
        The number of non-zeros of the padded vector.
    p_true, p_reverse, p_false
        The probability that a report sends the true sign of a non-zero entry, its opposite sign,
        and a given sign of a zero entry.
    contrast
        p_true - p_reverse, computed without cancellation.
    presence
        p_true + p_reverse - 2 p_false, computed without cancellation.

    """

    sparsity: int
    p_true: float
    p_reverse: float
    p_false: float
    contrast: float
    presence: float

    @classmethod
    def of(cls, sparsity: int, true: Fraction, reverse: Fraction, false: Fraction) -> Self:
        """Return the law with these exact probabilities."""
        return cls(
            sparsity=sparsity,
            p_true=float(true),
            p_reverse=float(reverse),
            p_false=float(false),
            contrast=float(true - reverse),
            presence=float(true + reverse - 2 * false),
        )

    def value_variances(self) -> tuple[float, float]:
        """Return the variance of the value estimate at a zero and at a non-zero entry."""
        if (scale := self.contrast**2) <= 0:
            return inf, inf
        return 2 * self.p_false / scale, (self.p_true + self.p_reverse) / scale - 1

    def presence_variances(self) -> tuple[float, float]:
        """Return the variance of the presence estimate at a zero and at a non-zero entry."""
        if not tells_presence(self):
            return inf, inf
        absent, present = 2 * self.p_false, self.p_true + self.p_reverse
        scale = self.presence**2
        return absent * (1 - absent) / scale, present * (1 - present) / scale


class SparseInput(Mechanism):
    """A mechanism for sparse vectors of -1, 0 and 1, padded to exactly s non-zeros with stubs.

    Parameters
    ----------
    dimension
        Number of entries of a vector.
    sparsity
        The largest number of non-zero entries of a vector; further ones are taken as zero.
    exact_sparsity
        Whether every vector has exactly ``sparsity`` non-zeros, so that no padding is needed.

    """

    dimension: int
    sparsity: int
    exact_sparsity: bool

    entries: ClassVar[tuple[int, ...]] = (0, 1, -1)
    """The values that an entry can have."""

    def _check_sizes(self, largest_dimension: int) -> None:
        self._check_whole("dimension", 1, largest_dimension)
        self._check_whole("sparsity", 1, self.dimension)
        self._check_flag("exact_sparsity")

    def _refuse_full_vectors(self) -> None:
        if self.exact_sparsity and self.sparsity == self.dimension:
            raise ConfigurationError(
                f"sparsity is {self.sparsity}, exactly, of {self.dimension} entries; then every "
                "entry is there and frequencies are known."
            )

    @property
    def padded_dimension(self) -> int:
        """The number of entries plus stubs; stubs are padding up to exactly s non-zeros."""
        return self.dimension + (0 if self.exact_sparsity else self.sparsity)

    def inputs(self) -> Sequence[tuple[int, ...]]:
        """Return every vector of at most (or exactly) s non-zeros, if there are few."""
        d, kinds = self.dimension, len(self.entries) - 1
        counts = [self.sparsity] if self.exact_sparsity else range(self.sparsity + 1)
        if sum(comb(d, k) * kinds**k for k in counts) > LISTED_INPUTS:
            raise ConfigurationError(
                f"dimension is {d} and sparsity {self.sparsity}; vectors are listed only if there "
                f"are up to {LISTED_INPUTS}."
            )
        vectors = []
        for count in counts:
            for positions in combinations(range(d), count):
                for held in product(self.entries[1:], repeat=count):
                    named = dict(zip(positions, held, strict=True))
                    vectors.append(tuple(named.get(position, 0) for position in range(d)))
        return vectors

    def example_values(self, n: int) -> Any:
        """Return n vectors whose first s entries are 1."""
        vectors = np.ones(n, dtype=ternary.encoded_dtype(self.dimension, self.sparsity))
        vectors["position"] = np.arange(self.sparsity)
        return vectors

    @property
    def mse_of_one(self) -> float:
        """The mean squared error per entry, averaged over the real entries."""
        return self.mse / self.dimension

    @property
    def estimated(self) -> int:
        """The number of real entries."""
        return self.dimension

    def dense_values(self, values: Any) -> Floats:
        """Return the vectors as dense rows, after further non-zeros were dropped."""
        encoded = self.encode(values)
        rows = np.zeros((len(encoded), self.dimension + self.sparsity))
        np.put_along_axis(rows, encoded["position"].astype(np.int64), encoded["sign"], axis=1)
        return rows[:, : self.dimension]

    def encode(self, values: Any) -> Array:
        """Return the non-zeros of each vector, padded with stubs."""
        encoded = ternary.encode(values, self.dimension, self.sparsity)
        if self.exact_sparsity:
            ternary.refuse_stubs(encoded, self.dimension, self.sparsity)
        return encoded


class SparseMechanism(SparseInput):
    """A sparse mechanism whose tally counts the reports that support each signed entry.

    Parameters
    ----------
    goal
        What is estimated: the mean of each entry (value) or how often it is not zero (frequency).

    """

    goal: Literal["value", "frequency"]

    def _check_vectors(self, largest_dimension: int) -> None:
        self._check_sizes(largest_dimension)
        check_one_of("goal", self.goal, ("value", "frequency"))
        if self.goal == "frequency":
            self._refuse_full_vectors()

    @property
    @abstractmethod
    def probabilities(self) -> EntryLaw:
        """The law in use; what is not given is chosen for the least exact error."""

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: how often each entry was supported as plus and as minus."""
        return (2, self.dimension)

    def truth(self, values: Any) -> Floats:
        """Return the mean of each entry, or the share of people for whom it is not zero."""
        encoded = self.encode(values)
        signs = np.ones_like(encoded["sign"]) if self.goal == "frequency" else encoded["sign"]
        total = np.zeros(self.dimension + self.sparsity)
        np.add.at(total, encoded["position"], signs)
        return total[: self.dimension] / len(encoded)

    def _estimate(self, tally: Tally) -> Estimate:
        law = self.probabilities
        plus, minus = tally.sums[:2] / tally.n
        mean = (plus - minus) / law.contrast
        # The number of reports of an entry tells how many people hold it, unless every entry is
        # always sent.
        held = self._held(tally) if tells_presence(law) else np.abs(mean)
        if self.goal == "frequency":
            share = np.clip(held, 0.0, 1.0)
            absent, present = law.presence_variances()
            values, noise = held, (1 - share) * absent + share * present
        else:
            share = np.clip(held, np.minimum(np.abs(mean), 1.0), 1.0)
            absent, present = law.value_variances()
            values, noise = mean, (1 - share) * absent + share * present
        return Estimate(
            values=values,
            covariance=Covariance(noise / tally.n, joint=False),
            labels=tuple(range(self.dimension)),
            n=tally.n,
            guarantee=self.guarantee,
            quantity=SHARE if self.goal == "frequency" else AMOUNT,
        )

    def doubt(self, tally: Tally) -> Doubt:
        """Return how improbable the mean of each entry is if all devices are honest."""
        law = self.probabilities
        plus, minus = tally.sums[:2] / tally.n
        values, variance = (plus - minus) / law.contrast, max(law.value_variances())
        reach = 1 / law.contrast + 1
        return Doubt.of_means(values, tally.n, (-1.0, 1.0), variance, reach)

    def _held(self, tally: Tally) -> Floats:
        """Return unbiased estimates of how many people hold each entry, as shares."""
        law = self.probabilities
        return np.asarray((tally.sums.sum(axis=0) / tally.n - 2 * law.p_false) / law.presence)

    def symbols(self, tally: Tally) -> Estimate:
        """Return the share of people who hold each signed entry, all plus signs first.

        Raises ConfigurationError if reports do not tell whether an entry is there.
        """
        law = self.probabilities
        if not tells_presence(law):
            raise ConfigurationError(
                f"{self.name} sends something for every entry, which does not tell how often an "
                "entry is there, and so not how often it is plus."
            )
        plus, minus = tally.sums[:2] / tally.n
        value, held = (plus - minus) / law.contrast, self._held(tally)
        shares = np.concatenate([held + value, held - value]) / 2
        # A holder of this sign, of the other one, and of neither vary differently.
        own = np.clip(shares, 0.0, 1.0)
        other = np.minimum(np.roll(own, self.dimension), 1 - own)
        absent, present = map(
            sum, zip(law.value_variances(), law.presence_variances(), strict=True)
        )
        noise = (1 - own - other) * absent + (own + other) * present
        noise += 2 * (own - other) * law.covariance
        labels = tuple(f"{entry}{sign}" for sign in "+-" for entry in range(self.dimension))
        return Estimate(
            values=shares,
            covariance=Covariance(noise / (4 * tally.n), joint=False),
            labels=labels,
            n=tally.n,
            guarantee=self.guarantee,
            quantity=SHARE,
        )

    def expected_noise(self, n: int) -> float:
        """Return the deviation of an estimate of n people whose non-zeros lie at random places."""
        return sqrt(self.probabilities.mse(self.goal, self.dimension) / (self.dimension * n))

    @property
    def mse(self) -> float:
        """The total error over the real entries, for a vector with s non-zeros."""
        return self.probabilities.mse(self.goal, self.dimension)

    @property
    def influence(self) -> float:
        """The most by which one forged report can change the estimated total of an entry."""
        law = self.probabilities
        return float(1 / (law.contrast if self.goal == "value" else law.presence))


class SymbolMechanism(SparseMechanism):
    """A sparse mechanism whose reports send plus, minus or nothing for each entry."""

    @property
    @abstractmethod
    def probabilities(self) -> SymbolLaw:
        """The law in use, for one entry."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The largest number of entries, stubs included, for which something is sent."""

    @property
    def sends_every_entry(self) -> bool:
        """Whether a sign is sent for every entry, so that nothing is never sent."""
        return False

    @abstractmethod
    def stream(self, rng: Source) -> EntryStream:
        """Draw the secrets of a vector that comes entry by entry; return what answers them."""

    @abstractmethod
    def resumed(self, state: Sequence[int]) -> EntryStream:
        """Return the stream that continues from a saved state."""

    @abstractmethod
    def can_have_saved(self, state: Any, gone: int) -> bool:
        """Return whether a stream that has seen ``gone`` entries can be in this state."""

    def facts(self) -> dict[str, Any]:
        """Return the general facts, the probabilities and both errors."""
        law = self.probabilities
        return super().facts() | {
            "padded_dimension": self.padded_dimension,
            "p_true": law.p_true,
            "p_reverse": law.p_reverse,
            "p_false": law.p_false,
            "mse_value": law.mse("value", self.dimension),
            "mse_frequency": law.mse("frequency", self.dimension),
        }
