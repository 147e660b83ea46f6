"""Every option that changes what is read, on neighbouring files: what reaches the noise.

For each option all files of a tiny universe are really published, with a known key, and compared
with each of their neighbours: one value, or all values of one person, replaced by anything. What
reaches the publishers must have the same streams of the same lengths, and the exact epsilon by
which the two can differ, from the integer rates of the noise, must be within the promise. A release
that stops may do so only where its promise says that stopping is seen.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import pytest
from tests.files.neighbouring_releases import READINGS, leaks, published, spent


@pytest.mark.parametrize("name", READINGS)
def test_no_option_lets_more_than_epsilon_through(name: str, tmp_path: Path) -> None:
    assert leaks(READINGS[name], tmp_path) == set()


def test_neighbours_reach_the_noise_at_all(tmp_path: Path) -> None:
    """The comparison has something to compare: all of epsilon is used, and no more."""
    for name in ("a column", "several columns", "person, one value", "group", "lines", "reuse"):
        reading = READINGS[name]
        most = Fraction(0)
        for neighbours in itertools.islice(reading.columns(), 1):
            seen = []
            for column in neighbours:
                reading.write(tmp_path / "in", column)
                seen.append(published(reading, tmp_path / "in", tmp_path / "out.csv"))
            most = max(spent(reading, *pair) for pair in itertools.combinations(seen, 2))
        assert most > Fraction(2) * (1 - Fraction(1, 10**9)), name
