"""PrivKV and KVUE: one entry, drawn by chance and told, with a randomized answer about it.

The entry is drawn before the data, so a vector may have any number of non-zeros, and needs no
padding. In a stream the answer is given when the entry comes, and nothing else is ever sent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.field_checks import check_one_of
from sfumato.core.law import Law
from sfumato.core.tally import Tally
from sfumato.mechanisms.sparse.entry_streams import are_counters
from sfumato.mechanisms.sparse.rivals.rival import Rival
from sfumato.mechanisms.sparse.rivals.rival_streams import AskedEntry
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolLaw, SymbolMechanism, weight_above
from sfumato.randomness import ONE, Source, Wheel

__all__ = ["KVUE", "PrivKV", "SampledEntry", "SampledLaw"]

PLUS, MINUS, ABSENT = range(3)
_REVERSED: Final = np.array([MINUS, PLUS, ABSENT])

Row = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class SampledLaw(SymbolLaw):
    """The law of an entry about which few people are asked, who also tell that it is absent.

    Parameters
    ----------
    asked
        The probability that a person is asked about a given entry.
    there, said
        The probability that the answer is not "absent", for a non-zero and for a zero entry.

    """

    asked: float
    there: float
    said: float

    @property
    def covariance(self) -> float:
        """The covariance of the presence and the value estimate of an entry of 1."""
        return (1 - self.said) / (self.asked * (self.there - self.said)) - 1

    def presence_variances(self) -> tuple[float, float]:
        """Return the variance of the presence estimate, which knows how many were asked."""
        scale = self.asked * (self.there - self.said) ** 2
        held = self.there * (1 - self.said) ** 2 + (1 - self.there) * self.said**2
        return self.said * (1 - self.said) / scale, held / scale - 1


@dataclass(frozen=True)
class SampledEntry(Rival, SymbolMechanism):
    """A mechanism that tells the state of one entry (plus, minus or absent), randomized."""

    @property
    @abstractmethod
    def rows(self) -> tuple[Row, Row]:
        """The weights of the answers plus, minus and absent, for an entry of 1 and for a zero."""

    @property
    def padded_dimension(self) -> int:
        """The number of entries; there are no stubs."""
        return self.dimension

    @cached_property
    def probabilities(self) -> SampledLaw:
        """The law in use, for one entry."""
        held, zero = self._chances
        d = self.dimension
        law = SymbolLaw.of(self.sparsity, held[PLUS] / d, held[MINUS] / d, zero[PLUS] / d)
        return SampledLaw(
            **vars(law),
            asked=1 / d,
            there=float(1 - held[ABSENT]),
            said=float(1 - zero[ABSENT]),
        )

    @property
    def _chances(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """The probabilities of the three answers, for an entry of 1 and for a zero."""
        held, zero = (tuple(Fraction(w, sum(row)) for w in row) for row in self.rows)
        return held, zero

    # ---- the law ---------------------------------------------------------------------------

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one answer, for an entry of 1, 0 and -1."""
        held, zero = self._chances
        columns = zip(held, (held[MINUS], held[PLUS], held[ABSENT]), zero, strict=True)
        return max(max(column) / min(column) for column in columns)

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over all entries and answers."""
        del public
        held, zero = self.rows
        rows = {1: held, -1: (held[MINUS], held[PLUS], held[ABSENT]), 0: zero}
        whole = lcm(sum(held), sum(zero))
        states = self.dense_values([value])[0].astype(int).tolist()
        numerators = tuple(w * (whole // sum(rows[x])) for x in states for w in rows[x])
        outputs = np.zeros(3 * self.dimension, dtype=self.report_dtype)
        outputs["symbol"] = np.arange(len(outputs))
        return Law(outputs, numerators, whole * self.dimension)

    # ---- reports ---------------------------------------------------------------------------

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: the entry times three, plus the answer."""
        return np.dtype([("symbol", np.min_scalar_type(3 * self.dimension - 1).newbyteorder("<"))])

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports about an entry that is there."""
        return np.asarray(reports["symbol"] < 3 * self.dimension)

    @cached_property
    def _wheels(self) -> tuple[Wheel, Wheel]:
        held, zero = self.rows
        return Wheel(lambda: held), Wheel(lambda: zero)

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        n = len(encoded)
        entry = rng.below(self.dimension, n)
        sign = (encoded["sign"] * (encoded["position"] == entry[:, None])).sum(axis=1)
        held, zero = (rng.spin(wheel, n) for wheel in self._wheels)
        answer = np.where(sign == 0, zero, np.where(sign < 0, _REVERSED[held], held))
        reports["symbol"] = 3 * entry + answer

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: the number of each answer (plus, minus, absent) by entry."""
        return (3, self.dimension)

    def _sums(self, reports: Array) -> Ints:
        counts = np.bincount(reports["symbol"], minlength=3 * self.dimension)
        return np.ascontiguousarray(counts.reshape(-1, 3).T)

    def _held(self, tally: Tally) -> Floats:
        law = self.probabilities
        there = tally.sums[:2].sum(axis=0) - law.said * tally.sums.sum(axis=0)
        return np.asarray(there / (tally.n * law.asked * (law.there - law.said)))

    # ---- entry by entry --------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The largest number of entries for which something is sent: one."""
        return 1

    def stream(self, rng: Source) -> AskedEntry:
        """Draw the entry that will be answered; return what answers it when it comes."""
        return AskedEntry(*self.rows, 1 + int(rng.below(self.dimension, 1)[0]))

    def resumed(self, state: Sequence[int]) -> AskedEntry:
        """Return the stream that continues from a saved state."""
        return AskedEntry(*self.rows, *state)

    def can_have_saved(self, state: Any, gone: int) -> bool:
        """Return whether a stream that has seen ``gone`` entries can be in this state."""
        return are_counters(state, 1, self.dimension) and (
            state[0] <= self.dimension - gone if state[0] else gone > 0
        )

    @property
    def influence(self) -> float:
        """The most by which one forged report can change the estimated total of an entry."""
        law = self.probabilities
        if self.goal == "value":
            return super().influence
        return max(law.said, 1 - law.said) / (law.asked * (law.there - law.said))


