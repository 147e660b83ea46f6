"""PCKV-UE, PCKV-GRR and PCKV-AGRR: one of the non-zeros, drawn by chance, is told among all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, prod
from typing import Any, ClassVar, Final, Self

import numpy as np

from sfumato.arrays import Array
from sfumato.core.contrast import Contrasts
from sfumato.core.exact import exp_below
from sfumato.core.law import Law
from sfumato.mechanisms.sparse.entry_streams import are_counters
from sfumato.mechanisms.sparse.rivals.rival import Rival
from sfumato.mechanisms.sparse.rivals.rival_streams import FavouredRank
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolLaw, SymbolMechanism, weight_above
from sfumato.mechanisms.sparse.subset.signed_sampler import SignedSampler
from sfumato.mechanisms.sparse.subset.subset_contrast import subset_contrasts
from sfumato.mechanisms.sparse.subset.subset_form import FormedReports, SubsetForm
from sfumato.mechanisms.sparse.subset.subset_sampler import FavouredSubsets
from sfumato.randomness import ONE, Source, Wheel

__all__ = ["PCKVAGRR", "PCKVGRR", "PCKVUE"]

_SIGNS: Final = (1, -1, 0)
"""What each outcome of a draw for one entry sends."""


@dataclass(frozen=True)
class PCKVUE(FormedReports, Rival, SymbolMechanism):
    """Every entry sends plus, minus or nothing by coins of its own; one non-zero is favoured.

    Any entry sends each sign with probability 1/(e^epsilon + 3). Only one of the s non-zeros, drawn
    by chance, is different: it sends its own sign with probability (1/2) e^epsilon/(e^epsilon + 1),
    the opposite one with (1/2)/(e^epsilon + 1), and nothing with 1/2.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly; the draw of one non-zero amplifies nothing.

    Error
    -----
    With c = (e^epsilon - 1)/(2 s (e^epsilon + 1)) the value estimate has variance
    2/((e^epsilon + 3) c^2) at a zero entry.

    Cost
    ----
    Two bits for each entry; device and server O(d) per report.

    Examples
    --------
    >>> law = PCKVUE(1.0, 64, 8, exact_sparsity=True).probabilities
    >>> [f"{variance:.6g}" for variance in law.value_variances()]
    ['419.276', '440.79']

    References
    ----------
    Gu, Li, Cheng, Xiong, Cao, "PCKV: Locally Differentially Private Correlated Key-Value Data
    Collection with Optimized Utility" (2020), with its best split of epsilon.

    """

    name: ClassVar[str] = "pckv_ue"
    summary: ClassVar[str] = "a rival for sparse signed vectors: coins per entry, one is favoured"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(2.0, 2, 1)
        yield cls(1.0, 3, 2, exact_sparsity=True, goal="frequency")

    @cached_property
    def rows(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The weights of plus, minus and nothing, for the favoured 1 and for any other entry."""
        low = weight_above(-Fraction(self.epsilon))
        return (ONE, low, ONE + low), (low, low, ONE + low)

    @cached_property
    def probabilities(self) -> SymbolLaw:
        """The law in use, for one entry."""
        favoured, other = ([Fraction(w, sum(row)) for w in row] for row in self.rows)
        s = self.sparsity
        true, reverse = ((favoured[k] + (s - 1) * other[k]) / s for k in (0, 1))
        return SymbolLaw.of(s, true, reverse, other[0])

    @property
    def worst_ratio(self) -> Fraction:
        """The ratio of the right and the wrong sign of a favoured entry, as of a vector's negative.

        The negative of a vector reaches it, with a report of all of the vector's signs.
        """
        return Fraction(self.rows[0][0], self.rows[0][1])

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over all vectors of plus, minus and nothing."""
        del public
        favoured, other = self.rows
        encoded = self.encode([value])[0]
        held = [*zip(encoded["position"].tolist(), encoded["sign"].tolist(), strict=True)]
        outputs, numerators = [], []
        for sent in product(_SIGNS, repeat=self.dimension):
            plain = prod(other[_SIGNS.index(sign)] for sign in sent)
            total = 0
            for position, sign in held:
                if position >= self.dimension:  # a stub is favoured, and nobody sees it
                    total += plain * sum(favoured)
                    continue
                mine = _SIGNS.index(sent[position])
                as_it_is = favoured[_SIGNS.index(sent[position] * sign)]
                total += plain // other[mine] * as_it_is * sum(other)
            outputs.append(self.form.of_signs(sent))
            numerators.append(total)
        whole = self.sparsity * sum(favoured) * sum(other) ** self.dimension
        return Law(np.concatenate(outputs), tuple(numerators), whole)

    # ---- reports ---------------------------------------------------------------------------

    @cached_property
    def form(self) -> SubsetForm:
        """The form of a report's bytes: two bits for each entry, any number of which are sent."""
        return SubsetForm(self.dimension, 2 * self.dimension, self.dimension)

    @property
    def chunk(self) -> int:
        """How many people are handled at once: about a megabyte."""
        return min(max((1 << 20) // self.dimension, 16), 1 << 15)

    @cached_property
    def _wheels(self) -> tuple[Wheel, Wheel]:
        favoured, other = self.rows
        return Wheel(lambda: favoured), Wheel(lambda: other)

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        n, d, signs = len(encoded), self.dimension, np.array(_SIGNS, dtype=np.int8)
        rank = rng.below(self.sparsity, n)[:, None]
        position, sign = (
            np.take_along_axis(encoded[f], rank, 1)[:, 0] for f in ("position", "sign")
        )
        favoured, other = self._wheels
        sent = np.zeros((n, d + self.sparsity), dtype=np.int8)
        sent[:, :d] = signs[rng.spin(other, n * d)].reshape(n, d)
        sent[np.arange(n), position] = signs[rng.spin(favoured, n)] * sign
        both = np.stack([sent[:, :d] > 0, sent[:, :d] < 0], axis=2).reshape(n, 2 * d)
        reports["packed"] = np.packbits(both, axis=1, bitorder="little")

    # ---- entry by entry --------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The largest number of entries for which something is sent: all of them."""
        return self.dimension

    def stream(self, rng: Source) -> FavouredRank:
        """Draw the rank of the favoured non-zero; return what answers entries one by one."""
        rank = 1 + int(rng.below(self.sparsity, 1)[0])
        return FavouredRank(*self.rows, rank, self.sparsity)

    def resumed(self, state: Sequence[int]) -> FavouredRank:
        """Return the stream that continues from a saved state."""
        rank, nonzeros = state
        return FavouredRank(*self.rows, rank, nonzeros)

    def can_have_saved(self, state: Any, gone: int) -> bool:
        """Return whether a stream that has seen ``gone`` entries can be in this state."""
        if not are_counters(state, 2, self.sparsity):
            return False
        rank, nonzeros = state
        fired = not rank and nonzeros < self.sparsity
        return bool(self.sparsity - nonzeros <= gone and (fired or 1 <= rank <= nonzeros))


@dataclass(frozen=True)
class OneSymbol(FavouredSubsets, SignedSampler, Rival):
    """One of the 2d' symbols is sent; those of the input are favoured, all by the same factor."""

    @property
    def size(self) -> int:
        """The number of symbols that are sent: one."""
        return 1

    def _accepts(self, agree: int, oppose: int) -> bool:
        del oppose
        return agree == 1

    @cached_property
    def probabilities(self) -> SymbolLaw:
        """The law in use, for one entry."""
        s, low = self.sparsity, self.refused_weight
        whole = s * ONE + (2 * self.padded_dimension - s) * low
        other = Fraction(low, whole)
        return SymbolLaw.of(s, Fraction(ONE, whole), other, other)

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrast of a vector and its negative, which is the worst pair."""
        return subset_contrasts(
            self.worst_ratio, self.padded_dimension, self.sparsity, 1, None, self.dimension
        )


@dataclass(frozen=True)
class PCKVGRR(OneSymbol):
    """Randomized response over all symbols, for one of the non-zeros, drawn by chance.

    The symbol (entry and sign) of that non-zero is sent with probability E/(E + 2d' - 1), any other
    with 1/(E + 2d' - 1). Because the draw hides which of the s non-zeros it was, E may be larger
    than e^epsilon: s (e^epsilon - 1) + 1, as published.

    Parameters
    ----------
    amplified
        Whether E is the published one. With E = e^epsilon, as "Differentially Private Numerical
        Vector Analyses in the Local and Shuffle Model" compares with it, most of epsilon is left.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly if amplified; else log((e^epsilon + s - 1)/s). Every
    input has s entries of its own, stubs included: one stub for all would break it for s >= 3.

    Error
    -----
    With q = 1/(E + 2d' - 1) and g = (E - 1) q the value estimate has variance 2 q s^2/g^2 at a zero
    entry and s^2 (2q + g/s)/g^2 - 1 at another.

    Cost
    ----
    One symbol of a few bytes; device O(s), server O(1) per report.

    Examples
    --------
    >>> for amplified in (True, False):
    ...     law = PCKVGRR(1.0, 64, 8, exact_sparsity=True, amplified=amplified).probabilities
    ...     print([f"{variance:.6g}" for variance in law.value_variances()])
    ['96.018', '177.511']
    ['5623.7', '6226.65']

    References
    ----------
    Gu, Li, Cheng, Xiong, Cao, "PCKV: Locally Differentially Private Correlated Key-Value Data
    Collection with Optimized Utility" (2020).

    """

    amplified: bool = True

    name: ClassVar[str] = "pckv_grr"
    summary: ClassVar[str] = "a rival for sparse signed vectors: one symbol of one non-zero"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2, 1)
        yield cls(1.0, 3, 2, exact_sparsity=True)
        yield cls(3.0, 3, 2, goal="frequency", amplified=False)

    def _check_options(self) -> None:
        self._check_flag("amplified")

    @property
    def underspends(self) -> str:
        """Why some of epsilon is left: without amplification the draw's own privacy is unused."""
        return "" if self.amplified else "what the draw of one non-zero hides is not used"

    @cached_property
    def refused_weight(self) -> int:
        """The weight of a symbol that is not the input's, in units of 2^-64, rounded up."""
        if self.amplified:
            return super().refused_weight
        s = self.sparsity
        return ceil(ONE * s / (exp_below(self.epsilon) + s - 1))


@dataclass(frozen=True)
class PCKVAGRR(OneSymbol):
    """The published PCKV-GRR under the name that a later paper gives it: ExSub with subsets of one.

    One symbol is sent, with probability proportional to 1 if it is one of the input's s symbols,
    else e^-epsilon. That is the law of ExSub with ``subset_size`` 1, to the last bit.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly.

    Error
    -----
    That of ExSub with subsets of one, which is ExSub's best size for large epsilon only.

    Cost
    ----
    One symbol of a few bytes; device O(s), server O(1) per report.

    Examples
    --------
    >>> from sfumato.mechanisms import ExSub
    >>> f"{PCKVAGRR(1.0, 64, 8).mse:.9g} {ExSub(1.0, 64, 8, subset_size=1).mse:.9g}"
    '7565.24234 7565.24234'

    References
    ----------
    "Differentially Private Numerical Vector Analyses in the Local and Shuffle Model", of Gu, Li,
    Cheng, Xiong, Cao, "PCKV: Locally Differentially Private Correlated Key-Value Data Collection
    with Optimized Utility" (2020).

    """

    name: ClassVar[str] = "pckv_agrr"
    summary: ClassVar[str] = "a rival for sparse signed vectors: ExSub with subsets of one"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2, 1, exact_sparsity=True)
        yield cls(1.0, 3, 2)
