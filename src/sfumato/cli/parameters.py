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

__all__ = [
    "TypedParameters",
    "as_options",
    "build",
    "in_words",
    "options",
    "read",
    "read_labels",
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
        return tuple(json.loads(text))
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


def _refuse_auto(name: str, text: str, annotation: str) -> None:
    if text == "auto" and "tuple" in annotation:
        msg = (
            f"{name} is 'auto'; reading it off the data would reveal which values occur, "
            f"so give {in_words(annotation)} that was known before."
        )
        raise ConfigurationError(msg)


def read_labels(name: str, text: str) -> int | tuple[Any, ...]:
    """Return a number of labels, or the labels that somebody typed or put into a file.

    Examples
    --------
    >>> read_labels("keys", "red,green"), read_labels("keys", "7")
    (('red', 'green'), 7)

    """
    annotation = "int | tuple"
    _refuse_auto(name, text, annotation)
    for _, reader in _readers(annotation):
        try:
            labels: int | tuple[Any, ...] = reader(text)
        except (ValueError, TypeError):
            continue
        return labels
    msg = f"{name} is {text!r}; {in_words(annotation)} is expected."
    raise ConfigurationError(msg)


def _read(parameter: catalog.Parameter, text: str) -> Any:
    _refuse_auto(parameter.name, text, parameter.type)
    for _, reader in _readers(parameter.type):
        try:
            return reader(text)
        except (ValueError, KeyError, TypeError):
            continue
    msg = f"{parameter.name} is {text!r}; {in_words(parameter.type)} is expected."
    raise ConfigurationError(msg)


def read(name: str, field: str, text: str) -> Any:
    """Return the value somebody typed for one parameter of a mechanism."""
    known = {parameter.name: parameter for parameter in catalog.parameters(name)}
    return _read(known[field], text)


def build(name: str, typed: Mapping[str, str]) -> Mechanism:
    """Return the mechanism somebody asked for.

    Examples
    --------
    >>> build("grr", {"epsilon": "1", "domain": "red,green"})
    GRR(epsilon=1.0, domain=('red', 'green'))

    """
    known = {parameter.name: parameter for parameter in catalog.parameters(name)}
    values = {key: _read(known[key], text) if key in known else text for key, text in typed.items()}
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
