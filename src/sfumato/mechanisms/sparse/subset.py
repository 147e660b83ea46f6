"""ExSub and Concord: signed subsets that favour the input, one sampler for both.

ExSub favours subsets that hit the input at least once, Concord those that agree with it more
often than they oppose it: the better test, by Neyman and Pearson, of what the input is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import ceil, exp
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import exp_above
from sfumato.core.law import Law
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.mechanism import SparseMechanism, tells_presence
from sfumato.mechanisms.sparse.subset_form import SubsetForm
from sfumato.mechanisms.sparse.subset_law import SubsetLaw, best_law, subset_law
from sfumato.randomness import ONE, Source

__all__ = ["Concord", "ExSub", "SignedSubset"]

LARGEST_DIMENSION: Final = 1 << 24


def _signs(n: int, rng: Source) -> NDArray[np.int8]:
    """Return n fair signs."""
    return (rng.words(n, 8) & np.uint8(2)).view(np.int8) - np.int8(1)


@dataclass(frozen=True)
class SignedSubset(SparseMechanism):
    """Sends a random signed subset of the entries of a sparse vector of -1, 0 and 1."""

    dimension: int
    sparsity: int
    subset_size: int | None = None
    exact_sparsity: bool = False
    goal: Literal["value", "frequency"] = "value"

    def __post_init__(self) -> None:
        """Check the sizes."""
        super().__post_init__()
        self._check_vectors(LARGEST_DIMENSION)
        if self.subset_size is not None:
            self._whole("subset_size", 1, self.padded_dimension)

    # ---- sizes and probabilities -----------------------------------------------------------

    @property
    @abstractmethod
    def accept_threshold(self) -> int | None:
        """Least agreement of an accepted subset; None if one hit is enough."""

    @cached_property
    def probabilities(self) -> SubsetLaw:
        """The law in use, by exact minimisation unless a size is given."""
        return self._told(self._sized(self.subset_size) if self.subset_size else self._best())

    def _best(self) -> SubsetLaw:
        return best_law(
            self.epsilon,
            self.padded_dimension,
            self.sparsity,
            concord=isinstance(self, Concord),
            estimate=self.goal,
            entries=self.dimension,
            threshold=getattr(self, "threshold", None),
        )

    def _told(self, law: SubsetLaw) -> SubsetLaw:
        """Return the law if it tells what is asked for."""
        if self.goal == "frequency" and not tells_presence(law):
            raise ConfigurationError(
                f"subset_size is {law.size}; subsets of that size do not tell how often an entry "
                "is there, smaller ones do."
            )
        return law

    @abstractmethod
    def _sized(self, size: int) -> SubsetLaw:
        """Return the law of subsets of a given size."""

    @property
    def size(self) -> int:
        """Positions in a subset."""
        return self.probabilities.size

    @property
    def dense(self) -> bool:
        """Whether every entry carries a sign."""
        return self.size == self.padded_dimension

    @cached_property
    def refused_weight(self) -> int:
        """Weight, in 2^-64, of a subset outside of the accept set: e^-epsilon rounded up."""
        return ceil(ONE * exp_above(-Fraction(self.epsilon)))

    @property
    def worst_ratio(self) -> Fraction:
        """A subset that one input accepts and another refuses."""
        return Fraction(ONE, self.refused_weight)

    def _accepts(self, agree: Any, oppose: Any) -> Any:
        if self.accept_threshold is None:
            return agree >= 1
        return agree - oppose >= self.accept_threshold

    # ---- the law ---------------------------------------------------------------------------

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the law of what is sent, by listing all subsets (small dimensions only)."""
        del public
        encoded = self.encode(np.asarray([value]))[0]
        held = dict(zip(encoded["position"].tolist(), encoded["sign"].tolist(), strict=True))
        total: dict[tuple[int, ...], int] = {}
        for positions in combinations(range(self.padded_dimension), self.size):
            for signs in product((1, -1), repeat=self.size):
                agree = sum(held.get(p) == s for p, s in zip(positions, signs, strict=True))
                oppose = sum(held.get(p) == -s for p, s in zip(positions, signs, strict=True))
                weight = ONE if self._accepts(agree, oppose) else self.refused_weight
                sent = [0] * self.dimension
                for position, sign in zip(positions, signs, strict=True):
                    if position < self.dimension:
                        sent[position] = sign
                total[tuple(sent)] = total.get(tuple(sent), 0) + weight
        kinds = sorted(total)
        outputs = np.concatenate([self.form.of_signs(kind) for kind in kinds])
        return Law(outputs, tuple(total[kind] for kind in kinds), sum(total.values()))

    # ---- reports ---------------------------------------------------------------------------

    @cached_property
    def form(self) -> SubsetForm:
        """The bytes of a report."""
        return SubsetForm(self.dimension, self.padded_dimension, self.size)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The shortest of three forms; see :class:`SubsetForm`."""
        return self.form.dtype

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which reports are a subset of a possible size, with nothing behind its end."""
        return self.form.valid(reports)

    @property
    def chunk(self) -> int:
        """A few megabytes at a time."""
        return max(16, (1 << 22) // max(self.padded_dimension, 64))

    # ---- the device ------------------------------------------------------------------------

    def marks(self, n: int, rng: Source) -> NDArray[np.int8]:
        """Return what the subset does to each non-zero in turn: 1 agree, -1 oppose, 0 skip.

        Each non-zero is in the subset with the chance that is left, its sign is fair, and a set
        of marks outside of the accept set is kept with probability e^-epsilon only: exactly the
        weighted law, without ever summing it. Nobody's data are looked at, but the marks are
        secret: whoever knows them reads the data off the report.
        """
        marks = np.zeros((self.sparsity, n), dtype=np.int8)
        open_ = np.arange(n)
        while open_.size:
            drawn = np.empty((self.sparsity, open_.size), dtype=np.int8)
            left = np.full(open_.size, self.size, dtype=np.int32)
            for rank in range(self.sparsity):
                hit = rng.below(self.padded_dimension - rank, open_.size, np.int32) < left
                drawn[rank] = _signs(open_.size, rng) * hit
                left -= hit
            agree = (drawn == 1).sum(axis=0, dtype=np.int32)
            oppose = (drawn == -1).sum(axis=0, dtype=np.int32)
            kept = self._accepts(agree, oppose) | rng.bernoulli(self.refused_weight, open_.size)
            marks[:, open_[kept]] = drawn[:, kept]
            open_ = open_[~kept]
        return marks.T

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        positions = np.ascontiguousarray(encoded["position"].T)
        marks = np.ascontiguousarray(self.marks(len(encoded), rng).T)
        hits = np.count_nonzero(marks, axis=0)
        zeros = self.padded_dimension - self.sparsity
        # Symbols in columns, one row for each place in a subset: 2 * position + [minus].
        shape = (self.size + self.sparsity, len(encoded))
        symbols = np.full(shape, 2 * self.padded_dimension, dtype=positions.dtype)
        sent = marks * encoded["sign"].T
        np.copyto(symbols[: self.sparsity], (positions << 1) + (sent < 0), where=sent != 0)
        for count in range(min(self.sparsity, self.size) + 1):
            people = np.flatnonzero(hits == count)
            if people.size and self.size > count:
                chosen = rng.subsets(zeros, self.size - count, people.size).T.astype(symbols.dtype)
                for position in positions[:, people]:  # in order: step over each non-zero
                    chosen += chosen >= position
                minus = rng.words(chosen.size, 8).reshape(chosen.shape) & np.uint8(1)
                rows = slice(self.sparsity, self.sparsity + self.size - count)
                symbols[rows, people] = (chosen << 1) + minus
        self.form.write(symbols, reports)

    # ---- the server ------------------------------------------------------------------------

    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return self.form.counts(reports)

    @property
    def influence(self) -> float:
        """How far one entry of a forged report moves the estimated total of that entry."""
        law = self.probabilities
        return 1 / (law.contrast if self.goal == "value" else law.presence)

    def facts(self) -> dict[str, Any]:
        """Return the sizes, the probabilities and both errors, too."""
        law = self.probabilities
        chosen = {} if law.threshold is None else {"threshold": law.threshold}
        return super().facts() | {
            "subset_size": law.size,
            **chosen,
            "padded_dimension": law.dimension,
            "p_true": law.p_true,
            "p_reverse": law.p_reverse,
            "p_false": law.p_false,
            "mse_value": law.mse("value", self.dimension),
            "mse_frequency": law.mse("frequency", self.dimension),
        }


@dataclass(frozen=True)
class ExSub(SignedSubset):
    """Signed subsets that hit the input at least once are favoured.

    A subset Z of m of the d' entries, each with a sign, is sent with probability proportional to
    1 if some symbol of Z is one of the input, else e^-epsilon (rounded up to 64 bits). Stubs are
    not sent.

    Parameters
    ----------
    epsilon
        Privacy of one report.
    dimension
        Number of entries of a vector.
    sparsity
        How many of them are not zero, at most; later ones are taken as zero.
    subset_size
        m; by default the one of least exact error.
    exact_sparsity
        Whether every vector has exactly so many non-zeros; then no stubs are needed.
    goal
        What is estimated: the mean of each entry (value) or how often it is not zero (frequency).
    paper
        Use the printed size, about half of the best one.

    Guarantee
    ---------
    epsilon-LDP for the whole vector: how many subsets hit an input does not depend on the input,
    so all inputs share one normaliser.

    Error
    -----
    With contrast p_true - p_reverse the value estimate has variance 2 p_false / contrast^2 at a
    zero entry and (p_true + p_reverse)/contrast^2 - 1 at another.

    Cost
    ----
    Device O(m + s), m symbols or d/4 bytes (d/8 if dense), server O(m) or O(d) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = ExSub(epsilon=1.0, dimension=12, sparsity=2)
    >>> vectors = np.zeros((20_000, 12), dtype=int)
    >>> vectors[:, 3], vectors[:, 7] = 1, -1
    >>> estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(vectors, seeded(1))))
    >>> int(estimate.values.argmax()), int(estimate.values.argmin())
    (3, 7)

    References
    ----------
    "SaO2: Optimal Online Locally Private Data Analytics with Stronger Shuffle Amplification" and
    its conference version, with the sizes and the sampler corrected.

    """

    paper: bool = False

    name: ClassVar[str] = "exsub"
    summary: ClassVar[str] = "sparse signed vectors; subsets that hit the input at least once"

    def __post_init__(self) -> None:
        """Check that the papers' size is wanted or not."""
        super().__post_init__()
        if not isinstance(self.paper, (bool, np.bool_)):
            raise ConfigurationError(f"paper is {self.paper!r}; true or false is expected.")

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Small instances."""
        yield cls(1.0, 3, 1)
        yield cls(1.0, 3, 2, subset_size=2)
        yield cls(2.0, 4, 2, subset_size=2, exact_sparsity=True, goal="frequency")

    @property
    def accept_threshold(self) -> int | None:
        """One hit is enough."""
        return None

    @cached_property
    def probabilities(self) -> SubsetLaw:
        """The law in use; the printed sizes are ceil(d'/(e^epsilon s + s + 2)) and the like."""
        if self.paper and self.subset_size is None:
            e, s = exp(self.epsilon), self.sparsity
            parts = e * s + s + 2 if self.goal == "value" else e * s + 2 * s + 1
            return self._told(self._sized(ceil(self.padded_dimension / parts)))
        return super().probabilities

    def _sized(self, size: int) -> SubsetLaw:
        return subset_law(self.epsilon, self.padded_dimension, self.sparsity, size, None)


@dataclass(frozen=True)
class Concord(SignedSubset):
    """Signed subsets that agree with the input more than they oppose it are favoured.

    A subset Z of m of the d' entries, each with a sign, is sent with probability proportional to
    1 if its agreement (symbols of the input less symbols of the opposite sign) is at least the
    threshold, else e^-epsilon (rounded up to 64 bits). Stubs are not sent.

    Parameters
    ----------
    epsilon
        Privacy of one report.
    dimension
        Number of entries of a vector.
    sparsity
        How many of them are not zero, at most; later ones are taken as zero.
    subset_size
        m; by default the one of least exact error, often the whole vector (dense).
    exact_sparsity
        Whether every vector has exactly so many non-zeros; then no stubs are needed.
    goal
        What is estimated: the mean of each entry (value) or how often it is not zero (frequency).
    threshold
        Least agreement; by default the one of least exact error.

    Guarantee
    ---------
    epsilon-LDP for the whole vector: how many subsets reach a threshold does not depend on the
    input, so all inputs share one normaliser.

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
        """Check the threshold."""
        super().__post_init__()
        if self.threshold is not None:
            self._whole("threshold", 1, min(self.sparsity, self.subset_size or self.sparsity))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Small instances."""
        yield cls(1.0, 3, 1)
        yield cls(1.0, 3, 2, subset_size=3)
        yield cls(1.0, 3, 2, subset_size=5)
        yield cls(2.0, 4, 2, subset_size=2, exact_sparsity=True, goal="frequency", threshold=2)

    @property
    def accept_threshold(self) -> int | None:
        """The least agreement."""
        return self.probabilities.threshold

    def _sized(self, size: int) -> SubsetLaw:
        if self.threshold is not None:
            thresholds = [self.threshold]
        else:
            thresholds = list(range(1, min(self.sparsity, size) + 1))
        laws = [
            subset_law(self.epsilon, self.padded_dimension, self.sparsity, size, threshold)
            for threshold in thresholds
        ]
        return min(laws, key=lambda law: law.mse(self.goal, self.dimension))
