"""The command line: every verb of the library, for people at a terminal and for scripts."""

from __future__ import annotations

import signal
import sys

from sfumato.errors import MissingExtra

__all__ = ["main"]


def main() -> None:
    """Run the command line; what ends it early ends it as Ctrl-C does, with nothing left over."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from sfumato.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"sfumato: {MissingExtra(str(error.name), 'cli')}")
    app(prog_name="sfumato")
