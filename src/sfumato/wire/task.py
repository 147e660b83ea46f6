"""A task as plain data: what devices are asked, for how long and under which promise.

A task is one readable TOML file. Some fields are common to all tasks; the others belong to its
stream, which checks them (:meth:`sfumato.core.stream.Stream.fields`). A mistake is answered with
one sentence that names the file, the line, the field and what would be right. Devices and
collectors hash the canonical form of a task, so that both have the same one. Task files are read by
:mod:`sfumato.catalog`, which knows all streams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sfumato.errors import ConfigurationError, InputError
from sfumato.wire import fields, lines
from sfumato.wire.canonical import canonical
from sfumato.wire.fields import Problem
from sfumato.wire.reading import read_toml
from sfumato.wire.values import TaskValues

__all__ = [
    "COUNTED",
    "FOR_EVER",
    "MOST_ENTRIES",
    "MOST_PEOPLE",
    "MOST_PERIODS",
    "RUNNING",
    "SHARED",
    "Task",
    "located",
    "text_of",
]

FORMAT: Final = 2
"""The format of tasks and specs that are written; see :mod:`sfumato.wire.published`."""
LARGEST_FILE: Final = 1 << 22
MOST_PERIODS: Final = 1 << 14
MOST_PEOPLE: Final = 10**15
MOST_ENTRIES: Final = 1 << 24
"""The largest number of entries that a value has over all periods of a horizon."""

SHARED: Final[Mapping[str, str]] = {
    "title": "a few words on what the task is about",
    "epsilon": "a positive number, the privacy that is promised to a device,",
    "periods": "a whole number, how many periods there are,",
    "period": 'the length of a period, as in "1 hour",',
    "values": 'a table with a kind, as in values = {kind = "binary"},',
}
"""The fields that every task file has, each with what is expected, in words."""
RUNNING: Final = ("endpoint", "shuffler", "enrolment", "renew", "counts", "keep", "cap")
"""The optional fields of any task that say how it is run."""
ENROLMENTS: Final = ("open", "counted", "credentials")
COUNTED: Final = "counted"
"""What `enrolment` says if each device says once that it takes part."""
COUNTS: Final = ("collector", "engine")
FOR_EVER: Final = "for ever"
"""What `keep` says if contents are never erased; so it is with specs that say nothing of it."""


@dataclass(frozen=True)
class Task:
    """A task: what devices are asked, and under which promise.

    Parameters
    ----------
    title
        What the task is about, for people to read.
    values
        What a device observes in each period.
    epsilon
        The privacy that is promised to a device; the stream's guarantee says what it covers.
    periods
        How many periods there are.
    period_seconds
        The length of a period in seconds.
    stream
        The name of the task's stream.
    design
        The stream's own fields as plain data, checked by the stream.
    endpoint
        The address that devices send reports to; ``{task}`` in it stands for the task's id. None if
        the server that publishes the task names it.
    shuffler
        The address of the shuffler; None if there is none.
    enrolment
        Who may take part: anybody (``open``, stored as None), anybody who says so once, so that
        means are over those who have (``counted``), or devices with ``credentials``.
    renew
        After how many seconds the collector's key is renewed; None if only on request.
    counts
        Who adds reports up: the ``collector`` as they come (stored as None), or an ``engine``
        later.
    keep
        For how many seconds contents are kept after their period has closed, or ``"for ever"``;
        None if they are erased when it closes.
    cap
        How many reports of one period count that come from one client, such as an address; None if
        all do.

    Examples
    --------
    >>> from sfumato.catalog import parse
    >>> task = parse('''
    ... title = "Where people listen"
    ... epsilon = 1
    ... periods = 168
    ... period = "1 hour"
    ... changes = 8
    ... values = {kind = "category", items = ["home", "work", "road"]}
    ... ''')
    >>> task.stream, task.design["changes"], task.period_seconds, task.values.width
    ('weave', 8, 3600, 3)
    >>> task.task_id[:16]
    '61747e72361e1ea8'

    """

    title: str
    values: TaskValues
    epsilon: float
    periods: int
    period_seconds: int
    stream: str
    design: Mapping[str, Any] = field(default_factory=dict, hash=False)
    endpoint: str | None = None
    shuffler: str | None = None
    enrolment: str | None = None
    renew: int | None = None
    counts: str | None = None
    keep: int | str | None = None
    cap: int | None = None

    def __post_init__(self) -> None:
        """Raise Problem if a field is wrong for every stream."""
        fields.title(self.title)
        object.__setattr__(self, "epsilon", fields.epsilon(self.epsilon, ("epsilon",)))
        fields.in_range(self.periods, ("periods",), 1, MOST_PERIODS)
        object.__setattr__(self, "design", dict(self.design))
        for name in RUNNING:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _CHECKS[name](value, (name,)))
        if self.renew is not None and self.renew < self.period_seconds:
            raise Problem(
                ("renew",),
                f"renew is {self.renew} seconds; at least a period, {self.period_seconds} seconds, "
                "is expected.",
            )

    def shared(self) -> dict[str, Any]:
        """Return the fields that are common to all tasks, as plain data."""
        return {
            "title": self.title,
            "values": self.values.plain(),
            "epsilon": self.epsilon,
            "periods": self.periods,
            "period_seconds": self.period_seconds,
        }

    def plain(self) -> dict[str, Any]:
        """Return the task as plain data.

        Fields without a value are left out, so that a field added in a later version does not
        change tasks that do not use it.
        """
        run = {name: getattr(self, name) for name in RUNNING if getattr(self, name) is not None}
        return {"format": FORMAT, "stream": self.stream, **self.shared(), **self.design, **run}

    def canonical(self) -> bytes:
        """Return the canonical form of the task, in which two parties compare tasks."""
        return canonical(self.plain())

    @property
    def task_id(self) -> str:
        """The SHA-256 hash of the task's canonical form, in hexadecimal digits."""
        return hashlib.sha256(self.canonical()).hexdigest()


