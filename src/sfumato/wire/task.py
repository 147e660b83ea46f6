"""A task: what is asked of devices, for how long and under which promise, as plain data.

A task is one readable TOML file. Everything in it is checked before anything runs, and a mistake is
answered with one sentence that names the file, the line, the field and what would be right. Its
canonical form is what devices and collectors hash, so that they mean the same task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from sfumato.core.exact import is_finite_number
from sfumato.core.mechanism import LARGEST_EPSILON, SMALLEST_EPSILON
from sfumato.errors import ConfigurationError, InputError
from sfumato.wire import fields, lines
from sfumato.wire.described import MOST_PEOPLE, MOST_PERIODS, Described
from sfumato.wire.fields import Problem
from sfumato.wire.reading import read_toml
from sfumato.wire.values import TaskValues
from sfumato.wire.window_task import WINDOW, WindowTask

__all__ = ["Task", "parse", "parse_any", "read", "read_any", "task_of"]

T = TypeVar("T")

KINDS: Final = ("horizon",)
QUERIES: Final = ("online", "history", "prefix", "ranges")
PROTOCOLS: Final = ("weave", "snapshots", "tree", "hierarchy", "flat")
LEVELLED: Final = ("tree", "hierarchy")
MECHANISMS: Final = ("auto", "concord", "exsub", "exsub-printed")
DECODERS: Final = ("online", "smoothed", "filtered")

LARGEST_FILE: Final = 1 << 22
MOST_ENTRIES: Final = 1 << 24
SNAPSHOT: Final = "snapshot"

_NEEDED: Final = {
    "title": "a few words on what the task is about",
    "epsilon": "a positive number, the privacy of a device's whole stream,",
    "periods": "a whole number, how many periods there are,",
    "period": 'the length of a period, as in "1 hour",',
    "changes": "a whole number, how many entries of a device's value change at most,",
    "values": 'a table with a kind, as in values = {kind = "binary"},',
}
_OPTIONAL: Final = (
    "queries",
    "protocol",
    "mechanism",
    "decoder",
    "fan_out",
    "mix",
    "kind",
    "shuffle",
)


@dataclass(frozen=True)
class Task(Described):
    """What is asked of devices.

    Parameters
    ----------
    title
        What the task is about, for people.
    values
        What a device observes in each period.
    epsilon
        Privacy of a device's whole stream.
    periods
        How many periods the horizon has.
    period_seconds
        How long a period is.
    changes
        How many entries of a device's value change over the horizon, at most.
    queries
        What will be asked, with weights: ``online``, ``history``, ``prefix``, ``ranges``.
    protocol
        ``weave``, ``snapshots``, ``tree``, the papers' ``hierarchy``, or for moves ``flat``.
    mechanism
        What carries differences; ``auto`` is the one of least exact error, but for the papers'
        hierarchy theirs as printed.
    decoder
        ``online`` (each answer final when its period closes), ``smoothed`` (later reports sharpen
        earlier answers) or ``filtered`` (online, by a prior that curves move slowly).
    fan_out
        Of a hierarchy or a tree: how many spans make one of the next level; None for 2.
    mix
        Which share of the devices draws each span (0 for snapshots); None for the protocol's own.
    kind
        ``horizon``: a fixed number of periods.
    shuffle
        What is promised if reports are mixed with others: ``epsilon``, ``delta``, ``min_batch`` and
        ``colluding``. It lowers the local epsilon as far as needed; None if reports are not mixed.

    Examples
    --------
    >>> task = parse('''
    ... title = "Where people listen"
    ... epsilon = 1
    ... periods = 168
    ... period = "1 hour"
    ... changes = 8
    ... values = {kind = "category", items = ["home", "work", "road"]}
    ... ''')
    >>> task.protocol, task.period_seconds, task.values.width
    ('weave', 3600, 3)
    >>> task.task_id[:16]
    '506aeea0fb2ce9b9'

    """

    title: str
    values: TaskValues
    epsilon: float
    periods: int
    period_seconds: int
    changes: int
    queries: tuple[tuple[str, float], ...] = (("online", 1.0),)
    protocol: str = "weave"
    mechanism: str = "auto"
    decoder: str = "online"
    fan_out: int | None = None
    mix: tuple[tuple[int, float], ...] | None = None
    kind: str = "horizon"
    shuffle: tuple[tuple[str, float], ...] | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that do not fit together, whoever made the task."""
        if self.values.kind == "number":
            raise Problem(
                ("values", "kind"),
                f"values.kind is 'number' over a horizon; numbers are for kind = {WINDOW!r}.",
            )
        _check_numbers(self)
        if (self.values.kind == "moves") != (self.protocol == "flat"):
            raise Problem(
                ("protocol",),
                f"protocol is {self.protocol!r} for values of kind {self.values.kind!r}; flat is "
                "for moves, the others for everything else.",
            )
        _check_spans(self)

    @property
    def workload(self) -> str | dict[str, float]:
        """What will be asked, in the terms in which a mix is chosen."""
        return self.queries[0][0] if len(self.queries) == 1 else dict(self.queries)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Task:
        """Return the checked task of a parsed file."""
        cls.refuse_gaps(given, _NEEDED, _OPTIONAL, "a task has")
        values = TaskValues.of(given["values"])
        usual = "flat" if values.kind == "moves" else "weave"
        return cls(
            title=fields.title(given["title"]),
            values=values,
            epsilon=given["epsilon"],
            periods=given["periods"],
            period_seconds=fields.seconds(given["period"]),
            changes=given["changes"],
            queries=_queries(given.get("queries", "online")),
            protocol=fields.choice(given.get("protocol", usual), ("protocol",), PROTOCOLS),
            mechanism=fields.choice(given.get("mechanism", "auto"), ("mechanism",), MECHANISMS),
            decoder=fields.choice(given.get("decoder", "online"), ("decoder",), DECODERS),
            fan_out=given.get("fan_out"),
            mix=_mix(given["mix"]) if "mix" in given else None,
            kind=fields.choice(given.get("kind", "horizon"), ("kind",), KINDS),
            shuffle=_shuffle(given["shuffle"]) if "shuffle" in given else None,
        )


