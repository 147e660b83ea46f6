"""The plan of publishing a stream: threshold, tree, blocks and smoother, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from sfumato.accounting.gaussian_profile import GaussianBudget
from sfumato.arrays import Ints
from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.core.guarantee import Guarantee
from sfumato.core.noise import DrawnLaw, GaussianLaw, exact_epsilon, share_of
from sfumato.errors import ConfigurationError, SpentError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.randomness import Source, seeded
from sfumato.streams.published.noise_ring import Ring
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.smoothers import SMOOTHERS
from sfumato.streams.published.thresholds import Fixed, Threshold, from_configuration

__all__ = ["MOST_WATCHED", "TIMES", "PublishingPlan", "mean_square_error"]

MOST_WATCHED: Final = 1 << 16
TIMES: Final = {
    "private": (
        "each row, with its value and its time,",
        "two files with the same number of rows, in any order,",
        "one row: in its value, its time or both",
        "the number of rows is public",
    ),
    "public": (
        "each value",
        "two files with the same times, in any order,",
        "one value",
        "all times are public",
    ),
}
"""What is promised where values are published by time: to whom, between which files, and how."""
_LEAST: Final = dict.fromkeys(("bound", "block", "columns"), 1) | dict.fromkeys(
    ("holdout", "per_person", "renew"), 0
)
_ADDED: Final = {"delta": 0.0, "columns": 1, "times": ""}


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

    With a ``delta`` the noise is discrete Gaussian. Its variance grows with the number of layers
    and columns that a row changes, where the scale of Laplace noise does; so epsilon and delta are
    those of a row over all its ``columns``, and choices and noise take what
    :class:`~sfumato.accounting.gaussian_profile.GaussianBudget` leaves for them.

    Parameters
    ----------
    epsilon
        The privacy of each value; with a delta, of each row.
    bound
        The public bound of a value, in units; larger values are clipped to it.
    threshold
        The method of choosing the threshold.
    holdout
        The number of values that the threshold is chosen from.
    tree
        The shape of the trees, or of the rings.
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
    delta
        The delta of each row if noise is discrete Gaussian; 0 if it is discrete Laplace.
    columns
        The number of streams in which a row has a value, if they share epsilon and delta.
    times
        Empty for a stream of values in the order in which they come. If values are published by
        time, whether their times are ``private``, so that one value can leave a period and enter
        another, or ``public``; see :mod:`sfumato.streams.published.periods`.

    Examples
    --------
    >>> plan = PublishingPlan(0.5, bound=1000, threshold=Fixed(40), tree=Tree(16, 2), block=8)
    >>> plan.noise(40).rate
    Fraction(1, 160)
    >>> PublishingPlan.from_configuration(plan.configuration()) == plan
    True

    """

    epsilon: float
    bound: int
    threshold: Threshold
    holdout: int = 0
    tree: Tree | Ring = field(default_factory=Tree)
    block: int = 1
    smoother: str = "recent"
    reuse: float = 0.0
    per_person: int = 0
    renew: int = 0
    later: Threshold | None = None
    delta: float = 0.0
    columns: int = 1
    times: str = ""

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
        check_one_of("times", self.times, ("", *TIMES))
        if self.times and (self.per_person or self.renew or self.block > 1 or self.delta):
            raise ConfigurationError(
                f"times are {self.times}; by time each period is one block, values are protected "
                "and not people, one threshold holds for all, and noise has no delta."
            )
        self._check_choices()

    def _check_choices(self) -> None:
        """Raise ConfigurationError if choosing a threshold uses more epsilon than promised."""
        if self.delta:
            self._check_gaussian()
            return
        if self.columns > 1 or not isinstance(self.tree, Tree):
            raise ConfigurationError(
                f"delta is 0 with {self.columns} columns and {self.tree}; Laplace noise is that of "
                "one column and a tree."
            )
        share = Fraction(repr(self.reuse)) or Fraction(1)
        most = exact_epsilon(self.epsilon) * share / max(self.per_person, 1)
        for choice in (self.threshold, self.later):
            if choice is not None and Fraction(repr(float(choice.epsilon))) > most:
                raise ConfigurationError(
                    f"threshold is chosen with epsilon {choice.epsilon:g}; {float(most):g} is the "
                    "most that a choice may take of each value."
                )

    def _check_gaussian(self) -> None:
        """Raise ConfigurationError unless Gaussian noise keeps epsilon and delta."""
        for choice in (self.threshold, self.later):
            if choice is not None and choice.delta:
                raise ConfigurationError(
                    f"threshold is a {choice.name} with a delta of its own; with Gaussian noise, "
                    "choose one without."
                )
        _ = self.budget

    @cached_property
    def budget(self) -> GaussianBudget:
        """What choices and Gaussian noise have of epsilon and delta."""
        chosen = (self.threshold, *([] if self.later is None else [self.later]))
        return GaussianBudget(
            self.epsilon,
            self.delta,
            self.columns,
            max(self.per_person, 1),
            max(choice.epsilon for choice in chosen),
            both=self.reuse > 0,
        )

    def noise(self, threshold: int) -> DrawnLaw:
        """Return the law of the noise of each node, for a threshold."""
        if self.delta:
            return _gaussian(self.budget, threshold, self.tree.changes, self.tree.finest)
        assert isinstance(self.tree, Tree)  # noqa: S101 - rings have Gaussian noise
        share = _published_share(self.epsilon, self.reuse, max(self.per_person, 1))
        periods = 2 if self.times == "private" else 1  # that one value can be in, or not be in
        return _laplace(share, threshold * self.tree.layers * periods)

    @property
    def skipped(self) -> int:
        """The number of first values that are not published."""
        return 0 if self.reuse else self.holdout

    @property
    def watched(self) -> int:
        """The number of last values of a chapter that choose the next threshold."""
        return min(self.renew, MOST_WATCHED)

    def chapter(self, positions: ArrayLike) -> Ints:
        """Return the chapters of values, given their positions, counted from 1.

        The first chapter is longer by the values that chose its threshold.
        """
        after = np.maximum(np.asarray(positions, dtype=np.int64) - 1 - self.holdout, 0)
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
        public = "the number of values is public"
        if self.columns > 1:
            unit, differ = "each row", "one row"
        if self.later is not None:  # a value is used in at most one choice
            delta = max(delta, self.later.delta)
        if self.per_person:
            k = self.per_person  # group privacy multiplies delta by more than epsilon
            delta *= k * math.exp(self.epsilon * (k - 1) / k)
            unit = f"each person (of whose values {self.per_person} count, the others as zero)"
            differ = "the values of one person"
            public += ", and whose each of them is"
        if self.columns > 1:
            unit += f", with its values in all {self.columns} streams,"
        alike = "two streams of the same length"
        if self.times:
            unit, alike, differ, public = TIMES[self.times]
        return Guarantee(
            "central",
            unit,
            self.epsilon,
            self.delta or delta,
            rho=self.budget.rho if self.delta else None,
            neighbours=f"{alike} that differ in {differ}",
            assumptions=(public,),
        )

    def configuration(self) -> dict[str, Any]:
        """Return the plan as plain data; what later versions added is there only if it is used."""
        plain = asdict(self)
        for name, unused in _ADDED.items():
            if plain[name] == unused:
                del plain[name]
        if isinstance(self.threshold, Fixed) and not self.threshold.epsilon:
            del plain["threshold"]["epsilon"]
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
            shape = Ring if "leaves" in rest["tree"] else Tree
            rest["tree"] = shape(**rest["tree"])
            return cls(**rest)
        except (KeyError, TypeError) as error:
            raise ConfigurationError(f"the release is described without {error}.") from error

    def choose(self, values: Ints, rng: Source, *, again: bool = False) -> int:
        """Return a threshold whose noise can be drawn, chosen from values that were held out.

        Parameters
        ----------
        values
            The values in units; a threshold that is known already does not look at them.
        rng
            The source of randomness of this choice alone.
        again
            Whether the threshold of a later chapter is chosen.

        Raises SpentError if the noise at that threshold would spread too far. Whether it does
        tells of values, so the choice counts as published, and the message has no number of it.

        """
        how = self.later if again and self.later is not None else self.threshold
        threshold = how.choose(values, self.bound, rng)
        try:
            self.noise(threshold)
        except ConfigurationError:
            if isinstance(how, Fixed) and not how.epsilon:
                raise  # nobody's values were looked at
            raise SpentError(
                "the noise at the threshold that was chosen would spread too far to be drawn; a "
                "larger unit, a larger epsilon or a smaller bound is needed, and what the choice "
                "has cost is spent."
            ) from None
        return threshold

    def expected_error(self, threshold: int, limit: int) -> float:
        """Return the standard deviation of noise in sums of random ranges up to a length."""
        square = mean_square_error(self.tree, self.block, limit)
        return math.sqrt(self.noise(threshold).variance * square)


@lru_cache(maxsize=256)
def _published_share(epsilon: float, reuse: float, values: int) -> float:
    """Return the epsilon of one of a person's values, less what choosing thresholds takes."""
    return share_of(epsilon, (1 - Fraction(repr(reuse))) / values)


# Many ranges share their noise, which takes longer than all the rest of an answer.
@lru_cache(maxsize=256)
def _laplace(epsilon: float, sensitivity: int) -> DrawnLaw:
    return DiscreteLaplace(epsilon, sensitivity).law()


@lru_cache(maxsize=256)
def _gaussian(budget: GaussianBudget, threshold: int, changes: int, finest: int) -> DrawnLaw:
    return GaussianLaw(budget.square(threshold, changes, finest))


@cache
def mean_square_error(tree: Tree | Ring, block: int, limit: int, ranges: int = 400) -> float:
    """Return the mean variance of a random range within ``limit`` values, in node variances."""
    draw = seeded(0).simulator()
    ends = np.sort(draw.random((ranges, 2)), axis=1) * (limit / block)
    return float(tree.mean_square(*ends.T).mean())
