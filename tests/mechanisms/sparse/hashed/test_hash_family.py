"""The quick hash family: even, independent as far as can be seen, counted alike in two ways."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from sfumato.compiled import WORTH_COMPILING, available
from sfumato.mechanisms.sparse.hashed import hash_family
from sfumato.mechanisms.sparse.hashed.hash_family import StretchedHash
from sfumato.randomness import seeded


@pytest.mark.parametrize("buckets", [2, 30, 31, 32, 1000])
def test_symbols_are_spread_evenly_and_independently(buckets: int) -> None:
    family = StretchedHash(300, buckets)
    n = 40_000
    hashed = family.table(300, seeded(1).words(n))
    for row in hashed[:: 300 // 7]:
        counts = np.bincount(row, minlength=buckets)
        statistic = float(((counts - n / buckets) ** 2).sum() / (n / buckets))
        assert abs(statistic - (buckets - 1)) < 7 * math.sqrt(2 * buckets)
    some = [*range(0, 300, 30), 1, 31]  # also both halves of one word
    met = np.mean([(hashed[a] == hashed[b]).mean() for a, b in combinations(some, 2)])
    assert met == pytest.approx(1 / buckets, abs=6 * math.sqrt(1 / buckets / (66 * n)))


@pytest.mark.statistics
def test_ten_symbols_together_are_even_too() -> None:
    hashed = StretchedHash(240, 2).table(240, seeded(2).words(200_000))
    for first in (0, 57, 230):
        together = (hashed[first : first + 10] << np.arange(10)[:, None]).sum(axis=0)
        counts = np.bincount(together, minlength=1024)
        statistic = float(((counts - 200_000 / 1024) ** 2).sum() / (200_000 / 1024))
        assert abs(statistic - 1023) < 6.5 * math.sqrt(2 * 1023)


def test_a_hash_is_what_the_generator_says() -> None:
    # The first words of SplitMix64 as published, for the state that seed 0 is mixed to (0).
    words = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    numbers = [number for word in words for number in (word & 0xFFFFFFFF, word >> 32)]
    hashed = StretchedHash(6, 1000).table(6, np.array([0]))[:, 0]
    assert hashed.tolist() == [number * 1000 >> 32 for number in numbers]


@pytest.mark.statistics
@pytest.mark.parametrize("buckets", [2, 3, 37, 40, 1 << 15])
@pytest.mark.parametrize("rows", [1, 7, 240])
def test_both_ways_count_the_symbols_in_a_bucket(
    buckets: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = StretchedHash(240, buckets)
    n = 1500 + 40 * (rows == 1)
    seeds, hashed = seeded(1).words(n), family.table(240, seeded(1).words(n))
    # Half the buckets are hit on purpose, edges of intervals included.
    sent = np.where(np.arange(n) % 2, hashed[0], seeded(2).below(buckets, n))
    both = [sent, (sent + buckets // 2) % buckets]
    wanted = [(hashed[:rows] == each).sum(axis=1).tolist() for each in both]
    assert family.counts(rows, seeds, both).tolist() == wanted
    monkeypatch.setattr(hash_family, "WORTH_COMPILING", 0)
    assert available()
    assert family.counts(rows, seeds, both).tolist() == wanted


def test_a_loop_is_compiled_only_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    monkeypatch.setattr(hash_family, "_count_quickly", lambda *_: used.append("quick"))
    monkeypatch.setattr(hash_family, "_count", lambda *_: used.append("numpy"))
    family, n = StretchedHash(1 << 14, 8), WORTH_COMPILING >> 13
    family.counts(1 << 14, np.zeros(n - 1, dtype=np.uint64), [np.zeros(n - 1, dtype=np.uint8)])
    assert set(used) == {"numpy"}
    family.counts(1 << 14, np.zeros(n, dtype=np.uint64), [np.zeros(n, dtype=np.uint8)])
    assert used[-1] == "quick"
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    family.counts(1 << 14, np.zeros(n, dtype=np.uint64), [np.zeros(n, dtype=np.uint8)])
    assert used[-1] == "numpy"


def test_uncompiled_the_loop_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    states, found = seeded(1).words(20), np.zeros((2, 1, 2, 5), dtype=np.int64)
    firsts = np.full((1, 20), 1 << 30, dtype=np.uint32)
    widths = np.full((1, 20), 1 << 31, dtype=np.uint32)
    hash_family._count(states, firsts, widths, found[0])  # noqa: SLF001
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with np.errstate(over="ignore"):
        hash_family._count_quickly(states, firsts, widths, found[1])  # noqa: SLF001
    assert found[0].tolist() == found[1].tolist()
    assert found[0].sum() > 50
