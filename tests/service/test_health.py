"""A collector that cannot keep what it would acknowledge says so, and why, and stops."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.fleets import Fleet
from tests.service.world import VALUES, World

from sfumato.service import health as healths
from sfumato.service.health import Health


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, store_file=tmp_path / "collector.db")
    with made.client:
        yield made


def _upload(world: World) -> Any:
    return world.upload(world.open, Fleet(world.open, len(VALUES)).body(VALUES))


def _says(world: World, sentence: str) -> None:
    answer = world.client.get("/readyz")
    assert answer.status_code == 503
    assert sentence in answer.json()["detail"].lower()
    assert answer.json()["instance"].endswith(answer.headers["x-request-id"])


def _deleted(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    other = path.with_name("other.db")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def _without_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def _garbage(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"garbage" * 100)


LOSSES: dict[str, tuple[Callable[[Path], None], str]] = {
    "deleted": (_deleted, "the database file was deleted"),
    "replaced": (_replaced, "the database file was replaced"),
    "log deleted": (_without_log, "the write-ahead log was deleted"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_acknowledged_that_is_not_on_the_file_that_is_there(
    world: World, tmp_path: Path, loss: str
) -> None:
    spoil, sentence = LOSSES[loss]
    assert world.client.get("/readyz").json() == {"status": "ready"}
    assert _upload(world).json()["accepted"] > 0
    spoil(tmp_path / "collector.db")
    # Before anybody has looked, the commit itself notices.
    world.service.health.troubles = []
    assert _upload(world).status_code == 503
    _says(world, sentence)
    assert _upload(world).status_code == 503


def test_a_corrupt_file_is_noticed(world: World, tmp_path: Path) -> None:
    assert _upload(world).json()["accepted"] > 0
    _garbage(tmp_path / "collector.db")
    _says(world, "corrupt")
    assert _upload(world).status_code == 503


def test_a_file_that_was_cut_off_is_noticed(world: World, tmp_path: Path) -> None:
    os.truncate(tmp_path / "collector.db", 512)
    for _ in range(3):
        world.client.get("/readyz")
    _says(world, "cut off")


def test_a_full_disk_is_trouble_and_no_longer_when_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(healths, "LEAST_DISK", 1 << 60)
        _says(world, "the disk is full")
        assert _upload(world).status_code == 503
    assert world.client.get("/readyz").status_code == 200
    assert _upload(world).json()["accepted"] > 0


def test_a_disk_that_cannot_be_read_is_trouble(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("sfumato.service.health.os.pread", broken)
    _says(world, "the database file cannot be looked at (input/output error)")


def test_exhausted_memory_is_trouble(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healths, "free_memory", lambda: 5 << 20)
    _says(world, "memory is exhausted: 5 mib are free")


def test_a_commit_that_fails_is_trouble_while_nothing_can_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> None:
        raise OSError("disk")

    with monkeypatch.context() as broken:
        broken.setattr(world.store, "commit", full)
        broken.setattr(healths, "_written", lambda _: "No space left on device")
        assert _upload(world).status_code == 503
        _says(world, "nothing can be written (no space left on device)")
    assert world.client.get("/readyz").status_code == 200  # the disk takes data again
    assert _upload(world).json()["accepted"] > 0


def test_a_clock_or_a_writer_that_stands_still_is_trouble() -> None:
    now, since = [100.0], [None]
    health = Health(None, lambda: since[0], lambda: now[0])
    assert health.look() == []
    now[0] += 15
    assert health.look() == []
    now[0] += 10
    assert health.look() == ["the clock has not closed periods for 25 s"]
    health.tick()
    since[0] = 103.0  # type: ignore[call-overload]
    assert health.look() == ["the writer has been doing the same work for 22 s"]
