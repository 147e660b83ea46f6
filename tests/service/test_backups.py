"""Stores are copied while they are written to; after a restore nothing but later reports lack."""

from __future__ import annotations

import csv
import errno
import io
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.cli.running import answer, refused
from tests.service.fleets import Fleet
from tests.service.test_collector import START, VALUES, Setting
from tests.service.test_task_keys import Place, device_at, live

from sfumato.core.answers import Answers
from sfumato.errors import InputError, SfumatoError
from sfumato.service.asgi import Service, make_app
from sfumato.service.backups import back_up, restore
from sfumato.store import SQLiteStore
from sfumato.store.schema import APPLICATION, STEPS


def test_what_was_acknowledged_since_is_what_is_missing(tmp_path: Path) -> None:
    setting, copy = Setting(tmp_path / "collector.db"), tmp_path / "copy.db"
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    counts = {}
    for period in (1, 2, 3, 4):
        setting.end_of(period)
        counts[period] = setting.collector.take(running, fleet.body(VALUES)).accepted
        if period == 3:
            assert back_up(setting.path, copy) == copy.stat().st_size
        setting.clock.now += 5
        setting.collector.close_due()
    released = running.releases[:2]
    setting.store.close()
    (short,) = restore(copy, setting.path, setting.clock.now, force=True)
    assert (short.first, short.last) == (3, 5)
    setting.open()
    running = setting.running()
    assert running.gaps == ((3, 5),)
    assert running.incomplete() == []  # none of them has closed
    assert running.participation() == {period: counts[period] for period in (1, 2, 3)}
    for before, after in zip(released, running.releases, strict=True):
        assert before.values.tobytes() == after.values.tobytes()
    setting.store.close()


