"""The counts of clients: each has at most its cap, in little memory, until the period closes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sfumato.service.client_counts import ClientCounts, Demand

TASK, OTHER = bytes(32), bytes(range(32))


def _words(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64) << np.uint64(48)


def _demand(n: int, *clients: int, task: bytes = TASK, period: int = 1, cap: int = 5) -> Demand:
    return Demand(task, period, cap, _words(*clients), np.full(len(clients), n, np.uint64))


def _granted(counts: ClientCounts, demand: Demand) -> list[int]:
    (granted,) = counts.take([demand])
    numbers: list[int] = granted.tolist()
    return numbers


@pytest.mark.parametrize("cap", [1, 2, 7, 8, 1000, (1 << 32) - 1, 1 << 40])
def test_a_client_has_what_its_cap_leaves_and_what_is_given_back(cap: int) -> None:
    counts, rng, expected = ClientCounts(), np.random.default_rng(cap), Counter[int]()
    pool = rng.integers(0, 1 << 64, 9000, dtype=np.uint64)
    pool[:3] = 0, (1 << 64) - 1, 1 << 63
    for _ in range(25):
        clients = rng.choice(pool, int(rng.integers(1, 2000)), replace=False)
        numbers = rng.integers(1, 2 * min(cap, 500), len(clients)).astype(np.uint64)
        (granted,) = counts.take([Demand(TASK, 1, cap, clients, numbers)])
        for client, n, got in zip(
            clients.tolist(), numbers.tolist(), granted.tolist(), strict=True
        ):
            assert got == min(n, cap - expected[client])
            expected[client] += got
        some = rng.random(len(clients)) < 0.3
        back = (granted[some] + np.uint64(1)) // np.uint64(2)
        counts.give_back([Demand(TASK, 1, cap, clients[some], back)])
        expected.subtract(dict(zip(clients[some].tolist(), back.tolist(), strict=True)))
    assert len(counts) == len(expected)


def test_periods_and_tasks_count_on_their_own() -> None:
    counts = ClientCounts()
    for demand in (_demand(9, 1, 2), _demand(9, 1, 2, period=2), _demand(9, 1, 2, task=OTHER)):
        assert _granted(counts, demand) == [5, 5]
        assert _granted(counts, demand) == [0, 0]
    assert [each.tolist() for each in counts.take([_demand(3, 4), _demand(3, 4)])] == [[3], [2]]


def test_nothing_is_kept_of_what_has_closed() -> None:
    counts = ClientCounts()
    for period in (1, 2, 3):
        counts.take([_demand(9, *range(2000), period=period), _demand(9, 1, task=OTHER)])
    held = counts.nbytes
    counts.forget(TASK, 0)  # no period has closed
    assert len(counts) == 6001
    counts.forget(TASK, 2)
    assert len(counts) == 2001
    assert counts.nbytes < held / 2
    assert _granted(counts, _demand(9, 1, period=3)) == [0]
    assert _granted(counts, _demand(9, 1, period=2)) == [5]  # a commit of it is refused as a whole
    counts.give_back([_demand(5, 1, period=1)])  # it came too late, and there is nothing left
    counts.forget(TASK)
    counts.forget(OTHER, 1)
    assert (len(counts), counts.nbytes) == (0, 0)


def test_a_client_takes_at_most_16_bytes_once_there_are_many() -> None:
    counts, rng = ClientCounts(), np.random.default_rng(1)
    for _ in range(30):
        clients = rng.integers(0, 1 << 64, 10_000, dtype=np.uint64)
        counts.take([Demand(TASK, 1, 1000, clients, np.full(10_000, 900, np.uint64))])
        if len(counts) > 100_000:
            assert 8 * len(counts) < counts.nbytes <= 16.5 * len(counts)


def test_of_a_task_with_too_many_clients_no_new_ones_count_and_no_other_task_notices() -> None:
    counts = ClientCounts(most=3)
    assert _granted(counts, _demand(2, 1, 2)) == [2, 2]
    assert _granted(counts, _demand(2, 3, 4, 2, period=2)) == [2, 0, 0]
    assert _granted(counts, _demand(2, 1, 2, 3)) == [2, 2, 0]  # those that were there go on
    assert _granted(counts, _demand(2, 3, task=OTHER)) == [2]
    counts.forget(TASK, 1)
    assert _granted(counts, _demand(2, 4, 2, 5, period=2)) == [2, 2, 0]


def test_clients_are_known_by_a_key_of_each_start() -> None:
    assert len(ClientCounts().key) == 32
    assert ClientCounts().key != ClientCounts().key
