"""Check that people's reports are independent, so that no two people share coins.

Samplers work in chunks, and a chunk that reuses the coins of another one repeats its reports. So
many people with one value are randomized in two calls, and reports at every plausible distance are
compared: all pairs in a table, against the product of the law with itself; and the number of equal
pairs in each block, which is binomial because no report is in two pairs.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from sfumato.arrays import Array, Floats, Ints
from sfumato.checks.fitting import keys_of, pearson
from sfumato.checks.listing import copies, few, laws_of, sampler_of
from sfumato.checks.verdict import ALARM, demand
from sfumato.core.mechanism import Mechanism
from sfumato.randomness import seeded

__all__ = ["nobody_shares_coins", "unlikely"]

_LAGS: Final = tuple(1 << power for power in range(8, 17))
_CELLS: Final = 8
_LONGEST: Final = 1 << 20
_SINGLES: Final = 256


def nobody_shares_coins(mechanism: Mechanism) -> None:
    """Reports of different people, in any two chunks, batches or calls, are independent."""
    inputs = mechanism.inputs()
    index = few(inputs)[-1]
    half = min(max(_LAGS[-1], 2 * mechanism.chunk), _LONGEST)
    value, rng = inputs[index], seeded(14)
    batch = copies(value, half)
    reports = np.concatenate([mechanism.randomize(batch, rng) for _ in range(2)])
    law = _Cells(mechanism, index)
    keys = keys_of(reports)
    cells = law.cells(keys)
    for lag in sorted({*_LAGS, mechanism.chunk, mechanism.chunk // 2, half // 2, half}):
        if 1 <= lag <= half:
            law.compare(keys, cells, lag, f"{lag} people apart")
    single = sampler_of(mechanism, [value])
    keys = keys_of(np.concatenate([single(rng) for _ in range(_SINGLES)]))
    cells = law.cells(keys)
    for lag in (1, 2, 3, 16):
        law.compare(keys, cells, lag, f"{lag} calls for one person apart")


class _Cells:
    """The law of one input, with its outputs grouped into a few cells."""

    def __init__(self, mechanism: Mechanism, index: int) -> None:
        laws = [by_input[index] for by_input in laws_of(mechanism)]
        keys = np.concatenate([keys_of(law.outputs) for law in laws])
        chances = np.concatenate([law.probabilities for law in laws]) / len(laws)
        order = np.argsort(keys)
        self._keys = keys[order]
        # A report between two known outputs counts as the one after it; another check shows that
        # there are no such reports.
        cells = np.minimum((np.cumsum(chances[order]) - chances[order]) * _CELLS, _CELLS - 1)
        self._cells = cells.astype(np.int64)
        self._chances = np.bincount(self._cells, chances[order], minlength=_CELLS)
        self._equal = float(chances @ chances)

    def cells(self, keys: Array) -> Ints:
        """Return the cells of reports, given their keys."""
        indices = np.searchsorted(self._keys, keys)
        return self._cells[np.minimum(indices, len(self._cells) - 1)]

    def compare(self, keys: Array, cells: Ints, lag: int, what: str) -> None:
        """Raise CheckFailed unless reports at this distance are independent."""
        firsts = np.arange(len(keys) - lag)
        firsts = firsts[firsts // lag % 2 == 0]  # no report is in two pairs
        blocks = firsts // (2 * lag)
        sizes = np.bincount(blocks)
        equal = np.bincount(blocks, keys[firsts] == keys[firsts + lag])
        limit = math.log(ALARM / (20 * len(sizes)))
        worst = float(unlikely(equal, sizes, self._equal).min())
        demand(worst > limit, f"too many or too few reports {what} are equal (p = e^{worst:.0f})")
        table = np.bincount(cells[firsts] * _CELLS + cells[firsts + lag], minlength=_CELLS**2)
        expected = firsts.size * np.outer(self._chances, self._chances).ravel()
        p_value = pearson(table[expected > 0], expected[expected > 0])
        demand(p_value > ALARM / 20, f"reports {what} are not independent (p = {p_value:.1e})")


def unlikely(counts: Array, sizes: Array, chance: Any) -> Floats:
    """Return a bound of the log-probability that binomial counts deviate this far.

    It is Chernoff's bound: -n times the relative entropy of the share to the chance.
    """
    share = counts / sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(share > 0, share * np.log(share / chance), 0.0)
        absent = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chance)), 0.0)
    return np.asarray(-sizes * (there + absent))
