"""Keys with values that people hold, as sparse vectors, and the estimates from their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from sfumato import frames
from sfumato.arrays import Array, Floats
from sfumato.core.answers import Answers, columns_of
from sfumato.core.domain import Domain, Label
from sfumato.core.estimate import Covariance, Estimate, FrequencyEstimate
from sfumato.core.field_checks import check_number
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import Quantity
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.sparse.data.holdings import Holdings, read_holdings, vectors_of
from sfumato.mechanisms.sparse.data.joint import ConditionalMean, Joint
from sfumato.mechanisms.sparse.sparse_mechanism import SparseInput, SparseMechanism, tells_presence
from sfumato.mechanisms.sparse.subset.signed_subset import SignedSubset
from sfumato.randomness import Source

__all__ = ["KeyValueEstimate", "KeyValueTruth", "KeyValues"]


COIN: Final = 1 << 32
LARGEST_BIAS: Final = 1e-3
HOLDERS: Final = Quantity("share", "Share of holders", "%", 100.0)
PER_PERSON: Final = Quantity("mean", "Value per person")
OF_HOLDERS: Final = Quantity("mean", "Mean of holders", from_zero=False)


@dataclass(frozen=True)
class KeyValues:
    """Keys that people hold, each with a value, such as films with ratings or apps with hours.

    The device keeps at most s keys, drawn uniformly without looking at them, and rounds each value
    to plus or minus by an unbiased coin: a value v in [-1, 1] becomes plus with probability (1 +
    v)/2, rounded to a multiple of 2^-32. The result is a sparse vector of -1, 0 and 1, and only the
    mechanism's report of it leaves the device, not how many keys were dropped.

    Parameters
    ----------
    mechanism
        A mechanism for signed sparse vectors. ExSub with goal "frequency" is nearly the best for
        both frequencies and values; Concord at its best size for values does not tell how many
        people hold a key.
    keys
        The public list of keys.
    low, high
        The public range of the values.

    Error
    -----
    Estimates are unbiased, and intervals cover the truth, for the keys that were kept: a person
    with k > s keys keeps each of them with probability s/k.

    Examples
    --------
    >>> from sfumato import ExSub, seeded
    >>> mechanism = ExSub(epsilon=4.0, dimension=3, sparsity=2, goal="frequency")
    >>> ratings = KeyValues(mechanism, ("Alien", "Brazil", "Casablanca"), low=1, high=5)
    >>> people = [{"Alien": 5, "Casablanca": 4}] * 3000 + [{"Brazil": 2}] * 1000 + [{}] * 1000
    >>> tally = mechanism.tally(ratings.randomize(people, seeded(1)))
    >>> found = ratings.estimate(tally)
    >>> found.frequency.values.round(1).tolist()
    [0.6, 0.2, 0.6]
    >>> found.conditional_mean.values.round().tolist()
    [5.0, 2.0, 4.0]

    """

    mechanism: SparseMechanism
    keys: int | tuple[Label, ...]
    low: float = -1.0
    high: float = 1.0

    name: ClassVar[str] = "key_values"

    def __post_init__(self) -> None:
        """Raise an error unless keys, range and mechanism fit together."""
        check_keys(self.mechanism, self.domain, "keys")
        object.__setattr__(self, "keys", self.domain.items)
        if not isinstance(self.mechanism, SparseMechanism):
            raise ConfigurationError(
                f"mechanism is {self.mechanism.name}; it sends no signs, and values need them."
            )
        off = getattr(self.mechanism, "pool_bias", 0.0)
        if off > LARGEST_BIAS:
            raise ConfigurationError(
                f"seed_bits is {getattr(self.mechanism, 'seed_bits', 0)}; so few hashes leave "
                f"answers off by about {off:.2g} however many people report, which the intervals "
                "here do not know of: use 32 or more."
            )
        for name in ("low", "high"):
            check_number(name, getattr(self, name))
        if not self.low < self.high:
            raise ConfigurationError(
                f"low is {self.low} and high is {self.high}; low must be below high."
            )

    @cached_property
    def domain(self) -> Domain:
        """The keys and their codes."""
        return Domain.of(self.keys)

    def configuration(self) -> dict[str, Any]:
        """Return the public configuration beside the mechanism, as plain data."""
        return {"form": self.name, "keys": self.keys, "low": self.low, "high": self.high}

    # ---- the device ------------------------------------------------------------------------

    def read(
        self, data: Any, person: str = "person", key: str = "key", value: str = "value"
    ) -> Holdings:
        """Return who holds which keys, from a table with a row for each, or a mapping per person.

        In a table, a row without a key is a person who holds none.
        """
        holdings = read_holdings(data, self.domain, person, key, value)
        wrong = np.flatnonzero((holdings.value < self.low) | (holdings.value > self.high))
        if wrong.size:
            row = wrong[0]
            raise InputError(
                f"the value of key {self.domain.labels[int(holdings.key[row])]!r} is "
                f"{holdings.value[row]:g}; values lie in {self.low:g}..{self.high:g}."
            )
        return holdings

    def kept(self, held: Holdings, rng: Source) -> Holdings:
        """Return at most s keys of each person, drawn without looking at them."""
        return held.at_most(self.mechanism.sparsity, rng)

    def vectors(self, kept: Holdings, rng: Source) -> Array:
        """Return one vector of -1, 0 and 1 per person, with values rounded at random."""
        share = (kept.value - self.low) / (self.high - self.low)
        plus = rng.rational(np.rint(share * COIN).astype(np.int64), COIN, share.size)
        signs = np.where(plus, 1, -1).astype(np.int8)
        return vectors_of(kept, signs, self.mechanism.sparsity)

    def randomize(
        self,
        data: Any,
        rng: Source,
        person: str = "person",
        key: str = "key",
        value: str = "value",
    ) -> Array:
        """Return one report for each person."""
        kept = self.kept(self.read(data, person, key, value), rng)
        return self.mechanism.randomize(self.vectors(kept, rng), rng)

    # ---- the server ------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> KeyValueEstimate:
        """Return the estimated frequency, mean and conditional mean of each key."""
        mechanism, law = self.mechanism, self.mechanism.probabilities
        if not tells_presence(law):
            raise ConfigurationError(
                f"{mechanism.name} as configured sends every key equally often, held or not; "
                'goal "frequency" chooses a size that tells them apart.'
            )
        mechanism.estimate(tally)  # raises an error unless the tally belongs to this mechanism
        joint = Joint.of(law, tally.n, tally.sums)
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        common = (tuple(self.domain.labels), tally.n, mechanism.guarantee)
        mean = half * joint.value + middle * joint.share
        spread = Covariance(joint.variance_of(half, middle), joint=False)
        ratio = Covariance(half**2 * joint.ratio_variance(), joint=False)
        return KeyValueEstimate(
            frequency=self._frequency(joint, tally),
            mean=Estimate(mean, spread, *common, quantity=PER_PERSON),
            conditional_mean=ConditionalMean(
                middle + half * joint.ratio,
                ratio,
                *common,
                joint=joint,
                low=self.low,
                high=self.high,
                quantity=OF_HOLDERS,
            ),
        )

    def _frequency(self, joint: Joint, tally: Tally) -> Estimate:
        labels, promise = tuple(self.domain.labels), self.mechanism.guarantee
        noise = Covariance(joint.variance_of(0.0, 1.0), joint=False)
        if not isinstance(self.mechanism, SignedSubset):
            return Estimate(joint.share, noise, labels, tally.n, promise, quantity=HOLDERS)
        law = self.mechanism.probabilities  # a subset contains at most one sign of a key
        return FrequencyEstimate(
            joint.share,
            noise,
            labels,
            tally.n,
            promise,
            counts=tally.sums.sum(axis=0),
            p=law.p_true + law.p_reverse,
            q=2 * law.p_false,
            quantity=HOLDERS,
        )

    def truth(self, kept: Holdings) -> KeyValueTruth:
        """Return the true quantities that the estimates estimate, for these people."""
        size = self.domain.size
        holders = np.bincount(kept.key, minlength=size)
        total = np.bincount(kept.key, weights=kept.value, minlength=size)
        some = np.where(holders > 0, holders, np.nan)
        return KeyValueTruth(holders / kept.people, total / kept.people, total / some)


@dataclass(frozen=True, eq=False)
class KeyValueTruth:
    """The true frequency, mean and conditional mean of each key; nan if nobody holds it."""

    frequency: Floats
    mean: Floats
    conditional_mean: Floats


@dataclass(frozen=True, eq=False, repr=False)
class KeyValueEstimate:
    """Three estimates for each key, from the same reports."""

    frequency: Estimate
    """The share of people who hold the key."""
    mean: Estimate
    """The sum of the key's values divided by the number of *all* people."""
    conditional_mean: ConditionalMean
    """The mean of the key's values among those who hold it."""
    names: Sequence[str] = field(default=("frequency", "mean", "conditional_mean"), repr=False)

    @property
    def n(self) -> int:
        """How many reports were used."""
        return self.frequency.n

    @property
    def guarantee(self) -> Guarantee:
        """What was promised to the people who sent the reports, for all three answers together."""
        return self.frequency.guarantee

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The three estimates by name."""
        return {name: getattr(self, name) for name in self.names}

    def answers(self, level: float = 0.95, *, band: bool = False) -> dict[str, Answers]:
        """Return the three answers by name, with their intervals, as tables."""
        return {
            name: replace(
                estimate.answers(level, band=band), what="key", question=estimate.quantity.noun
            )
            for name, estimate in self.estimates.items()
        }

    def columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        """Return keys, answers and intervals as plain columns."""
        return columns_of(self.answers(level))

    def to_frame(self, backend: str = "pandas", level: float = 0.95) -> Any:
        """Return the answers with intervals as a pandas, polars or pyarrow table."""
        return frames.table(self.columns(level), backend)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.answers().values()))


def check_keys(mechanism: SparseInput, domain: Domain, name: str) -> None:
    """Raise an error unless a mechanism for sparse vectors has one entry for each key."""
    if not isinstance(mechanism, SparseInput):
        raise ConfigurationError(
            f"mechanism is {mechanism!r}; a mechanism for sparse vectors is expected."
        )
    if mechanism.dimension != domain.size:
        raise MismatchError(
            f"there are {domain.size} {name} and the mechanism has dimension "
            f"{mechanism.dimension}; one entry for each is expected."
        )
