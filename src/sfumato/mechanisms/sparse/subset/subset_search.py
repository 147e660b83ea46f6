"""The sizes and thresholds of least exact error, for subsets with signs and without."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, isfinite
from typing import Any, Final

from sfumato.mechanisms.sparse.subset.set_law import SetLaw, set_law
from sfumato.mechanisms.sparse.subset.subset_law import SubsetLaw, subset_law

__all__ = ["best_law", "best_set_law", "best_threshold"]

MOST_WORSE: Final = 6  # thresholds in a row without a gain after which the search ends
FAR_OFF: Final = 12  # sizes in a row far from the best after which the search ends
# With more non-zeros than this, large sizes are tried at larger steps.
MANY_NONZEROS: Final = 1 << 12
MANY_THRESHOLDS: Final = 64  # above this number, thresholds are not tried one by one


def best_law(  # noqa: PLR0913 - what the exact error depends on
    epsilon: float,
    dimension: int,
    sparsity: int,
    *,
    concord: bool,
    estimate: str,
    entries: int,
    threshold: int | None = None,
    fits: Callable[[int], bool] = lambda _: True,
) -> SubsetLaw:
    """Return the law of least exact error over all sizes (and thresholds, unless one is given)."""
    near = 1

    @cache
    def law_of(size: int) -> SubsetLaw:
        nonlocal near  # sizes that are close to each other have close thresholds
        if not concord or threshold is not None:
            return subset_law(epsilon, dimension, sparsity, size, threshold)
        law = best_threshold(epsilon, dimension, sparsity, size, estimate, entries, near)
        near = law.threshold or 1
        return law

    def error(size: int) -> float:
        return law_of(size).mse(estimate, entries)

    # With many non-zeros, either few positions are best, all of which are tried, or all positions.
    step = 1.3 if sparsity > MANY_NONZEROS else 1.05
    return law_of(_best_size(dimension, error, fits, step))


def best_threshold(
    epsilon: float,
    dimension: int,
    sparsity: int,
    size: int,
    estimate: str,
    entries: int,
    near: int = 1,
) -> SubsetLaw:
    """Return the law of least exact error over all thresholds, for subsets of this size.

    A search among very many thresholds starts near one of them.
    """
    if estimate == "value" and min(sparsity, size) > MANY_THRESHOLDS:
        return _settled_threshold(epsilon, dimension, sparsity, size, entries, near)
    best = subset_law(epsilon, dimension, sparsity, size, 1)
    if estimate == "frequency" and size == dimension:
        return best  # if every entry is sent, no threshold tells which ones are non-zero
    worse = 0
    for tried in range(2, min(sparsity, size) + 1):
        law = subset_law(epsilon, dimension, sparsity, size, tried)
        if law.mse(estimate, entries) < best.mse(estimate, entries):
            best, worse = law, 0
        elif isfinite(best.mse(estimate, entries)):
            worse += 1
        # For values, by Neyman and Pearson: accept what agrees more than the mean; beyond that
        # errors only grow. For frequencies errors may rise and fall again, so a few more thresholds
        # are tried.
        past = sparsity * law.contrast + 2 if estimate == "value" else inf
        if tried > past or worse > MOST_WORSE:
            break
    return best


def _settled_threshold(
    epsilon: float, dimension: int, sparsity: int, size: int, entries: int, near: int
) -> SubsetLaw:
    """Return the law whose threshold is just above its own mean agreement, or a neighbour of it.

    By Neyman and Pearson, the best test for a value accepts what agrees more than the mean.
    """
    largest = min(sparsity, size)
    tried = {}
    threshold = min(near, largest)
    while threshold not in tried:
        law = tried[threshold] = subset_law(epsilon, dimension, sparsity, size, threshold)
        threshold = min(max(int(sparsity * law.contrast) + 1, 1), largest)
    for beside in (threshold - 1, threshold + 1):
        if 1 <= beside <= largest and beside not in tried:
            tried[beside] = subset_law(epsilon, dimension, sparsity, size, beside)
    return min(tried.values(), key=lambda one: one.mse("value", entries))


def best_set_law(
    epsilon: float,
    dimension: int,
    sparsity: int,
    items: int,
    fits: Callable[[int], bool] = lambda _: True,
) -> SetLaw:
    """Return the law of least exact error over all sizes for which a miss is possible."""

    def error(size: int) -> float:
        return set_law(epsilon, dimension, sparsity, size).mse(items)

    return set_law(epsilon, dimension, sparsity, _best_size(dimension - sparsity, error, fits))


def _best_size(
    largest: int, error: Callable[[int], Any], fits: Callable[[int], bool], step: float = 1.05
) -> int:
    """Return the size of least error among those that fit.

    Up to 512 all sizes are tried. Above that, sizes 5% apart are tried, then finer steps around the
    best one, twice, because the error is smooth on that scale. After many sizes in a row that are
    far from the best, only the largest one is tried.
    """
    tried = []
    least, worse = inf, 0
    for size in filter(fits, _spaced(largest, step)):
        tried.append(size)
        here = error(size)
        least, worse = min(least, here), worse + 1 if here > 4 * least else 0
        if worse > FAR_OFF:
            break
    tried += [largest] if fits(largest) and tried[-1:] != [largest] else []
    for _ in range(2):
        best = min(tried, key=error)
        reach = max(1, best // 40)
        around = range(max(best - reach, 1), min(best + reach, largest) + 1, max(1, reach // 64))
        tried = sorted({*tried, *filter(fits, around)})
    return min(tried, key=error)


def _spaced(dimension: int, step: float) -> list[int]:
    """Return all sizes up to 512 and then sizes a factor ``step`` apart, up to the largest."""
    sizes = list(range(1, min(dimension, 512) + 1))
    while sizes[-1] < dimension:
        sizes.append(min(dimension, int(sizes[-1] * step)))
    return sizes