def read(path: str | Path) -> Task:
    """Return the task of a file; raise with one sentence if it is none."""
    return parse(_text(path), str(path))


def read_any(path: str | Path) -> Task | WindowTask:
    """Return the task of a file, whichever kind it is of."""
    return parse_any(_text(path), str(path))


def _text(path: str | Path) -> str:
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


def parse(text: str, source: str = "task") -> Task:
    """Return the task over a horizon that a text describes; errors name the source and line."""
    return _parsed(text, source, Task.of)


def parse_any(text: str, source: str = "task") -> Task | WindowTask:
    """Return the task that a text describes, whichever kind it is of."""
    return _parsed(text, source, task_of)


def task_of(given: Mapping[str, Any]) -> Task | WindowTask:
    """Return the checked task of a parsed file, whichever kind it is of."""
    return WindowTask.of(given) if given.get("kind") == WINDOW else Task.of(given)


def _parsed(text: str, source: str, of: Callable[[Mapping[str, Any]], T]) -> T:
    given = read_toml(text, source)
    try:
        return of(given)
    except Problem as problem:
        line = lines.line_of(text, problem.path)
        where = f"{source}, line {line}" if line else source
        raise ConfigurationError(f"{where}: {problem}") from problem


# ---- fields ----------------------------------------------------------------------------------


