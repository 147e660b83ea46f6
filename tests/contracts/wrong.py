"""Broken streams and devices: each is a right one with one change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from sfumato.checks import STREAM_CHECKS, CheckFailed
from sfumato.core.stream import Curator, Stream

S = TypeVar("S", bound=Stream)


def with_devices(stream: S, wrong: type | Callable[[Any], Any]) -> S:
    """Return a stream whose devices are of another class, or are made over when they begin."""

    def turned(device: Any) -> Any:
        if not isinstance(wrong, type):
            return wrong(device)
        device.__class__ = wrong
        return device

    class Wrong(type(stream)):  # type: ignore[misc]
        def device(self, coins: Any, tier: int = 0) -> Any:
            return turned(super().device(coins, tier))

        def restore(self, state: Any) -> Any:
            return turned(super().restore(state))

    return _as(stream, Wrong)


def with_curator(stream: S, wrong: Callable[[Any], Curator]) -> S:
    """Return a stream with another curator."""

    class Wrong(type(stream)):  # type: ignore[misc]
        def curator(self) -> Curator:
            return wrong(super().curator())

    return _as(stream, Wrong)


def with_members(stream: S, **members: Any) -> S:
    """Return a stream of which some members are others."""
    return _as(stream, type("Wrong", (type(stream),), members))


def _as(stream: S, kind: Any) -> S:
    made: S = object.__new__(kind)
    vars(made).update(
        {name: part for name, part in vars(stream).items() if name in stream.__dataclass_fields__}  # type: ignore[attr-defined]
    )
    return made


def caught(stream: Stream, by: str) -> None:
    """Assert that the check of this name finds something."""
    check = next(check for check in STREAM_CHECKS if check.__name__ == by)
    with pytest.raises(CheckFailed):
        check(stream)
