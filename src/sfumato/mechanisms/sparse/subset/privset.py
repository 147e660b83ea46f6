"""PrivSet: which items are in people's sets, from subsets that contain at least one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Floats, Ints
from sfumato.core.contrast import Contrasts, alike, favoured
from sfumato.core.doubt import Doubt
from sfumato.core.estimate import Covariance, FrequencyEstimate
from sfumato.core.size_ranges import SizeRange
from sfumato.core.tally import Tally
from sfumato.errors import InputError, MismatchError
from sfumato.mechanisms.sparse.subset.set_law import SetLaw, set_law
from sfumato.mechanisms.sparse.subset.subset_law import count_covariance
from sfumato.mechanisms.sparse.subset.subset_sampler import LARGEST_DIMENSION, FavouredSubsets
from sfumato.mechanisms.sparse.subset.subset_search import best_set_law
from sfumato.randomness import Source

__all__ = ["PrivSet"]


@dataclass(frozen=True)
class PrivSet(FavouredSubsets):
    """Sets of items: subsets that contain at least one item of the set are favoured.

    A subset Z of m of the d' = d + s items and stubs is sent with probability proportional to 1
    if it contains an item of the set, else e^-epsilon (rounded up to 64 bits). A set of fewer than
    s items is padded with stubs, which are not sent.

    A report supports the items in it: an item of the set with probability p = (m/d')/w, any other
    with q = p (1 - (1 - e^-epsilon) u), where u = C(d'-s-1, m-1)/C(d'-1, m-1) and w = 1 - (1 -
    e^-epsilon) C(d'-s, m)/C(d', m).

    Values are sets of item numbers such as ``[{0, 3}, set()]``, rows with a 0 or 1 (or false and
    true) for each item, or an array with the fields ``position`` and ``sign``. Of a set of more
    than s items, those with the lowest numbers are kept, so the items that matter should come
    first. The device does not reveal whether items were dropped.

    Parameters
    ----------
    dimension
        Number of items in the domain.
    sparsity
        The largest number of items in a set; further ones, of higher numbers, are left out.
    subset_size
        The size m of a report's subset; by default the one of least exact error for sets of s
        items.
    exact_sparsity
        Whether every set has exactly ``sparsity`` items, so that no padding is needed.

    Guarantee
    ---------
    epsilon-LDP for the whole set: the number of subsets that contain an item of a set is the same
    for all sets, so all share one normaliser.

    Error
    -----
    n Var = (f p (1-p) + (1-f) q (1-q))/(p-q)^2 for an item that a share f of people holds. Two
    items of one report are correlated, depending on how many people hold both, which the counts do
    not tell; :meth:`exact_covariance` computes it if the sets are known. For sets that may contain
    half of all items or more, padding costs more than it gains: send a vector of +1 (held) and -1
    (not held) with :class:`Concord` and exact sparsity d instead.

    Cost
    ----
    Device O(m + s), m item numbers or d/8 bytes, server O(m) or O(d) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = PrivSet(epsilon=1.0, dimension=20, sparsity=3)
    >>> sets = [{1, 4, 7}, {4}] * 20_000
    >>> estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(sets, seeded(1))))
    >>> estimate.values.round(1)[[1, 4, 8]].tolist()
    [0.5, 1.0, -0.0]

    References
    ----------
    Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao, "PrivSet: Set-Valued Data Analyses with Locally
    Differential Privacy" (2018), with the size by exact minimisation.

    """

    dimension: int
    sparsity: int
    subset_size: int | None = None
    exact_sparsity: bool = False
    most_bytes: int | None = None

    name: ClassVar[str] = "privset"
    summary: ClassVar[str] = "sets of items; subsets that hit the set at least once"
    goal: ClassVar[str] = "frequency"
    signed: ClassVar[bool] = False
    entries: ClassVar[tuple[int, ...]] = (0, 1)

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all sizes are allowed."""
        super().__post_init__()
        self._check_sizes(LARGEST_DIMENSION)
        self._refuse_full_vectors()
        if self.subset_size is not None:
            self._check_whole("subset_size", 1, self.zeros)
        self._check_bytes()

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 3, 1)
        yield cls(1.0, 3, 3)
        yield cls(1.0, 17, 1, subset_size=2)
        yield cls(2.0, 5, 2, subset_size=2, exact_sparsity=True)

    # ---- sizes and probabilities -----------------------------------------------------------

    @cached_property
    def probabilities(self) -> SetLaw:
        """The law in use; if no size is given, the one of least exact error."""
        if self.subset_size is not None:
            return set_law(self.epsilon, self.padded_dimension, self.sparsity, self.subset_size)
        return best_set_law(
            self.epsilon, self.padded_dimension, self.sparsity, self.dimension, self._fits
        )

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the sizes of a subset, unless one was given."""
        if self.subset_size is None:
            yield SizeRange("subset_size", 1, self.zeros)

    @property
    def size(self) -> int:
        """The number of members of a subset, stubs included."""
        return self.probabilities.size

    def variance(self, share: float = 0.0) -> float:
        """Return n times the variance of an estimated share, for an item with this true share."""
        absent, present = self.probabilities.variances()
        return (1 - share) * absent + share * present

    @property
    def mse(self) -> float:
        """The total error over the real items, for a set of s items."""
        return self.probabilities.mse(self.dimension)

    @property
    def influence(self) -> float:
        """The most by which one forged report can change the estimated number of holders."""
        return 1 / self.probabilities.gap

    def facts(self) -> dict[str, Any]:
        """Return the general facts, the sizes, the probabilities and the error."""
        law = self.probabilities
        return super().facts() | {
            "subset_size": law.size,
            "padded_dimension": law.dimension,
            "p_true": law.p_true,
            "p_false": law.p_false,
            "mse_frequency": self.mse,
        }

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrast of two sets without a common item; no pair is further apart."""
        d, s = self.padded_dimension, self.sparsity

        def missed(items: int) -> Fraction:
            """Return the share of subsets that contain none of ``items`` given items."""
            chance = Fraction(1)
            for taken in range(min(items, d)):
                chance *= Fraction(max(d - self.size - taken, 0), d - taken)
            return chance

        def hit(sets: int) -> dict[tuple[int, ...], Fraction]:
            """Return the share of subsets by which of some disjoint sets they hit."""
            together = alike(*(missed(s * number) for number in range(1, sets + 1)))
            return {tuple(1 - each for each in miss): share for miss, share in together.items()}

        pairs = hit(2)
        attained = [{(*pair, pair[0]): share for pair, share in pairs.items()}]
        if self.dimension >= 3 * s:
            attained.append(hit(3))
        bounding = favoured(self.worst_ratio, pairs)
        reached = [favoured(self.worst_ratio, shares) for shares in attained]
        return (Contrasts((bounding,), tuple(reached) if self.dimension >= 2 * s else ()),)

    # ---- the device ------------------------------------------------------------------------

    def encode(self, values: Any) -> Array:
        """Return the items of each set, padded with stubs."""
        encoded = super().encode(values)
        if (encoded["sign"] < 0).any():
            row = int(np.argmax((encoded["sign"] < 0).any(axis=1)))
            raise InputError(f"values[{row}] has -1 for an item; a set holds it (1) or not (0).")
        return encoded

    def _accepts(self, agree: int, oppose: int) -> bool:
        del oppose
        return agree >= 1

    def _favour(self, hits: int) -> int:
        return self._weight(hits, 0)

    def _agreeing(self, hits: int, n: int, rng: Source) -> Array:
        del rng
        return np.full(n, hits)

    # ---- the server ------------------------------------------------------------------------

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: the number of reports that contain each item."""
        return (self.dimension,)

    def truth(self, values: Any) -> Floats:
        """Return the share of people whose set contains each item."""
        encoded = self.encode(values)
        counts = np.bincount(encoded["position"].ravel(), minlength=self.padded_dimension)
        return counts[: self.dimension] / len(encoded)

    def doubt(self, tally: Tally) -> Doubt:
        """Return how improbable the counts are if all devices are honest."""
        law = self.probabilities
        return Doubt.of_supports(tally.sums, tally.n, law.p_true, law.p_false)

    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        if bool((tally.sums < 0).any()) or bool((tally.sums > tally.n).any()):
            raise MismatchError(
                f"the tally has counts outside of 0..n = {tally.n}; it is not one of items."
            )
        law = self.probabilities
        values = (tally.sums / tally.n - law.p_false) / law.gap
        share = np.clip(values, 0.0, 1.0)
        absent, present = law.variances()
        noise = ((1 - share) * absent + share * present) / tally.n
        return FrequencyEstimate(
            values=values,
            covariance=Covariance(noise, joint=False),
            labels=range(self.dimension),
            n=tally.n,
            guarantee=self.guarantee,
            counts=tally.sums,
            p=law.p_true,
            q=law.p_false,
        )

    def exact_covariance(self, values: Any) -> Covariance:
        """Return the exact covariance of the estimates, given these people's sets."""
        law, held = self.probabilities, self.dense_values(values)
        pairs = (law.pair_free, law.pair_held, law.pair_held)
        matrix = count_covariance(held, (law.p_false, law.p_true), pairs)
        matrix /= (len(held) * law.gap) ** 2
        np.fill_diagonal(matrix, [self.variance(share) / len(held) for share in held.mean(axis=0)])
        return Covariance.dense(matrix)

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally whose counts are drawn from their exact laws, item by item."""
        counts = np.asarray(histogram, dtype=np.int64)
        return self.sample_counts(counts @ np.asarray(self.inputs()), int(counts.sum()), rng)

    def sample_counts(self, holders: Ints, n: int, rng: Source) -> Tally:
        """Return a tally drawn by the same laws for n people, given the holders of each item."""
        law, draw = self.probabilities, rng.simulator()
        held = np.asarray(holders, dtype=np.int64)
        sums = draw.binomial(held, law.p_true) + draw.binomial(n - held, law.p_false)
        return Tally(n, sums)
