"""How many of the subsets that tell two sparse vectors apart are favoured by every third one.

Triples of vectors are equal up to symmetry if they have the same number of entries of each kind:
two vectors have opposite signs in q of their non-zeros, equal signs in p, and s - q - p non-zeros
of their own; in each of these four groups the third vector agrees with f entries and opposes g, and
its other non-zeros are elsewhere. All these cases are listed. (Stubs exclude some of them; ignoring
that can only raise what is exposed.)

A subset that has to hit a vector (ExSub) misses some symbols with a probability that depends only
on the numbers of entries of which it must avoid one symbol or both. For a subset that has to agree
with a vector (Concord) the numbers of entries taken and the agreements are sums over independent
entries, given how many are taken: a product of transforms, one factor for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Ints
from sfumato.core.contrast import Cover
from sfumato.mechanisms.sparse.subset.cover_form import (
    CoverForm,
    Exposed,
    Pair,
    Walk,
    split_at,
    splits_of,
)
from sfumato.mechanisms.sparse.subset.hits import hits_law

__all__ = ["Covered", "subset_cover"]

Complex = NDArray[np.complex128]

_HITS_LISTED: Final = 16
_AGREEMENTS_LISTED: Final = 8
"""The largest numbers of non-zeros for which all triples are listed, in well under a second."""
_ERROR: Final = 1e-10


class Covered(NamedTuple):
    """How much others' subsets cover, and three vectors for which this is attained.

    Parameters
    ----------
    cover
        How much others' subsets cover, for upper bounds.
    shares
        The base measure of subsets, keyed by which of the three vectors favour them, for the triple
        in which the first two vectors are easiest to tell apart if everybody else holds the third.
    entries
        The number of entries that the three vectors use.

    """

    cover: Cover
    shares: dict[tuple[int, ...], float]
    entries: int


def subset_cover(
    ratio: Fraction, dimension: int, sparsity: int, size: int, threshold: int | None
) -> Covered | None:
    """Return how much others' subsets cover; None if there are too many cases to list.

    The arguments are those of ``subset_contrasts``.
    """
    most = _HITS_LISTED if threshold is None else _AGREEMENTS_LISTED
    if sparsity > most or (threshold is not None and threshold < 1):
        return None
    form = _form(dimension, sparsity, size, threshold)
    opposite = (sparsity, 0)

    def told(pair: Pair) -> float:
        share = form.exposed(pair).share
        return share + (form.apart(pair) - share) / float(ratio)

    # A pair that is less far apart than this has a good bound without any cover.
    enough = told(opposite)
    near = [pair for pair in form.pairs if form.apart(pair) > enough]
    worst = max((opposite, *near), key=told)
    exposed = max(form.exposed(pair).share for pair in (opposite, *near))
    apart = max(map(form.apart, form.pairs))
    others = max((form.apart(pair) for pair in form.pairs if pair not in near), default=0.0)
    plain = others if others > exposed else 0.0
    cover = Cover(ratio, form.accepted, apart / 2, exposed + _ERROR, plain / 2)
    kinds = form.kinds(worst)
    return Covered(cover, form.shares(kinds), sum(kinds.values()))


class _Hit(CoverForm):
    """Subsets that are favoured if they contain at least one symbol of the vector."""

    @cached_property
    def _missed(self) -> Floats:
        """The probability of missing one symbol of u entries and both of v, by [u, v]."""
        most, d = 3 * self.sparsity, self.dimension
        chances = np.zeros((most + 1, most + 1))
        none = 1.0
        for v in range(min(most, d - self.size) + 1):
            for u in range(min(most, d - v) + 1):
                first, law = hits_law(d - v, u, self.size)
                chances[u, v] = none * float(
                    law @ np.ldexp(1.0, -np.arange(first, first + len(law)))
                )
            none *= (d - self.size - v) / (d - v)
        return chances

    @property
    def accepted(self) -> float:
        return float(1 - self._missed[self.sparsity, 0])

    def _apart(self, pair: Pair) -> float:
        opposite, agreed = pair
        own = self.sparsity - opposite - agreed
        both = self._missed[agreed + 2 * own, opposite]
        return float(2 * (self._missed[self.sparsity, 0] - both))

    def _exposed(self, pair: Pair) -> Exposed:
        opposite, agreed = pair
        s, missed = self.sparsity, self._missed
        own = s - opposite - agreed
        # What both favour tells nothing: a third vector exposes most if it agrees with all of it.
        groups = [splits_of(each) for each in (opposite, 0, own, own)]
        groups[1] = np.array([[agreed, 0]])
        grid = np.meshgrid(*(np.arange(len(group)) for group in groups), indexing="ij")
        (f1, g1), (f2, g2), (f3, g3), (f4, g4) = (
            group[index].reshape(-1, 2).T for group, index in zip(groups, grid, strict=True)
        )
        taken = f1 + g1 + f2 + g2 + f3 + g3 + f4 + g4
        elsewhere = s - taken
        fits = (elsewhere >= 0) & (opposite + agreed + 2 * own + elsewhere <= self.dimension)

        def shared(same: Ints, against: Ints) -> Floats:
            return np.asarray(missed[(2 * s - same - 2 * against)[fits], against[fits]])

        first = shared(f1 + f2 + f3, g1 + g2 + g3)
        second = shared(g1 + f2 + f4, f1 + g2 + g4)
        turned = g2 + g3 + g4
        single = agreed + 2 * own - turned + elsewhere
        every = missed[single[fits], (opposite + turned)[fits]]
        apart = first + second - 2 * every
        best = int(np.flatnonzero(fits)[int(apart.argmax())])
        splits = ((f1, g1), (f2, g2), (f3, g3), (f4, g4))
        return Exposed(float(apart.max()), tuple((int(f[best]), int(g[best])) for f, g in splits))

    def _walk(self) -> Walk:
        start = np.zeros((2, 2, 2))
        start[0, 0, 0] = 1.0

        def step(law: Floats, signs: Sequence[int], sign: int) -> Floats:
            moved = law
            for axis, own in enumerate(signs, 1):
                if own == sign:  # a hit, whatever happened before
                    hit = moved.sum(axis=axis, keepdims=True)
                    moved = np.concatenate([np.zeros_like(hit), hit], axis=axis)
            return moved

        return start, step, np.array([False, True])


class _Agree(CoverForm):
    """Subsets that are favoured if they agree with the vector by at least a threshold."""

    def __init__(self, dimension: int, sparsity: int, size: int, threshold: int) -> None:
        super().__init__(dimension, sparsity, size)
        self.threshold = threshold
        # Points of a transform over the number of entries taken and the third vector's agreement.
        self.chance = size / dimension
        taken, agreement = 3 * sparsity + 1, 2 * sparsity + 1
        half = np.arange(taken // 2 + 1)
        twice = np.where((half == 0) | (2 * half == taken), 1.0, 2.0)
        angle = -2j * np.pi
        self.z = np.repeat(np.exp(angle * half / taken), agreement)
        self.weight = np.repeat(twice, agreement) / (taken * agreement)
        self.h = np.tile(np.exp(angle * np.arange(agreement) / agreement), len(half))
        below = np.arange(-sparsity, threshold)
        self.refused = (self.h[:, None] ** -below).sum(axis=1)
        self._group = cache(self._group_law)
        self._test = cache(self._refusal)

    @property
    def accepted(self) -> float:
        return self.apart((self.sparsity, 0)) / 2

    def _grown(self, law: Complex, sign: int) -> Complex:
        """Return the law of a group's sum with one more entry, given the third vector's sign."""
        moved = np.zeros((len(law) + 2, law.shape[1]), dtype=np.complex128)
        moved[1:-1] = (1 - self.chance) * law
        step = self.chance / 2 * self.z * law
        moved[2:] += step * self.h**sign
        moved[:-2] += step * self.h**-sign
        return moved

    def _group_law(self, count: int) -> Complex:
        """Return the law of a group's sum for each split, by [split, sum, point]."""
        laws = []
        for agree, oppose in splits_of(count).tolist():
            law = np.ones((1, len(self.z)), dtype=np.complex128)
            for sign in [1] * agree + [-1] * oppose + [0] * (count - agree - oppose):
                law = self._grown(law, sign)
            laws.append(law)
        return np.array(laws)

    def _refusal(self, special: int, elsewhere: int) -> Complex:
        """Return the factors, by point, that make probabilities of a refusal of transforms.

        It is the third vector that refuses, of whose entries so many are special or elsewhere.
        """
        count = special + elsewhere
        first, law = hits_law(self.dimension, count, self.size)
        number = np.arange(first, first + len(law))
        independent = _binomial(count, self.chance)[number]
        there = independent > 0
        weights = law[there] / independent[there]
        taken = (self.z[:, None] ** -number[there]) @ weights
        step = (1 - self.chance) + self.chance * self.z * (self.h + 1 / self.h) / 2
        return np.asarray(self.weight * taken * self.refused * step**elsewhere)

    def _sides(self, law: Complex, least: Ints) -> tuple[Complex, Complex]:
        """Return a group's law where its sum is at least, or below, each number in ``least``."""
        above = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]
        above = np.concatenate([above, np.zeros_like(above[:, :1])], axis=1)
        largest = law.shape[1] // 2
        high = above[:, np.clip(least + largest, 0, law.shape[1])]
        return high, above[:, :1] - high

    def _apart(self, pair: Pair) -> float:
        # Without a third vector there is nothing to agree with, so it refuses everything.
        return self._most(*pair, alone=True).share

    def _exposed(self, pair: Pair) -> Exposed:
        return self._most(*pair, alone=False)

    def _walk(self) -> Walk:
        s = self.sparsity
        start = np.zeros((2 * s + 1,) * 3)
        start[s, s, s] = 1.0

        def step(law: Floats, signs: Sequence[int], sign: int) -> Floats:
            moves = [sign * own for own in signs]
            return np.roll(law, moves, axis=(1, 2, 3))

        return start, step, np.arange(-s, s + 1) >= self.threshold

    def _most(self, opposite: int, agreed: int, *, alone: bool) -> Exposed:
        s, own = self.sparsity, self.sparsity - opposite - agreed
        special = opposite + agreed + 2 * own
        some = slice(0, 1) if alone else slice(None)
        groups = [self._group(count)[some] for count in (opposite, agreed, own)]
        used = [splits_of(count).sum(axis=1)[some] for count in (opposite, agreed, own)]
        turned, kept, private = groups
        sums = [np.arange(-count, count + 1) for count in (opposite, agreed)]
        t, q = (each.ravel() for each in np.meshgrid(*sums, indexing="ij"))
        points = len(self.z)
        left = (turned[:, None, :, None] * kept[None, :, None, :]).reshape(-1, len(t) * points)
        used_left = np.add.outer(used[0], used[1]).ravel()
        one_high, one_low = self._sides(private, self.threshold - t - q)
        two_high, two_low = self._sides(private, self.threshold + t - q)
        best = Exposed(-1.0, ())
        for index, count in enumerate(used[2].tolist()):
            right = one_high[index] * two_low + one_low[index] * two_high
            flat = right.reshape(len(right), -1)
            for elsewhere in [0] if alone else range(s + 1):
                if special + elsewhere > self.dimension:
                    break
                test = np.tile(self._test(special, elsewhere), len(t))
                for more in range(s + 1):
                    rows = used_left == (0 if alone else s - elsewhere - count - more)
                    columns = used[2] == more
                    if rows.any() and columns.any():
                        apart = ((left[rows] * test) @ flat[columns].T).real
                        if apart.max() > best.share:
                            row, column = np.unravel_index(int(apart.argmax()), apart.shape)
                            here = int(np.flatnonzero(rows)[row])
                            chosen = (
                                (opposite, here // len(kept)),
                                (agreed, here % len(kept)),
                                (own, index),
                                (own, int(np.flatnonzero(columns)[column])),
                            )
                            splits = tuple(split_at(*each) for each in chosen)
                            best = Exposed(float(apart.max()), splits)
        return best


def _binomial(count: int, chance: float) -> Floats:
    law = np.ones(1)
    for _ in range(count):
        law = np.append(law, 0.0) * (1 - chance) + np.insert(law, 0, 0.0) * chance
    return law


@lru_cache(maxsize=64)
def _form(dimension: int, sparsity: int, size: int, threshold: int | None) -> CoverForm:
    if threshold is None:
        return _Hit(dimension, sparsity, size)
    return _Agree(dimension, sparsity, size, threshold)
