"""The hash family under which few symbols are exactly independent."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sfumato.mechanisms.sparse.hashed.linear_hash import LinearHash
from sfumato.randomness import seeded


@pytest.mark.parametrize(
    ("symbols", "buckets", "strength"),
    [(9, 6, 3), (20, 3, 3), (9, 2, 6), (12, 4, 3), (5, 5, 4), (6, 3, 4), (30, 2, 5), (4, 12, 3)],
)
def test_any_few_symbols_are_exactly_independent(symbols: int, buckets: int, strength: int) -> None:
    family = LinearHash(symbols, buckets, strength)
    hashed = family.table(symbols, np.arange(family.seeds))
    for chosen in list(combinations(range(symbols), strength))[:300]:
        together = np.ravel_multi_index(tuple(hashed[list(chosen)]), (buckets,) * strength)
        counts = np.bincount(together, minlength=buckets**strength)
        assert counts.min() == counts.max()


@pytest.mark.parametrize(
    ("symbols", "buckets", "strength"), [(9, 6, 3), (12, 4, 3), (40, 7, 4), (300, 31, 4)]
)
def test_symbols_in_a_bucket_are_counted(symbols: int, buckets: int, strength: int) -> None:
    family = LinearHash(symbols, buckets, strength)
    seeds = family.draw(3000, seeded(1))
    sent = seeded(2).below(buckets, 3000)
    hashed = family.table(symbols, seeds)
    wanted = [(hashed == each).sum(axis=1) for each in (sent, (sent + 1) % buckets)]
    found = family.counts(symbols, seeds, [sent, (sent + 1) % buckets])
    assert found.tolist() == np.array(wanted).tolist()


def test_a_family_fits_into_so_many_bits_or_it_does_not() -> None:
    family = LinearHash(9, 6, 3)  # of 6^5 = 7776 members
    assert family.fits(13)
    assert not family.fits(12)
    assert not LinearHash(1 << 20, 64, 1 << 14).fits(63)
