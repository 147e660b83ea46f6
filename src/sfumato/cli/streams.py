"""Streams on the command line: what a task is about, in words, and its tables of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.arrays import Array
from sfumato.errors import InputError
from sfumato.frames import objects
from sfumato.streams.amplification import promised, requirement
from sfumato.wire.reports import Layout
from sfumato.wire.sealing import OVERHEAD

if TYPE_CHECKING:
    from sfumato.core.stream import Stream
    from sfumato.files import Table
    from sfumato.simulation import Observed
    from sfumato.wire.task import Task

__all__ = ["about", "mixed_promise", "promises", "read", "report_bytes", "words"]


def about(task: Task) -> str:
    """Return what devices observe, in a few words."""
    if task.values.kind == "binary":
        return "on or off"
    if task.values.kind == "number":
        return f"a number in [{task.values.low:g}, {task.values.high:g}]"
    items = "1 item" if task.values.width == 1 else f"{task.values.width:,} items"
    return f"{task.values.kind} of {items}"


def promises(stream: Stream) -> str:
    """Return what is promised to a device, one line for each offer."""
    return "\n".join(map(str, stream.offers))


def mixed_promise(stream: Stream, spec: Mapping[str, Any]) -> str:
    """Return what is promised once reports are mixed; empty if they are not."""
    required = requirement(spec)
    if required is None:
        return ""
    return str(promised(stream, required, getattr(stream, "min_messages", 0)))


def report_bytes(stream: Stream) -> int:
    """Return the bytes of one report on the wire, sealed."""
    return Layout(stream.payload, OVERHEAD).report_dtype.itemsize


def words(fact: Any) -> str:
    """Return something that was chosen for a stream; of a mix the shares."""
    if isinstance(fact, dict):
        return ", ".join(f"{name} {share:.0%}" for name, share in fact.items())
    return str(fact)


def read(table: Table, observed: Observed) -> Array:
    """Return the streams of a file with the columns device, period and the value's own."""
    from sfumato.files import Kind

    wanted = {"device": ("device", Kind.TEXT), "period": ("period", Kind.NUMBER)}
    for name, words in observed.columns.items():
        wanted[name] = (name, Kind.TEXT if words else Kind.NUMBER)
    cells = table.columns(wanted)
    try:
        return observed.read({name: objects(cell) for name, cell in cells.items()})
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from error
