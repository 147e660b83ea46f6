"""Codes are counted in pairs or one by one, with the same result."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.occurrences import occurrences
from sfumato.randomness import seeded


@pytest.mark.parametrize("size", [1, 2, 3, 16, 63, 64, 65, 128, 200, 256])
@pytest.mark.parametrize("n", [0, 1, 2, 1023, 16_385, 300_001])
def test_pairs_count_what_single_codes_count(size: int, n: int) -> None:
    codes = seeded(size).below(size, n).astype(np.uint8)
    expected = np.bincount(codes, minlength=size)
    for kind in (np.uint8, np.dtype("<u2"), np.dtype("<i4")):
        counted = occurrences(codes.astype(kind), size)
        assert counted.dtype == np.int64
        assert np.array_equal(counted, expected)


def test_fields_of_larger_reports_are_counted() -> None:
    reports = np.zeros((40_000, 3), dtype=[("head", "u1"), ("code", "u1")])
    reports["code"] = seeded(1).below(5, 120_000).reshape(-1, 3)
    expected = np.bincount(reports["code"].ravel(), minlength=5)
    assert np.array_equal(occurrences(reports["code"], 5), expected)
    odd = reports["code"].ravel()[1:]
    assert occurrences(odd, 5).sum() == 119_999
