"""Stores that several collectors share, of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.own_postgres import OwnPostgres
from tests.store.sharing import SharedDatabase, SharedFile, Sharing
from tests.store.stores import TASK

from sfumato.store import packing, packing_tables


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgres]:
    with OwnPostgres() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def sharing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sharing]:
    shared: Sharing = (
        SharedFile(tmp_path)
        if request.param == "sqlite"
        else SharedDatabase(request.getfixturevalue("server"))
    )
    shared.store.add_task(TASK, b"{}", {1: b"k" * 32}, public=False)
    yield shared
    shared.close()


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a period of some hundred reports take as many steps as one of many millions."""
    monkeypatch.setattr(packing, "ROW", 100)
    monkeypatch.setattr(packing, "STEP", 4096)
    for module in (packing, packing_tables):
        monkeypatch.setattr(module, "CHUNK", 256)
