from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.store.stores import TASK, count, filled

from sfumato.core.tally import Place, Tally
from sfumato.device.journal import Journal
from sfumato.errors import InputError
from sfumato.shuffler.holding import Holding
from sfumato.store import Release, SQLiteStore
from sfumato.store.schema import APPLICATION, STEPS
from sfumato.store.store_addresses import claimed_for_workers
from sfumato.wire.sqlite_tables import COUNT


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(tmp_path / "collector.db")
    made.add_task(TASK, b"{}", {1: b"k" * 32}, public=False)
    yield made
    made.close()


def _ids(first: int, n: int) -> bytes:
    return b"".join(i.to_bytes(16, "little") for i in range(first, first + n))


def test_a_group_is_folded_into_the_tallies_of_its_buckets(store: SQLiteStore) -> None:
    store.commit([filled(1, _ids(0, 3), b"\0\1\1"), filled(2, _ids(3, 1), b"\1")])
    store.commit([filled(1, _ids(4, 2), b"\1\0"), filled(1, _ids(6, 1), b"\1", key_id=2)])
    assert dict(store.tallies(TASK)) == {
        (1, 1, 0): Tally(6, np.array([2, 4])),
        (1, 2, 0): Tally(1, np.array([0, 1])),
    }
    assert dict(store.tallies(TASK, 2)) == {(1, 2, 0): Tally(1, np.array([0, 1]))}
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))
    assert store.participation(TASK) == {1: 6, 2: 1}


def test_a_group_with_a_mistake_leaves_nothing_behind(store: SQLiteStore) -> None:
    store.commit([filled(1, _ids(0, 1), b"\1")])
    wrong = filled(1, _ids(1, 1), b"\1")
    wrong.tallies[Place(1, 1)].sums.flags.writeable = True
    object.__setattr__(wrong.tallies[Place(1, 1)], "sums", np.zeros(5, dtype=np.int64))
    with pytest.raises(Exception, match="cannot be added"):
        store.commit([filled(1, _ids(2, 1), b"\1"), wrong])
    assert store.participation(TASK) == {1: 1}
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))


def test_a_recount_sees_tallies_that_lie(store: SQLiteStore) -> None:
    store.commit([filled(1, _ids(0, 2), b"\1\1")])
    lying = filled(1, _ids(2, 1), b"\1")
    object.__setattr__(lying, "tallies", count(1, b"\0"))
    store.commit([lying])
    assert dict(store.recount(TASK, count)) != dict(store.tallies(TASK))


def test_everything_is_there_after_opening_again(store: SQLiteStore, tmp_path: Path) -> None:
    store.commit([filled(1, _ids(0, 2), b"\1\0")])
    released = Release(1, 2, np.array([0.25, np.nan]), np.array([0.5, np.inf]))
    store.close_period(TASK, released)
    store.set_token("operator", b"one")
    store.set_token("operator", b"another")
    store.close()
    again = SQLiteStore(tmp_path / "collector.db")
    (task,) = again.tasks()
    assert (task.task_id, task.published, dict(task.keys)) == (TASK, b"{}", {1: b"k" * 32})
    assert not task.public
    assert task.closed == 1
    (found,) = again.releases(TASK)
    assert (found.period, found.n) == (1, 2)
    np.testing.assert_array_equal(found.values, released.values)
    np.testing.assert_array_equal(found.variances, released.variances)
    assert again.tokens() == {b"another": "operator"}
    assert not again.add_task(TASK, b"other", {}, public=True)
    again.close()


def test_figures_that_are_no_numbers_warn_nobody(store: SQLiteStore) -> None:
    signals = np.array([0x7FF0000000000001, 0xFFF0000000000001], dtype=np.uint64).view(np.float64)
    store.close_period(TASK, Release(1, 2, signals, signals))
    (found,) = store.releases(TASK)
    assert np.isnan(found.values - found.values).all()  # warnings are errors here
    assert np.isnan(np.sqrt(found.variances)).all()


def test_a_period_closes_once(store: SQLiteStore) -> None:
    assert store.close_period(TASK, Release(1, 0, np.zeros(1), np.zeros(1)))
    assert not store.close_period(TASK, Release(1, 7, np.ones(1), np.ones(1)))
    (kept,) = store.releases(TASK)
    assert (kept.n, kept.values.tolist()) == (0, [0.0])


def test_only_its_owner_reads_a_store(store: SQLiteStore, tmp_path: Path) -> None:
    store.commit([filled(1, _ids(0, 1), b"\1")])
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_secret_key_is_in_no_repr(store: SQLiteStore) -> None:
    assert "kkkk" not in repr(store.tasks())


