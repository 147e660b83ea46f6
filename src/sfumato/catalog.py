"""Every mechanism by its name, with its parameters read off its fields; the protocol of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, cast, overload

from sfumato import mechanisms
from sfumato.accounting.shuffle import Requirement
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.streams import crowd
from sfumato.streams.flat import Flat
from sfumato.streams.specs import Streams, values_of, window_of
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.strands import Carrier
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.wire.task import Task
from sfumato.wire.window_task import WindowTask

if TYPE_CHECKING:
    from sfumato.streams.window import Tiers, Window

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


@overload
def protocol(task: Task) -> Weave | Flat: ...


@overload
def protocol(task: WindowTask) -> Window: ...


@overload
def protocol(task: Task | WindowTask) -> Streams: ...


def protocol(task: Task | WindowTask) -> Streams:
    """Return the protocol a task asks for.

    Whatever the task leaves open (the mechanism, the mix) is chosen by exact error, for the task's
    queries. If reports are mixed, epsilon is the largest one up to the task's that keeps what the
    task promises of mixed reports.
    """
    if isinstance(task, WindowTask):
        if task.tiers:
            raise ConfigurationError(
                f"tiers has {len(task.tiers)} beside the task's own window; devices join a task "
                "with one, so take its tiers one by one."
            )
        return window_of(task.values, task.plain())
    found = _protocol(task)
    if task.shuffle is None:
        return found
    required = Requirement.of(dict(task.shuffle))
    if isinstance(found, Flat):
        return crowd.mixed(found, required)
    lower = crowd.mixed(found, required).epsilon
    # The mix that is best at that epsilon may hide a little less: once more.
    return crowd.mixed(cast("Weave", _protocol(replace(task, epsilon=lower))), required)


def tiers(task: WindowTask) -> Window | Tiers:
    """Return the protocol of a window task with all its tiers; a window if it has one only."""
    from sfumato.streams.window import Tiers  # noqa: PLC0415 -- other tasks do not need it

    each = tuple(window_of(one.values, one.plain()) for one in task.alone())
    return each[0] if len(each) == 1 else Tiers(each)


def _protocol(task: Task) -> Weave | Flat:
    carrier = cast("Carrier", task.mechanism)
    if task.protocol == "flat":
        items: Any = task.values.items
        return Flat(items, task.periods, task.changes, task.epsilon, carrier)
    asked: dict[str, Any] = {
        "values": values_of(task.values),
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
