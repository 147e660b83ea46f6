"""The command line: every verb of the library, for people at a terminal and for scripts."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final

from sfumato.errors import MissingExtra

__all__ = ["STOPPED", "main"]

STOPPED: Final = 130
"""The exit code of a command that Ctrl-C has stopped."""


def main() -> None:
    """Run the command line; what ends it early ends it as Ctrl-C does, with nothing left over."""
    _when_stopped(_leave)  # while it imports, nothing has begun that could be left half-done
    try:
        from sfumato.cli.app import app

        _when_stopped(signal.default_int_handler)
        app(prog_name="sfumato")
    except MissingExtra as error:
        sys.exit(f"sfumato: {error}")
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    finally:
        _when_stopped(signal.SIG_IGN)  # it is over, and says so by its own exit code


def _when_stopped(handler: Any) -> None:
    """Decide what Ctrl-C and a polite request to end do from now on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _leave(*_: object) -> None:
    os._exit(STOPPED)
