"""What happens between the transactions of a store that takes several for one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sfumato.store.report_tables import ReportTables
from sfumato.store.task_tables import Database

__all__ = ["Killed", "after_each", "killed_after"]


class Killed(BaseException):
    """The process ends here."""


def after_each(store: ReportTables, then: Callable[[], object]) -> pytest.MonkeyPatch:
    """Do something whenever a transaction of a store has ended, until this is undone."""
    patch, writing, wiped = pytest.MonkeyPatch(), store._writing, store._wiped  # noqa: SLF001

    @contextmanager
    def ended() -> Iterator[Database]:
        with writing() as db:
            yield db
        then()

    def emptied() -> None:
        wiped()
        then()

    patch.setattr(store, "_writing", ended)
    patch.setattr(store, "_wiped", emptied)
    return patch


def killed_after(most: int, steps: list[int]) -> None:
    """Count a step; after so many of them the process ends."""
    steps.append(1)
    if len(steps) == most:
        raise Killed
