"""Many batches become one tally, in memory that does not grow with their number."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import GRR, OLH, OUE, Tally, engines, seeded
from sfumato.errors import ReportError
from sfumato.mechanisms.frequency import FrequencyOracle

MECHANISMS = pytest.mark.parametrize(
    "mechanism", [GRR(1.0, 50), OUE(1.0, 50), OLH(1.0, 50)], ids=str
)


@MECHANISMS
def test_batches_of_any_size_add_up_to_the_whole(mechanism: FrequencyOracle) -> None:
    reports = mechanism.randomize(seeded(1).below(50, 1000), seeded(2))
    cuts = [0, 0, 1, 7, 500, 1000]
    batches = [reports[a:b] for a, b in pairwise(cuts)]
    assert engines.tally(mechanism, batches) == mechanism.tally(reports)
    assert engines.tally(mechanism, reversed(batches)) == mechanism.tally(reports)


def test_no_batch_is_the_tally_of_nothing() -> None:
    assert engines.tally(GRR(1.0, 50), []) == Tally.zero(50)


def test_a_bad_batch_stops_the_count() -> None:
    good = GRR(1.0, 50).randomize([1], seeded(1))
    with pytest.raises(ReportError):
        engines.tally(GRR(1.0, 50), [good, np.full(1, 50, "u1").view(good.dtype)])


def most_memory(mechanism: FrequencyOracle, batches: int, people: int) -> int:
    """The most bytes in use while so many batches are made, counted and forgotten."""

    def stream() -> Iterator[NDArray[Any]]:
        for seed in range(batches):
            yield mechanism.randomize(np.zeros(people, dtype=np.int64), seeded(seed))

    tracemalloc.start()
    try:
        assert engines.tally(mechanism, stream()).n == batches * people
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@MECHANISMS
def test_memory_does_not_grow_with_the_number_of_batches(mechanism: FrequencyOracle) -> None:
    most_memory(mechanism, 2, 2_000)
    few, many = most_memory(mechanism, 3, 2_000), most_memory(mechanism, 60, 2_000)
    assert many < 1.1 * few + 20_000


@pytest.mark.slow
@MECHANISMS
def test_memory_does_not_grow_over_millions_of_reports(mechanism: FrequencyOracle) -> None:
    few, many = most_memory(mechanism, 3, 50_000), most_memory(mechanism, 200, 50_000)
    assert many < 1.1 * few + 20_000
