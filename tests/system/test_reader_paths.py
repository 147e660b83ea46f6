"""Each reader's ten minutes run as they stand in the docs, in an empty folder with an empty home.

Commands of sfumato run in this process, to save the time of starting it; a collector, and whatever
else there is, in processes of their own. The port of the docs is replaced by a free one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from tests.cli.running import run
from tests.ports import own_port

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = ("operator", "analyst", "researcher", "choosing")


def commands(page: str) -> list[str]:
    """Return the commands of a page, in order."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [
        part.strip()
        for block in blocks
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]


class Reader:
    """Somebody who types the commands of a page, one after the other."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._servers: list[subprocess.Popen[bytes]] = []
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        monkeypatch.chdir(folder / "work")
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        self.url = f"http://127.0.0.1:{own_port()}"

    def type(self, command: str) -> None:
        """Run a command, which must succeed."""
        words = command.replace("http://127.0.0.1:8080", self.url)
        if words.startswith("./run sfumato"):
            return  # it is installed
        if words.startswith("export "):
            name = words.split()[1].partition("=")[0]
            self._patch.setenv(name, self._shell(f"{words}; printf %s ${name}"))
        elif words.startswith("sfumato serve"):
            self._serve(words.removesuffix("&"))
        elif words.startswith("sfumato ") and not set(words) & set("|>$"):
            given = shlex.split(words)[1:]
            if given[:2] == ["task", "publish"]:
                given += ["--to", self.url]
            result = run(*given)
            assert result.exit_code == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        else:
            self._shell(words)

    def _shell(self, words: str) -> str:
        ended = subprocess.run(  # noqa: S603 -- of our own page
            ["bash", "-euc", words],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert ended.returncode == 0, f"{words}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def _serve(self, words: str) -> None:
        port = self.url.rpartition(":")[2]
        call = [sys.executable, "-m", *shlex.split(words), "--port", port]
        self._servers.append(
            subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        )
        patience = time.monotonic() + 60
        while time.monotonic() < patience:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/readyz", timeout=5):  # noqa: S310
                return
            time.sleep(0.1)
        raise AssertionError("the collector does not answer")

    def stop(self) -> None:
        """End what runs in the background."""
        for server in self._servers:
            server.terminate()
            server.wait(30)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    reading = Reader(tmp_path, monkeypatch)
    yield reading
    reading.stop()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page: str, reader: Reader) -> None:
    typed = commands(page)
    assert len(typed) >= 3
    for command in typed:
        reader.type(command)


def test_a_file_of_ones_own_is_on_a_live_page_in_six_commands() -> None:
    text = (DOCS / "analyst.md").read_text("utf-8")
    six = text[text.index("Six commands") : text.index("Open the page")]
    lines = [
        line for line in six.splitlines() if line.startswith("$ ") and "> mine.csv" not in line
    ]
    assert len(lines) == 6
    assert "--data mine.csv" in lines[-1]
    assert "source .venv/bin/activate" in lines[0]
    assert "venv=$root/.venv" in (DOCS.parent / "run").read_text("utf-8")
