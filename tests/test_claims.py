"""A file that this process has open stays closed to other processes."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato import claims
from sfumato.claims import Claim
from sfumato.device.journal import Journal
from sfumato.errors import InputError
from sfumato.files.output_journal import OutputJournal as Followed
from sfumato.store.sqlite import SQLiteStore


def followed(path: Path) -> Followed:
    journal = Followed(path, {}, bytes(32))
    journal.progress.complete = True  # so that nothing is left to go on with
    return journal


OWNERS: dict[str, Callable[[Path], Any]] = {
    "journal": Journal,
    "store": SQLiteStore,
    "followed": followed,
}
CHILD = """
import sys
from pathlib import Path
from sfumato.files.output_journal import OutputJournal as Followed
from sfumato.device.journal import Journal
from sfumato.errors import InputError
from sfumato.store.sqlite import SQLiteStore
owners = {"journal": Journal, "store": SQLiteStore}
owners["followed"] = lambda path: Followed(path, {}, bytes(32))
try:
    owners[sys.argv[1]](Path(sys.argv[2])).close()
except InputError as error:
    print("refused:", error)
else:
    print("opened")
"""


def elsewhere(name: str, path: Path) -> str:
    """Return what becomes of an opening in another process."""
    done = subprocess.run(  # noqa: S603 -- this Python, and a script of ours
        [sys.executable, "-c", CHILD, name, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", OWNERS)
def test_a_second_opening_here_does_not_open_the_file_to_others(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    first = OWNERS[name](path)
    for _ in range(2):
        with pytest.raises(InputError, match="is in use already"):
            OWNERS[name](path)
    assert elsewhere(name, path).startswith(f"refused: {path} is in use already")
    first.close()
    assert elsewhere(name, path) == "opened"
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_another_name_is_the_same_file(link: Callable[[Path, Path], None], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    link(tmp_path / "file", tmp_path / "other")
    first = Journal(tmp_path / "file")
    with pytest.raises(InputError, match="is in use already"):
        Journal(tmp_path / "other")
    assert elsewhere("journal", tmp_path / "file").startswith("refused")
    first.close()


def test_a_claim_ends_with_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    claim = Claim(path)
    del claim
    again = Claim(path)
    again.release()
    again.release()  # changes nothing
    (tmp_path / "file.lock").touch()  # left behind by a process that was killed
    Claim(path).release()


def test_a_forked_child_neither_keeps_nor_ends_a_claim(tmp_path: Path) -> None:
    path = tmp_path / "file"
    claim = Claim(path)
    child = os.fork()
    if not child:
        claim.release()
        try:
            Claim(path)
        except InputError:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with pytest.raises(InputError, match="is in use already"):
        Claim(path)
    claim.release()
    Claim(path).release()


def test_a_claim_may_end_while_the_same_thread_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage is collected at any allocation, and may hold a claim that nobody has any more."""
    lost: list[Any] = [Claim(tmp_path / "lost")]
    lost.append(lost)
    del lost
    locked = claims._locked  # noqa: SLF001 -- called while claims change

    def collecting(lock: Path) -> int | None:
        gc.collect()
        return locked(lock)

    monkeypatch.setattr(claims, "_locked", collecting)
    made: list[Claim] = []
    thread = threading.Thread(target=lambda: made.append(Claim(tmp_path / "file")), daemon=True)
    thread.start()
    thread.join(20.0)
    assert made, "the thread waits for itself"
    made[0].release()
    Claim(tmp_path / "lost").release()


def test_a_fork_while_another_thread_makes_a_claim_leaves_the_child_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    locked = claims._locked  # noqa: SLF001 -- called while claims change

    def slow(lock: Path) -> int | None:
        begun.set()
        go_on.wait(0.2)  # a fork waits for this
        return locked(lock)

    monkeypatch.setattr(claims, "_locked", slow)
    thread = threading.Thread(target=lambda: Claim(tmp_path / "slow").release())
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        free = threading.Thread(target=lambda: Claim(tmp_path / "file").release(), daemon=True)
        free.start()
        free.join(20.0)
        os._exit(int(free.is_alive()))
    go_on.set()
    _, status = os.waitpid(child, 0)
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_lock_that_somebody_else_has_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    claim = Claim(tmp_path / "file")
    (tmp_path / "file.lock").unlink()  # somebody has tidied up
    (tmp_path / "file.lock").touch()
    claim.release()
    assert (tmp_path / "file.lock").exists()


@contextlib.contextmanager
def forked() -> Iterator[bool]:
    """Go on in a child, whose end is the end of the block; what fails there fails here."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        yield False
        return
    code = 1
    try:
        yield True
        code = 0
    finally:
        os._exit(code)


@pytest.mark.parametrize("name", ["journal", "store"])
def test_a_forked_child_cannot_use_what_its_parent_has_open(name: str, tmp_path: Path) -> None:
    """It would draw the same coins for other values, and has no lock that keeps others out."""
    first = OWNERS[name](tmp_path / "file")
    with forked() as child:
        if child:
            with pytest.raises(InputError, match="before this process was forked"):
                first.tasks()
    assert first.tasks() == []
    first.close()
