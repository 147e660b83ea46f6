"""A process keeps what it has read of the tasks that were asked for last, and of no more."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from sfumato.errors import MismatchError
from sfumato.queries.history import History
from sfumato.service.kept_history import MOST_KEPT, KeptHistory, forget_all_but_the_latest


class Decoded:
    """A history that only says what it has."""

    decoders = ("online", "filtered")

    def __init__(self) -> None:
        self.decoded = self
        self.prepared: list[set[str]] = []

    def prepare(self, decoders: set[str]) -> None:
        self.prepared.append(decoders)


def _history() -> History:
    return cast("History", Decoded())


def _kept() -> tuple[KeptHistory, list[int]]:
    read: list[int] = []

    def reading(closed: int) -> History:
        read.append(closed)
        return _history()

    return KeptHistory(reading), read


def test_a_history_is_read_once_for_each_closed_period() -> None:
    kept, read = _kept()
    with pytest.raises(MismatchError, match="no period has closed yet"):
        kept.ask(0)
    assert kept.asked_at is None
    assert kept.ask(3) is kept.ask(3)
    kept.ask(4)
    assert read == [3, 4]


def test_the_old_history_goes_before_the_new_one_is_read() -> None:
    there: list[float | None] = []

    def reading(_: int) -> History:
        there.append(kept.asked_at)
        return _history()

    kept = KeptHistory(reading)
    kept.ask(1)
    kept.ask(2)
    assert there == [None, None]


def test_decoders_are_prepared_that_exist_and_were_asked_for() -> None:
    kept, read = _kept()
    history: Any = kept.ask(3, "filtered")
    kept.ask(3, "nonsense")
    kept.prepare(3)
    assert history.prepared == [{"filtered"}]
    kept.prepare(4)  # nobody has asked since
    assert kept.asked_at is None
    assert read == [3]


def test_the_tasks_asked_for_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    every = [_kept() for _ in range(MOST_KEPT + 3)]
    for kept, _ in every:
        now[0] += 1.0
        kept.ask(1)
    now[0] += 1.0
    every[0][0].ask(1)
    forget_all_but_the_latest(kept for kept, _ in every)
    assert [kept.asked_at is None for kept, _ in every] == [False, True, True, True] + [False] * (
        MOST_KEPT - 1
    )
    every[1][0].ask(1)
    assert every[1][1] == [1, 1]  # read anew, and answered
