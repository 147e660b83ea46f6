"""What Collision and CoCo share: a public hash of the symbols, one bucket sent, its law."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, log
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.law import Law
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.hashing import LinearHash
from sfumato.mechanisms.sparse.mechanism import SparseMechanism
from sfumato.randomness import Source

__all__ = ["BucketLaw", "HashedVector", "step_over"]

LARGEST_DIMENSION: Final = 1 << 20
LARGEST_RANGE: Final = 1 << 15
LARGEST_MATRIX: Final = 1 << 27
LISTED_SEEDS: Final = 1 << 20
POOL_BITS: Final = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BucketLaw:
    """What a bucket says of one entry (numbers, or arrays of them for several hash ranges).

    Parameters
    ----------
    sparsity
        Non-zeros of the padded vector.
    p_true, p_opposite, p_false
        Probability that the bucket sent is that of a symbol: the sign of a non-zero entry, its
        opposite, and either sign of a zero entry.
    contrast
        p_true - p_opposite, without cancellation.
    presence
        p_true + p_opposite - 2 p_false, without cancellation.
    meet_zero, meet_held
        Probability that the bucket sent is that of both signs, at a zero and a non-zero entry.

    """

    sparsity: int
    p_true: Any
    p_opposite: Any
    p_false: Any
    contrast: Any
    presence: Any
    meet_zero: Any
    meet_held: Any

    def value_variances(self) -> tuple[Any, Any]:
        """Return the variance of the value estimate at a zero and at a non-zero entry."""
        scale = self.contrast**2
        held = self.p_true + self.p_opposite - 2 * self.meet_held
        return 2 * (self.p_false - self.meet_zero) / scale, held / scale - 1

    def presence_variances(self) -> tuple[Any, Any]:
        """Return the variance of the presence estimate at a zero and at a non-zero entry."""
        if not np.all(self.presence > 0):
            return inf, inf
        scale, absent, present = self.presence**2, 2 * self.p_false, self.p_true + self.p_opposite
        return (
            (absent + 2 * self.meet_zero - absent**2) / scale,
            (present + 2 * self.meet_held - present**2) / scale,
        )

    def mse(self, estimate: str, entries: int) -> Any:
        """Return the total variance over so many real entries, s of them non-zero."""
        both = self.value_variances() if estimate == "value" else self.presence_variances()
        return (entries - self.sparsity) * both[0] + self.sparsity * both[1]


def step_over(choice: Ints, ordered: Ints, repeated: NDArray[np.bool_], end: int) -> Ints:
    """Return the free number of this rank; those in the ordered rows are taken (some repeat)."""
    for taken, again in zip(ordered, repeated, strict=True):
        choice = choice + (choice >= np.where(again, end, taken))
    return choice


@dataclass(frozen=True)
class HashedVector(SparseMechanism):
    """Hashes signed entries into a few buckets and sends a bucket and the hash."""

    dimension: int
    sparsity: int
    hash_range: int | None = None
    exact_sparsity: bool = False
    goal: Literal["value", "frequency"] = "value"
    paper: bool = False
    seed_bits: int = 64

    size: ClassVar[int] = 1
    """Symbols that one person sends."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        super().__post_init__()
        self._check_vectors(LARGEST_DIMENSION)
        if not isinstance(self.paper, (bool, np.bool_)):
            raise ConfigurationError(f"paper is {self.paper!r}; true or false is expected.")
        self._whole("seed_bits", 1, 64)
        if self.hash_range is not None:
            self._whole("hash_range", self.least_range, LARGEST_RANGE)
            if self.hash_range % self.range_step:
                raise ConfigurationError(
                    f"hash_range is {self.hash_range}; {self.name} needs an even one."
                )
        elif self.least_range + 2 > LARGEST_RANGE:
            raise ConfigurationError(
                f"sparsity is {self.sparsity}; hashes have up to {LARGEST_RANGE} buckets, too few."
            )
        if self.family.length * self.family.symbols > LARGEST_MATRIX:
            raise ConfigurationError(
                f"dimension is {self.dimension} and sparsity {self.sparsity}; a hash family for "
                "them is too large."
            )

    # ---- sizes and probabilities -----------------------------------------------------------

    range_step: ClassVar[int] = 1
    """What the hash range is a multiple of."""

    @property
    @abstractmethod
    def least_range(self) -> int:
        """The fewest buckets that can be of use."""

    @property
    @abstractmethod
    def _printed_range(self) -> int:
        """The hash range of the paper."""

    @property
    @abstractmethod
    def _symbols(self) -> int:
        """How many symbols are hashed, stubs included."""

    @abstractmethod
    def _ideal(self, ranges: NDArray[np.float64]) -> BucketLaw:
        """Return the law at these hash ranges, before anything is rounded to integers."""

    @property
    @abstractmethod
    def probabilities(self) -> BucketLaw:
        """The law in use, from the integers the sampler uses."""

    @cached_property
    def buckets(self) -> int:
        """The hash range in use: as given, as printed, or the one of least exact error."""
        if self.hash_range is not None:
            return self.hash_range
        if self.paper:
            return min(max(self._printed_range, self.least_range), LARGEST_RANGE)
        ranges = np.arange(self.least_range, LARGEST_RANGE + 1, self.range_step)
        errors = self._ideal(ranges.astype(np.float64)).mse(self.goal, self.dimension)
        return int(ranges[np.argmin(errors)])

    @cached_property
    def family(self) -> LinearHash:
        """The hash family: any s + 2 symbols are independent.

        With an input's s, one more makes supports exact, two more variances and covariances.
        """
        strength = min(self.sparsity + 2, self._symbols)
        return LinearHash(self._symbols, self.buckets, strength, self.seed_bits)

    # ---- the law ---------------------------------------------------------------------------

    def publics(self) -> Sequence[int]:
        """Return all seeds (few seeds only)."""
        if self.family.seeds > LISTED_SEEDS:
            raise ConfigurationError(
                f"there are {self.family.seeds} seeds; they are listed up to {LISTED_SEEDS}."
            )
        return range(self.family.seeds)

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the law over the buckets, given a seed (by default zero)."""
        seed = np.array([public or 0], dtype=np.uint64)
        encoded = self.encode(np.asarray([value]))
        hashed = self._hashed(encoded, self.family.vectors(seed))[:, 0]
        outputs = np.empty(self.buckets, dtype=self.report_dtype)
        outputs["seed"] = seed[0]
        outputs["bucket"] = np.arange(self.buckets)
        chances = self._chances(hashed.tolist())
        denominator = self._denominator
        numerators = tuple(int(chance * denominator) for chance in chances)
        return Law(outputs, numerators, denominator)

    @property
    @abstractmethod
    def _denominator(self) -> int:
        """What all probabilities are multiples of the inverse of, whatever the hash."""

    @abstractmethod
    def _chances(self, hashed: Sequence[int]) -> list[Fraction]:
        """Return the probability of each bucket, given the buckets of the input's symbols."""

    def log_likelihood(self, reports: NDArray[Any], value: Any) -> NDArray[np.float64]:
        """Return log P[report | value] for each report, given its hash."""
        self.checked(reports)
        encoded = np.repeat(self.encode(np.asarray([value])), len(reports))
        hashed = self._hashed(encoded, self.family.vectors(reports["seed"]))
        found: dict[tuple[int, ...], list[Fraction]] = {}
        logs = np.empty(len(reports))
        for index, (row, bucket) in enumerate(
            zip(hashed.T.tolist(), reports["bucket"].tolist(), strict=True)
        ):
            chances = found.setdefault(tuple(row), []) or self._chances(row)
            found[tuple(row)] = chances
            logs[index] = log(chances[bucket])
        return logs

    # ---- reports ---------------------------------------------------------------------------

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The seed of the hash, and a bucket."""
        bucket = np.min_scalar_type(self.buckets - 1).newbyteorder("<")
        return np.dtype([("seed", self.family.seed_dtype), ("bucket", bucket)])

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which reports have a seed and a bucket in range."""
        good = reports["bucket"] < self.buckets
        if self.family.seeds < 1 << 64:
            good &= reports["seed"] < self.family.seeds
        return good

    @property
    def _pooled(self) -> bool:
        """Whether seeds are so few that reports are counted by seed and bucket first."""
        return self.family.seeds <= 1 << POOL_BITS

    @property
    def chunk(self) -> int:
        """A few megabytes at a time; more if reports share their seeds."""
        people = max(16, (1 << 21) // (self.family.length + 4 * self.sparsity))
        return max(people, 4 * self.family.seeds) if self._pooled else people

    # ---- the device ------------------------------------------------------------------------

    @abstractmethod
    def _hashed(self, encoded: NDArray[Any], vectors: NDArray[Any]) -> Ints:
        """Return the buckets of each person's symbols, one column for each person."""

    @abstractmethod
    def _choose(self, hashed: Ints, rng: Source) -> Ints:
        """Return the bucket to send, by coins whose number does not depend on the data."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        seeds = self.family.draw(len(encoded), rng)
        hashed = self._hashed(encoded, self.family.vectors(seeds))
        reports["seed"] = seeds
        reports["bucket"] = self._choose(hashed, rng)

    def _one_of_each(self, sizes: Sequence[int], which: Ints, rng: Source) -> Ints:
        """Return a number below sizes[which], having drawn one below each of the sizes."""
        drawn = np.zeros(which.size, dtype=np.int64)
        for index, size in enumerate(sizes):
            number = rng.below(size, which.size)
            np.copyto(drawn, number, where=which == index)
        return drawn

    # ---- the server ------------------------------------------------------------------------

    @property
    @abstractmethod
    def _rows(self) -> int:
        """How many symbols the server hashes."""

    @abstractmethod
    def _supported(self, remainders: NDArray[Any]) -> list[NDArray[np.bool_]]:
        """Return which symbols are in the bucket, given what lies between, modulo t."""

    @abstractmethod
    def _pool_counts(self, hashed: Ints, counts: Ints) -> Ints:
        """Return the sums of the symbols (rows), given counts by seed (columns) and bucket."""

    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        if self._pooled and len(reports) >= self.family.seeds:
            return self._pool_sums(reports)
        sums = np.zeros(2 * self.dimension, dtype=np.int64)
        block = max(16, (1 << 18) // self._rows)  # remainders stay in cache
        for start in range(0, len(reports), block):
            part = reports[start : start + block]
            vectors = self.family.vectors(part["seed"])
            remainders = self.family.remainders(self._rows, vectors, part["bucket"])
            found = [np.packbits(bits, axis=1) for bits in self._supported(remainders)]
            counts = [np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for bits in found]
            sums += np.concatenate(counts)
        return sums.reshape(self.tally_shape)

    def _pool_sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        seeds, t = self.family.seeds, self.buckets
        pairs = reports["seed"].astype(np.int64) * t + reports["bucket"]
        counts = np.bincount(pairs, minlength=seeds * t).reshape(seeds, t)
        sums = np.zeros(self.tally_shape, dtype=np.int64)
        block = max(16, (1 << 18) // self._rows)
        for start in range(0, seeds, block):
            some = np.arange(start, min(start + block, seeds), dtype=np.uint64)
            vectors = self.family.vectors(some)
            none = np.zeros(some.size, dtype=np.int64)
            hashed = self.family.remainders(self._rows, vectors, none).astype(np.int64) % t
            sums += self._pool_counts(hashed, counts[start : start + block]).reshape(sums.shape)
        return sums

    def facts(self) -> dict[str, Any]:
        """Return the sizes and the probabilities, too."""
        law = self.probabilities
        return super().facts() | {
            "hash_range": self.buckets,
            "padded_dimension": self.padded_dimension,
            "p_true": law.p_true,
            "p_false": law.p_false,
            "mse_mean": law.mse("value", self.dimension),
        }
