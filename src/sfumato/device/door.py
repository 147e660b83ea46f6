"""Limits on what a task may cost a device, checked before anything is built or paid.

A task comes from a stranger. Everything that determines time, memory or bytes on a device has a
limit, so that no task that can be joined makes an app wait. The limits that all streams share are
checked here; each stream adds its own (:meth:`~sfumato.core.stream.Stream.admit`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.streams import registry
from sfumato.streams.admission import MOST_ASKED, refuse_heavy, refuse_wide
from sfumato.streams.amplification import refuse_false
from sfumato.wire import fields
from sfumato.wire.reports import LARGEST_PAYLOAD
from sfumato.wire.task import MOST_PERIODS

__all__ = ["admitted", "refuse_false_promise"]

LATEST: Final = 1 << 40

_NUMBERS: Final = {
    "start": (0, LATEST),
    "period_seconds": (1, LATEST),
    "periods": (1, MOST_PERIODS),
    "payload": (1, LARGEST_PAYLOAD),
}


def admitted(spec: Mapping[str, Any]) -> Stream:
    """Return the stream of a task; raise ConfigurationError if it costs a device too much."""
    with _anything_wrong():
        return _admitted(spec)


def refuse_false_promise(spec: Mapping[str, Any], stream: Stream) -> None:
    """Raise ConfigurationError if a task does not keep what it promises about shuffled reports."""
    with _anything_wrong():
        refuse_false(spec, stream)


@contextmanager
def _anything_wrong() -> Iterator[None]:
    """Raise ConfigurationError for whatever a stranger's spec makes fail."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(
            f"the spec of the task has something wrong ({repr(error)[:120]})."
        ) from None


def _admitted(spec: Mapping[str, Any]) -> Stream:
    for name, (low, high) in _NUMBERS.items():
        fields.in_range(spec.get(name), (name,), low, high)
    if "title" in spec:
        fields.title(spec["title"])
    if "kind" in spec:
        fields.choice(spec["kind"], ("kind",), registry.KINDS)
        if "stream" in spec:
            raise ConfigurationError(
                f"kind is {spec['kind']!r} where stream is {fields.shown(spec['stream'])}; one of "
                "them is expected."
            )
    refuse_wide(spec, MOST_ASKED)  # a stream can only lower this limit
    stream = registry.find(registry.name_of(spec)).admit(spec)
    if not stream.rounds:
        refuse_heavy(spec)
    return stream
