"""The base of Collision and CoCo: a public hash of the symbols, one bucket sent, its law."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import log, sqrt
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.law import Law
from sfumato.core.size_ranges import SizeRange
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.hashed.bucket_law import BucketLaw, Buckets
from sfumato.mechanisms.sparse.hashed.hash_family import HashFamily, StretchedHash
from sfumato.mechanisms.sparse.hashed.linear_hash import LinearHash, family_for
from sfumato.mechanisms.sparse.hashed.pool import counted, supports
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism
from sfumato.randomness import Source

__all__ = ["HashedVector"]

LARGEST_DIMENSION: Final = 1 << 20
LARGEST_RANGE: Final = 1 << 15
LISTED_SEEDS: Final = 1 << 20
POOL_BITS: Final = 16


@dataclass(frozen=True)
class HashedVector(SparseMechanism):
    """A mechanism that hashes signed entries into buckets, and sends a bucket and the hash.

    Parameters
    ----------
    seed_bits
        The number of bits of a hash's seed. If it is 16 or less, people share a pool of 2^seed_bits
        hashes: reports are counted by hash and bucket, for any dimension, and decoded once. This
        costs no privacy, but estimates have an error of ``pool_bias`` that more reports do not
        reduce.

    Guarantee
    ---------
    epsilon-LDP for the whole vector and for *every* hash: the hash is drawn without looking at the
    vector, and a bucket's weight lies between 1 and e^epsilon, conflicts included. Nothing is
    assumed about the hash, so a pool of hashes is just as private. (For shuffled reports, only the
    bounds for every hash hold with a pool; those that average over conflicts need a separate hash
    for each report.)

    Error
    -----
    In a pool of N hashes the share of hashes in which two symbols share a bucket differs from 1/t
    by chance. Estimates then have an error of ``pool_bias``, about sqrt(2 s/(t N)) if all people
    have the same vector, less if they differ, and exactly ``pool_biases(value)`` in the pool in
    use.

    """

    dimension: int
    sparsity: int
    hash_range: int | None = None
    exact_sparsity: bool = False
    goal: Literal["value", "frequency"] = "value"
    paper: bool = False
    seed_bits: int = 64

    size: ClassVar[int] = 1
    """The number of symbols that one person sends."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all sizes are allowed."""
        super().__post_init__()
        self._check_vectors(LARGEST_DIMENSION)
        self._check_flag("paper")
        self._check_whole("seed_bits", 1, 64)
        if self.hash_range is not None:
            self._check_whole("hash_range", self.least_range, LARGEST_RANGE)
            if self.hash_range % self.range_step:
                raise ConfigurationError(
                    f"hash_range is {self.hash_range}; {self.name} needs an even one."
                )
        elif self.least_range + 2 > LARGEST_RANGE:
            raise ConfigurationError(
                f"sparsity is {self.sparsity}; hashes have up to {LARGEST_RANGE} buckets, too few."
            )

    # ---- sizes and probabilities -----------------------------------------------------------

    range_step: ClassVar[int] = 1
    """The hash range must be a multiple of this number."""

    @property
    @abstractmethod
    def least_range(self) -> int:
        """The smallest useful number of buckets."""

    @property
    @abstractmethod
    def _printed_range(self) -> int:
        """The hash range printed in the paper."""

    @property
    @abstractmethod
    def _symbols(self) -> int:
        """The number of symbols that are hashed, padding included."""

    @abstractmethod
    def _ideal(self, ranges: Floats) -> BucketLaw:
        """Return the law at these hash ranges, before rounding to integers."""

    @property
    @abstractmethod
    def probabilities(self) -> BucketLaw:
        """The law in use, computed from the integers of the sampler."""

    @cached_property
    def buckets(self) -> int:
        """The number of buckets: as given, as printed, or the one of least exact error."""
        if self.hash_range is not None:
            return self.hash_range
        if self.paper:
            return min(max(self._printed_range, self.least_range), LARGEST_RANGE)
        ranges = np.arange(self.least_range, LARGEST_RANGE + 1, self.range_step)
        errors = self._ideal(ranges.astype(np.float64)).mse(self.goal, self.dimension)
        return int(ranges[np.argmin(errors)])

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the numbers of buckets, unless one was given or the printed one is used."""
        if self.hash_range is None and not self.paper:
            yield SizeRange("hash_range", self.least_range, LARGEST_RANGE, self.range_step)

    @cached_property
    def family(self) -> HashFamily:
        """The hash family, under which any s + 2 symbols are independent.

        Independence of an input's s symbols and one more makes the support probabilities exact; two
        more make variances and covariances exact. If the seed is long enough to number all hashes
        of an exactly independent family, that family is used.
        """
        strength = min(self.sparsity + 2, self._symbols)
        return family_for(self._symbols, self.buckets, strength, self.seed_bits)

    def _independent(self, symbols: int) -> bool:
        """Return whether the buckets of any ``symbols`` symbols are exactly independent."""
        family = self.family
        return isinstance(family, LinearHash) and family.strength >= min(symbols, family.symbols)

    @property
    def _random(self) -> bool:
        """Whether there are enough hashes for averages over them to match random functions."""
        return isinstance(self.family, StretchedHash) and self.family.seeds >= 1 << 32

    # ---- the law ---------------------------------------------------------------------------

    def publics(self) -> Sequence[int]:
        """Return all seeds; raise ConfigurationError if there are too many to list."""
        return self.family.listed(LISTED_SEEDS)

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over the buckets, given a seed (by default 0)."""
        return self._laws(value, np.array([public or 0], dtype=np.uint64))[0]

    def laws(self, value: Any) -> list[Law]:
        """Return the laws for all seeds, which are hashed together."""
        return self._laws(value, np.array(self.publics(), dtype=np.uint64))

    def _laws(self, value: Any, seeds: NDArray[np.uint64]) -> list[Law]:
        encoded = self.encode(np.asarray([value]))
        hashed = self._hashed(np.repeat(encoded, seeds.size), seeds)
        columns = [*map(tuple, hashed.T.tolist())]
        outputs = np.empty((seeds.size, self.buckets), dtype=self.report_dtype)
        outputs["seed"] = seeds[:, None]
        outputs["bucket"] = np.arange(self.buckets)
        denominator = self._denominator
        numerators = {
            column: tuple(int(chance * denominator) for chance in self._chances(column))
            for column in set(columns)
        }
        rows = zip(outputs, columns, strict=True)
        return [Law(row, numerators[column], denominator) for row, column in rows]

    @property
    @abstractmethod
    def _denominator(self) -> int:
        """A common denominator of all probabilities, for every hash."""

    @abstractmethod
    def _chances(self, hashed: Sequence[int]) -> list[Fraction]:
        """Return the probability of each bucket, given the buckets of the input's symbols."""

    def log_likelihood(self, reports: Array, value: Any) -> Floats:
        """Return log P[report | value, hash] for each report."""
        self.checked(reports)
        encoded = np.repeat(self.encode(np.asarray([value])), len(reports))
        hashed = self._hashed(encoded, reports["seed"])
        cached: dict[tuple[int, ...], list[Fraction]] = {}
        logs = np.empty(len(reports))
        for index, (row, bucket) in enumerate(
            zip(hashed.T.tolist(), reports["bucket"].tolist(), strict=True)
        ):
            chances = cached.setdefault(tuple(row), []) or self._chances(row)
            cached[tuple(row)] = chances
            logs[index] = log(chances[bucket])
        return logs

    # ---- reports ---------------------------------------------------------------------------

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: the seed of the hash, and a bucket."""
        bucket = np.min_scalar_type(self.buckets - 1).newbyteorder("<")
        return np.dtype([("seed", self.family.seed_dtype), ("bucket", bucket)])

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports whose seed and bucket are in range."""
        good = reports["bucket"] < self.buckets
        if self.family.seeds < 1 << 64:
            good &= reports["seed"] < self.family.seeds
        return good

    @property
    def chunk(self) -> int:
        """How many people are handled at once: about a megabyte."""
        return max(16, (1 << 16) // self.sparsity)

    # ---- the device ------------------------------------------------------------------------

    @abstractmethod
    def _hashed(self, encoded: Array, seeds: Array) -> Buckets:
        """Return the buckets of each person's symbols, one column for each person."""

    @abstractmethod
    def _choose(self, hashed: Buckets, rng: Source) -> Buckets:
        """Return each person's bucket to send; how many coins it takes ignores the data."""

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        seeds = self.family.draw(len(encoded), rng)
        reports["seed"] = seeds
        reports["bucket"] = self._choose(self._hashed(encoded, seeds), rng)

    # ---- the server ------------------------------------------------------------------------

    @property
    @abstractmethod
    def _rows(self) -> int:
        """The number of symbols that the server hashes."""

    @abstractmethod
    def _targets(self, buckets: Array) -> list[Array]:
        """Return the buckets that support each kind of symbol, given the buckets that were sent."""

    def counted(self, reports: Array) -> Tally:
        """Return the tally of valid reports, all at once."""
        return Tally(len(reports), self._sums(reports))

    def _sums(self, reports: Array) -> Ints:
        if self._pooled and len(reports) >= 16 * self.family.seeds:
            return self._pool_supports(counted(reports, self.family.seeds, self.buckets))
        targets = self._targets(reports["bucket"])
        return self.family.counts(self._rows, reports["seed"], targets).reshape(self.tally_shape)

    # ---- a pool of seeds -------------------------------------------------------------------

    @property
    def _pooled(self) -> bool:
        """Whether there are so few seeds that reports are first counted by seed and bucket."""
        return self.family.seeds <= 1 << POOL_BITS

    def _pool_supports(self, weights: Array) -> Array:
        """Return the support of each signed entry, given a weight for each seed and bucket."""
        indices = self._targets(np.arange(self.buckets))
        return supports(self.family, self._rows, indices, weights).reshape(self.tally_shape)

    @abstractmethod
    def _weights(self, hashed: Buckets) -> Floats:
        """Return the probability of each bucket (columns) for each person (rows)."""

    @abstractmethod
    def _between(self) -> tuple[float, float]:
        """Return the variance between hashes, for a zero and for a non-zero entry.

        It is the variance, over random hashes, of the mean estimate within one hash.
        """

    def pool_biases(self, value: Any) -> Floats:
        """Return the exact bias of each entry in this pool of hashes if everybody has this value.

        It is the limit of the estimates for many people, minus the truth; it comes from pairs of
        symbols that share a bucket more or less often than once in t hashes of the pool. For people
        with different values the biases are averaged. It needs a small family or pool of hashes.
        """
        if not self._pooled:
            raise ConfigurationError(
                f"there are {self.family.seeds} seeds; those of a pool are at most 2^{POOL_BITS}."
            )
        seeds, law = np.arange(self.family.seeds), self.probabilities
        encoded = self.encode(np.asarray([value]))
        weights = self._weights(self._hashed(np.repeat(encoded, seeds.size), seeds))
        plus, minus = self._pool_supports(weights) / seeds.size
        if self.goal == "value":
            limit = (plus - minus) / law.contrast
        else:
            limit = (plus + minus - 2 * law.p_false) / law.presence
        return np.asarray(limit - self.truth([value]))

    @cached_property
    def pool_bias(self) -> float:
        """The typical bias of an entry that remains for any number of people with the same value.

        It is the root mean square over entries and over pools of this many random hashes: zero if
        all hashes of an exactly independent family are used, and negligible for long seeds.
        """
        if isinstance(self.family, LinearHash):
            return 0.0
        absent, present = self._between()
        total = (self.dimension - self.sparsity) * absent + self.sparsity * present
        return sqrt(total / self.dimension / self.family.seeds)

    def _estimate(self, tally: Tally) -> Estimate:
        estimate = super()._estimate(tally)
        # This is the width for people with the same value; the biases of different values differ.
        within = Covariance(estimate.covariance.diagonal + self.pool_bias**2, joint=False)
        return replace(estimate, covariance=within)

    def facts(self) -> dict[str, Any]:
        """Return the general facts, the sizes and the probabilities."""
        law = self.probabilities
        pool = {"pool_bias": self.pool_bias} if self._pooled else {}
        return (
            super().facts()
            | pool
            | {
                "hash_range": self.buckets,
                "padded_dimension": self.padded_dimension,
                "p_true": law.p_true,
                "p_false": law.p_false,
                "mse_mean": law.mse("value", self.dimension),
            }
        )
