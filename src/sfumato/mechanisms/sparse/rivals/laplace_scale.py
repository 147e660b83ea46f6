"""Whole weights of two-sided geometric noise, whose ratios never exceed their rate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.sparse_mechanism import weight_above
from sfumato.randomness import ONE

__all__ = ["LaplaceScale"]

LARGEST_NOISE: Final = 1 << 20
_BITS: Final = 96  # the weight of no noise is 2^96, and noise of weight 2^48 ends the scale


@dataclass(frozen=True)
class LaplaceScale:
    """Whole weights of integer noise on both sides: each step weighs e^-rate of the one before.

    Parameters
    ----------
    rate
        The logarithm of the ratio of neighbours, which is never exceeded.

    """

    rate: Fraction

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The weight of noise of 0, 1, ...; the last one is that of all larger noise together.

        Weights are rounded up, so no two neighbours have a larger ratio than e^rate. The last one
        is w/(1 - e^-rate) for the w that would come there, so that this holds for sums of all
        larger ones, too.
        """
        step, weights = weight_above(-self.rate), [1 << _BITS]
        while weights[-1] > 1 << _BITS // 2:
            weights.append(-(-weights[-1] * step // ONE))
            if len(weights) > LARGEST_NOISE:
                raise ConfigurationError(
                    f"noise of rate {float(self.rate):.3g} has more than {LARGEST_NOISE} sizes; a "
                    "larger epsilon or fewer steps are expected."
                )
        weights[-1] = -(-weights[-1] * ONE // (ONE - step))
        return tuple(weights)

    @property
    def variance(self) -> float:
        """The variance of the noise, without the tiny part that ends the scale."""
        step = weight_above(-self.rate) / ONE
        return 2 * step / (1 - step) ** 2
