"""What a device lets any task cost: judged before anything is built of it, and before it is paid.

A task comes from a stranger. Whatever drives time, memory or bytes on a device has a bound, so that
no task that can be joined makes an app wait. What all streams share is judged here; each stream
adds its own (:meth:`~sfumato.core.stream.Stream.admit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.streams import registry
from sfumato.streams.admission import MOST_ASKED, refuse_heavy, refuse_wide
from sfumato.wire import fields
from sfumato.wire.reports import LARGEST_PAYLOAD
from sfumato.wire.task import MOST_PERIODS

__all__ = ["admitted"]

LATEST: Final = 1 << 40

_NUMBERS: Final = {
    "start": (0, LATEST),
    "period_seconds": (1, LATEST),
    "periods": (1, MOST_PERIODS),
    "payload": (1, LARGEST_PAYLOAD),
}


def admitted(spec: Mapping[str, Any]) -> Stream:
    """Return the stream of a task that a device can afford; raise ConfigurationError else."""
    try:
        return _admitted(spec)
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
    refuse_wide(spec, MOST_ASKED)  # which every stream can only make less
    stream = registry.find(registry.name_of(spec)).admit(spec)
    if not stream.rounds:
        refuse_heavy(spec)
    return stream
