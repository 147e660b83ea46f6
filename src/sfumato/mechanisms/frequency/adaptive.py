"""The adaptive oracle: the best frequency oracle for the domain and the epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.estimate import Covariance
from sfumato.core.exact import exp_below
from sfumato.core.field_checks import check_one_of
from sfumato.core.law import Law
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.olh import OLH
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.mechanisms.frequency.oue import OUE
from sfumato.mechanisms.frequency.subset_selection import SubsetSelection
from sfumato.randomness import Source

__all__ = ["Adaptive"]

_RULES: Final = ("least", "short", "papers")
# How far above the least variance a rule may go for shorter reports. "least" only ignores the
# differences that rounding thresholds to 64 bits makes between otherwise equal mechanisms.
_SLACK: Final = {"least": 1e-9, "short": 0.05}


@dataclass(frozen=True)
class Adaptive(FrequencyOracle):
    """The best frequency oracle for this domain and epsilon, chosen without the data.

    It compares n times the exact variance, averaged over the domain: shares sum to 1 and variances
    are affine in them, so the average is that of an item with the share 1/d, for any data.

    Parameters
    ----------
    rule
        ``"least"``: the least variance; of mechanisms that are equal up to rounding (GRR is
        subset selection with one item) the one with the shorter report.
        ``"short"``: the shortest report among those at most 5% above the least variance; a few
        bytes for any domain. ``"papers"``: GRR if d < 3 e^epsilon + 2 and OUE if not, the rule of
        the literature.

    Guarantee
    ---------
    The guarantee of the chosen mechanism; the choice depends on d and epsilon only.

    Error
    -----
    The error of the chosen mechanism: under ``"least"``, never above that of any frequency oracle.

    Cost
    ----
    The cost of the chosen mechanism.

    Examples
    --------
    >>> Adaptive(epsilon=1.0, domain=4).chosen
    GRR(epsilon=1.0, domain=4)
    >>> Adaptive(epsilon=1.0, domain=10).chosen
    SubsetSelection(epsilon=1.0, domain=10, subset_size=None)
    >>> Adaptive(epsilon=1.0, domain=1000, rule="short").chosen
    OLH(epsilon=1.0, domain=1000, hash_range=None)
    >>> Adaptive(epsilon=1.0, domain=1000, rule="papers").chosen
    OUE(epsilon=1.0, domain=1000)

    References
    ----------
    Wang, Blocki, Li, Jha, "Locally Differentially Private Protocols for Frequency Estimation"
    (2017), for the rule of the literature.

    """

    rule: Literal["least", "short", "papers"] = "least"

    name: ClassVar[str] = "adaptive"
    summary: ClassVar[str] = "whichever oracle has the least error for the domain and epsilon"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the rule is known."""
        super().__post_init__()
        check_one_of("rule", self.rule, _RULES)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances: GRR, subset selection, subset selection once more, and OUE."""
        yield cls(1.0, 3)
        yield cls(0.5, 6)
        yield cls(1.0, ("red", "green", "blue", "black", "white", "grey"), rule="short")
        yield cls(0.25, 6, rule="papers")

    @cached_property
    def chosen(self) -> FrequencyOracle:
        """The chosen mechanism, which does all the work."""
        common = (self.epsilon, self.domain)
        if self.rule == "papers":
            few = self.size < 3 * exp_below(self.epsilon) + 2
            return GRR(*common) if few else OUE(*common)
        parts = (GRR(*common), SubsetSelection(*common), OLH(*common), OUE(*common))
        variances = [part.mse for part in parts]
        most = min(variances) * (1 + _SLACK[self.rule])
        good = [pair for pair in zip(parts, variances, strict=True) if pair[1] <= most]
        if self.rule == "short":
            good.sort(key=lambda pair: pair[1])
        return min((part for part, _ in good), key=lambda part: part.report_bytes)

    @property
    def supports(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q of the chosen mechanism."""
        return self.chosen.supports

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of a report, of the chosen mechanism."""
        return self.chosen.worst_ratio

    def meets(self, count: int) -> Fraction:
        """Return how often a report with no own item supports ``count`` given items."""
        return self.chosen.meets(count)

    @property
    def meets_all(self) -> Fraction:
        """How often a report with no own item supports all items, for the chosen mechanism."""
        return self.chosen.meets_all

    def publics(self) -> Sequence[Any]:
        """Return the public values of the chosen mechanism."""
        return self.chosen.publics()

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the law of the chosen mechanism."""
        return self.chosen.law(value, public)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report of the chosen mechanism."""
        return self.chosen.report_dtype

    @property
    def chunk(self) -> int:
        """How many people the chosen mechanism handles at once."""
        return self.chosen.chunk

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        self.chosen._randomize(encoded, rng, reports)  # noqa: SLF001

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports that the chosen mechanism can have sent."""
        return self.chosen.valid(reports)

    def _sums(self, reports: Array) -> Ints:
        return self.chosen._sums(reports)  # noqa: SLF001

    def _covariance(self, share: Floats, n: int) -> Covariance:
        return self.chosen._covariance(share, n)  # noqa: SLF001

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally drawn by the chosen mechanism."""
        return self.chosen.sample_tally(histogram, rng)
