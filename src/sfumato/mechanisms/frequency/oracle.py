"""The base of frequency oracles: a domain, two support probabilities, estimates, intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Ints
from sfumato.core import intervals
from sfumato.core.contrast import Contrasts, Cover, Covering, alike, favoured
from sfumato.core.domain import Domain, Label
from sfumato.core.doubt import Doubt
from sfumato.core.estimate import Covariance, FrequencyEstimate
from sfumato.core.exact import exp_below
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.errors import MismatchError
from sfumato.randomness import ONE, Source

__all__ = ["FrequencyOracle", "bit_counts", "kept_and_anywhere", "kept_threshold"]


def kept_threshold(epsilon: float, size: int | Fraction) -> int:
    """Return the probability, in units of 2^-64, of keeping a symbol in randomized response.

    A symbol that is not kept is drawn uniformly from ``size`` symbols. If k is the probability of
    keeping it, the true symbol has probability k + (1-k)/size and any other (1-k)/size, a ratio of
    1 + size k/(1-k) <= e^epsilon; k is rounded down. If w of d symbols count as true, the size is
    d/w.
    """
    gain = exp_below(epsilon) - 1
    return int(ONE * gain / (gain + size))


def kept_and_anywhere(
    histogram: Ints, kept: int, size: int, draw: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return how many people keep each symbol, and where the symbols of all others fall.

    ``kept`` is the probability of keeping a symbol, in units of 2^-64.
    """
    held = np.asarray(histogram, dtype=np.int64)
    keeping = draw.binomial(held, kept / ONE)
    others = int(held.sum()) - int(keeping.sum())
    return keeping, draw.multinomial(others, np.full(size, 1 / size))


def bit_counts(bits: NDArray[np.uint8], size: int) -> Ints:
    """Return how often each of ``size`` bits is set in rows of bytes, lowest bit first."""
    unpacked = np.unpackbits(bits, axis=1, count=size, bitorder="little")
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(unpacked), 255):  # a byte can count up to 255
        counts += np.add.reduce(unpacked[start : start + 255], axis=0, dtype=np.uint8)
    return counts


