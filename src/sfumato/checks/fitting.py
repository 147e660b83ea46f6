"""Pearson's test of whether counts of reports fit a law, with very rare false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import numpy as np

from sfumato.arrays import Array
from sfumato.checks.listing import laws_of
from sfumato.checks.verdict import ALARM, demand
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism

__all__ = ["Counted", "chi_squared_tail", "keys_of", "must_fit", "must_fit_input", "pearson"]

_RARE = 20  # outputs expected less often than this share one cell


def keys_of(reports: Array) -> Array:
    """Return a key for each report, by which reports can be sorted and compared."""
    size = reports.dtype.itemsize
    raw = np.ascontiguousarray(reports)
    if size > 8:
        return raw.view(f"S{size}")
    padded = np.zeros((len(reports), 8), dtype=np.uint8)
    padded[:, :size] = raw.view(np.uint8).reshape(len(reports), size)
    return padded.view(np.uint64)[:, 0]


class Counted:
    """The number of times each report was seen, counted once for several comparisons."""

    def __init__(self, reports: Array) -> None:
        self.n = len(reports)
        self.kinds, self.counts = np.unique(keys_of(reports), return_counts=True)

    def fit(self, laws: Iterable[Law]) -> float:
        """Return the p-value of Pearson's test of whether the reports follow a law.

        If reports have a public part, these are the laws of all public parts.
        """
        parts = [(keys_of(law.outputs), law.probabilities) for law in laws]
        outputs = np.concatenate([keys for keys, _ in parts])
        chances = np.concatenate([chances for _, chances in parts]) / len(parts)
        order = np.argsort(outputs)
        indices = np.searchsorted(outputs, self.kinds, sorter=order)
        known = indices < len(outputs)
        indices = order[np.where(known, indices, 0)]
        if not (known & (outputs[indices] == self.kinds)).all():
            return 0.0
        seen = np.zeros(len(outputs))
        seen[indices] = self.counts
        return pearson(seen, self.n * chances)


def pearson(seen: Array, expected: Array) -> float:
    """Return the p-value of Pearson's test; cells with small expected counts are merged."""
    rare = expected < _RARE
    counts, means = seen[~rare], expected[~rare]
    if rare.any():
        counts = np.append(counts, seen[rare].sum())
        means = np.append(means, max(expected[rare].sum(), 1e-300))
    statistic = float(((counts - means) ** 2 / means).sum())
    return chi_squared_tail(statistic, max(len(means) - 1, 1))


def chi_squared_tail(statistic: float, freedom: int) -> float:
    """Return P[chi-squared > statistic] by Wilson and Hilferty's cube root, good in far tails."""
    spread = 2 / (9 * freedom)
    return NormalDist().cdf(-((statistic / freedom) ** (1 / 3) - 1 + spread) / math.sqrt(spread))


def must_fit(mechanism: Mechanism, value: Any, reports: Array | Counted) -> None:
    """Raise CheckFailed unless these reports of one value follow the law."""
    _demand_fit(mechanism.laws(value), value, reports)


def must_fit_input(mechanism: Mechanism, index: int, reports: Array | Counted) -> None:
    """Raise CheckFailed unless these reports of the input at an index follow the law."""
    laws = [by_input[index] for by_input in laws_of(mechanism)]
    _demand_fit(laws, mechanism.inputs()[index], reports)


def _demand_fit(laws: list[Law], value: Any, reports: Array | Counted) -> None:
    counted = reports if isinstance(reports, Counted) else Counted(reports)
    p_value = counted.fit(laws)
    demand(p_value > ALARM, f"reports of {value!r} do not follow the law (p = {p_value:.1e})")