def _check_numbers(task: Task) -> None:
    low, high = SMALLEST_EPSILON, LARGEST_EPSILON
    if not is_finite_number(task.epsilon) or not low <= task.epsilon <= high:
        raise Problem(
            ("epsilon",),
            f"epsilon is {fields.shown(task.epsilon)}; a number in {low:g}..{high:g} is expected.",
        )
    object.__setattr__(task, "epsilon", float(task.epsilon))
    width = task.values.width
    if 2 * width > MOST_ENTRIES:
        raise Problem(
            ("values",), f"values has {width:,} items; up to {MOST_ENTRIES // 2:,} are expected."
        )
    fields.in_range(task.periods, ("periods",), 2, min(MOST_PERIODS, MOST_ENTRIES // width))
    fields.in_range(task.changes, ("changes",), task.values.least_changes, width * task.periods)


def _check_spans(task: Task) -> None:
    levelled = task.protocol in LEVELLED
    if task.fan_out is not None:
        if not levelled:
            raise Problem(
                ("fan_out",),
                f"fan_out is {fields.shown(task.fan_out)} where protocol is {task.protocol!r}; "
                f"only {' and '.join(LEVELLED)} have one.",
            )
        fields.in_range(task.fan_out, ("fan_out",), 2, task.periods)
    if task.mix is not None and task.protocol != "weave":
        raise Problem(
            ("mix",), f"mix is given where protocol is {task.protocol!r}; only weave takes one."
        )
    for span, _ in task.mix or ():
        if 2 * span > task.periods:
            raise Problem(
                ("mix", str(span)),
                f"mix has the span {span}; spans of 1..{task.periods // 2} periods, or "
                f"{SNAPSHOT}, are expected.",
            )


def _queries(given: Any) -> tuple[tuple[str, float], ...]:
    at = ("queries",)
    if isinstance(given, str):
        return ((fields.choice(given, at, QUERIES), 1.0),)
    if not isinstance(given, (list, tuple, Mapping)) or not given:
        raise Problem(
            at,
            f"queries is {fields.shown(given)}; one of {', '.join(QUERIES)}, a list of them or a "
            "table of weights is expected.",
        )
    names = [fields.choice(name, at, QUERIES) for name in given]
    if len(set(names)) < len(names):
        raise Problem(at, f"queries is {fields.shown(given)}; each may be there once.")
    weights = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, 1.0)
    for name, weight in weights.items():
        if not is_finite_number(weight) or weight <= 0:
            raise Problem(
                (*at, name),
                f"queries.{name} is {fields.shown(weight)}; a positive weight is expected.",
            )
    total = sum(weights.values())
    return tuple(sorted((name, weight / total) for name, weight in weights.items()))


def _shuffle(given: Any) -> tuple[tuple[str, float], ...]:
    at = ("shuffle",)
    if not isinstance(given, Mapping):
        raise Problem(
            at,
            f"shuffle is {fields.shown(given)}; a table is expected, as in {{epsilon = 0.5, "
            "delta = 1e-6, min_batch = 20000, colluding = 0.1}.",
        )
    fields.refuse_unknown(given, ("epsilon", "delta", "min_batch", "colluding"), at, "shuffle has")
    ranges = {"epsilon": "a positive number", "delta": "a number above 0 and below 1"}
    for name, words in ranges.items():
        value: Any = given.get(name)
        if not is_finite_number(value) or not 0 < value < (1 if name == "delta" else math.inf):
            raise Problem(
                (*at, name), f"shuffle.{name} is {fields.shown(value)}; {words} is expected."
            )
    fields.in_range(given.get("min_batch"), (*at, "min_batch"), 1, MOST_PEOPLE)
    colluding = given.get("colluding", 0.0)
    if not is_finite_number(colluding) or not 0 <= colluding < 1:
        raise Problem(
            (*at, "colluding"),
            f"shuffle.colluding is {fields.shown(colluding)}; a fraction from 0 to below 1 is "
            "expected.",
        )
    return tuple(sorted({"colluding": 0.0, **given}.items()))


def _mix(given: Any) -> tuple[tuple[int, float], ...]:
    at = ("mix",)
    if not isinstance(given, Mapping) or not given:
        raise Problem(
            at,
            f"mix is {fields.shown(given)}; a table of spans and their shares is expected, as in "
            f"{{{SNAPSHOT} = 0.6, 1 = 0.4}}.",
        )
    found = []
    for name, share in given.items():
        if name != SNAPSHOT and not re.fullmatch(r"[1-9]\d{0,5}", name):
            raise Problem(
                (*at, name),
                f"mix.{name} is no span; {SNAPSHOT} or a number of periods is expected.",
            )
        if not is_finite_number(share) or not 0 < share <= 1:
            raise Problem(
                (*at, name),
                f"mix.{name} is {fields.shown(share)}; a share above 0 and up to 1 is expected.",
            )
        found.append((0 if name == SNAPSHOT else int(name), float(share)))
    total = sum(share for _, share in found)
    if abs(total - 1) > 1e-6:
        raise Problem(at, f"mix sums to {total:.6g}; shares that sum to 1 are expected.")
    return tuple(sorted(found))
