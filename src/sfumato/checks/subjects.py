"""Everything that can be checked, by its name: mechanisms, noise and streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sfumato import catalog
from sfumato.checks.mechanism_checks import MECHANISM_CHECKS, check_mechanism
from sfumato.checks.noise_checks import NOISE_CHECKS, check_noise
from sfumato.checks.stream_checks import STREAM_CHECKS, check_stream
from sfumato.checks.verdict import Verdict, unfinished
from sfumato.errors import ConfigurationError
from sfumato.streams import registry

__all__ = ["Subject", "names", "subject"]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """Something with small examples, and the checks that each of them must pass."""

    name: str
    """The name on the command line."""
    family: Literal["mechanism", "noise", "stream"]
    """The kind of thing it is."""
    examples: tuple[Any, ...]
    """Small instances."""
    claims: tuple[str, ...]
    """The names of its checks."""
    check: Callable[[Any, Progress], Verdict]
    """A function that runs all checks on one example."""
    plain: Callable[[Any], dict[str, Any]]
    """A function that returns an example as plain data."""


def names() -> list[str]:
    """Return the names of everything that can be checked.

    Examples
    --------
    >>> {"grr", "discrete_laplace", "weave"} <= set(names())
    True

    """
    return [*catalog.names(), *catalog.NOISES, *registry.names()]


def subject(name: str) -> Subject:
    """Return the subject of this name; raise ConfigurationError if there is none.

    Examples
    --------
    >>> subject("weave").family
    'stream'

    """
    if name in catalog.names():
        kind, checks = catalog.find(name), MECHANISM_CHECKS
        return Subject(
            name, "mechanism", _examples(kind), _names(checks), check_mechanism, _configured
        )
    if name in catalog.NOISES:
        noise = catalog.NOISES[name]
        return Subject(
            name, "noise", _examples(noise), _names(NOISE_CHECKS), check_noise, _configured
        )
    if name in registry.names():
        stream = registry.find(name)
        return Subject(
            name,
            "stream",
            _examples(stream),
            _names(STREAM_CHECKS),
            check_stream,
            _specified,
        )
    raise ConfigurationError(f"name is {name!r}; one of {', '.join(names())} is expected.")


def _examples(kind: Any) -> tuple[Any, ...]:
    """Return the examples of a class; raise ConfigurationError if the class is not finished."""
    try:
        return tuple(kind.examples())
    except TypeError as error:
        if lacking := unfinished(error):
            raise ConfigurationError(lacking) from error
        raise


def _names(checks: tuple[Callable[[Any], None], ...]) -> tuple[str, ...]:
    return tuple(check.__name__ for check in checks)


def _configured(example: Any) -> dict[str, Any]:
    return dict(example.configuration())


def _specified(example: Any) -> dict[str, Any]:
    return dict(example.spec())
