"""Every mechanism by its name, with its parameters read off its fields; the stream of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

from sfumato import mechanisms
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.streams import registry
from sfumato.wire.task import Task
from sfumato.wire.window_task import WindowTask

__all__ = [
    "NOISES",
    "Parameter",
    "build",
    "find",
    "from_configuration",
    "names",
    "parameters",
    "parameters_of",
    "stream",
    "tiers",
]

NOISES: Final[Mapping[str, type[Noise]]] = {DiscreteLaplace.name: DiscreteLaplace}
"""What the central model adds; no mechanism, as there is no report and nothing to estimate."""

_BY_NAME: Mapping[str, type[Mechanism]] = {
    getattr(mechanisms, public).name: getattr(mechanisms, public) for public in mechanisms.__all__
}


@dataclass(frozen=True)
class Parameter:
    """One field of a mechanism: its name, its type in words, and its default if it has one."""

    name: str
    type: str
    required: bool
    default: Any = None


def names() -> list[str]:
    """Return the names of all mechanisms.

    Examples
    --------
    >>> "grr" in names()
    True

    """
    return sorted(_BY_NAME)


def find(name: str) -> type[Mechanism]:
    """Return the class of a mechanism."""
    if name not in _BY_NAME:
        raise ConfigurationError(f"mechanism is {name!r}; the catalogue has {', '.join(names())}.")
    return _BY_NAME[name]


def parameters(name: str) -> list[Parameter]:
    """Return the parameters of a mechanism, in order."""
    return parameters_of(find(name))


def parameters_of(kind: type[Mechanism | Noise]) -> list[Parameter]:
    """Return the fields of a class, in order."""
    return [
        Parameter(
            field.name,
            str(field.type),
            required=field.default is MISSING,
            default=None if field.default is MISSING else field.default,
        )
        for field in fields(kind)
    ]


def build(name: str, **given: Any) -> Mechanism:
    """Return a mechanism by name and parameters.

    Examples
    --------
    >>> build("grr", epsilon=1.0, domain=4)
    GRR(epsilon=1.0, domain=4)
    >>> build("grr", epsilon=1.0)
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: grr needs domain; it takes epsilon, domain.

    """
    known = parameters(name)
    takes = ", ".join(parameter.name for parameter in known)
    unknown = [key for key in given if key not in {parameter.name for parameter in known}]
    if unknown:
        raise ConfigurationError(f"{name} has no parameter {unknown[0]!r}; it takes {takes}.")
    absent = [p.name for p in known if p.required and p.name not in given]
    if absent:
        raise ConfigurationError(f"{name} needs {' and '.join(absent)}; it takes {takes}.")
    return find(name)(**given)


def from_configuration(configuration: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism that :meth:`Mechanism.configuration` described.

    Examples
    --------
    >>> from_configuration({"mechanism": "oue", "epsilon": 1.0, "domain": ["a", "b"]})
    OUE(epsilon=1.0, domain=('a', 'b'))

    """
    rest = dict(configuration)
    if not isinstance(name := rest.pop("mechanism", None), str):
        raise ConfigurationError(
            f"the configuration has mechanism {name!r}; a name from the catalogue is expected."
        )
    return build(name, **rest)


def stream(task: Task | WindowTask) -> Stream:
    """Return the stream that a task asks for.

    Whatever the task leaves open (the mechanism, the mix) is chosen by exact error, for the task's
    queries. If reports are shuffled, epsilon is the largest one up to the task's that keeps what
    the task promises of shuffled reports.
    """
    plain = task.plain()
    return registry.find(registry.name_of(plain)).chosen(plain)


def tiers(task: WindowTask) -> Stream:
    """Return the stream of a window task with all its tiers; a window if it has one only."""
    return registry.find("tiers" if task.tiers else "window").of(task.plain())
