"""The parameters of mechanisms as options, read off the catalogue: a new one needs no line here."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato import catalog, docstrings
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.errors import ConfigurationError
from sfumato.wire.reading import read_json

__all__ = [
    "TypedParameters",
    "as_options",
    "build",
    "in_words",
    "options",
    "read",
    "read_as",
]


class TypedParameters(dict[str, str]):
    """The parameters of a mechanism that somebody typed, still as text."""

    @classmethod
    def among(cls, values: Mapping[str, Any]) -> TypedParameters:
        """Return those among the values of all options of a command."""
        names = [option.name for option in options()]
        return cls({name: values[name] for name in names if values[name] is not None})


# ---- text to values and back ----------------------------------------------------------------


def _labels(text: str) -> tuple[Any, ...]:
    if text.startswith("["):
        return tuple(read_json(text, "the list"))
    if text.startswith("@"):
        parts = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    else:
        parts = text.split(",")
    if len(parts) < 2:  # one word is no list
        raise ValueError
    whole = all(part.lstrip("-").isdecimal() and str(int(part)) == part for part in parts)
    return tuple(int(part) if whole else part for part in parts)


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "int": ("a whole number", int),
    "float": ("a number", float),
    "bool": ("true or false", {"true": True, "false": False}.__getitem__),
    "tuple": ("a list such as red,green,blue or @labels.txt", _labels),
    "str": ("a word", str),
}


def _readers(annotation: str) -> list[tuple[str, Callable[[str], Any]]]:
    kinds = (kind.strip().partition("[")[0] for kind in annotation.split("|"))
    return [_READERS[kind] for kind in kinds if kind in _READERS] or [_READERS["str"]]


def in_words(annotation: str) -> str:
    """Return what may be typed for a field of this type.

    Examples
    --------
    >>> in_words("int | None")
    'a whole number'

    """
    return " or ".join(word for word, _ in _readers(annotation))


def read_as(name: str, annotation: str, text: str) -> Any:
    """Return the value that somebody typed for a field of this type.

    Examples
    --------
    >>> read_as("keys", "int | tuple", "red,green"), read_as("keys", "int | tuple", "7")
    (('red', 'green'), 7)

    """
    if text == "auto" and "tuple" in annotation:
        raise ConfigurationError(
            f"{name} is 'auto'; reading it off the data would reveal which values occur, "
            f"so give {in_words(annotation)} that was known before."
        )
    for _, reader in _readers(annotation):
        try:
            return reader(text)
        except (ValueError, KeyError, TypeError):
            continue
    raise ConfigurationError(f"{name} is {text!r}; {in_words(annotation)} is expected.")


def read(name: str, field: str, text: str) -> Any:
    """Return the value somebody typed for one parameter of a mechanism."""
    [annotation] = (each.type for each in catalog.parameters(name) if each.name == field)
    return read_as(field, annotation, text)


def build(name: str, typed: Mapping[str, str]) -> Mechanism:
    """Return the mechanism somebody asked for.

    Examples
    --------
    >>> build("grr", {"epsilon": "1", "domain": "red,green"})
    GRR(epsilon=1.0, domain=('red', 'green'))

    """
    types = {parameter.name: parameter.type for parameter in catalog.parameters(name)}
    values = {key: read_as(key, types.get(key, "str"), text) for key, text in typed.items()}
    return catalog.build(name, **values)


def as_options(mechanism: Mechanism | Noise) -> str:
    """Return the fields as options: of a mechanism those that :func:`build` would need.

    Examples
    --------
    >>> as_options(build("grr", {"epsilon": "1", "domain": "red,green"}))
    '--epsilon 1.0 --domain red,green'

    """
    words = []
    for parameter in catalog.parameters_of(type(mechanism)):
        value = getattr(mechanism, parameter.name)
        if value != parameter.default or parameter.required:
            words += [_option(parameter.name), _written(value)]
    return shlex.join(words)


def _written(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value).lower() if isinstance(value, bool) else str(value)
    plain = ",".join(map(str, value))
    listed = len(value) > 1 and _labels(plain) == value
    return plain if listed else json.dumps(value, ensure_ascii=False)


def _option(field: str) -> str:
    return "--" + field.replace("_", "-")


# ---- options of commands ---------------------------------------------------------------------


@cache
def options() -> tuple[inspect.Parameter, ...]:
    """Return one option for each parameter of any mechanism."""
    holders: dict[str, list[str]] = {}
    for name in catalog.names():
        for parameter in catalog.parameters(name):
            holders.setdefault(parameter.name, []).append(name)
    return tuple(_described(field, names) for field, names in holders.items())


def _described(field: str, names: list[str]) -> inspect.Parameter:
    """Return the option for a parameter that these mechanisms have."""
    only = "" if len(names) == len(catalog.names()) else f" ({', '.join(names)})"
    option = typer.Option(
        _option(field),
        help=docstrings.read(catalog.find(names[0])).parameters.get(field, "") + only,
        metavar="VALUE",
        rich_help_panel="Parameters of the mechanism",
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(field, kind, default=None, annotation=Annotated[str | None, option])
