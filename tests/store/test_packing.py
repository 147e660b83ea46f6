"""The order of packed reports is uniformly random, in one group and in many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from sfumato.randomness import seeded
from sfumato.store import packing
from sfumato.store.merging import distinct


@pytest.mark.parametrize("most", [1 << 20, 4, 2])
def test_every_order_is_equally_likely(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 24 orders, in memory and through groups; 6 standard errors."""
    monkeypatch.setattr(packing, "MOST_BYTES", most)
    rng, counts, runs = seeded(5), Counter[bytes](), 4800

    def read() -> Iterator[tuple[int, bytes]]:
        yield from ((2, b"a1b2"), (2, b"c3d4"))

    for _ in range(runs):
        mixed = b"".join(part.tobytes() for part in packing.permuted(read, 4, 2, rng))
        counts[mixed] += 1
    assert len(counts) == 24
    assert max(abs(n - runs / 24) for n in counts.values()) < 6 * (runs / 24) ** 0.5


def test_a_wrong_order_would_be_noticed() -> None:
    """Halves that are put in order, as a negative control of the test above."""
    rng, counts, runs = seeded(6), Counter[bytes](), 4800
    for _ in range(runs):
        halves = [b"a1b2", b"c3d4"]
        counts[b"".join(halves[place] for place in rng.permutation(2))] += 1
    assert max(abs(n - runs / 24) for n in counts.values()) > 6 * (runs / 24) ** 0.5


def test_a_row_has_no_more_reports_than_one_step_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "STEP", 1 << 10)

    def rows(size: int) -> list[int]:
        parts = packing.permuted(lambda: iter([(40, bytes(40 * size))]), 40, size, seeded(7))
        return [len(part) for part in parts]

    assert (rows(1), rows(100), rows(2000)) == ([40], [10] * 4, [1] * 40)


def test_steps_are_short_and_have_all_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "STEP", 10 * packing.OF_A_ROW)
    sizes = [0] * 25 + [4 * packing.OF_A_ROW] * 3 + [100 * packing.OF_A_ROW, 0]
    steps = list(packing.in_steps(sizes, int))
    assert [size for step in steps for size in step] == sizes
    assert [len(step) for step in steps] == [10, 10, 6, 2, 1, 1]
    assert not list(packing.in_steps([], len))


def test_words_are_distinct_and_in_order() -> None:
    rng = np.random.default_rng(8)
    for n in (0, 1, 2, 1000):
        words = rng.integers(0, 300, n).astype(np.uint64)
        assert distinct(words).tolist() == sorted(set(words.tolist()))
