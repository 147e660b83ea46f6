"""Optimized unary encoding: one bit per item, every bit on its own."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import OUE, seeded
from sfumato.errors import ReportError


def bits_of(mechanism: OUE, reports: NDArray[Any]) -> NDArray[np.int64]:
    """The bits as the format says: item i is bit i of the report as a little-endian number."""
    numbers = [int.from_bytes(report.tobytes(), "little") for report in reports]
    return np.array([[n >> item & 1 for item in range(mechanism.size)] for n in numbers])


@pytest.mark.parametrize("d", [2, 7, 8, 9, 63, 64, 65, 100, 128, 200])
def test_tallies_count_the_bits_of_the_format(d: int) -> None:
    mechanism = OUE(1.0, d)
    people = seeded(1).below(d, 600)
    reports = mechanism.randomize(people, seeded(2))
    assert mechanism.report_bytes == -(-d // 8)
    assert mechanism.tally(reports).sums.tolist() == bits_of(mechanism, reports).sum(0).tolist()


@pytest.mark.statistics
@pytest.mark.parametrize(("epsilon", "d", "held"), [(0.5, 70, 69), (1.0, 64, 0), (2.0, 130, 127)])
def test_every_bit_has_its_probability_and_is_independent(
    epsilon: float, d: int, held: int
) -> None:
    n = 40_000
    mechanism = OUE(epsilon, d)
    reports = mechanism.randomize(np.full(n, held), seeded(d))
    bits = np.unpackbits(reports["bits"], axis=1, count=d, bitorder="little").astype(float)

    def worst(epsilon: float) -> float:
        chance = np.full(d, OUE(epsilon, d).q)
        chance[held] = 0.5
        return float(np.abs((bits.mean(0) - chance) / np.sqrt(chance * (1 - chance) / n)).max())

    assert worst(epsilon) < 6.5
    assert worst(0.9 * epsilon) > 6.5
    assert worst(1.1 * epsilon) > 6.5
    pairs = np.corrcoef(bits.T)[np.triu_indices(d, 1)]
    assert np.abs(pairs).max() < 6.5 / sqrt(n)


@pytest.mark.parametrize("d", [3, 9, 15, 100])
def test_a_bit_beyond_the_last_item_is_refused(d: int) -> None:
    mechanism = OUE(1.0, d)
    reports = mechanism.randomize([0, 1, 2], seeded(3))
    reports["bits"][1, -1] |= np.uint8(1 << d % 8)
    assert mechanism.valid(reports).tolist() == [True, False, True]
    with pytest.raises(ReportError, match=r"reports\[1\] = .* cannot come from"):
        mechanism.tally(reports)


def test_whole_bytes_have_no_bit_to_refuse() -> None:
    assert OUE(1.0, 16).valid(np.full(2, 255, "u2").view(OUE(1.0, 16).report_dtype)).all()


def test_counts_do_not_wrap_in_long_batches() -> None:
    mechanism = OUE(20.0, 4)
    reports = np.full(100_000, 0b1111, "u1").view(mechanism.report_dtype)
    assert mechanism.tally(reports).sums.tolist() == [100_000] * 4