@dataclass(frozen=True)
class PrivKV(SampledEntry):
    """Whether the entry is there goes through one coin, and its sign through another.

    An entry that is there is told to be with probability p1 = e^e1/(1 + e^e1), and then its sign is
    right with probability p2 = e^e2/(1 + e^e2); a zero is told to be there with probability 1 - p1,
    with a fair sign.

    Parameters
    ----------
    split
        How epsilon is divided: half (e1 = e2 = epsilon/2), as papers compare with it, which does
        not spend all of it; or tight (e2 = epsilon, e1 = log((e^epsilon + 1)/2)), which does.

    Guarantee
    ---------
    epsilon-LDP for the whole vector; half spends epsilon + log(2/(1 + e^(epsilon/2))), or
    epsilon/2 if that is more.

    Error
    -----
    With c = p1 (2 p2 - 1) the value estimate has variance d (1 - p1)/c^2 at a zero entry and
    d p1/c^2 - 1 at another.

    Cost
    ----
    A few bytes; device O(s), server O(1) per report.

    Examples
    --------
    >>> for split in ("half", "tight"):
    ...     law = PrivKV(1.0, 64, 8, split=split).probabilities
    ...     print(split, *(f"{variance:.6g}" for variance in law.value_variances()))
    half 1039.63 1713.06
    tight 247.906 459.892

    References
    ----------
    Ye, Hu, Meng, Zheng, "PrivKV: Key-Value Data Collection with Local Differential Privacy" (2019).
    Estimates are unbiased, by dividing by the probability of being asked; the paper's are ratios.

    """

    split: Literal["half", "tight"] = "half"

    name: ClassVar[str] = "privkv"
    summary: ClassVar[str] = "a rival for sparse signed vectors: one entry, presence and sign apart"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(2.0, 2, 1)
        yield cls(1.0, 3, 2, split="tight")
        yield cls(2.0, 3, 1, goal="frequency")

    def _check_options(self) -> None:
        check_one_of("split", self.split, ("half", "tight"))

    @property
    def underspends(self) -> str:
        """Why some of epsilon is left: two halves of it never add up for one answer."""
        return "an answer never shows all of both halves" if self.split == "half" else ""

    @cached_property
    def rows(self) -> tuple[Row, Row]:
        """The weights of the answers plus, minus and absent, for an entry of 1 and for a zero."""
        if self.split == "tight":
            low = weight_above(-Fraction(self.epsilon))
            return (ONE, low, 2 * low), (low, low, ONE + low)
        low = weight_above(-Fraction(self.epsilon) / 2)
        both = ONE + low
        return (ONE * ONE, ONE * low, low * both), (low * both, low * both, 2 * ONE * both)


@dataclass(frozen=True)
class KVUE(SampledEntry):
    """The state of the entry (plus, minus or absent) goes through randomized response.

    The true state is sent with probability e^epsilon/(e^epsilon + 2), each other one with
    1/(e^epsilon + 2).

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly.

    Error
    -----
    With p and q as above the value estimate has variance 2dq/(p - q)^2 at a zero entry and
    d (1 - q)/(p - q)^2 - 1 at another.

    Cost
    ----
    A few bytes; device O(s), server O(1) per report.

    Examples
    --------
    >>> law = KVUE(1.0, 64, 8).probabilities
    >>> [f"{variance:.6g}" for variance in law.value_variances()]
    ['204.553', '379.292']

    References
    ----------
    Sun, Zhao, Ye, Feng, Wang, Bai, "Conditional Analysis for Key-Value Data with Local Differential
    Privacy" (2019), as its author's library implements it.

    """

    name: ClassVar[str] = "kvue"
    summary: ClassVar[str] = "a rival for sparse signed vectors: one entry's state, randomized"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2, 1)
        yield cls(1.0, 3, 2, exact_sparsity=True, goal="frequency")

    @cached_property
    def rows(self) -> tuple[Row, Row]:
        """The weights of the answers plus, minus and absent, for an entry of 1 and for a zero."""
        low = weight_above(-Fraction(self.epsilon))
        return (ONE, low, low), (low, low, ONE)
