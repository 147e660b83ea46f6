"""Broken streams and devices: each is a right one with one change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from sfumato.checks import STREAM_CHECKS, CheckFailed
from sfumato.core.stream import Curator, Stream
from sfumato.randomness import Source

S = TypeVar("S", bound=Stream)
C = TypeVar("C", bound=type)

EPSILON = "epsilon_is_spent_and_not_exceeded"
SILENCE = "when_and_how_much_is_sent_tells_nothing"
COPIES = "copies_cost_no_more_than_twice"
RESUME = "devices_resume"
STATES = "other_states_are_refused"
FORMS = "what_is_sent_is_read_and_nothing_else"
REPLAY = "replays_release_the_same"
FINAL = "releases_are_final"
EMPTY = "periods_without_reports_are_released"
COVER = "estimates_are_unbiased_and_cover"
PLAIN = "plain_data_make_the_same_stream"


class Wrong(list[tuple[type, str]]):
    """The wrong classes of one kind, each with a check that has to catch it."""

    def caught_by(self, *checks: str) -> Callable[[C], C]:
        """Return a decorator that adds a class with each of these checks."""

        def register(wrong: C) -> C:
            self.extend((wrong, check) for check in checks)
            return wrong

        return register

    @property
    def each(self) -> pytest.MarkDecorator:
        """The mark of a test that takes each wrong class and a check."""
        return pytest.mark.parametrize(("wrong", "by"), self)


class Unbound:
    """Coins that are not bound to any value."""

    def __init__(self, coins: Source) -> None:
        self._coins = coins

    def bound(self, code: Any) -> Source:
        """Return the same coins for every value."""
        del code
        return self._coins


def with_devices(stream: S, wrong: type | Callable[[Any], Any]) -> S:
    """Return a stream whose devices are of another class, or are made over when they begin."""

    def turned(device: Any) -> Any:
        if not isinstance(wrong, type):
            return wrong(device)
        device.__class__ = wrong
        return device

    class Broken(type(stream)):  # type: ignore[misc]
        def device(self, coins: Any, tier: int = 0) -> Any:
            return turned(super().device(coins, tier))

        def restore(self, state: Any) -> Any:
            return turned(super().restore(state))

    return _as(stream, Broken)


def with_curator(stream: S, wrong: Callable[[Any], Curator]) -> S:
    """Return a stream with another curator."""

    class Broken(type(stream)):  # type: ignore[misc]
        def curator(self) -> Curator:
            return wrong(super().curator())

    return _as(stream, Broken)


def with_members(stream: S, **members: Any) -> S:
    """Return a stream of which some members are others."""
    return _as(stream, type("Broken", (type(stream),), members))


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
