"""What goes wrong is said in one sentence, and the exit code says whose turn it is.

0 all is well, 1 a check failed, 2 the input or the call has to change, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from sfumato.cli import console
from sfumato.errors import MissingExtra, SfumatoError

__all__ = ["Commands"]

STOPPED = 130


class Commands(TyperGroup):
    """The group of all commands, which turns every expected error into one sentence."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run the command that the arguments name, and exit."""
        words = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(words, **(extra | {"standalone_mode": False}))
        except typer.TyperException as error:
            _say(error.format_message(), words)
            sys.exit(2)
        except (SfumatoError, OSError, ModuleNotFoundError) as error:
            _say(_sentence(error), words)
            sys.exit(2)
        if code == STOPPED:
            _say("Stopped; nothing was left half-written.", words)
        sys.exit(code or 0)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        about = f"{error.filename}: " if error.filename else ""
        return f"{about}{error.strerror}."
    if isinstance(error, ModuleNotFoundError):
        return str(MissingExtra(str(error.name), "cli"))
    return str(error)


def _say(message: str, words: Sequence[str]) -> None:
    sentence = " ".join(message.split())
    if "--json" in words:
        typer.echo(json.dumps({"error": sentence}, ensure_ascii=False), err=True)
    else:
        console.say(f"sfumato: {sentence}", to=console.err())