def _unless(usual: str, known: tuple[str, ...]) -> Callable[[Any, fields.Path], str | None]:
    """Return a check of a choice that returns None for the usual one."""

    def check(given: Any, path: fields.Path) -> str | None:
        chosen = fields.choice(given, path, known)
        return None if chosen == usual else chosen

    return check


def _kept(given: Any, path: fields.Path) -> int | str:
    """Return for how long contents are kept."""
    return FOR_EVER if given == FOR_EVER else fields.seconds(given, path)


def _capped(given: Any, path: fields.Path) -> int:
    """Return how many reports of one client count."""
    fields.in_range(given, path, 1, MOST_PEOPLE)
    return int(given)


_CHECKS: Final[Mapping[str, Callable[[Any, fields.Path], Any]]] = {
    "endpoint": fields.address,
    "shuffler": fields.address,
    "enrolment": _unless("open", ENROLMENTS),
    "renew": fields.seconds,
    "counts": _unless("collector", COUNTS),
    "keep": _kept,
    "cap": _capped,
}


def text_of(path: str | Path) -> str:
    """Return the text of a task file; raise InputError if it cannot be a task file."""
    path = Path(path)
    if path.exists() and not path.is_file():
        msg = f"{path} is not a regular file; the name of a task file is expected."
        raise InputError(msg)
    content = path.read_bytes()
    if len(content) > LARGEST_FILE:
        msg = f"{path} has {len(content):,} bytes; a task file has {LARGEST_FILE:,} at most."
        raise InputError(msg)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = content[error.start]
        msg = f"{path}, line {line}: byte {byte:#04x} is no text; a file in UTF-8 is expected."
        raise InputError(msg) from error


def located(text: str, source: str, judge: Callable[[Mapping[str, Any]], Task]) -> Task:
    """Return the task that a text describes; errors of ``judge`` are raised with their line."""
    table = read_toml(text, source)
    try:
        return judge(table)
    except Problem as problem:
        line = lines.line_of(text, problem.path)
        where = f"{source}, line {line}" if line else source
        raise ConfigurationError(f"{where}: {problem}") from problem
