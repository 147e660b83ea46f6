"""Checks of large instances, whose laws are too long to list, in every form of a report.

Numbers above 255 and above 65,535 take more bytes, and long subsets are drawn and sent differently
from short ones, so code that is right for small examples could be wrong there. The probability that
a report counts towards a cell of the tally is known for any size. So reports of people with one
value are counted: each cell of that value on its own (a count is binomial), all others in groups,
from batch to batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import lru_cache, singledispatch
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.checks.fitting import pearson
from sfumato.checks.independence import unlikely
from sfumato.checks.listing import copies
from sfumato.checks.verdict import ALARM, CheckFailed, demand
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.mechanisms.mean.numeric import NumericMechanism
from sfumato.mechanisms.sparse.rivals.sampled import SampledLaw
from sfumato.mechanisms.sparse.rivals.succinct import Succinct
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism
from sfumato.mechanisms.sparse.subset.privset import PrivSet
from sfumato.randomness import seeded

__all__ = ["large_sizes_follow_the_law", "siblings"]


_PLACES: Final = (0, 1, 255, 256, 65_535, 65_536)
_BATCHES: Final = 40
_GROUPS: Final = 16

_SIBLINGS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "domain": (
        {"epsilon": 1.0, "domain": 300},
        {"epsilon": 4.0, "domain": 300},
        {"epsilon": 1.0, "domain": 300, "subset_size": 290},
        {"epsilon": 1.0, "domain": 70_000},
        {"epsilon": 6.0, "domain": 70_000},
    ),
    "subset_size": (
        {"dimension": 100, "subset_size": 2},
        {"dimension": 100, "subset_size": 40},
        {"dimension": 100, "subset_size": 95},
        {"dimension": 100, "subset_size": 103},
        {"dimension": 300, "subset_size": 4},
        {"dimension": 300, "subset_size": 100, "exact_sparsity": True},
        {"dimension": 300, "subset_size": 303},
        {"dimension": 70_000, "subset_size": 4},
        {"dimension": 70_000, "subset_size": 20_000},
    ),
    "hash_range": ({"dimension": 100}, {"dimension": 300}, {"dimension": 33_000}),
    "grid": ({"grid": 300}, {"grid": 70_000}),
    "dimension": ({"dimension": 100}, {"dimension": 300}, {"dimension": 33_000}),
}
"""Sizes for mechanisms with a field of this name; the first such field is used."""


def siblings(mechanism: Mechanism) -> Iterator[Mechanism]:
    """Yield large instances of the same class, one for each form of a report."""
    known = {field.name for field in fields(mechanism)}
    fixed: dict[str, Any] = {"epsilon": 1.0}
    fixed |= {"sparsity": 3} if "sparsity" in known else {}
    fixed |= {"low": 0.0, "high": 1.0} if "grid" in known else {}
    for field in _SIBLINGS:
        if field in known:
            for sizes in _SIBLINGS[field]:
                if set(sizes) <= known:
                    try:
                        yield type(mechanism)(**fixed | sizes)
                    except ConfigurationError:
                        continue  # this class does not allow such a size
            return


def large_sizes_follow_the_law(mechanism: Mechanism) -> None:
    """Above 255 and 65,535 items, in every form of a report, cells count as often as stated."""
    for large in siblings(mechanism):
        finding = _finding(large)
        demand(not finding, f"{large}: {finding}")


@lru_cache(maxsize=256)
def _finding(large: Mechanism) -> str:
    """Return what is wrong with one instance; empty if nothing is. The result is cached."""
    try:
        _compare(large)
    except CheckFailed as failed:
        return str(failed)
    return ""


@singledispatch
def _compare(mechanism: Mechanism) -> None:
    """Compare a large instance with its law; this default knows no law and checks nothing."""


@_compare.register
def _oracle(mechanism: FrequencyOracle) -> None:
    size = mechanism.size
    for item in _held(size):
        chances = np.full(size, mechanism.q)
        chances[item] = mechanism.p
        values = np.full(_people(size), item)
        _compare_counts(mechanism, values, chances, np.array([item]), f"item {item}")


@_compare.register
def _sets(mechanism: PrivSet) -> None:
    law = mechanism.probabilities
    for indices in _triples(mechanism.dimension):
        chances = np.full(mechanism.dimension, law.p_false)
        chances[indices] = law.p_true
        values = mechanism.example_values(_people(mechanism.dimension))
        values["position"] = indices
        _compare_counts(mechanism, values, chances, indices, f"the set {indices.tolist()}")


@_compare.register
def _vectors(mechanism: SparseMechanism) -> None:
    law, d = mechanism.probabilities, mechanism.dimension
    signs = np.array([1, -1, 1])
    for indices in _triples(d):
        chances = np.full(mechanism.tally_shape, law.p_false, dtype=np.float64)
        chances[:2, indices] += law.presence / 2
        chances[0, indices] += signs * law.contrast / 2
        chances[1, indices] -= signs * law.contrast / 2
        if isinstance(law, SampledLaw):  # the last row counts who was asked, and said "absent"
            chances[2] = law.asked - chances[:2].sum(axis=0)
        values = mechanism.example_values(_people(d))
        values["position"], values["sign"] = indices, signs
        cells = (d * np.arange(len(chances))[:, None] + indices).ravel()
        _compare_counts(mechanism, values, chances.ravel(), cells, f"entries {indices.tolist()}")


@_compare.register
def _noisy_sums(mechanism: Succinct) -> None:
    """Compare the counts of rounded sums; those of other noise are no counts of reports."""
    rounded = replace(mechanism, noise="rounding")
    _vectors(rounded)


@_compare.register
def _numbers(mechanism: NumericMechanism) -> None:
    for point in (*_held(mechanism.grid), mechanism.grid // 2):
        value = mechanism.low + mechanism.step * point
        reports = mechanism.randomize(copies(value, 20_000), seeded(point))
        chances = mechanism.law(value).probabilities
        ends = np.minimum(np.cumsum(chances), 1.0)
        cells = np.minimum((ends * 64).astype(np.int64), 63)
        seen = np.bincount(cells[reports["symbol"]], minlength=64)
        expected = len(reports) * np.bincount(cells, chances, minlength=64)
        there = expected > 0
        demand(not seen[~there].any(), f"reports of {value:g} are impossible")
        p_value = pearson(seen[there], expected[there])
        demand(p_value > ALARM, f"reports of {value:g} do not follow the law (p = {p_value:.1e})")


def _people(size: int) -> int:
    return 8_000 if size <= 1_000 else 1_000


def _held(size: int) -> list[int]:
    return sorted({index for index in _PLACES if index < size} | {size - 1})


def _triples(dimension: int) -> Iterator[Ints]:
    """Yield three positions at a time, in order, until all interesting ones were used."""
    indices = _held(dimension)
    for start in range(0, len(indices), 3):
        yield np.array(indices[start : start + 3] if start + 3 <= len(indices) else indices[-3:])


def _compare_counts(
    mechanism: Mechanism, values: Any, chances: Floats, held: Ints, what: str
) -> None:
    """Raise CheckFailed unless each cell of the tally counts as many reports as it should."""
    n = len(values)
    reports = mechanism.randomize(values, seeded(int(held[0])))
    step = n // _BATCHES
    sums = np.array(
        [mechanism.tally(reports[start : start + step]).sums.ravel() for start in range(0, n, step)]
    )
    whole = mechanism.tally(reports[::-1].copy()).sums.ravel()
    once = mechanism.tally(reports[:1]).sums.ravel()
    again = mechanism.tally(np.repeat(reports[:1], 3)).sums.ravel()
    demand(
        bool((sums.sum(axis=0) == whole).all() and (again == 3 * once).all()),
        f"reports of {what} do not count by themselves, one by one",
    )
    log = unlikely(sums.sum(axis=0)[held], np.full(held.size, n), chances[held])
    worst = int(log.argmin())
    demand(
        bool(log[worst] > math.log(ALARM / held.size)),
        f"{sums[:, held[worst]].sum()} of {n} reports of {what} count for it, "
        f"{n * chances[held[worst]]:.0f} are expected",
    )
    others = np.vstack([step * chances, sums])
    others[:, held] = 0
    size = chances.size
    starts = [-(-group * size // _GROUPS) for group in range(_GROUPS)]
    rows = np.pad(others, ((0, 0), (0, -size % _GROUPS))).reshape(len(others), -1, _GROUPS)
    for grouped in (np.add.reduceat(others, starts, axis=1), rows.sum(axis=1)):
        expected, counts = grouped[0], grouped[1:]
        often = _BATCHES * expected > 400
        apart = counts.mean(axis=0) - expected
        # The variance of a group's count is at least this, even if the sample shows less.
        spread = counts.std(axis=0, ddof=1) + 1
        scores = np.abs(apart[often]) / spread[often] * math.sqrt(_BATCHES)
        # Student's law with 39 degrees of freedom reaches a fifth further than the normal law.
        limit = 1.25 * -NormalDist().inv_cdf(ALARM / (4 * _GROUPS))
        demand(
            bool((scores < limit).all()),
            f"reports of {what} count too often or too rarely for other cells "
            f"({scores.max(initial=0.0):.1f} sigma)",
        )
