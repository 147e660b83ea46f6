"""Devices compute on any system; a journal in a file needs Unix, and the error says so."""

from __future__ import annotations

from pathlib import Path

from tests.device.collecting import published
from tests.fitting import python

UNIX_ALONE = """
import os, signal, sqlite3, sys, cryptography, numpy
for module in ("fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios"):
    sys.modules[module] = None
for name in (
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW chown fchmod fchown fork geteuid getuid killpg lockf nice "
    "register_at_fork setsid sync uname".split()
):
    if hasattr(os, name):
        delattr(os, name)
for name in "SIGALRM SIGHUP SIGKILL SIGUSR1 alarm pause setitimer".split():
    delattr(signal, name)
"""
"""What no other system has is taken away before anything of sfumato is loaded."""
TAKE_PART = """
from sfumato.device import Device, Limits, Delivery
class Collector:
    def send(self, url, batch):
        print(len(batch))
        return Delivery()
now = 0.0
device = Device.open(":memory:", Limits(2.0), Collector(), lambda: now)
device.join(bytes.fromhex(sys.argv[1]))
device.observe("b")
now = 3601.0
device.flush()
"""
OPEN = """
from sfumato.device import Device, Limits
try:
    Device.open(sys.argv[1], Limits(1.0))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_a_device_in_memory_runs_on_any_system() -> None:
    task, _ = published(mix="mix = {1 = 1.0}")
    assert int(python(UNIX_ALONE + TAKE_PART, task.encode().hex())) > 0


def test_a_journal_says_which_systems_can_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    sentence = python(UNIX_ALONE + OPEN, str(path))
    assert sentence.startswith(f"InputError: {path} cannot be kept from a second owner, as linux")
    assert "Linux, macOS or another Unix is expected" in sentence
    assert not list(tmp_path.iterdir())
