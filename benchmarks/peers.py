"""The same mechanisms in other packages, each in a throw-away environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.clock import Times

__all__ = ["MECHANISMS", "PEERS", "PEOPLE", "Environment", "PeerFailed", "installed"]

PEERS: Final = {"pure-ldp": "1.2.0", "multi-freq-ldpy": "0.2.5"}
MECHANISMS: Final = ("grr", "olh", "oue")
PEOPLE: Final = 20_000  # one at a time, they are slow; times are compared per person

# What the packages need and do not declare, or declare without the bound they need.
_UNDECLARED: Final = ("scikit-learn", "statsmodels", "xxhash<4")
_ROOT: Final = Path(__file__).parent.parent
_UV: Final = _ROOT / ".tools" / "bin" / "uv"


class PeerFailed(Exception):
    """A package could not be installed or run; the message is what it said last."""


@dataclass(frozen=True)
class Environment:
    """A Python in which one peer is installed, or why it is not."""

    peer: str
    python: Path
    problem: str = ""

    def times(self, mechanism: str, size: int, epsilon: float, n: int = PEOPLE) -> Times:
        """Return the best times of one of its mechanisms; raise PeerFailed if it has none."""
        if self.problem:
            raise PeerFailed(self.problem)
        call = ["-m", "benchmarks.peer", self.peer, mechanism, str(size), str(epsilon), str(n)]
        return Times(**json.loads(_output([str(self.python), *call])))


@contextmanager
def installed(peer: str) -> Iterator[Environment]:
    """Install a peer for as long as the context lasts."""
    with TemporaryDirectory(prefix="sfumato-bench-") as folder:
        python = Path(folder) / "bin" / "python"
        base = str(Path(sys.executable).resolve())  # not this environment's: it has no pip
        settings = os.environ | _uv_settings(base)
        try:
            _output([str(_UV), "venv", "--no-project", "--python", base, folder], settings)
            wanted = f"{peer}=={PEERS[peer]}"
            install = [str(_UV), "pip", "install", "--python", str(python), wanted, *_UNDECLARED]
            _output(install, settings)
            problem = ""
        except PeerFailed as failed:
            problem = f"not installed: {failed}"
        yield Environment(peer, python, problem)


def _uv_settings(python: str) -> dict[str, str]:
    """Hand pip's index and certificates over to uv, which does not read pip's configuration."""
    settings = {"UV_PYTHON_DOWNLOADS": "never"}
    settings["UV_SYSTEM_CERTS"] = os.environ.get("UV_SYSTEM_CERTS", "true")
    configured = _output([python, "-m", "pip", "config", "list"])
    for option, variable in ("index-url", "UV_DEFAULT_INDEX"), ("cert", "SSL_CERT_FILE"):
        found = re.search(rf"\.{option}='(.*)'", configured)
        if found and not os.environ.get(variable):
            settings[variable] = found[1]
    return settings


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Return what a command prints; raise PeerFailed with its last words if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - uv and the Python it made
            command, cwd=_ROOT, env=environment, check=False, capture_output=True, text=True
        )
    except OSError as error:
        raise PeerFailed(str(error)) from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise PeerFailed(said[-1].strip())
    return done.stdout
