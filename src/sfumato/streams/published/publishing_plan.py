"""The plan of publishing a stream: threshold, tree, blocks and smoother, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Ints
from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.core.guarantee import Guarantee
from sfumato.core.noise import exact_epsilon, share_of
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.randomness import seeded
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.smoothers import SMOOTHERS
from sfumato.streams.published.thresholds import Fixed, Threshold, from_configuration

__all__ = ["MOST_WATCHED", "PublishingPlan", "mean_square_error"]

MOST_WATCHED: Final = 1 << 16
_LEAST: Final = {"bound": 1, "block": 1, "holdout": 0, "per_person": 0, "renew": 0}


@dataclass(frozen=True)
class PublishingPlan:
    """A plan with three exchangeable parts: a threshold, a tree of noise and a smoother.

    The first ``holdout`` values are not published; the threshold is chosen from them. Every later
    value is clipped to the threshold and counts in one block, the block in one leaf of a tree, and
    the leaf in one node of each layer. So one value changes ``layers`` sums, each by at most the
    threshold, and every node has discrete Laplace noise of scale threshold x layers / epsilon. A
    value is either held out or published, so each is protected with all of epsilon. With ``reuse``
    the values held out are published as well: the threshold uses that share of epsilon and the
    noise the rest, and the two sum to epsilon exactly.

    With ``renew`` the threshold is chosen again after every ``renew`` values, from the last of
    them, for a new *chapter* with new trees. These values are published as well: every value is
    used in at most one choice, with the share ``reuse``, and in the trees of one chapter, with the
    rest. The values that chose the first threshold choose no other.

    Parameters
    ----------
    epsilon
        The privacy of each value.
    bound
        The public bound of a value, in units; larger values are clipped to it.
    threshold
        The method of choosing the threshold.
    holdout
        The number of values that the threshold is chosen from.
    tree
        The shape of the trees.
    block
        The number of values in a leaf.
    smoother
        The smoother that guesses the values of an unfinished block.
    reuse
        The share of epsilon for the threshold, if the values it is chosen from are published as
        well.
    per_person
        If people are protected, the number of values of each person that count; each value then has
        that part of epsilon. 0 if values are protected.
    renew
        The number of values after which the threshold is chosen again; 0 for never.
    later
        The method of choosing it again; None if it is not.

    Examples
    --------
    >>> plan = PublishingPlan(0.5, bound=1000, threshold=Fixed(40), tree=Tree(16, 2), block=8)
    >>> plan.noise(40).law().rate
    Fraction(1, 160)
    >>> PublishingPlan.from_configuration(plan.configuration()) == plan
    True

    """

    epsilon: float
    bound: int
    threshold: Threshold
    holdout: int = 0
    tree: Tree = field(default_factory=Tree)
    block: int = 1
    smoother: str = "recent"
    reuse: float = 0.0
    per_person: int = 0
    renew: int = 0
    later: Threshold | None = None

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        exact_epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        for name, least in _LEAST.items():
            check_whole(name, getattr(self, name), least)
        if self.bound > 1 << 40:
            raise ConfigurationError(
                f"bound is {self.bound} units; 2^40 is the most, so use a larger unit."
            )
        if not isinstance(self.threshold, Fixed) and not self.holdout:
            raise ConfigurationError("holdout is 0; a threshold is chosen from at least one value.")
        check_number("reuse", self.reuse, least=0, below=1)
        if self.renew and not (self.reuse and self.later is not None):
            raise ConfigurationError(
                f"renew is {self.renew} and reuse {self.reuse:g}; choosing a threshold from values "
                "that are published takes a share of epsilon."
            )
        check_one_of("smoother", self.smoother, SMOOTHERS)
        self._check_choices()

    def _check_choices(self) -> None:
        """Raise ConfigurationError if choosing a threshold uses more epsilon than promised."""
        share = Fraction(repr(self.reuse)) or Fraction(1)
        most = exact_epsilon(self.epsilon) * share / max(self.per_person, 1)
        for choice in (self.threshold, self.later):
            if choice is not None and Fraction(repr(float(choice.epsilon))) > most:
                raise ConfigurationError(
                    f"threshold is chosen with epsilon {choice.epsilon:g}; {float(most):g} is the "
                    "most that a choice may take of each value."
                )

    def noise(self, threshold: int) -> DiscreteLaplace:
        """Return the noise of each node, for a threshold."""
        share = _published_share(self.epsilon, self.reuse, max(self.per_person, 1))
        return DiscreteLaplace(share, threshold * self.tree.layers)

    @property
    def skipped(self) -> int:
        """The number of first values that are not published."""
        return 0 if self.reuse else self.holdout

    @property
    def watched(self) -> int:
        """The number of last values of a chapter that choose the next threshold."""
        return min(self.renew, MOST_WATCHED)

    def chapter(self, places: ArrayLike) -> Ints:
        """Return the chapters of values, given their positions, counted from 1.

        The first chapter is longer by the values that chose its threshold.
        """
        after = np.maximum(np.asarray(places, dtype=np.int64) - 1 - self.holdout, 0)
        return after // self.renew if self.renew else np.zeros_like(after)

    def chapter_at(self, number: int) -> tuple[int, int, int | None]:
        """Return the numbers of values and blocks before a chapter, and of values by its end.

        The last number is None if the threshold is never chosen again.
        """
        if not self.renew:
            return self.skipped, 0, None
        end = self.holdout + (number + 1) * self.renew
        if not number:
            return 0, 0, end
        first = -(-(self.holdout + self.renew) // self.block)
        return end - self.renew, first + (number - 1) * -(-self.renew // self.block), end

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the person behind one value or, with ``per_person``, to a person."""
        unit, differ, delta = "each value of the stream", "one value", self.threshold.delta
        if self.later is not None:  # a value is used in at most one choice
            delta = max(delta, self.later.delta)
        if self.per_person:
            k = self.per_person  # group privacy multiplies delta by more than epsilon
            delta *= k * math.exp(self.epsilon * (k - 1) / k)
            unit = f"each person (of whose values {self.per_person} count, the others as zero)"
            differ = "the values of one person"
        return Guarantee(
            "central",
            unit,
            self.epsilon,
            delta,
            neighbours=f"two streams of the same length that differ in {differ}",
            assumptions=("the number of values is public",),
        )

    def configuration(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        plain = asdict(self)
        plain["threshold"] = {"kind": self.threshold.name} | plain["threshold"]
        if self.later is not None:
            plain["later"] = {"kind": self.later.name} | plain["later"]
        return plain

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> PublishingPlan:
        """Return the plan that :meth:`configuration` described."""
        rest = dict(configuration)
        try:
            rest["threshold"] = from_configuration(rest["threshold"])
            if rest.get("later") is not None:
                rest["later"] = from_configuration(rest["later"])
            rest["tree"] = Tree(**rest["tree"])
            return cls(**rest)
        except (KeyError, TypeError) as error:
            raise ConfigurationError(f"the release is described without {error}.") from error

    def expected_error(self, threshold: int, limit: int) -> float:
        """Return the standard deviation of noise in sums of random ranges up to a length."""
        square = mean_square_error(self.tree, self.block, limit)
        return math.sqrt(self.noise(threshold).law().variance * square)


@lru_cache(maxsize=256)
def _published_share(epsilon: float, reuse: float, values: int) -> float:
    """Return the epsilon of one of a person's values, less what choosing thresholds takes."""
    return share_of(epsilon, (1 - Fraction(repr(reuse))) / values)


@cache
def mean_square_error(tree: Tree, block: int, limit: int, ranges: int = 400) -> float:
    """Return the mean variance of a random range within ``limit`` values, in node variances."""
    draw = seeded(0).simulator()
    ends = np.sort(draw.random((ranges, 2)), axis=1) * (limit / block)
    return float(tree.mean_square(*ends.T).mean())
