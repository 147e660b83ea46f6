"""The command line: every verb of the library, for people at a terminal and for scripts."""

from __future__ import annotations

from sfumato.cli.app import app, main

__all__ = ["app", "main"]