@dataclass(frozen=True)
class FrequencyOracle(Mechanism):
    """A mechanism that estimates the share of people who hold each item of a domain.

    A report *supports* some items. The report of somebody who holds an item supports it with
    probability p, any other report with probability q < p, so (count/n - q)/(p - q) is an unbiased
    share.

    Parameters
    ----------
    domain
        Number of items, or their labels.

    """

    domain: int | tuple[Label, ...]

    def __post_init__(self) -> None:
        """Check the domain, and keep it as plain data."""
        super().__post_init__()
        object.__setattr__(self, "domain", Domain.of(self.domain).items)

    @cached_property
    def items(self) -> Domain:
        """The domain as an object that encodes values."""
        return Domain(self.domain)

    @property
    def size(self) -> int:
        """How many items there are."""
        return self.items.size

    @property
    @abstractmethod
    def supports(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q that a holder's and anybody else's report supports an item."""

    @cached_property
    def p(self) -> float:
        """The probability that a holder's report supports the item."""
        return float(self.supports[0])

    @cached_property
    def q(self) -> float:
        """The probability that anybody else's report supports the item."""
        return float(self.supports[1])

    @cached_property
    def gap(self) -> float:
        """The difference p - q, computed without cancellation."""
        return float(self.supports[0] - self.supports[1])

    @property
    def estimated(self) -> int:
        """The number of items."""
        return self.size

    def variance(self, share: float | Fraction = 0.0) -> float:
        """Return n times the variance of an estimated share, for an item with this true share."""
        p, q = self.supports
        exact = Fraction(share)
        return float((exact * p * (1 - p) + (1 - exact) * q * (1 - q)) / (p - q) ** 2)

    @property
    def mse(self) -> float:
        """n times the mean squared error of a share, averaged over the domain (share 1/d)."""
        return self.variance(Fraction(1, self.size))

    def facts(self) -> dict[str, Any]:
        """Return the general facts, support probabilities, and the accuracy for 10,000 people."""
        return super().facts() | {
            "p": self.p,
            "q": self.q,
            "variance": self.variance(0.0),
            "variance_at_one_tenth": self.variance(0.1),
            "half_width_at_10000": intervals.z_score(0.95) * sqrt(self.variance(0.0) / 10_000),
        }

    @property
    def influence(self) -> float:
        """The most by which a report changes the estimated number of holders: 1/(p - q)."""
        return 1 / self.gap

    @abstractmethod
    def meets(self, count: int) -> Fraction:
        """Return the probability that a report with no own item supports ``count`` given items.

        Holding an item makes the reports that support it :attr:`worst_ratio` times as likely and
        changes nothing else, up to a common factor; all oracles here have this form.
        """

    @property
    def meets_all(self) -> Fraction:
        """A lower bound of the probability that a report with no own item supports every item."""
        return self.meets(self.size) if self.size <= 64 else Fraction(0)

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrast of two items, which by symmetry is the same for all pairs."""
        one, two = self.meets(1), self.meets(2)
        pairs = alike(one, two)
        attained = [{(*pair, pair[0]): share for pair, share in pairs.items()}]
        exposed = one - two  # if a third person holds the first of the two items
        if self.size > 2:
            attained.append(alike(one, two, self.meets(3)))
            exposed = max(exposed, 2 * attained[1][1, 0, 0])
        bounding = favoured(self.worst_ratio, pairs, always=self.meets_all)
        reached = tuple(favoured(self.worst_ratio, shares) for shares in attained)
        cover = Cover(self.worst_ratio, float(one), float(one - two), float(exposed))
        return (Contrasts((bounding,), reached, covering=lambda: Covering(cover, ())),)

    def inputs(self) -> Sequence[Label]:
        """Return the items."""
        return self.items.labels

    def encode(self, values: Any) -> Ints:
        """Return the codes of the items."""
        return self.items.encode(values)

    def truth(self, values: Any) -> Floats:
        """Return the share of people who hold each item."""
        codes = self.encode(values)
        return np.bincount(codes, minlength=self.size) / codes.size

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: one count of supports for each item."""
        return (self.size,)

    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        if bool((tally.sums < 0).any()) or bool((tally.sums > tally.n).any()):
            raise MismatchError(
                f"the tally has counts outside of 0..n = {tally.n}; it is not one of supports."
            )
        share = (tally.sums / tally.n - self.q) / self.gap
        return FrequencyEstimate(
            values=share,
            covariance=self._covariance(share, tally.n),
            labels=self.items.labels,
            n=tally.n,
            guarantee=self.guarantee,
            counts=tally.sums,
            p=self.p,
            q=self.q,
        )

    def doubt(self, tally: Tally) -> Doubt:
        """Return how improbable the counts are if all devices are honest."""
        return Doubt.of_supports(tally.sums, tally.n, self.p, self.q)

    def _covariance(self, share: Floats, n: int) -> Covariance:
        """Return the covariance if any two supports in one report are uncorrelated."""
        return Covariance(self._variances(share, n))

    def _covariance_of_pairs(self, share: Floats, n: int, apart: float, more: float) -> Covariance:
        """Return the covariance of shares, given the covariance of two supports in one report.

        The latter is ``apart`` if the person holds neither item, and ``apart + more`` if the person
        holds one of them. So the counts of items i and j have covariance n apart + more (n_i +
        n_j), a matrix of rank two, and the diagonal is corrected for it.
        """
        scale = 1 / (n * self.gap**2)
        diagonal = self._variances(share, n) - scale * (apart + 2 * more * share)
        factor = np.column_stack([np.ones(share.size), share])
        return Covariance(diagonal, factor, scale * np.array([[apart, more], [more, 0.0]]))

    def _variances(self, share: Floats, n: int) -> Floats:
        # With the estimated share in place of the true one this is never negative: at a count of
        # zero it is pq/(p-q)^2/n.
        p, q = self.p, self.q
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (n * self.gap**2)

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally whose counts are drawn from their exact laws, item by item."""
        held = np.asarray(histogram, dtype=np.int64)
        n = int(held.sum())
        draw = rng.simulator()
        return Tally(n, draw.binomial(held, self.p) + draw.binomial(n - held, self.q))
