"""What a device lets a task cost: judged before anything is built of it, and before it is paid.

A task comes from a stranger. Whatever drives time, memory or bytes on a device has a bound here, so
that no task that can be joined makes an app wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset import Concord
from sfumato.mechanisms.sparse.subset_sampler import SubsetSampler
from sfumato.streams.flat import Flat
from sfumato.streams.registry import WINDOW, name_of, stream_of
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.strands import CARRIERS
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.wire import fields
from sfumato.wire.reports import LARGEST_PAYLOAD
from sfumato.wire.task import MOST_ENTRIES, MOST_PERIODS
from sfumato.wire.values import TaskValues

__all__ = ["admitted"]

LATEST: Final = 1 << 40
MOST_ITEMS: Final = 1 << 16
"""How many entries a value over a horizon may have: a device goes through all of them."""
MOST_ASKED: Final = 8 * LARGEST_PAYLOAD
"""How many items a task that asks anew may have: a bit for each is the longest report."""
MOST_ATTRIBUTES: Final = 256
MOST_ROWS: Final = 1024
"""How many spans, sizes or looks a task may list."""
MOST_HITS: Final = 1 << 10
"""How many non-zeros a secret subset may hit: all their numbers are weighed, exactly."""
MOST_KEPT: Final = 1 << 24
"""How many bytes of payload a device may have to keep, if nobody takes its reports."""

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
    kind = fields.choice(spec.get("kind"), ("kind",), ("horizon", WINDOW))
    # What an owner allows hangs on the kind, so that it must be the kind of what is run.
    streams = (WINDOW,) if kind == WINDOW else ("flat", "weave")
    stream = fields.choice(name_of(spec), ("stream",), streams)
    _check_values(spec, MOST_ASKED if kind == WINDOW else MOST_ITEMS)
    if kind != WINDOW and spec["payload"] * spec["periods"] > MOST_KEPT:
        raise ConfigurationError(
            f"payload is {spec['payload']} for {spec['periods']} periods; up to {MOST_KEPT:,} "
            "bytes in all are expected."
        )
    if stream == "weave":
        _check_rows(spec)
    protocol = stream_of(spec)
    if isinstance(protocol, Weave):
        _check_sizes(protocol)
    if isinstance(protocol, Flat):
        _check_hits(protocol.changes)
    return protocol


def _check_rows(spec: Mapping[str, Any]) -> None:
    """Refuse sizes that are none, before anything is built of them."""
    _rows(spec, "mix", 2)
    for differences, carrier, size, threshold in _rows(spec, "sized", 4):
        fields.in_range(differences, ("sized",), 1, MOST_PERIODS)
        fields.choice(carrier, ("sized",), CARRIERS[1:])
        _check_size("sized", size, threshold, is_concord=carrier == Concord.name)
    for name, size, threshold in _rows(spec, "looks", 3):
        _check_size("looks", size, threshold, is_concord=name == Concord.name)


def _rows(spec: Mapping[str, Any], name: str, width: int) -> list[list[Any]]:
    rows = spec[name]
    good = isinstance(rows, list) and len(rows) <= MOST_ROWS
    if not good or not all(isinstance(row, list) and len(row) == width for row in rows):
        raise ConfigurationError(
            f"{name} is {fields.shown(rows)}; up to {MOST_ROWS} lists of {width} are expected."
        )
    return rows  # type: ignore[no-any-return]


def _check_size(name: str, size: Any, threshold: Any, *, is_concord: bool) -> None:
    fields.in_range(size, (name,), 1, MOST_ENTRIES)
    if is_concord or threshold is not None:
        fields.in_range(threshold, (name,), 1, MOST_ENTRIES)


def _check_values(spec: Mapping[str, Any], most: int) -> None:
    values = TaskValues.of_spec(spec)
    if len(values.attributes) > MOST_ATTRIBUTES:
        raise ConfigurationError(
            f"values has {len(values.attributes):,} attributes; a device takes up to "
            f"{MOST_ATTRIBUTES}."
        )
    if values.width > most:
        raise ConfigurationError(
            f"values has {values.width:,} items; a device takes up to {most:,}."
        )


def _check_sizes(protocol: Weave) -> None:
    """Refuse a protocol that leaves a size to the device, or has one that takes long to draw."""
    known = {each.differences for each in protocol.sized}
    for thread in _threads(protocol):
        count = thread.differences(protocol.periods, anchored=protocol.anchored)
        if count not in known:
            raise ConfigurationError(
                f"sized has no size for threads of {count} differences; one for all is expected."
            )
    blocks = len(protocol.values.blocks)
    if SNAPSHOT in protocol.spans and len(protocol.looks) != blocks:
        raise ConfigurationError(
            f"looks has {len(protocol.looks)} for {blocks} snapshots; one for each is expected."
        )
    for mechanism in _mechanisms(protocol):
        if isinstance(mechanism, SubsetSampler):
            _check_hits(min(mechanism.sparsity, mechanism.subset_size or mechanism.sparsity))


def _threads(protocol: Weave) -> Iterator[Thread]:
    """Yield threads of differences, with each number of differences that there is."""
    for span in protocol.spans:
        if span != SNAPSHOT:  # who looks first has the most, and who looks last the fewest
            yield from (Thread(span, offset) for offset in {0, 0 if protocol.aligned else 1 % span})


def _mechanisms(protocol: Weave) -> Iterator[Mechanism]:
    if SNAPSHOT in protocol.spans:
        yield from (look.mechanism for look in protocol.snapshots)
    yield from (protocol.strand(thread).mechanism for thread in _threads(protocol))


def _check_hits(hits: int) -> None:
    if hits > MOST_HITS:
        raise ConfigurationError(
            f"changes or size lets a subset hit {hits:,} entries; a device draws from up to "
            f"{MOST_HITS:,}."
        )
