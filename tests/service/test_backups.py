"""Stores are copied while they are written to; after a restore nothing but later reports lack."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.cli.running import answer, refused
from tests.service.fleets import Fleet
from tests.service.test_collector import START, VALUES, Setting
from tests.service.test_task_keys import Place, device_at, live

from sfumato.core.answers import Answers
from sfumato.errors import InputError
from sfumato.service.asgi import Service, make_app
from sfumato.service.backups import back_up, restore


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
