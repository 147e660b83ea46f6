"""Checks of saved states: those that no device of a design can have are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import MismatchError
from sfumato.mechanisms.sparse.entry_streams import are_counters
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolMechanism
from sfumato.streams.weave.dummies import STUB
from sfumato.streams.weave.threads import SNAPSHOT, Thread

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.chaffed_weave import ChaffedWeave
    from sfumato.streams.weave.weave import Weave

__all__ = ["check", "check_dummies", "check_flat"]

FIELDS: Final = ("design", "thread", "stream", "period", "value", "sent", "used", "frozen")


def check(protocol: Weave, state: Any) -> None:
    """Raise MismatchError unless a device of this stream can have saved the state.

    This detects states that were mixed up or truncated; somebody who can write to a device's disk
    can also write a state that passes.
    """
    if not isinstance(state, Mapping) or set(state) != set(FIELDS):
        names = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise MismatchError(f"the saved state has {names}; {', '.join(FIELDS)} are expected.")
    if state["design"] != protocol.fingerprint:
        raise MismatchError(
            f"the saved state is of another design; that of {protocol.fingerprint} is expected."
        )
    width = protocol.values.width
    _demand(state, "thread", lambda it: _is_thread(protocol, it), "one of the design's threads")
    _demand(state, "period", lambda it: _count(it, protocol.periods), f"0..{protocol.periods}")
    for name in ("value", "sent"):
        _demand(state, name, lambda it: _is_bits(it, width), f"a list of {width} zeros and ones")
    _demand(state, "used", lambda it: _count(it, protocol.changes), f"0..{protocol.changes}")
    _demand(state, "frozen", lambda it: isinstance(it, bool), "true or false")
    thread = Thread(*state["thread"])
    gone = sum(end <= state["period"] for _, end in protocol.edges(thread)) * width
    if thread.is_snapshot:
        _demand(state, "stream", lambda it: it is None, "nothing on a snapshot thread")
    else:
        _demand(
            state,
            "stream",
            lambda it: protocol.strand(thread).mechanism.can_have_saved(it, gone),
            f"the counters of a stream after {gone} entries",
        )


def check_dummies(protocol: ChaffedWeave, dummies: Any) -> None:
    """Raise MismatchError unless a device of this stream can have saved these dummies."""
    few, more = protocol.chaff.certain, protocol.most_messages - 1

    def is_dummy(row: Any) -> bool:
        if not isinstance(row, list) or len(row) != 4 or not _is_thread(protocol, row[:3]):
            return False
        thread = Thread(*row[:3])
        symbols = 0 if thread.is_snapshot else protocol.real_symbols(thread)
        return row[3] == STUB or _count(row[3], symbols - 1)

    _demand(
        {"dummies": dummies},
        "dummies",
        lambda it: isinstance(it, list) and few <= len(it) <= more and all(map(is_dummy, it)),
        f"a list of {few} to {more} dummies",
    )


def _demand(
    state: Mapping[str, Any], name: str, can_be: Callable[[Any], bool], expected: str
) -> None:
    # The wrong part is not quoted: a state is as secret as the values, and errors are logged.
    if not can_be(state[name]):
        raise MismatchError(f"the saved state has another {name}; {expected} is expected.")


def _count(given: Any, most: int) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= most


def _is_bits(given: Any, width: int) -> bool:
    return isinstance(given, list) and len(given) == width and all(_count(bit, 1) for bit in given)


def _is_thread(protocol: Weave, given: Any) -> bool:
    if not isinstance(given, list) or len(given) != 3 or not all(_count(x, 1 << 20) for x in given):
        return False
    span, offset, block = given
    blocks = len(protocol.values.blocks) if span == SNAPSHOT else 1
    return span in protocol.spans and offset in protocol.offsets(span) and block < blocks


def check_flat(
    mechanism: SymbolMechanism, periods: int, width: int, state: Any, dummies: int | None = None
) -> None:
    """Raise MismatchError unless a device of a flat stream can have saved this state.

    ``dummies`` is the largest number of dummies of a device, or None if it has none.
    """
    names = {"period", "stream"} | (set() if dummies is None else {"trains"})
    if not isinstance(state, Mapping) or set(state) != names:
        known = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise MismatchError(
            f"the saved state has {known}; {', '.join(sorted(names))} are expected."
        )
    _demand(state, "period", lambda it: _count(it, periods), f"0..{periods}")
    gone = state["period"] * width
    _demand(
        state,
        "stream",
        lambda it: mechanism.can_have_saved(it, gone),
        f"the counters of a stream after {gone} entries",
    )
    if dummies is not None:
        _demand(
            state,
            "trains",
            lambda it: are_counters(it, 2, dummies) and it[1] <= it[0] >= dummies - 1,
            f"the number of dummies, {dummies} at most, and of those to come",
        )
