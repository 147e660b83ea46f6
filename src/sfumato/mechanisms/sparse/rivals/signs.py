"""EFMRTT, DDRM and ToPL: a sign for every entry, and some of the non-zeros tell theirs.

A zero sends a fair sign. Of the s non-zeros, k are kept, and each of these sends its own sign with
a probability above one half; all others send fair signs, too. Which ones are kept is drawn before
the first entry, by rank, so that all of these mechanisms can answer entry by entry.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import ClassVar, Literal, Self

from sfumato.core.field_checks import check_one_of
from sfumato.mechanisms.sparse.rivals.rival import Rival
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolLaw, weight_above
from sfumato.mechanisms.sparse.subset.signed_sampler import SignedSampler
from sfumato.randomness import ONE

__all__ = ["DDRM", "EFMRTT", "SignVector", "ToPLTernary"]


@dataclass(frozen=True)
class SignVector(SignedSampler, Rival):
    """A mechanism that sends a sign for every entry, by the number of non-zeros it agrees with."""

    @property
    def size(self) -> int:
        """The number of entries with a sign: all of them, stubs included."""
        return self.padded_dimension

    @property
    @abstractmethod
    def sign_weights(self) -> tuple[int, ...]:
        """The whole weight of signs that agree with 0, 1, ..., s of the non-zeros."""

    def _weight(self, agree: int, oppose: int) -> int:
        del oppose  # every non-zero is agreed with or opposed
        return self.sign_weights[agree]

    @property
    def worst_ratio(self) -> Fraction:
        """The ratio of the largest and the smallest weight, which any two inputs can reach."""
        return Fraction(max(self.sign_weights), min(self.sign_weights))

    @cached_property
    def probabilities(self) -> SymbolLaw:
        """The law in use, for one entry, from the weights."""
        s = self.sparsity
        weights = list(self._agree_weights(s))
        agreed = sum(agree * weight for agree, weight in enumerate(weights))
        true = Fraction(agreed, s * sum(weights))
        return SymbolLaw.of(s, true, 1 - true, Fraction(1, 2))


@dataclass(frozen=True)
class KeptSigns(SignVector):
    """A sign for every entry; k kept non-zeros are answered by biased coins of their own."""

    @property
    @abstractmethod
    def kept(self) -> int:
        """The number k of non-zeros that are kept."""

    @property
    def spent(self) -> Fraction:
        """The epsilon of all kept non-zeros together."""
        return Fraction(self.epsilon)

    @cached_property
    def sign_weights(self) -> tuple[int, ...]:
        """The sum over all choices of k non-zeros of e^(-spent/k) for each one opposed."""
        s, k = self.sparsity, self.kept
        low = weight_above(-self.spent / k)
        terms = [ONE**j * low ** (k - j) for j in range(k + 1)]
        return tuple(
            sum(
                comb(agree, j) * comb(s - agree, k - j) * terms[j]
                for j in range(max(0, k - s + agree), min(agree, k) + 1)
            )
            for agree in range(s + 1)
        )


@dataclass(frozen=True)
class EFMRTT(KeptSigns):
    """One of the non-zeros, drawn by chance, is told by a biased coin; all else are fair coins.

    The entry that is kept sends its own sign with probability e^epsilon/(e^epsilon + 1), so that
    P[y] is proportional to the sum over the non-zeros of 1 (agrees) or e^-epsilon (opposed).

    Parameters
    ----------
    budget
        The epsilon of the coin: whole, which two vectors need in all; or half, as in the paper,
        which counts two entries and spends half of epsilon.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly; half of it with the half budget.

    Error
    -----
    Variance (s/tanh(epsilon/2))^2 - x^2 for every entry x.

    Cost
    ----
    One bit for each entry; device and server O(d) per report.

    Examples
    --------
    >>> f"{EFMRTT(1.0, 64, 8, exact_sparsity=True).probabilities.value_variances()[0]:.6g}"
    '299.692'

    References
    ----------
    Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by Shuffling: From
    Local to Central Differential Privacy via Anonymity" (2019), the part on longitudinal data.

    """

    budget: Literal["whole", "half"] = "whole"

    name: ClassVar[str] = "efmrtt"
    summary: ClassVar[str] = "a rival for sparse signed vectors: a sign per entry, one is kept"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2, 1)
        yield cls(2.0, 3, 2, exact_sparsity=True, budget="half")

    def _check_options(self) -> None:
        check_one_of("budget", self.budget, ("whole", "half"))

    @property
    def kept(self) -> int:
        """The number of non-zeros that are kept: one."""
        return 1

    @property
    def spent(self) -> Fraction:
        """The epsilon of the coin."""
        return Fraction(self.epsilon) / (2 if self.budget == "half" else 1)

    @property
    def underspends(self) -> str:
        """Why half of epsilon may be left: the paper composes the coins of two entries."""
        return "the paper's coin has half of epsilon" if self.budget == "half" else ""


@dataclass(frozen=True)
class DDRM(KeptSigns):
    """k of the non-zeros, drawn by chance, share epsilon for their coins; all else are fair coins.

    Each non-zero that is kept sends its own sign with probability q/(q + 1), q = e^(epsilon/k).
    This is the part of the protocol that randomizes differences; a hierarchy can carry it.

    Parameters
    ----------
    keep
        The number k of non-zeros that are kept; by default all of them, which is best.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly, for every k.

    Error
    -----
    Variance (s/(k tanh(epsilon/2k)))^2 - x^2 for every entry x.

    Cost
    ----
    One bit for each entry; device and server O(d) per report.

    Examples
    --------
    >>> f"{DDRM(1.0, 64, 8, exact_sparsity=True).probabilities.value_variances()[0]:.6g}"
    '256.667'

    References
    ----------
    Xue, Ye, Hu, Zhu, Wang, "DDRM: A Continual Frequency Estimation Mechanism with Local
    Differential Privacy" (2022), as "SaO2: Optimal Online Locally Private Data Analytics with
    Stronger Shuffle Amplification" compares with it.

    """

    keep: int | None = None

    name: ClassVar[str] = "ddrm"
    summary: ClassVar[str] = "a rival for sparse signed vectors: a sign per entry, k share epsilon"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(2.0, 2, 2)
        yield cls(2.0, 3, 3, exact_sparsity=True, keep=2)

    def _check_options(self) -> None:
        if self.keep is not None:
            self._check_whole("keep", 1, self.sparsity)

    @property
    def kept(self) -> int:
        """The number k of non-zeros that are kept."""
        return self.keep or self.sparsity


@dataclass(frozen=True)
class ToPLTernary(KeptSigns):
    """ToPL's rounded numbers for the entries of a vector of -1, 0 and 1, in two readings.

    ToPL sends numbers of [-1, 1], each rounded to one of two signs; its threshold has nothing to
    do for vectors. Either one non-zero is kept and has all of epsilon (which is EFMRTT), or all of
    them share it (which is DDRM). Its hybrid mechanism would send other numbers than signs for a
    part of the entries, at half of the epsilon; that is better from an epsilon of 4 on, and is
    not offered.

    Parameters
    ----------
    reading
        Whose sign is told: that of one non-zero, drawn by chance, or those of all.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, exactly.

    Error
    -----
    Variance (s/tanh(epsilon/2))^2 - x^2 for every entry x, or 1/tanh(epsilon/2s)^2 - x^2.

    Cost
    ----
    One bit for each entry; device and server O(d) per report.

    Examples
    --------
    >>> one, all_ = (ToPLTernary(1.0, 64, 8, reading=reading) for reading in ("one", "all"))
    >>> f"{one.mse:.0f} {all_.mse:.0f}"
    '19172 16419'

    References
    ----------
    Wang, Chen, Zhang, Su, Cheng, Li, Li, Jha, "Continuous Release of Data Streams under both
    Centralized and Local Differential Privacy" (2021).

    """

    reading: Literal["one", "all"] = "one"

    name: ClassVar[str] = "topl_ternary"
    summary: ClassVar[str] = "a rival for sparse signed vectors: ToPL's signs of one or all entries"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2, 1)
        yield cls(2.0, 2, 2, reading="all")

    def _check_options(self) -> None:
        check_one_of("reading", self.reading, ("one", "all"))

    @property
    def kept(self) -> int:
        """The number of non-zeros that are kept."""
        return 1 if self.reading == "one" else self.sparsity
