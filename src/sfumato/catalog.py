"""The mechanisms by name, with parameters from their fields; tasks and their streams.

A task file names its stream with ``stream`` or, in older files, with ``kind`` and ``protocol``. The
stream declares and checks its own fields, so that a stream of another package can be used like any
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, Final

from sfumato import mechanisms
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.streams import registry
from sfumato.wire import fields
from sfumato.wire.fields import Problem
from sfumato.wire.task import COUNTED, MOST_PERIODS, RUNNING, SHARED, Task, located, text_of
from sfumato.wire.values import TaskValues

__all__ = [
    "NOISES",
    "Parameter",
    "build",
    "changed",
    "find",
    "from_configuration",
    "names",
    "parameters",
    "parameters_of",
    "parse",
    "read",
    "stream",
    "task",
]

NOISES: Final[Mapping[str, type[Noise]]] = {DiscreteLaplace.name: DiscreteLaplace}
"""The noise of the central model by name; it is no mechanism, as there are no reports."""

_BY_NAME: Mapping[str, type[Mechanism]] = {
    kind.name: kind for kind in (getattr(mechanisms, public) for public in dir(mechanisms))
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
    """Return the class of a mechanism; raise ConfigurationError if there is none of this name."""
    if name not in _BY_NAME:
        raise ConfigurationError(f"mechanism is {name!r}; the catalogue has {', '.join(names())}.")
    return _BY_NAME[name]


def parameters(name: str) -> list[Parameter]:
    """Return the parameters of a mechanism, in order."""
    return parameters_of(find(name))


def parameters_of(kind: type[Mechanism | Noise]) -> list[Parameter]:
    """Return the fields of a class as parameters, in order."""
    return [
        Parameter(
            field.name,
            str(field.type),
            required=field.default is MISSING,
            default=None if field.default is MISSING else field.default,
        )
        for field in dataclass_fields(kind)
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


# ---- tasks -----------------------------------------------------------------------------------


def read(path: str | Path) -> Task:
    """Return the task of a file; an error is one sentence that names the line."""
    return parse(text_of(path), str(path))


def parse(text: str, source: str = "task") -> Task:
    """Return the task that a text describes; an error names the source and the line."""
    return located(text, source, task)


def task(table: Mapping[str, Any]) -> Task:
    """Return the task that the fields of a task file describe, checked.

    Examples
    --------
    >>> asked = task({
    ...     "kind": "window", "title": "Where people are", "epsilon": 1, "window": 24,
    ...     "devices": 5000, "periods": 720, "period": "1 hour",
    ...     "values": {"kind": "category", "items": ["home", "work"]},
    ... })
    >>> asked.stream, asked.design["window"], asked.design["method"]
    ('window', 24, 'auto')

    """
    name, kind = _stream_named(table)
    needed = {**SHARED, **kind.needed}
    naming = [field for field in ("stream", "kind") if field in table] or ["stream", "kind"]
    known = (*needed, *kind.optional, *RUNNING, *naming)
    fields.refuse_unknown(table, known, (), f"a task of the stream {name!r} has")
    for field, words in needed.items():
        if field not in table:
            raise Problem((), f"{field} is missing; {words} is expected.")
    values = TaskValues.of(table["values"])
    title, seconds = fields.title(table["title"]), fields.seconds(table["period"], ("period",))
    epsilon = fields.epsilon(table["epsilon"], ("epsilon",))
    fields.in_range(table["periods"], ("periods",), kind.fewest_periods, MOST_PERIODS)
    run = {field: table[field] for field in RUNNING if field in table}
    asked = Task(title, values, epsilon, table["periods"], seconds, name, **run)
    return _designed(asked, {field: table[field] for field in table if field in _own(kind)})


def changed(task: Task, **others: Any) -> Task:
    """Return a task with some fields changed, checked again; None removes a field.

    Examples
    --------
    >>> lights = parse('''
    ... title = "Lights"
    ... epsilon = 1
    ... periods = 48
    ... period = "30 minutes"
    ... changes = 6
    ... values = {kind = "binary"}
    ... ''')
    >>> changed(lights, changes=8, epsilon=2.0).design["changes"]
    8

    """
    mine = {field.name for field in dataclass_fields(Task)} - {"design"}
    shared = replace(task, **{name: value for name, value in others.items() if name in mine})
    own = {name: value for name, value in others.items() if name not in mine}
    left = {name: value for name, value in {**task.design, **own}.items() if value is not None}
    return _designed(shared, left)


def _stream_named(table: Mapping[str, Any]) -> tuple[str, type[Stream]]:
    """Return the name and the class of the stream that a task file names."""
    if "kind" in table:
        fields.choice(table["kind"], ("kind",), registry.KINDS)
        if "stream" in table:
            raise Problem(
                ("kind",),
                f"kind is {table['kind']!r} where stream is {fields.shown(table['stream'])}; the "
                "stream alone is expected.",
            )
    name = registry.name_of(table)
    try:
        return name, registry.find(name)
    except ConfigurationError as error:
        raise Problem(("stream",), str(error)) from None


def _designed(task: Task, own: Mapping[str, Any]) -> Task:
    """Return a task with its stream's own fields, checked by the stream."""
    kind = registry.find(task.stream)
    fields.refuse_unknown(own, _own(kind), (), f"the stream {task.stream!r} has")
    designed = replace(task, design=kind.fields({**task.shared(), **own}))
    if task.enrolment == COUNTED:
        try:
            kind.refuse_enrolment(designed.plain())
        except ConfigurationError as error:
            raise Problem(("enrolment",), str(error)) from None
    return designed


def _own(kind: type[Stream]) -> tuple[str, ...]:
    """Return the names of a stream's own fields."""
    return tuple(name for name in (*kind.needed, *kind.optional) if name not in SHARED)


def stream(task: Task) -> Stream:
    """Return the stream of a task.

    What the task leaves open (the mechanism, the mix) is chosen by exact error for the task's
    queries. If reports are shuffled, epsilon is the largest one, up to the task's, that keeps the
    task's promise about shuffled reports.
    """
    return registry.find(task.stream).chosen(task.plain())
