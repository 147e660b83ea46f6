"""ExSub and Concord: random signed subsets that favour the input, with one sampler.

ExSub favours subsets that contain at least one symbol of the input, Concord those that agree with
it more often than they oppose it, which by Neyman and Pearson is the better test of the input.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp
from typing import Any, ClassVar, Literal, Self

import numpy as np

from sfumato.core.contrast import Contrasts
from sfumato.core.estimate import Covariance
from sfumato.core.size_ranges import SizeRange
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.sparse_mechanism import tells_presence
from sfumato.mechanisms.sparse.subset.sign_sums import refused_signs
from sfumato.mechanisms.sparse.subset.signed_sampler import SignedSampler
from sfumato.mechanisms.sparse.subset.subset_contrast import subset_contrasts
from sfumato.mechanisms.sparse.subset.subset_law import (
    SubsetLaw,
    count_covariance,
    pair_moments,
    subset_law,
)
from sfumato.mechanisms.sparse.subset.subset_sampler import LARGEST_DIMENSION, FavouredSubsets
from sfumato.mechanisms.sparse.subset.subset_search import best_law, best_threshold
from sfumato.randomness import ONE

__all__ = ["Concord", "ExSub", "SignedSubset"]


@dataclass(frozen=True)
class SignedSubset(FavouredSubsets, SignedSampler):
    """A mechanism that sends a random signed subset of a sparse vector's entries."""

    dimension: int
    sparsity: int
    subset_size: int | None = None
    exact_sparsity: bool = False
    goal: Literal["value", "frequency"] = "value"
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all sizes are allowed."""
        super().__post_init__()
        self._check_vectors(LARGEST_DIMENSION)
        if self.subset_size is not None:
            self._check_whole("subset_size", 1, self.padded_dimension)
        self._check_bytes()

    # ---- sizes and probabilities -----------------------------------------------------------

    @property
    @abstractmethod
    def accept_threshold(self) -> int | None:
        """The least agreement of a favoured subset; None if one hit is enough."""

    @cached_property
    def probabilities(self) -> SubsetLaw:
        """The law in use; if no size is given, the one of least exact error."""
        return self._told(self._sized(self.subset_size) if self.subset_size else self._best())

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the sizes of a subset, unless one was given."""
        if self.subset_size is None:
            yield SizeRange("subset_size", 1, self.padded_dimension)

    def _best(self) -> SubsetLaw:
        return best_law(
            self.epsilon,
            self.padded_dimension,
            self.sparsity,
            concord=isinstance(self, Concord),
            estimate=self.goal,
            entries=self.dimension,
            threshold=getattr(self, "threshold", None),
            fits=self._fits,
        )

    def _told(self, law: SubsetLaw) -> SubsetLaw:
        """Return the law; raise ConfigurationError if the goal cannot be estimated with it."""
        if self.goal == "frequency" and not tells_presence(law):
            raise ConfigurationError(
                f"subset_size is {law.size}; subsets of that size do not tell how often an entry "
                "is there, smaller ones do."
            )
        return law

    @abstractmethod
    def _sized(self, size: int) -> SubsetLaw:
        """Return the law of subsets of this size."""

    @property
    def size(self) -> int:
        """The number of positions in a subset."""
        return self.probabilities.size

    def _accepts(self, agree: int, oppose: int) -> bool:
        if self.accept_threshold is None:
            return agree >= 1
        return agree - oppose >= self.accept_threshold

    # ---- the law ---------------------------------------------------------------------------

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrast of a vector and its negative, which is the worst pair."""
        return subset_contrasts(
            self.worst_ratio,
            self.padded_dimension,
            self.sparsity,
            self.size,
            self.accept_threshold,
            self.dimension,
        )

    # ---- the device ------------------------------------------------------------------------

    @cached_property
    def _refused_signs(self) -> list[int]:
        most = min(self.sparsity, self.size)
        return [refused.ways for refused in refused_signs(most, self.accept_threshold)]

    def _favour(self, hits: int) -> int:
        refused = self._refused_signs[hits]
        return ((1 << hits) - refused) * ONE + refused * self.refused_weight

    # ---- the server ------------------------------------------------------------------------

    def exact_covariance(self, values: Any) -> Covariance:
        """Return the exact covariance of the estimates, given these people's vectors.

        Two entries are correlated only through people who hold both, which the counts do not tell;
        so an ordinary estimate only has the variance of each entry.
        """
        law, rows = self.probabilities, self.dense_values(values)
        product, *pairs = pair_moments(self.epsilon, law)
        held = np.abs(rows)
        if self.goal == "value":
            absent, present = law.value_variances()
            matrix = rows.T @ rows * (product / law.contrast**2 - 1)
        else:
            absent, present = law.presence_variances()
            supports = (2 * law.p_false, law.p_true + law.p_reverse)
            none, one, both = pairs
            matrix = count_covariance(held, supports, (none, one, both)) / law.presence**2
        holders = held.sum(axis=0)
        np.fill_diagonal(matrix, (len(rows) - holders) * absent + holders * present)
        return Covariance.dense(matrix / len(rows) ** 2)

    def facts(self) -> dict[str, Any]:
        """Return the general facts, the size and the threshold."""
        law = self.probabilities
        chosen = {} if law.threshold is None else {"threshold": law.threshold}
        return super().facts() | {"subset_size": law.size, **chosen}


@dataclass(frozen=True)
class ExSub(SignedSubset):
    """Signed subsets that contain at least one symbol of the input are favoured.

    A subset Z of m of the d' entries, each with a sign, is sent with probability proportional to
    1 if some symbol of Z is one of the input, else e^-epsilon (rounded up to 64 bits). Stubs
    (padding entries) are not sent.

    Parameters
    ----------
    paper
        Whether to use the size printed in the paper, which is about half of the best one.

    Guarantee
    ---------
    epsilon-LDP for the whole vector: the number of subsets that contain a symbol of the input is
    the same for all inputs, so all share one normaliser.

    Error
    -----
    With contrast p_true - p_reverse the value estimate has variance 2 p_false / contrast^2 at a
    zero entry and (p_true + p_reverse)/contrast^2 - 1 at another.

    Cost
    ----
    Device O(m + s), m symbols or d/4 bytes (d/8 if dense), server O(m) or O(d) per report.

    Examples
    --------
    >>> mechanism = ExSub(epsilon=1.0, dimension=12, sparsity=2)
    >>> printed = ExSub(epsilon=1.0, dimension=12, sparsity=2, paper=True)
    >>> [(each.size, round(each.mse)) for each in (mechanism, printed)]
    [(4, 155), (2, 190)]

    References
    ----------
    "SaO2: Optimal Online Locally Private Data Analytics with Stronger Shuffle Amplification" and
    its conference version, with the sizes and the sampler corrected.

    """

    paper: bool = False

    name: ClassVar[str] = "exsub"
    summary: ClassVar[str] = "sparse signed vectors; subsets that hit the input at least once"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless ``paper`` is true or false."""
        super().__post_init__()
        self._check_flag("paper")

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 3, 1)
        yield cls(1.0, 3, 2, subset_size=2)
        yield cls(1.0, 9, 2, subset_size=2)
        yield cls(2.0, 4, 2, subset_size=2, exact_sparsity=True, goal="frequency")

    @property
    def accept_threshold(self) -> int | None:
        """The least agreement of a favoured subset: None, because one hit is enough."""
        return None

    @cached_property
    def probabilities(self) -> SubsetLaw:
        """The law in use; printed sizes are ceil(d'/(e^epsilon s + s + 2)) and similar."""
        if self.paper and self.subset_size is None:
            e, s = exp(self.epsilon), self.sparsity
            parts = e * s + s + 2 if self.goal == "value" else e * s + 2 * s + 1
            return self._told(self._sized(ceil(self.padded_dimension / parts)))
        return super().probabilities

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the sizes of a subset, unless one was given or the printed one is used."""
        return iter(()) if self.paper else super().sizes()

    def _sized(self, size: int) -> SubsetLaw:
        return subset_law(self.epsilon, self.padded_dimension, self.sparsity, size, None)


@dataclass(frozen=True)
class Concord(SignedSubset):
    """Signed subsets that agree with the input more than they oppose it are favoured.

    A subset Z of m of the d' entries, each with a sign, is sent with probability proportional to
    1 if its agreement (the number of symbols of the input minus the number of opposite symbols) is
    at least the threshold, else e^-epsilon (rounded up to 64 bits). Stubs (padding entries) are not
    sent.

    Parameters
    ----------
    subset_size
        The size m of a subset; by default the one of least exact error, often the whole vector
        (dense).
    threshold
        The least agreement of a favoured subset; by default the one of least exact error.

    Guarantee
    ---------
    epsilon-LDP for the whole vector: the number of subsets that reach a threshold is the same for
    all inputs, so all share one normaliser.

    Error
    -----
    Over all d' entries m / contrast^2 - s in total, with contrast = E[agreement]/s: a third to a
    quarter below ExSub's for two or more non-zeros and epsilon up to 1.

    Cost
    ----
    Device O(m + s), m symbols or d/4 bytes (d/8 if dense), server O(m) or O(d) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = Concord(epsilon=1.0, dimension=12, sparsity=2)
    >>> vectors = np.zeros((20_000, 12), dtype=int)
    >>> vectors[:, 3], vectors[:, 7] = 1, -1
    >>> estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(vectors, seeded(1))))
    >>> int(estimate.values.argmax()), int(estimate.values.argmin())
    (3, 7)

    References
    ----------
    The mechanism this project uses. Its relatives: ExSub; with m = d' the online form of
    Ohrimenko, Wirth, Wu, "Randomize the Future: Asymptotically Optimal Locally Private Frequency
    Estimation Protocol for Longitudinal Data" (2022); and the l2 mechanisms of Duchi, Jordan,
    Wainwright (2018) and of Bhowmick, Duchi, Freudiger, Kapoor, Rogers (2018).

    """

    threshold: int | None = None

    name: ClassVar[str] = "concord"
    summary: ClassVar[str] = "sparse signed vectors; subsets that agree more than they oppose"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the threshold is allowed."""
        super().__post_init__()
        if self.threshold is not None:
            self._check_whole("threshold", 1, min(self.sparsity, self.subset_size or self.sparsity))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 3, 1)
        yield cls(1.0, 3, 2, subset_size=3)
        yield cls(1.0, 3, 2, subset_size=5)
        yield cls(2.0, 4, 2, subset_size=2, exact_sparsity=True, goal="frequency", threshold=2)

    @classmethod
    def dense(cls, epsilon: float, sparsity: int, dimension: int | None = None) -> Self:
        """Return the mechanism that sends a sign for every entry.

        Its probabilities do not depend on the dimension, so streams need none; the default
        dimension is the smallest possible.
        """
        entries = sparsity if dimension is None else dimension
        return cls(epsilon, entries, sparsity, subset_size=entries + sparsity)

    @property
    def accept_threshold(self) -> int | None:
        """The least agreement of a favoured subset."""
        return self.probabilities.threshold

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the sizes of a subset for each threshold, unless both were given."""
        if self.threshold is not None:
            yield from super().sizes()
            return
        largest = self.padded_dimension if self.subset_size is None else self.subset_size
        for threshold in range(1, min(self.sparsity, largest) + 1):
            fixed = {"threshold": threshold}
            least = threshold if self.subset_size is None else largest
            yield SizeRange("subset_size", least, largest, fixed=fixed)

    def _sized(self, size: int) -> SubsetLaw:
        sizes = (self.epsilon, self.padded_dimension, self.sparsity, size)
        if self.threshold is not None:
            return subset_law(*sizes, self.threshold)
        return best_threshold(*sizes, self.goal, self.dimension)
