"""Optimized local hashing: the hash family by enumeration, the packing, the decoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import OLH, seeded
from sfumato.errors import ConfigurationError, ReportError

RANGES = [2, 3, 4, 5, 6, 7, 8, 100, 127, 128, 129, 255, 256, 257, 1000, 16_385, 32_767, 32_768]


def symbols(mechanism: OLH, report: NDArray[Any], count: int) -> list[int]:
    """The numbers y, b, a_0, ... as the format says: equally wide, from the lowest bit on."""
    width = (mechanism.buckets - 1).bit_length()
    number = int.from_bytes(report.tobytes(), "little")
    assert number >> width * count == 0
    return [number >> width * place & ((1 << width) - 1) for place in range(count)]


def naive_sums(mechanism: OLH, reports: NDArray[Any]) -> list[int]:
    """Which items the reports support, item by item from the definition of the hash."""
    digits = (mechanism.size - 1).bit_length()
    sums = [0] * mechanism.size
    for report in reports:
        y, offset, *shifts = symbols(mechanism, report, 2 + digits)
        for item in range(mechanism.size):
            held = sum(shift for place, shift in enumerate(shifts) if item >> place & 1)
            sums[item] += (offset + held) % mechanism.buckets == y
    return sums


# ---- the family of hashes ---------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 5, 8])
@pytest.mark.parametrize("g", [2, 3, 4, 5, 6])
def test_any_three_items_have_independent_uniform_buckets(g: int, d: int) -> None:
    mechanism = OLH(1.0, d, hash_range=g)
    publics = mechanism.publics()
    assert len(publics) == len(set(publics)) == g ** (1 + (d - 1).bit_length())
    buckets = np.array([[mechanism.bucket(item, h) for h in publics] for item in range(d)])
    few = min(3, d)
    for items in combinations(range(d), few):
        seen = Counter(zip(*buckets[list(items)].tolist(), strict=True))
        assert len(seen) == g**few
        assert set(seen.values()) == {len(publics) // g**few}


def test_four_items_are_not_promised_to_be_independent() -> None:
    """The sum of the buckets of 0 and 3 is that of 1 and 2: three is as far as it goes."""
    mechanism = OLH(1.0, 4, hash_range=3)
    for h in mechanism.publics():
        a, b, c, d = (mechanism.bucket(item, h) for item in range(4))
        assert (a + d - b - c) % 3 == 0


@pytest.mark.parametrize("g", [2, 3, 5, 8])
def test_hashes_are_drawn_uniformly(g: int) -> None:
    mechanism = OLH(1.0, 4, hash_range=g)
    reports = mechanism.randomize(np.zeros(20_000, dtype=int), seeded(g))
    drawn = np.array([symbols(mechanism, report, 4)[1:] for report in reports])
    for column in drawn.T:
        counts = np.bincount(column, minlength=g)
        assert np.abs(counts - 20_000 / g).max() < 6 * np.sqrt(20_000 / g)


# ---- packing and decoding ---------------------------------------------------------------------


@pytest.mark.parametrize("g", RANGES)
@pytest.mark.parametrize("d", [2, 5, 300])
def test_numbers_survive_packing(g: int, d: int) -> None:
    mechanism = OLH(1.0, d, hash_range=g)
    digits = (d - 1).bit_length()
    hashes: list[Sequence[int]] = [
        (g - 1,) * (1 + digits),
        (0,) * (1 + digits),
        *seeded(g).below(g, 6 * (1 + digits)).reshape(6, -1).tolist(),
    ]
    for public in hashes:
        outputs = mechanism.law(0, public).outputs
        assert mechanism.report_bytes == -(-(2 + digits) * (g - 1).bit_length() // 8)
        assert mechanism.valid(outputs).all()
        for y in {0, 1, g // 2, g - 1}:
            assert symbols(mechanism, outputs[y], 2 + digits) == [y, *public]
            supported = mechanism.tally(outputs[y : y + 1]).sums
            naive = [int(mechanism.bucket(item, public) == y) for item in range(d)]
            assert supported.tolist() == naive


@pytest.mark.parametrize("d", [2, 3, 7, 8, 9, 33])
@pytest.mark.parametrize("g", [2, 3, 4, 7, 8, 128, 129, 200, 256, 32_768])
def test_the_table_of_buckets_is_the_naive_hash(d: int, g: int) -> None:
    mechanism = OLH(2.0, d, hash_range=g)
    reports = mechanism.randomize(seeded(1).below(d, 90), seeded(2))
    assert mechanism.valid(reports).all()
    assert mechanism.tally(reports).sums.tolist() == naive_sums(mechanism, reports)


def test_a_holders_report_supports_the_item_as_often_as_p_says() -> None:
    mechanism = OLH(3.0, 1000)
    n = 30_000
    sums = mechanism.tally(mechanism.randomize(np.full(n, 777), seeded(3))).sums
    p, q = mechanism.p, mechanism.q
    assert abs(sums[777] - n * p) < 6 * np.sqrt(n * p * (1 - p))
    others = np.delete(sums, 777)
    assert np.abs(others - n * q).max() < 6.5 * np.sqrt(n * q * (1 - q))


def test_a_million_items_are_decoded() -> None:
    mechanism = OLH(4.0, 1 << 20)
    reports = mechanism.randomize([123_456] * 40, seeded(4))
    sums = mechanism.tally(reports).sums
    assert int(sums.argmax()) == 123_456
    assert sums.mean() == pytest.approx(40 * mechanism.q, rel=0.02)


# ---- the door ---------------------------------------------------------------------------------


@pytest.mark.parametrize("g", [3, 5, 6, 100, 32_767])
def test_a_number_that_is_no_bucket_is_refused(g: int) -> None:
    mechanism = OLH(1.0, 4, hash_range=g)
    width = (g - 1).bit_length()
    size = mechanism.report_bytes
    for place in range(4):
        forged = (g << width * place).to_bytes(size, "little")
        fine = (g - 1 << width * place).to_bytes(size, "little")
        assert mechanism.valid(np.frombuffer(fine, mechanism.report_dtype)).all()
        with pytest.raises(ReportError, match=r"reports\[0\] = .* cannot come from"):
            mechanism.decode(forged)


@pytest.mark.parametrize(("g", "d"), [(2, 4), (4, 5), (8, 30), (5, 9)])
def test_a_stray_bit_is_refused(g: int, d: int) -> None:
    mechanism = OLH(1.0, d, hash_range=g)
    used = (2 + (d - 1).bit_length()) * (g - 1).bit_length()
    size = mechanism.report_bytes
    for bit in range(used, 8 * size):
        with pytest.raises(ReportError):
            mechanism.decode((1 << bit).to_bytes(size, "little"))


@pytest.mark.parametrize("given", [1, 0, -2, 32_769, 2.0, "4", True])
def test_a_hash_range_that_cannot_be_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OLH(1.0, 4, hash_range=given)
    assert str(caught.value) == (
        f"hash_range is {given!r}; a whole number in 2..32768 is expected."
    )


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.5, 1.0, 2.0, 3.3, 6.0, 9.0])
def test_the_hash_range_chosen_has_the_least_variance_of_all(epsilon: float) -> None:
    best = OLH(epsilon, 100)
    others = {2, 3, 4, best.buckets - 1, best.buckets + 1, best.buckets * 2}
    for g in others - {1}:
        assert best.variance(0) <= OLH(epsilon, 100, hash_range=g).variance(0) * (1 + 1e-12)


def test_the_largest_epsilon_still_fits_its_buckets() -> None:
    mechanism = OLH(20.0, 10)
    assert mechanism.buckets == 32_768
    reports = mechanism.randomize([3] * 50, seeded(5))
    assert mechanism.tally(reports).sums[3] == 50


@pytest.mark.parametrize("expanded", [0, 1, 50])
@pytest.mark.parametrize(("d", "g"), [(2, 2), (5, 3), (8, 4), (13, 5), (16, 2), (21, 4), (40, 3)])
def test_counting_equal_hashes_first_counts_the_same(
    d: int, g: int, expanded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many digits share their counts, every item has the reports that support it."""
    mechanism = OLH(1.0, d, hash_range=g)
    reports = mechanism.randomize(np.arange(200) % d, seeded(5))
    monkeypatch.setattr("sfumato.mechanisms.frequency.olh._COUNTED", 0.1)
    monkeypatch.setattr("sfumato.mechanisms.frequency.olh._EXPANDED", expanded / 1000)
    assert mechanism.shared_digits(len(reports)) > 0
    assert mechanism.tally(reports).sums.tolist() == naive_sums(mechanism, reports)