def test_devices_go_on_after_a_restore(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    devices = [device_at(place)]
    back_up(place.path, tmp_path / "copy.db")
    place.clock.now += 3
    place.collector.rotate(place.running)
    devices.append(device_at(place))  # it knows a key that the copy lacks
    place.store.close()
    restore(tmp_path / "copy.db", place.path, place.clock.now, force=True)
    place.open()
    for period in (1, 2, 3):
        for device in devices:
            live(place, device, period)
            flushed = device.flush(force=True)
            assert (flushed.sent, flushed.refused, flushed.waiting) == (1, 0, 0)
        place.clock.now = START + 10.0 * period + 6
        place.collector.close_due()
    assert place.running.participation() == {1: 2, 2: 2, 3: 2}


def test_a_copy_has_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    running = setting.running()
    setting.end_of(1)
    assert setting.collector.take(running, Fleet(running, len(VALUES)).body(VALUES)).accepted
    ids = b"".join(setting.store.ids(running.task_id, 1))
    setting.collector.delete(running)
    setting.store.erase_left(running.task_id)
    back_up(setting.path, tmp_path / "copy.db")
    content = (tmp_path / "copy.db").read_bytes()
    assert running.task_id not in content
    assert not any(ids[at : at + 16] in content for at in range(0, len(ids), 16))
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    setting.store.close()


def test_a_store_in_use_is_not_replaced(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    setting.running()
    back_up(setting.path, tmp_path / "copy.db")
    with pytest.raises(InputError, match="in use already"):
        restore(tmp_path / "copy.db", setting.path, 0.0, force=True)
    setting.store.close()


@pytest.mark.parametrize("content", [b"", b"nothing", b"SQLite format 3\0" + bytes(4080)], ids=len)
def test_what_is_no_copy_changes_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "copy.db").write_bytes(content)
    (tmp_path / "collector.db").write_bytes(b"as before")
    for call in (
        lambda: restore(tmp_path / "copy.db", tmp_path / "collector.db", 0.0, force=True),
        lambda: back_up(tmp_path / "copy.db", tmp_path / "other.db"),
    ):
        with pytest.raises(InputError, match=r"copy.db (is|cannot)"):
            call()
    assert (tmp_path / "collector.db").read_bytes() == b"as before"
    assert not (tmp_path / "other.db").exists()


def test_a_damaged_copy_is_not_put_in_place(tmp_path: Path) -> None:
    setting, copy = Setting(tmp_path / "collector.db"), tmp_path / "copy.db"
    setting.running()
    back_up(setting.path, copy)
    setting.store.close()
    content = bytearray(copy.read_bytes())
    content[4096:12288] = b"\xa5" * 8192
    copy.write_bytes(content)
    with pytest.raises(InputError):
        restore(copy, tmp_path / "new.db", 0.0)
    assert not (tmp_path / "new.db").exists()


def _newer(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as db:
        db.execute("PRAGMA user_version = 99")


def _poorer(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as db:
        db.execute("DROP TABLE releases")


def _other_task(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("UPDATE tasks SET published = ?", [b"{}"])


@pytest.mark.parametrize("spoil", [_newer, _poorer, _other_task])
def test_a_copy_that_cannot_be_used_leaves_everything_as_it_was(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    setting, copy = Setting(tmp_path / "collector.db"), tmp_path / "copy.db"
    setting.running()
    setting.store.close()
    back_up(setting.path, copy)
    spoil(copy)
    setting.path.chmod(0o640)
    before, content = {*tmp_path.iterdir()}, setting.path.read_bytes()
    for target in (setting.path, tmp_path / "new.db"):
        with pytest.raises(SfumatoError) as refusal:
            restore(copy, target, START, force=True)
        assert ".part" not in str(refusal.value)
        if spoil is not _other_task:
            with pytest.raises(InputError, match=r"copy\.db (has version 99|is damaged: its)"):
                back_up(copy, target, force=True)
        assert {*tmp_path.iterdir()} == before
    assert setting.path.read_bytes() == content
    assert setting.path.stat().st_mode & 0o777 == 0o640


def test_a_copy_of_an_earlier_version_stays_one_until_it_is_restored(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.executescript(STEPS[0])
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute("PRAGMA user_version = 1")
    back_up(tmp_path / "old.db", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert restore(tmp_path / "copy.db", tmp_path / "new.db", START) == []
    with closing(sqlite3.connect(tmp_path / "new.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(STEPS),)


def test_a_copy_does_not_replace_a_store_in_use_nor_its_source(tmp_path: Path) -> None:
    setting, other = Setting(tmp_path / "collector.db"), Setting(tmp_path / "other.db")
    running = other.running()
    (tmp_path / "link.db").symlink_to(setting.path)
    for target in (setting.path, tmp_path / "link.db"):
        with pytest.raises(InputError, match="is the store itself; another file is expected"):
            back_up(setting.path, target, force=True)
        with pytest.raises(InputError, match="is the store itself; a copy of it is expected"):
            restore(target, setting.path, START, force=True)
    with pytest.raises(InputError, match=r"other\.db is in use already"):
        back_up(setting.path, other.path, force=True)
    assert [task.task_id for task in other.store.tasks()] == [running.task_id]
    setting.store.close()
    other.store.close()
    assert back_up(setting.path, other.path, force=True)


@pytest.mark.parametrize("is_new", [False, True])
def test_a_store_that_is_put_in_place_has_the_owner_of_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    setting, copy = Setting(tmp_path / "collector.db"), tmp_path / "copy.db"
    setting.store.close()
    back_up(setting.path, copy)
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _, user, group: given.append((user, group)))
    usual = Path.stat

    def stat(path: Path, **kind: bool) -> os.stat_result:
        about = list(usual(path, **kind))
        numbers = {setting.path: (1234, 567), tmp_path: (89, 10)}
        about[4:6] = numbers.get(path, about[4:6])
        return os.stat_result(about)

    monkeypatch.setattr(Path, "stat", stat)
    restore(copy, tmp_path / "new.db" if is_new else setting.path, START, force=True)
    assert given == [(89, 10) if is_new else (1234, 567)]


def test_databases_are_copied_by_tools_of_their_own(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    address = "postgresql://me:secret@db.example/reports"
    for words in (
        ("backup", tmp_path / "copy.db", "--store", address),
        ("restore", setting.path, "--store", address),
        ("restore", address, "--store", setting.path, "--force"),
    ):
        message = refused(*words)
        assert "pg_dump copies a database and pg_restore puts it back" in message
        assert "secret" not in message
    setting.store.close()


def test_the_command_line_copies_and_restores(tmp_path: Path) -> None:
    setting, copy = Setting(tmp_path / "collector.db"), tmp_path / "copy.db"
    name = setting.running().name
    written = answer("backup", copy, "--store", setting.path)
    assert written["bytes"] == copy.stat().st_size
    assert "copy.db" in refused("backup", copy, "--store", setting.path)
    assert "in use already" in refused("restore", copy, "--store", setting.path, "--force")
    setting.store.close()
    assert "collector.db" in refused("restore", copy, "--store", setting.path)
    assert answer("restore", copy, "--store", tmp_path / "new.db")["short"][0]["first"] == 1
    restored = answer("restore", copy, "--store", setting.path, "--force")
    assert restored["short"] == [
        {"task_id": name, "title": "Where people listen", "first": 1, "last": 6}
    ]


def test_everybody_is_told_which_periods_may_lack_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setting, copy = Setting(tmp_path / "collector.db"), tmp_path / "copy.db"
    running = setting.running(sealed=False)
    fleet = Fleet(running, len(VALUES))
    for period in (1, 2, 3, 4):
        setting.end_of(period)
        setting.collector.take(running, fleet.body(VALUES))
        if period == 2:
            back_up(setting.path, copy)
        setting.clock.now += 5
        setting.collector.close_due()
    setting.store.close()
    restore(copy, setting.path, START + 31.0, force=True)
    setting.open()
    service = Service(setting.collector)
    with TestClient(make_app(service)) as client:
        service.writer.call(setting.collector.close_due).result()
        running = setting.running(sealed=False)
        assert running.incomplete() == [2, 3, 4]
        assert "periods may lack reports" in capsys.readouterr().out
        page = client.get(f"/tasks/{running.name}").text
        assert "periods 2 to 4 may lack reports" in page
        answers = f"/v1/tasks/{running.name}/answers?query="
        for query, said in (
            ("mean&period=1", None),
            ("mean&period=3", [3]),
            ("range&first=1&last=3", [2, 3]),
            ("prefix&last=1", None),
            ("difference&before=2&after=4", [2, 4]),
            ("top&k=1&period=4", [4]),
            ("curve&item=home", [2, 3, 4]),
        ):
            assert client.get(answers + query).json().get("incomplete") == said
        told = client.get(f"{answers}range&first=1&last=3").json()
        assert "periods 2 and 3 may lack reports" in Answers.of_plain(told).sentence()
        table = csv.DictReader(io.StringIO(client.get(f"{answers}mean&period=3&format=csv").text))
        assert {row["incomplete"] for row in table} == {"3"}
    setting.store.close()


def test_a_store_that_was_killed_keeps_its_reports_if_it_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, place = Setting(tmp_path / "collector.db"), tmp_path / "killed.db"
    back_up(setting.path, tmp_path / "copy.db")
    setting.end_of(1)
    running = setting.running()
    accepted = setting.collector.take(running, Fleet(running, len(VALUES)).body(VALUES)).accepted
    for end in ("", "-wal"):  # as they are when a collector is killed
        shutil.copy(f"{setting.path}{end}", f"{place}{end}")
    setting.store.close()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        restore(tmp_path / "copy.db", place, setting.clock.now, force=True)
    with closing(SQLiteStore(place)) as store:
        assert store.participation(running.task_id) == {1: accepted}
