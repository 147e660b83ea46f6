"""The operator's log: one line of JSON for each event, with no secret, body or report in it.

However often something happens, the log stays short: of each kind of event some lines are written
in a while, and the next line of the kind says how many were left out. A log that cannot be written
stops nothing.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TextIO

import structlog

__all__ = ["Throttle", "log", "to_stderr"]

MOST_LINES: Final = 20
"""The largest number of lines of one kind in a while."""

WHILE: Final = 10.0
"""The length of a while in seconds."""

MOST_KINDS: Final = 1000


@dataclass
class Throttle:
    """Leaves out events of a kind that happens too often.

    A kind is an event with its task and the class of its error, if there are any.

    Examples
    --------
    >>> now = [0.0]
    >>> throttle = Throttle(most=1, clock=lambda: now[0])
    >>> throttle(None, "info", {"event": "a"})
    {'event': 'a'}
    >>> throttle(None, "info", {"event": "a"})
    Traceback (most recent call last):
    ...
    structlog.exceptions.DropEvent
    >>> now[0] += 10
    >>> throttle(None, "info", {"event": "a"})
    {'event': 'a', 'left_out': 1}

    """

    most: int = MOST_LINES
    seconds: float = WHILE
    clock: Callable[[], float] = time.monotonic
    _kinds: OrderedDict[tuple[Any, ...], list[Any]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(
        self, _: Any, name: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Return an event, with how many were left out before it; raise DropEvent to leave it."""
        kind = (name, event.get("event"), event.get("task"), event.get("kind"))
        now = self.clock()
        with self._lock:
            began, written, left_out = self._kinds.pop(kind, (now, 0, 0))
            if now - began >= self.seconds:
                began, written = now, 0
            is_too_much = written >= self.most
            self._kinds[kind] = (
                [began, written, left_out + 1] if is_too_much else [began, written + 1, 0]
            )
            if len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)
        if is_too_much:
            raise structlog.DropEvent
        if left_out:
            event["left_out"] = left_out
        return event


class _OfLibraries(logging.Handler):
    """Writes what libraries log as events of ours, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record."""
        error = record.exc_info[0] if record.exc_info else None
        kind = {} if error is None else {"kind": error.__name__}
        write = log().error if record.levelno >= logging.ERROR else log().warning
        write(record.name, problem=record.getMessage().strip()[:200], **kind)


class _Unfailing:
    """A stream that loses what cannot be written, on a full disk or to a reader that has gone.

    Whoever logs goes on: what is to be said is never as important as what is being done.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if that is possible."""
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand over what was written, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()


def to_stderr(worker: int = 0) -> None:
    """Write events to stderr, as lines of JSON; with a number, each names the worker."""

    def named(_: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        del name
        return {**event, "worker": worker} if worker else event

    structlog.configure(
        processors=[
            Throttle(),
            named,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(_Unfailing(sys.stderr)),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )
    for name in ("uvicorn.error", "asyncio"):
        library = logging.getLogger(name)
        library.handlers = [_OfLibraries(logging.WARNING)]
        library.propagate = False


def log() -> Any:
    """Return the logger."""
    return structlog.get_logger()