def test_equal_hashes_are_counted_first_where_there_are_many() -> None:
    """A few reports are gone through one by one; of a million, equal ones are counted."""
    mechanism = OLH(1.0, 1024)
    assert mechanism.shared_digits(100) == 0
    assert mechanism.shared_digits(1_000_000) > 6
    assert OLH(6.0, 1024).shared_digits(1_000_000) < 3


@pytest.mark.parametrize("g", RANGES)
@pytest.mark.parametrize("d", [2, 128, 100_000])
def test_with_hardly_any_noise_the_bucket_is_the_item_s_own(g: int, d: int) -> None:
    """Reports of one word, of two and of many bytes alike; the hash itself stays uniform."""
    mechanism = OLH(20.0, d, hash_range=g)
    items = np.random.default_rng(g).integers(d, size=300)
    publics, others = [], 0
    for item, report in zip(items.tolist(), mechanism.randomize(items, seeded(g)), strict=True):
        y, *public = symbols(mechanism, report, 2 + (d - 1).bit_length())
        others += y != mechanism.bucket(item, public)
        publics.append(public)
    assert others <= 3
    spread = np.array(publics).mean() / (g - 1)
    deviation = ((g + 1) / (12 * (g - 1)) / np.size(publics)) ** 0.5
    assert abs(spread - 0.5) < 5.5 * deviation
