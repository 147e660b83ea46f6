"""Limits on what a stranger's Weave may cost a device: all sizes listed, and fast to draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.signed_subset import Concord
from sfumato.mechanisms.sparse.subset.subset_sampler import SubsetSampler
from sfumato.streams.admission import refuse_many_hits
from sfumato.streams.weave.strands import carriers
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.wire import fields
from sfumato.wire.task import MOST_ENTRIES, MOST_PERIODS

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["refuse_rows", "refuse_sized", "refuse_sizes"]

MOST_ROWS: Final = 1024
"""The largest number of spans, sizes or looks in a task."""


def refuse_rows(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for wrong sizes, before anything is built."""
    _rows(spec, "mix", 2)
    refuse_sized(spec)
    for name, size, threshold in _rows(spec, "looks", 3):
        _check_size("looks", size, threshold, is_concord=name == Concord.name)


def refuse_sized(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for wrong sizes of mechanisms that carry differences."""
    for differences, carrier, size, threshold in _rows(spec, "sized", 4):
        fields.in_range(differences, ("sized",), 1, MOST_PERIODS)
        fields.choice(carrier, ("sized",), carriers(carrier)[1:])
        _check_size("sized", size, threshold, is_concord=carrier == Concord.name)


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


def refuse_sizes(protocol: Weave) -> None:
    """Raise ConfigurationError if a size is missing, or takes long to draw from."""
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
            refuse_many_hits(min(mechanism.sparsity, mechanism.size))


def _threads(protocol: Weave) -> Iterator[Thread]:
    """Yield difference threads with each number of differences that occurs."""
    for span in protocol.spans:
        if span != SNAPSHOT:  # the first offset has the most differences, the last the fewest
            yield from (Thread(span, offset) for offset in {0, 0 if protocol.aligned else 1 % span})


def _mechanisms(protocol: Weave) -> Iterator[Mechanism]:
    if SNAPSHOT in protocol.spans:
        yield from (look.mechanism for look in protocol.snapshots)
    yield from (protocol.strand(thread).mechanism for thread in _threads(protocol))
