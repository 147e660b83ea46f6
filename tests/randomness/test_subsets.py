"""Uniform subsets, as members and as bits: every one as likely as any other."""

from __future__ import annotations

from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato.errors import ConfigurationError
from sfumato.randomness import Source, members, seeded


def as_rows(source: Source, how: str, k: int, m: int, n: int) -> NDArray[np.int64]:
    drawn = source.subsets(k, m, n) if how == "subsets" else members(source.subset_lanes(k, m, n))
    return np.sort(drawn, axis=1)


HOW = pytest.mark.parametrize("how", ["subsets", "subset_lanes"])


@HOW
@pytest.mark.parametrize(
    ("k", "m"), [(2, 1), (3, 2), (5, 2), (6, 3), (7, 5), (9, 4), (70, 1), (70, 69), (64, 63)]
)
def test_every_subset_is_equally_likely(how: str, k: int, m: int) -> None:
    n = 20_000
    rows = as_rows(seeded(100 * k + m), how, k, m, n)
    kinds = np.ascontiguousarray(rows.astype(np.uint8)).view(f"V{m}")
    _, counts = np.unique(kinds, return_counts=True)
    assert counts.size == comb(k, m)
    expected = n / counts.size
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, counts.size - 1) > 1e-6


@HOW
@pytest.mark.parametrize(("k", "m"), [(24, 10), (100, 66), (130, 35), (200, 100)])
def test_items_and_pairs_are_in_as_often_as_they_should(how: str, k: int, m: int) -> None:
    n = 8_000
    rows = as_rows(seeded(k + m), how, k, m, n)
    table = np.zeros((n, k))
    np.put_along_axis(table, rows, 1.0, axis=1)
    assert (table.sum(axis=1) == m).all()
    pairs = table.T @ table
    single, both = m / k, m * (m - 1) / (k * (k - 1))
    z = (np.diag(pairs) - n * single) / sqrt(n * single * (1 - single))
    assert np.abs(z).max() < 6
    z = (pairs[np.triu_indices(k, 1)] - n * both) / sqrt(n * both * (1 - both))
    assert np.abs(z).max() < 6.5
    assert 0.8 < z.std() < 1.2


@HOW
@pytest.mark.parametrize(("k", "m"), [(1, 0), (1, 1), (5, 0), (5, 5), (64, 64), (1000, 1000)])
def test_nothing_and_everything_are_subsets_too(how: str, k: int, m: int) -> None:
    assert as_rows(seeded(0), how, k, m, 3).tolist() == [list(range(m))] * 3


@HOW
def test_a_large_domain_is_no_trouble(how: str) -> None:
    rows = as_rows(seeded(0), how, 100_000, 3_000, 2)
    assert (np.diff(rows, axis=1) > 0).all()
    assert rows.min() >= 0
    assert rows.max() < 100_000


def test_bits_beyond_the_last_item_are_never_set() -> None:
    for m in (3, 40, 68):
        assert not (seeded(m).subset_lanes(70, m, 500)[1] >> np.uint64(6)).any()


@HOW
@pytest.mark.parametrize("m", [-1, 4])
def test_a_subset_has_at_most_all_items(how: str, m: int) -> None:
    draw: Any = getattr(seeded(0), how)
    with pytest.raises(ConfigurationError, match=f"m is {m}; a subset of 3 has 0..3 members"):
        draw(3, m, 1)
