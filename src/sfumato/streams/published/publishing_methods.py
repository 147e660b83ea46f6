"""Named methods of publishing a stream: ours, ToPS and PAK as published, and their parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.core.noise import exact_epsilon, share_of
from sfumato.streams.published.noise_ring import MOST_RING_LEAVES, Ring
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.publishing_plan import (
    MOST_WATCHED,
    PublishingPlan,
    mean_square_error,
)
from sfumato.streams.published.thresholds import (
    SHARE,
    Fixed,
    Quantile,
    RaisedThreshold,
    ScaleFree,
    Threshold,
    ToPSThreshold,
    pays,
)

__all__ = [
    "HOLDOUT",
    "LIMIT",
    "METHODS",
    "Wish",
    "fitting",
    "plan",
    "plan_periods",
    "tuned_threshold",
    "tuned_tree",
]

HOLDOUT: Final = 1 << 16
LIMIT: Final = 1 << 20
_C: Final = 60
_FANOUTS: Final = (4, 8, 16, 32, 64)
_LARGEST_BLOCK: Final = 1 << 12


@dataclass(frozen=True)
class Wish:
    """The request of a curator for any method: privacy, bound, hold-out, longest range.

    With Gaussian noise epsilon is that of choosing a threshold, and ``mu`` says by how many
    deviations of the noise a value may move the integers of its stream.
    """

    epsilon: float
    bound: int
    holdout: int = HOLDOUT
    limit: int = LIMIT
    mu: float = 0.0

    def release(self, threshold: Threshold, tree: Tree, block: int) -> PublishingPlan:
        """Return the publishing plan with these parts."""
        return PublishingPlan(self.epsilon, self.bound, threshold, self.holdout, tree, block)


# ---- thresholds -------------------------------------------------------------------------------


def _tops_threshold(wish: Wish) -> ToPSThreshold:
    height = _height(16, wish.limit)
    factor = 3 * wish.holdout / (_C * wish.limit * wish.epsilon)
    return ToPSThreshold(wish.epsilon, factor * math.sqrt(2 * 15 * height**3))


def _pak_threshold(wish: Wish, *, safe: bool = True, clipped: bool = False) -> Quantile:
    delta = float(wish.limit) ** -2
    if not safe:
        return Quantile(wish.epsilon, delta, 0.995, None, clipped=clipped)
    return Quantile(wish.epsilon, delta, 0.99575, 0.3 * 0.02, clipped=clipped)


# ---- trees ------------------------------------------------------------------------------------


def _height(fanout: int, limit: int) -> int:
    """Return the smallest h with fanout^h >= limit."""
    height = 1
    while fanout**height < limit:
        height += 1
    return height


def _tops_tree(wish: Wish) -> tuple[Tree, int]:
    """Return the tree of ToPS, with as many layers replaced by blocks as its rule says."""
    height = _height(16, wish.limit)
    errors = {
        s: 15 * (height - s) ** 3 * 2 / wish.epsilon**2 + 16.0 ** (2 * s) / 36
        for s in range(height)
    }
    s = min(errors, key=errors.__getitem__)
    return Tree(16, height - s), 16**s


def _plain_tree(fanout: int, wish: Wish, *, consistent: bool = False) -> tuple[Tree, int]:
    """Return a tree with one leaf for each value and no root, as in the papers."""
    return Tree(fanout, _height(fanout, wish.limit), consistent), 1


def tuned_tree(wish: Wish, block: int | None = None) -> tuple[Tree | Ring, int]:
    """Return the shape of least mean squared error, from exact noise and errors within blocks.

    Within a block sums are interpolated. For values in random order with a standard deviation of a
    third of the threshold, this has an average squared error, at either end of a range, of a sixth
    of the block's length times their variance; a drift by a fifteenth of the threshold over the
    block is added.
    """
    blocks = [1 << power for power in range(_LARGEST_BLOCK.bit_length())]
    blocks = blocks if block is None else [block]
    shapes: list[tuple[Tree | Ring, int]] = [
        (Tree(fanout, layers), width)
        for fanout in _FANOUTS
        for layers in range(1, _height(fanout, wish.limit) + 1)
        for width in blocks
        if layers == 1 or fanout ** (layers - 1) * width <= wish.limit
    ]
    if wish.mu:
        shapes += [
            (Ring(1 << size), width)
            for size in range(1, MOST_RING_LEAVES.bit_length())
            for width in blocks
            if width << size < 2 * wish.limit
        ]
    return min(shapes, key=lambda shape: _squared_error(wish, *shape))


def _squared_error(wish: Wish, tree: Tree | Ring, block: int) -> float:
    """Return the expected squared error of a random range, in units of the squared threshold."""
    node = tree.changes / wish.mu**2 if wish.mu else 2 * (tree.changes / wish.epsilon) ** 2
    noise = node * mean_square_error(tree, block, wish.limit)
    inside = (block - 1) / 27 + (block / 60) ** 2 if block > 1 else 0.0
    return noise + inside


def _tuned(wish: Wish) -> PublishingPlan:
    """Return our own plan, whose threshold leaves a number of values above it by exact error."""
    tree, block = tuned_tree(wish)
    assert isinstance(tree, Tree)  # noqa: S101 - rings are for Gaussian noise
    return wish.release(tuned_threshold(wish, tree, block), tree, block)


def tuned_threshold(wish: Wish, tree: Tree | Ring, block: int) -> Threshold:
    """Return our own threshold, which leaves a number of values above it by exact error.

    The weight is at least a few times the scale of the noise, or the choice would be random; but at
    most one in 32 values, or with a short hold-out the best choice would be to clip everything. A
    second look at the values pays where it can see one in 32 of them, and where the right number is
    not far below the greater weight that the first look then needs.
    """
    above = wish.holdout * math.sqrt(6 * _squared_error(wish, tree, block)) / wish.limit
    return _threshold(wish, above)


def _threshold(wish: Wish, above: float) -> Threshold:
    """Return our own threshold, given the number of values that should be above it."""
    twice = pays(wish.epsilon, wish.holdout) and above * wish.epsilon >= 1
    first = wish.epsilon * (1 - SHARE) if twice else wish.epsilon
    weight = max(above, min(8 / first, wish.holdout / 32))
    if twice:
        return RaisedThreshold(wish.epsilon, weight, above)
    return ScaleFree(wish.epsilon, weight)


def fitting(values: int) -> tuple[int, int]:
    """Return a hold-out and the length of the longest range that suit a number of values.

    A quarter of the values choose the threshold, at most 65,536; the longest range has the others,
    at most 2^20.

    Examples
    --------
    >>> fitting(10_000), fitting(3_000_000)
    ((2500, 7500), (65536, 1048576))

    """
    holdout = min(HOLDOUT, max(values // 4, 1))
    return holdout, min(LIMIT, max(values - holdout, 2))


METHODS: Final[Mapping[str, tuple[str, Callable[[Wish], PublishingPlan]]]] = {
    "tuned": ("ToPS with threshold, fan-out and blocks by exact error; the default", _tuned),
    "tops": (
        "ToPS as published, its errata applied",
        lambda wish: wish.release(_tops_threshold(wish), *_tops_tree(wish)),
    ),
    "pak": (
        "PAK as published: a safe quantile as threshold, a binary tree; (epsilon, delta)",
        lambda wish: wish.release(_pak_threshold(wish), *_plain_tree(2, wish)),
    ),
    "pak_clipped": (
        "PAK with its threshold cut to the public bound",
        lambda wish: wish.release(_pak_threshold(wish, clipped=True), *_plain_tree(2, wish)),
    ),
    "smooth_quantile": (
        "the plain private quantile, a binary tree; (epsilon, delta)",
        lambda wish: wish.release(
            _pak_threshold(wish, safe=False, clipped=True), *_plain_tree(2, wish)
        ),
    ),
    "h2": (
        "the threshold of ToPS, a binary tree",
        lambda wish: wish.release(_tops_threshold(wish), *_plain_tree(2, wish)),
    ),
    "h16": (
        "the threshold of ToPS, a tree of fan-out 16",
        lambda wish: wish.release(_tops_threshold(wish), *_plain_tree(16, wish)),
    ),
    "h16_consistent": (
        "the threshold of ToPS, a consistent tree of fan-out 16",
        lambda wish: wish.release(_tops_threshold(wish), *_plain_tree(16, wish, consistent=True)),
    ),
    "flat": (
        "the threshold of ToPS, noise on each value",
        lambda wish: wish.release(_tops_threshold(wish), Tree(16, 1), 1),
    ),
}


def _shared(
    made: Callable[[Wish], PublishingPlan], wish: Wish, reuse: float, renew: int
) -> PublishingPlan:
    """Return a plan whose values share epsilon between choosing thresholds and noise."""
    share = Fraction(repr(reuse))
    choosing = replace(wish, epsilon=share_of(wish.epsilon, share))
    release = made(replace(wish, epsilon=share_of(wish.epsilon, 1 - share)))
    chosen = made(choosing).threshold
    release = replace(release, epsilon=wish.epsilon, threshold=chosen, reuse=reuse)
    if not renew:
        return release
    later = made(replace(choosing, holdout=min(renew, MOST_WATCHED))).threshold
    return replace(release, renew=renew, later=later)


def plan(  # noqa: PLR0913 - what a curator decides
    method: str = "tuned",
    *,
    epsilon: float,
    bound: int,
    holdout: int = HOLDOUT,
    limit: int = LIMIT,
    threshold: int | None = None,
    block: int | None = None,
    smoother: str = "recent",
    reuse: float = 0.0,
    per_person: int = 0,
    renew: int = 0,
) -> PublishingPlan:
    """Return the publishing plan of a named method.

    Parameters
    ----------
    method
        A name from ``METHODS``.
    epsilon
        The privacy of each value.
    bound
        The public bound of a value, in units.
    holdout
        The number of first values from which the threshold is chosen.
    limit
        The length of the longest range that is often asked for.
    threshold
        A threshold known in advance, in units, so that nothing is held out.
    block
        The number of values per published sum, instead of the method's own choice.
    smoother
        The smoother that guesses the values of an unfinished block.
    reuse
        The share of epsilon for the threshold, if the values it is chosen from are published as
        well. If 0, they are not published, and choosing and noise each use all of epsilon.
    per_person
        The number of values of each person that count, if people and not values are protected.
    renew
        After how many values the threshold is chosen again, with the share ``reuse``; 0 for never.

    Examples
    --------
    >>> release = plan("tops", epsilon=0.1, bound=30_000)
    >>> release.tree, release.block
    (Tree(fanout=16, layers=3, consistent=True), 256)

    """
    _check(method, epsilon, limit, reuse, renew, None if threshold is not None else holdout)
    build, each = METHODS[method][1], share_of(epsilon, Fraction(1, max(per_person, 1)))
    wish = Wish(each, bound, max(holdout, 1), limit)
    if reuse and (renew or threshold is None):
        release = _shared(build, wish, float(reuse), renew)
    else:
        release = replace(build(wish), renew=renew)
    if threshold is not None:
        release = replace(release, threshold=Fixed(threshold), holdout=0)
    release = replace(release, block=release.block if block is None else block)
    return replace(release, epsilon=epsilon, smoother=smoother, per_person=per_person)


def plan_periods(
    times: str,
    *,
    epsilon: float,
    bound: int,
    rows: int,
    periods: int,
    threshold: int | None = None,
    reuse: float = 0.2,
) -> PublishingPlan:
    """Return the plan for values that are published by time, with one block for each period.

    All values choose the threshold and all are published, so that it does not matter in which order
    they come: the choice has the share ``reuse`` of epsilon, and the noise the rest.

    Parameters
    ----------
    times
        Whether times are ``private`` or ``public``.
    epsilon, bound, threshold
        As for :func:`plan`.
    rows
        The number of rows, which is public.
    periods
        The number of periods.
    reuse
        The share of epsilon for the threshold, unless that is known in advance.

    Examples
    --------
    >>> release = plan_periods("private", epsilon=0.5, bound=1000, rows=10_000, periods=720)
    >>> release.block, 1 / release.noise(100).rate == 2 * 100 * release.tree.layers / Fraction(2, 5)
    (1, True)

    """
    share = Fraction(0) if threshold is not None else Fraction(repr(float(reuse)))
    check_number("reuse", reuse, above=0, below=1)
    check_whole("rows", rows, 1)
    spent = share_of(epsilon, (1 - share) / (2 if times == "private" else 1))
    wish = Wish(spent, bound, rows, max(periods, 2))
    tree, block = tuned_tree(wish, 1)
    if threshold is not None:
        return PublishingPlan(epsilon, bound, Fixed(threshold), tree=tree, times=times)
    above = math.sqrt(6 * _squared_error(wish, tree, block))  # of all rows, in the whole grid
    chosen = _threshold(replace(wish, epsilon=share_of(epsilon, share)), above)
    return PublishingPlan(epsilon, bound, chosen, rows, tree, reuse=float(reuse), times=times)


def _check(
    method: str, epsilon: float, limit: int, reuse: float, renew: int, holdout: int | None
) -> None:
    """Raise ConfigurationError on a choice of a curator that is not allowed."""
    check_one_of("method", method, METHODS)
    check_whole("limit", limit, 2)
    exact_epsilon(epsilon)
    check_number("reuse", reuse, least=0, below=1)
    check_whole("renew", renew, 0)
    if holdout is not None:
        check_whole("holdout", holdout, 1)
