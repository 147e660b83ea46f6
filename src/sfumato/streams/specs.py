"""Protocols from plain data: what a device builds from a published task, choosing nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from sfumato.errors import ConfigurationError
from sfumato.streams.flat import Flat
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.strands import Sized
from sfumato.streams.weave.values import Attributes, Binary, Category, Items, Values
from sfumato.wire.task import Task
from sfumato.wire.values import TaskValues
from sfumato.wire.window_task import WINDOW, WindowTask

if TYPE_CHECKING:  # numbers and windows need mechanisms that other tasks do not
    from sfumato.streams.window import Window

__all__ = ["Streams", "protocol_of", "spec_of", "values_of", "window_of"]

Streams: TypeAlias = "Weave | Flat | Window"
"""What a task may run."""


def values_of(given: TaskValues) -> Values:
    """Return what a device observes, from a task's plain data; moves are a protocol's own.

    Examples
    --------
    >>> values_of(TaskValues("category", ("home", "work"))).labels
    ('home', 'work')

    """
    if given.kind == "binary":
        return Binary(*(given.items or ()))  # type: ignore[misc]
    if given.kind == "attributes":
        return Attributes(given.attributes)
    items: Any = given.items
    if given.kind == "category":
        return Category(items, given.optional)
    return Items(items, given.most)


def window_of(values: TaskValues, given: Mapping[str, Any]) -> Window:
    """Return the stream without an end that a task asks for, from plain data."""
    from sfumato.streams.window import Window  # noqa: PLC0415 -- see above

    domain: Any = values.items if values.kind == "category" else None
    interval: Any = None if domain is not None else (values.low, values.high)
    return Window(
        given["window"],
        given["epsilon"],
        given["devices"],
        domain,
        interval,
        values.clip,
        given["method"],
        given["oracle"],
        tuple((str(name), value) for name, value in given["parameters"]),
    )


def spec_of(
    task: Task | WindowTask, protocol: Streams, start: int, *, grace: int = 0, sealed: bool = True
) -> dict[str, Any]:
    """Return the task with everything written out, as plain data that devices obey.

    Parameters
    ----------
    task
        What is asked.
    protocol
        The one that was chosen for it.
    start
        When the first period begins, in seconds since 1970 (UTC).
    grace
        How many seconds after its end the reports of a period are still taken.
    sealed
        Whether reports are sealed to the collector.

    """
    plain = task.plain() | {
        "start": start,
        "grace": grace,
        "sealed": sealed,
        "payload": protocol.payload,
    }
    if isinstance(protocol, (Weave, Flat)):
        # Below the task's epsilon if less is enough, because reports are mixed.
        plain["epsilon"] = protocol.epsilon
    if not isinstance(protocol, Weave):
        return plain
    fixed = protocol.resolved()
    return plain | {
        "mix": [list(pair) for pair in zip(fixed.spans, fixed.shares, strict=True)],
        "aligned": fixed.aligned,
        "mechanism": fixed.mechanism,
        "sized": [
            [each.differences, each.carrier, each.size, each.threshold] for each in fixed.sized
        ],
        "looks": [list(look) for look in fixed.looks],
    }


def protocol_of(given: Mapping[str, Any]) -> Streams:
    """Return the protocol of a spec, without choosing anything; raise if the spec is none.

    Examples
    --------
    >>> from sfumato.wire.task import parse
    >>> task = parse('''
    ... title = "On or off"
    ... epsilon = 1
    ... periods = 8
    ... period = "1 hour"
    ... changes = 2
    ... values = {kind = "binary"}
    ... ''')
    >>> protocol = Weave.best(Binary(), 8, 2, 1.0)
    >>> protocol_of(spec_of(task, protocol, start=0)) == protocol.resolved()
    True

    """
    try:
        return _protocol_of(given)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"the spec of the task has something wrong ({error!r}).") from None


def _protocol_of(given: Mapping[str, Any]) -> Streams:
    plain = dict(given["values"])
    if "attributes" in plain:
        plain["attributes"] = dict(plain["attributes"])
    observed = TaskValues.of(plain)
    if given["kind"] == WINDOW:
        return window_of(observed, given)
    numbers = (given["periods"], given["changes"], given["epsilon"])
    if given["protocol"] == "flat":
        items: Any = observed.items
        return Flat(items, *numbers, given["mechanism"])
    spans, shares = zip(*given["mix"], strict=True)
    return Weave(
        values_of(observed),
        *numbers,
        tuple(spans),
        tuple(shares),
        given["mechanism"],
        aligned=bool(given["aligned"]),
        sized=tuple(Sized(*each) for each in given["sized"]),
        looks=tuple((str(name), size, threshold) for name, size, threshold in given["looks"]),
    )