def test_two_collectors_cannot_have_one_store(store: SQLiteStore, tmp_path: Path) -> None:
    del store
    with pytest.raises(InputError, match="is in use already"):
        SQLiteStore(tmp_path / "collector.db")


def _things(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("CREATE TABLE things (name TEXT)")


def _letter(path: Path) -> None:
    path.write_text("Dear reader, " * 100)


def _workers(path: Path) -> None:
    with claimed_for_workers(path):
        pass


@pytest.mark.parametrize("owner", [SQLiteStore, _workers, Holding, Journal])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (_things, r"other belongs to another program; a (store of|journal is)"),
        (_letter, r"other is no (store|journal).*, and is left as it is; one, or"),
        (Path.mkdir, r"other is a folder, and is left as it is; a file is expected"),
        (os.mkfifo, r"other is not a regular file, and is left as it is; a file is expected"),
        (lambda path: path.symlink_to(path), r"other is a link that leads to itself; a file"),
    ],
    ids=["another program", "a letter", "a folder", "a pipe", "a loop"],
)
def test_files_of_others_are_refused_as_they_are(
    tmp_path: Path,
    owner: Callable[[Path], object],
    make: Callable[[Path], None],
    sentence: str,
) -> None:
    other = tmp_path / "other"
    make(other)
    if not other.is_symlink():
        other.chmod(0o664)
    before = _appearance(other)
    with pytest.raises(InputError, match=sentence):
        owner(other)
    assert _appearance(other) == before
    assert list(tmp_path.iterdir()) == [other]


def _appearance(path: Path) -> tuple[int, int, bytes]:
    about = path.lstat()
    return about.st_mode, about.st_mtime_ns, path.read_bytes() if path.is_file() else b""


def test_a_store_without_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        SQLiteStore(tmp_path / "no" / "folder.db")


@pytest.mark.parametrize("version", range(len(STEPS)))
def test_older_files_are_brought_up_to_date(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.db"
    db = sqlite3.connect(path, isolation_level=None)
    for step in STEPS[:version]:
        db.executescript(step)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {version}")
    if version:
        db.execute(
            "INSERT INTO tasks (task_id, published, public) VALUES (?, ?, ?)", (TASK, b"{}", 1)
        )
    db.close()
    store = SQLiteStore(path)
    store.set_token("analyst", b"digest")
    assert len(store.tasks()) == (1 if version else 0)
    store.close()


def test_others_are_waited_for_after_a_checkpoint_that_failed(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, run = store._tables, store._tables.run  # noqa: SLF001

    def full(statement: str, given: Sequence[object] = ()) -> sqlite3.Cursor:
        if "wal_checkpoint" in statement:
            raise sqlite3.OperationalError("database or disk is full")
        return run(statement, given)

    ((patience,),) = tables.rows("PRAGMA busy_timeout", cells=(COUNT,))
    with monkeypatch.context() as broken:
        broken.setattr(tables, "run", full)
        with pytest.raises(sqlite3.OperationalError, match="is full"):
            store.erase_keys(TASK)
    assert tables.rows("PRAGMA busy_timeout", cells=(COUNT,)) == [(patience,)]
    assert patience > 0


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "new.db").close()
    db = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InputError, match="version 99"):
        SQLiteStore(tmp_path / "new.db")


def test_what_was_acknowledged_survives_kills_and_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "collector.db"
    acknowledged: set[tuple[int, str]] = set()
    for life in range(8):
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, str(Path(__file__).with_name("stores.py")), str(path), str(life)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]  # it lives
        time.sleep(0.013 * life)
        process.kill()
        lines += process.stdout.readlines()
        process.stdout.close()
        process.wait()
        for line in lines:
            if not line.endswith("\n"):
                continue  # killed in the middle of a word
            period, ids = line.split()
            acknowledged |= {(int(period), ids[i : i + 32]) for i in range(0, len(ids), 32)}
    store = SQLiteStore(path)
    for over in (1, 2):
        store.end_round(TASK, over, 0)
        store.settle(TASK, over, count)  # each life has counted what it knew
    kept = [
        (period, blob[i : i + 16].hex())
        for period in (1, 2)
        for blob in store.ids(TASK, period)
        for i in range(0, len(blob), 16)
    ]
    assert len(acknowledged) >= 400  # half of what each life commits at the least
    assert acknowledged <= set(kept)
    assert len(set(kept)) == len(kept)
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))
    store.close()
