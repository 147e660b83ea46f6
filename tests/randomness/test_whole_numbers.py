"""Whole numbers and orders are uniform: by enumeration where that is possible."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fitting import ALARM, p_value
from tests.randomness.walking import Scripted, Walking, has_law

from sfumato.errors import ConfigurationError
from sfumato.randomness import (
    seeded,
)


@pytest.mark.parametrize("k", [1, 2, 4, 128, 256])
def test_a_power_of_two_takes_the_low_bits_of_a_byte(k: int) -> None:
    drawn = Scripted((np.arange(256), "u1")).below(k, 256)
    assert np.bincount(drawn, minlength=k).tolist() == [256 // k] * k


@pytest.mark.parametrize(("k", "dtype"), [(512, "<u2"), (1 << 17, "<u4"), (1 << 63, "<u8")])
def test_a_larger_power_of_two_takes_the_low_bits_of_a_wider_word(k: int, dtype: str) -> None:
    words = [0, 1, k - 1, k, k + 1, np.iinfo(dtype).max]
    drawn = Scripted((words, dtype)).below(k, len(words))
    assert drawn.tolist() == [word % k for word in words]


def was_redrawn(k: int, word: int) -> tuple[int, bool]:
    """What `below` makes of a word, and whether it asked for another one."""
    spare = (1 << 32) - 1  # is never redrawn itself
    source = Scripted(([word, spare], "<u4"))
    return int(source.below(k, 1)[0]), not source.left


@pytest.mark.parametrize("k", [3, 5, 6, 7, 100, 1000, 65537, (1 << 24) - 1])
def test_every_number_is_made_by_equally_many_words(k: int) -> None:
    """Lemire: word w makes floor(w k / 2^32); only the first word of a number may be redrawn."""
    last = (1 << 32) - 1
    for number in {0, 1, 2, k // 2, k - 2, k - 1, *range(0, k, 1 + k // 50)}:
        start = -(-number * (1 << 32) // k)
        end = -(-(number + 1) * (1 << 32) // k) - 1
        made, again = was_redrawn(k, start)
        assert made == (k - 1 if again else number)
        assert was_redrawn(k, start + 1) == (number, False)
        assert was_redrawn(k, min(end, last)) == (number, False)
        assert end - start + 1 - again == (1 << 32) // k


@pytest.mark.parametrize("k", [(1 << 24) + 1, (1 << 40) - 5, (1 << 63) - 1])
def test_a_large_number_is_drawn_again_until_it_is_below(k: int) -> None:
    dtype = "<u4" if k < 1 << 32 else "<u8"
    top = 1 << k.bit_length()
    source = Scripted(([0, k - 1, k, top - 1, top], dtype), ([k, k - 1], dtype), ([1], dtype))
    assert source.below(k, 5).tolist() == [0, k - 1, 1, k - 1, 0]


@pytest.mark.parametrize("k", [0, -1, (1 << 63) + 1])
def test_there_is_no_number_below_such_a_bound(k: int) -> None:
    with pytest.raises(ConfigurationError, match=f"k is {k}; a uniform integer below k needs"):
        seeded(0).below(k, 1)


def test_numbers_come_in_the_dtype_asked_for() -> None:
    for k in (5, 8, 30_000):
        assert seeded(k).below(k, 10, np.uint16).dtype == np.uint16
        assert seeded(k).below(k, 10).tolist() == seeded(k).below(k, 10, np.uint16).tolist()


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_every_order_of_the_keys_makes_another_permutation(k: int) -> None:
    made = {
        tuple(Scripted((keys, "<u8")).permutation(k).tolist()) for keys in permutations(range(k))
    }
    assert made == set(permutations(range(k)))


def test_a_permutation_whose_keys_tie_starts_afresh() -> None:
    source = Scripted(([5, 9, 5], "<u8"), ([8, 1, 4], "<u8"))
    assert source.permutation(3).tolist() == [1, 2, 0]
    assert not source.left


def test_permutations_are_uniform() -> None:
    rng = seeded(3)
    seen = Counter(tuple(rng.permutation(4).tolist()) for _ in range(12_000))
    assert len(seen) == 24
    assert p_value(np.array(list(seen.values())), np.full(24, 1 / 24)) > ALARM


class WalkingBelow(Walking):
    """The same, with a number below a given one as one choice."""

    def _below_sizes(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.below(int(sizes[0]), 1)


@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 8), (2, 5), (71, 75), (64, 64)])
def test_a_number_below_a_secret_size_is_uniform(least: int, most: int) -> None:
    for size in range(least, most + 1):
        has_law(
            lambda source, size=size: source.below_each(np.array([size]), least, most),  # type: ignore[misc]
            WalkingBelow,
            lambda number, size=size: float(number < size) / size,  # type: ignore[misc]
            cut=1e-9,
        )


@pytest.mark.parametrize(("least", "most"), [(1, 8), (20, 60), (100, 130)])
def test_a_secret_size_is_not_seen_in_the_coins(least: int, most: int) -> None:
    sizes = least + np.arange(5000) % (most - least + 1)
    ends = []
    for secret in (sizes, sizes[::-1], np.full(5000, least), np.full(5000, most)):
        rng = seeded(4)
        drawn = rng.below_each(secret, least, most)
        assert ((drawn >= 0) & (drawn < secret)).all()
        ends.append(rng.take(8))
    assert ends == ends[:1] * 4


@pytest.mark.parametrize("k", [3, 5, 6, 7, 100, 1000, 65537, (1 << 24) - 1])
def test_given_sizes_are_treated_as_one_size_is(k: int) -> None:
    for word in (0, 1, (1 << 32) // k, (1 << 32) // k + 1, (1 << 32) - 1):
        source = Scripted(([word, (1 << 32) - 1], "<u4"))
        made = int(source._below_sizes(np.array([k]))[0])  # noqa: SLF001
        assert (made, not source.left) == was_redrawn(k, word)


@pytest.mark.parametrize(("least", "most"), [(0, 3), (4, 3), (1, 1 << 25)])
def test_secret_sizes_of_no_use_are_refused(least: int, most: int) -> None:
    with pytest.raises(ConfigurationError, match=f"sizes lie in {least}..{most}"):
        seeded(0).below_each(np.array([3]), least, most)
