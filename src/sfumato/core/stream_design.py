"""How a stream is asked for and described: in a task's file, and as plain data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

__all__ = ["StreamDesign"]


class StreamDesign(ABC):
    """The part of a stream that is written down."""

    name: ClassVar[str]
    """What it is registered as."""
    needed: ClassVar[Mapping[str, str]] = {}
    """Fields that a task of this stream must have, each with what is expected, in words."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Fields that a task of this stream may have."""
    fewest_periods: ClassVar[int] = 1
    """How many periods a task of this stream has at least."""
    takes_pilots: ClassVar[bool] = False
    """Whether a plan can make use of what is known of people's streams."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return what the stream fixes of a published task, as plain data."""

    @classmethod
    @abstractmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a published task, as plain data; nothing is chosen."""

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stream's own fields of a task, checked and with their defaults, as plain data.

        What is wrong is raised as a :class:`sfumato.wire.fields.Problem`, which names the field.
        What this returns is taken again as it is.

        Parameters
        ----------
        task
            What all tasks have (``title``, ``values``, ``epsilon``, ``periods``,
            ``period_seconds``), checked and as plain data; and the fields that are named in
            ``needed`` and ``optional``, as they stand in the task's file.

        """
        return {name: task[name] for name in (*cls.needed, *cls.optional) if name in task}

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances, for checks; every stream has at least one."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Return plain data that make this stream by themselves, its name among them.

        That is what :meth:`of` needs, and what a published task says of its stream.
        """

    @property
    def brief(self) -> str:
        """The design in a few words, for tables."""
        values = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]  # type: ignore[arg-type]
        return ", ".join(
            f"{name} {value}"
            for name, value, usual in values
            if value != usual and name != "epsilon"
        )
