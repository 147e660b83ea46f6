"""Settings from files and environment variables, and `sfumato config`, which prints them.

Every option of every command can be set in three ways: by its flag, by a variable whose name is
that of the command and the option, as in SFUMATO_SERVE_PORT, and in a TOML file that --config or
SFUMATO_CONFIG names, as in ``[serve]`` with ``port = 9000``. The flag counts before the variable,
and the variable before the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sfumato.cli import text_tables
from sfumato.cli.command import Parts, Result, show
from sfumato.errors import InputError

__all__ = ["config", "read_settings", "refuse_mistyped"]

SERVERS: Final = ("serve", "shuffle serve")
"""The commands whose settings are printed if none is named."""
SECRETS: Final = (
    "SFUMATO_OPERATOR_TOKEN",
    "SFUMATO_ANALYST_TOKEN",
    "SFUMATO_SHUFFLER_TOKEN",
    "SFUMATO_KEY_SECRET",
)
"""Variables of which only whether they are set is printed."""
SOURCES: Final = {"ENVIRONMENT": "variable", "DEFAULT_MAP": "file", "DEFAULT": "default"}
PREFIX: Final = "SFUMATO_"
OTHERS: Final = ("SFUMATO_CONFIG", "SFUMATO_FORMER_KEY_SECRET", "SFUMATO_SHUFFLER_OPERATOR_TOKEN")
"""Variables that are neither settings of commands nor among the secrets that are printed."""
ALIKE: Final = 0.9
"""How similar two names are if one of them is taken for a slip in the other."""
OF_KUBERNETES: Final = re.compile(r"_SERVICE_(HOST|PORT)|_PORT_")
"""Part of variables that Kubernetes sets for services, which may be called like a command."""
LEFT_OUT: Final = {"help", "as_json"}


def read_settings(path: Path, root: Any) -> dict[str, Any]:
    """Return the settings of a file, by command and option.

    Parameters
    ----------
    path
        The TOML file.
    root
        The group of all commands, which says what there is to set.

    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}") from None
    return _checked(tables, root, (), path)


def _checked(
    tables: Mapping[str, Any], command: Any, words: tuple[str, ...], path: Path
) -> dict[str, Any]:
    """Return the settings of a command and of those in its group; raise InputError if unknown."""
    commands = getattr(command, "commands", {})
    options = {each.name for each in command.params} - LEFT_OUT if words else set()
    settings = {}
    for name, value in tables.items():
        if name in commands and isinstance(value, Mapping):
            settings[name] = _checked(value, commands[name], (*words, name), path)
        elif (known := name.replace("-", "_")) in options and not isinstance(value, Mapping):
            settings[known] = value
        else:
            there = [*commands, *options]
            near = get_close_matches(name, there, 1)
            hint = (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(there))}."
            )
            raise InputError(f"{path}: {'.'.join((*words, name))} is no setting; {hint}")
    return settings


def refuse_mistyped(root: Any, variables: Mapping[str, str]) -> None:
    """Raise InputError for a variable that is none, but nearly one.

    Variables of other kinds are left alone: whatever starts a program adds some of its own.
    """
    own = [name for name in variables if name.startswith(PREFIX) and not OF_KUBERNETES.search(name)]
    if not own:
        return
    known = {*OTHERS, *SECRETS, *_variables(root, PREFIX)}
    for name in own:
        near = get_close_matches(name, known, 1, ALIKE)
        if near and name not in known:
            raise InputError(f"{name} is no variable of sfumato; did you mean {near[0]}?")


def _variables(command: Any, prefix: str) -> Iterator[str]:
    """Yield the variables of a command and of those in its group."""
    for option in command.params:
        yield f"{prefix}{option.name.upper()}"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _variables(inner, f"{prefix}{name.upper().replace('-', '_')}_")


def config(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A command, as in shuffle serve; both servers if left out."),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print nothing but JSON.")] = False,
) -> None:
    """Print the settings that are in force, and where each of them comes from.

    A flag counts before a variable, and a variable before the file that --config or SFUMATO_CONFIG
    names. Of tokens and secrets it only says whether they are set.

    Example:  sfumato config serve
    """
    root = context.find_root()
    named = (" ".join(command),) if command else SERVERS
    settings = {words: list(_settings(root, words.split())) for words in named}
    secrets = {name: bool(os.environ.get(name)) for name in SECRETS}
    show(
        Result({"settings": settings, "secrets": secrets}, _text(settings, secrets)),
        as_json=as_json,
    )


def _settings(root: Any, words: list[str]) -> Iterator[dict[str, Any]]:
    """Yield each setting of a command: its name, its value, where it comes from, its variable."""
    here = root
    for word in words:
        commands = getattr(here.command, "commands", {})
        if word not in commands:
            known = ", ".join(commands) or "none"
            raise InputError(f"there is no command {' '.join(words)!r}; there are {known}.")
        here = type(root)(commands[word], info_name=word, parent=here)
    for option in here.command.params:
        if option.name in LEFT_OUT or option.param_type_name != "option":
            continue
        raw, source = option.consume_value(here, {})
        here.set_parameter_source(option.name, source)  # which an error names
        value = option.process_value(here, raw)
        plain = str(value) if isinstance(value, Path) else value
        yield {
            "setting": option.name,
            "value": list(plain) if isinstance(plain, (list, tuple)) else plain,
            "from": SOURCES.get(source.name, "default"),
            "variable": f"{here.auto_envvar_prefix}_{option.name.upper()}",
        }


def _text(settings: Mapping[str, list[dict[str, Any]]], tokens: Mapping[str, bool]) -> Parts:
    for words, rows in settings.items():
        yield f"sfumato {words}\n"
        cells = (
            (row["setting"].replace("_", "-"), _shown(row["value"]), row["from"], row["variable"])
            for row in rows
        )
        yield text_tables.grid(("setting", "value", "from", "variable"), cells)
        yield ""
    known = ((name, "set" if there else "not set") for name, there in tokens.items())
    yield text_tables.grid(("secret", ""), known)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as a file has it
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
