"""What goes wrong is said in one sentence, and the exit code says whose turn it is.

0 all is well, 1 a check failed, 2 the input or the call has to change, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from sfumato import extras
from sfumato.cli import STOPPED, console
from sfumato.errors import ExistingFile, InputError, SfumatoError

__all__ = ["Commands", "sentence"]

NOTHING: Final = ("", "None", "(None, None)", "[Errno None] None")
"""What errors without a message say."""

HELP: Final = "NoArgsIsHelpError"
"""What typer raises when a group of commands is called without one; it has no public name."""

_EXPECTED: Final = {
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of a few digits",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
}
"""What a value should have been, by the kind of what is wrong with it."""


class Commands(TyperGroup):
    """The group of all commands, which turns every expected error into one sentence."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of all commands; what a shell is taught is set by no variable."""
        params: list[Any] = super().get_params(ctx)
        for param in params:
            if param.name in ("install_completion", "show_completion"):
                param.show_envvar = False
        return params

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run the command that the arguments name, and exit."""
        words = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(words, **(extra | {"standalone_mode": False}))
        except typer.TyperException as error:
            if type(error).__name__ == HELP:  # which has been printed instead of a message
                sys.exit(0)
            _say(sentence(error), words)
            sys.exit(2)
        except (SfumatoError, OSError, ModuleNotFoundError, typer.Abort) as error:
            _say(sentence(error), words)
            sys.exit(2)
        if code == STOPPED:
            _say("Stopped; nothing was left half-written.", words)
        sys.exit(code or 0)


def _usage(error: typer.TyperException) -> str:
    """Return what is wrong with a call; of a value that is none, the option, it, and what is."""
    parameter: Any = getattr(error, "param", None)
    details: list[Any] = getattr(error.__cause__, "errors", list)()
    if parameter is None or not details:
        return _with_help(error)
    first, name = details[0], _source(parameter, getattr(error, "ctx", None))
    words = _EXPECTED.get(first["type"])
    if words is None:
        return f"{name} is {first['input']!r}; {first['msg'].removeprefix('Value error, ')}"
    return f"{name} is {first['input']!r}; {words.format(**first.get('ctx', {}))} is expected"


def _source(parameter: Any, context: Any) -> str:
    """Return where a value stands: in an option, a variable or a setting of a file."""
    option = max(parameter.opts, key=len)
    where = context and context.get_parameter_source(parameter.name)
    if where is not None and where.name == "ENVIRONMENT":
        return f"{context.auto_envvar_prefix}_{parameter.name.upper()}"
    if where is not None and where.name == "DEFAULT_MAP":
        file = context.find_root().params.get("config_file") or os.environ.get("SFUMATO_CONFIG")
        return f"{file}: {'.'.join([*context.command_path.split()[1:], option.lstrip('-')])}"
    return option if option.startswith("-") else str(parameter.metavar or parameter.name)


def _with_help(error: typer.TyperException) -> str:
    """Return what typer says of a call, and where to read on if it does not say itself."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None or message.endswith("?"):
        return message
    command = " ".join(["sfumato", *context.command_path.split()[1:]])  # however it was started
    return f"{message.removesuffix('.')}; `{command} --help` says what there is."


def sentence(error: Exception) -> str:
    """Return what an error says, and its name if it says nothing: never an empty message."""
    if isinstance(error, typer.Abort):
        return "No answer was given; nothing was done."
    if isinstance(error, ModuleNotFoundError):
        message = str(extras.missing(error.name or "") or error)
    elif isinstance(error, OSError) and (error.strerror or error.errno):
        about = f"{error.filename}: " if error.filename else ""
        message = f"{about}{error.strerror or os.strerror(error.errno or 0)}."
    elif isinstance(error, typer.TyperException):
        message = _usage(error)
    elif isinstance(error, ExistingFile):
        message = str(error).replace(error.remedy, "--force replaces it")
    else:
        message = str(error)
    if message.strip() in NOTHING or message.rstrip().endswith(":"):
        return f"Something went wrong that has no description ({type(error).__name__})."
    return message


def _say(message: str, words: Sequence[str]) -> None:
    line = str(InputError(" ".join(message.split())))  # printable, whatever it quotes
    line += "" if line.endswith((".", "?")) else "."
    if "--json" in words:
        typer.echo(json.dumps({"error": line}, ensure_ascii=False), err=True)
    else:
        console.say(f"sfumato: {line}", to=console.err())
