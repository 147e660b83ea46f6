"""The streams by name, imported at their first use, and their conversion to plain data.

A device builds its stream from a published task and chooses nothing. Other packages add streams
with entry points of the group ``sfumato.streams``, named like the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.wire.task import Task

__all__ = ["KINDS", "STREAMS", "find", "name_of", "names", "spec_of", "stream_of"]

STREAMS: Final[dict[str, str]] = {
    "flat": "sfumato.streams.flat.flat:Flat",
    "tiers": "sfumato.streams.window.tiers:Tiers",
    "topl": "sfumato.streams.published.topl:ToPL",
    "weave": "sfumato.streams.weave.weave:Weave",
    "window": "sfumato.streams.window.window:Window",
}
"""The module and class of each stream."""

GROUP: Final = "sfumato.streams"
HORIZON: Final = "horizon"
WINDOW: Final = "window"
KINDS: Final = (HORIZON, WINDOW)
"""The kinds in older task files, which have no field ``stream``."""


def find(name: str) -> type[Stream]:
    """Return the class of a stream by its name.

    Examples
    --------
    >>> find("weave").__name__
    'Weave'

    """
    if name not in STREAMS:
        _add_installed()
    if name not in STREAMS:
        known = ", ".join(sorted(STREAMS))
        raise ConfigurationError(f"stream is {name[:40]!r}; there are {known}.")
    module, _, attribute = STREAMS[name].partition(":")
    kind: type[Stream] = getattr(import_module(module), attribute)
    return kind


def names() -> list[str]:
    """Return the names of all streams, those of other packages included.

    Examples
    --------
    >>> {"flat", "weave", "window"} <= set(names())
    True

    """
    _add_installed()
    return sorted(STREAMS)


def _add_installed() -> None:
    """Add the streams of other packages; this is not needed for known names."""
    from importlib.metadata import entry_points  # noqa: PLC0415 -- slow to import

    for point in entry_points(group=GROUP):
        STREAMS.setdefault(point.name, point.value)


def name_of(task: Mapping[str, Any]) -> str:
    """Return the name of the stream that a spec or the fields of a task file name."""
    if "stream" in task:
        return str(task["stream"])
    if task.get("kind") == WINDOW:
        return "tiers" if task.get("tiers") else "window"
    values = task.get("values")
    moves = isinstance(values, Mapping) and values.get("kind") == "moves"
    return "flat" if moves or task.get("protocol") == "flat" else "weave"


def stream_of(spec: Mapping[str, Any]) -> Stream:
    """Return the stream that a spec describes; raise ConfigurationError if the spec is wrong.

    Examples
    --------
    >>> from sfumato.catalog import parse
    >>> from sfumato.streams.kinds import Binary
    >>> from sfumato.streams.weave import Weave
    >>> task = parse('''
    ... title = "On or off"
    ... epsilon = 1
    ... periods = 8
    ... period = "1 hour"
    ... changes = 2
    ... values = {kind = "binary"}
    ... ''')
    >>> stream = Weave.best(Binary(), 8, 2, 1.0)
    >>> stream_of(spec_of(task, stream, start=0)) == stream.resolved()
    True

    """
    try:
        return find(name_of(spec)).of(spec)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"the spec of the task has something wrong ({error!r}).") from None


def spec_of(
    task: Task,
    stream: Stream,
    start: int,
    *,
    grace: int = 0,
    sealed: bool = True,
    endpoint: str | None = None,
) -> dict[str, Any]:
    """Return the spec of a task: everything written out, as plain data for devices.

    Parameters
    ----------
    task
        The task.
    stream
        The stream that was chosen for the task.
    start
        The start of the first period, in seconds since 1970 (UTC).
    grace
        The number of seconds after a period's end in which its reports are accepted.
    sealed
        Whether reports are sealed to the collector.
    endpoint
        The address that devices send to, if the task names none.

    """
    run = {"start": start, "grace": grace, "sealed": sealed, "payload": stream.payload}
    where = task.endpoint or endpoint
    named = {} if where is None else {"endpoint": where}
    return task.plain() | named | run | stream.plain()
