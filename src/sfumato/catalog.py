"""Every mechanism by its name, with its parameters read off its fields; the protocol of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, cast

from sfumato import mechanisms
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.streams.flat import Flat
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.strands import Carrier, Sized
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.values import Attributes, Binary, Category, Items, Values
from sfumato.wire.task import Task
from sfumato.wire.values import TaskValues

__all__ = [
    "NOISES",
    "Parameter",
    "build",
    "find",
    "from_configuration",
    "names",
    "parameters",
    "parameters_of",
    "protocol",
    "protocol_of",
    "spec",
    "values",
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


def values(given: TaskValues) -> Values:
    """Return what a device observes, from a task's plain data; moves are a protocol's own.

    Examples
    --------
    >>> values(TaskValues("category", ("home", "work"))).labels
    ('home', 'work')

    """
    if given.kind == "binary":
        return Binary(*(given.items or ()))  # type: ignore[misc]
    if given.kind == "attributes":
        return Attributes(given.attributes)
    items: Any = given.items
    return Category(items) if given.kind == "category" else Items(items, given.most)


def protocol(task: Task) -> Weave | Flat:
    """Return the protocol a task asks for.

    Whatever the task leaves open (the mechanism, the mix) is chosen by exact error, for the task's
    queries.
    """
    carrier = cast("Carrier", task.mechanism)
    if task.protocol == "flat":
        items: Any = task.values.items
        return Flat(items, task.periods, task.changes, task.epsilon, carrier)
    asked: dict[str, Any] = {
        "values": values(task.values),
        "periods": task.periods,
        "changes": task.changes,
        "epsilon": task.epsilon,
        "mechanism": carrier,
    }
    if task.mix is not None:
        spans, shares = zip(*task.mix, strict=True)
        return Weave(spans=spans, shares=shares, **asked)
    if task.protocol == "weave":
        return Weave.best(workload=task.workload, **asked)
    if task.protocol == "snapshots":
        return Weave(spans=(SNAPSHOT,), shares=(1.0,), **asked)
    if task.protocol == "tree":
        return Weave.tree(fan_out=task.fan_out or 2, workload=task.workload, **asked)
    if carrier == "auto":
        asked["mechanism"] = "exsub-printed"
    return Weave.papers(fan_out=task.fan_out or 2, **asked)


# ---- specs -----------------------------------------------------------------------------------


def spec(task: Task, start: int, *, grace: int = 0, sealed: bool = True) -> dict[str, Any]:
    """Return the task with everything written out, as plain data that devices obey.

    Parameters
    ----------
    task
        What is asked.
    start
        When the first period begins, in seconds since 1970 (UTC).
    grace
        How many seconds after its end the reports of a period are still taken.
    sealed
        Whether reports are sealed to the collector.

    """
    chosen = protocol(task)
    plain = task.plain() | {"start": start, "grace": grace, "sealed": sealed}
    if isinstance(chosen, Flat):
        return plain
    fixed = chosen.resolved()
    return plain | {
        "mix": [list(pair) for pair in zip(fixed.spans, fixed.shares, strict=True)],
        "aligned": fixed.aligned,
        "mechanism": fixed.mechanism,
        "sized": [
            [each.differences, each.carrier, each.size, each.threshold] for each in fixed.sized
        ],
        "looks": [list(look) for look in fixed.looks],
    }


def protocol_of(given: Mapping[str, Any]) -> Weave | Flat:
    """Return the protocol of a spec, without choosing anything; raise if the spec is none.

    Examples
    --------
    >>> from sfumato.wire.task import parse
    >>> task = parse('''
    ... title = "On or off"
    ... epsilon = 1
    ... periods = 8
    ... period = "1 hour"
    ... changes = 2
    ... values = {kind = "binary"}
    ... ''')
    >>> protocol_of(spec(task, start=0)).payload
    1

    """
    try:
        return _protocol_of(given)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"the spec of the task has something wrong ({error!r}).") from None


def _protocol_of(given: Mapping[str, Any]) -> Weave | Flat:
    plain = dict(given["values"])
    if "attributes" in plain:
        plain["attributes"] = dict(plain["attributes"])
    observed = TaskValues.of(plain)
    numbers = (given["periods"], given["changes"], given["epsilon"])
    if given["protocol"] == "flat":
        items: Any = observed.items
        return Flat(items, *numbers, given["mechanism"])
    spans, shares = zip(*given["mix"], strict=True)
    return Weave(
        values(observed),
        *numbers,
        tuple(spans),
        tuple(shares),
        given["mechanism"],
        aligned=bool(given["aligned"]),
        sized=tuple(Sized(*each) for each in given["sized"]),
        looks=tuple((str(name), size, threshold) for name, size, threshold in given["looks"]),
    )
