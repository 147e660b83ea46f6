"""How a stream is asked for and described: in a task's file, and as plain data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from sfumato.core.outlook import Outlook
from sfumato.errors import ConfigurationError

__all__ = ["StreamDesign"]


class StreamDesign(ABC):
    """The part of a stream that is written down."""

    name: ClassVar[str]
    """The name under which the stream is registered."""
    needed: ClassVar[Mapping[str, str]] = {}
    """The fields that a task of this stream must have, each with what is expected, in words."""
    optional: ClassVar[tuple[str, ...]] = ()
    """The names of the fields that a task of this stream may have."""
    fewest_periods: ClassVar[int] = 1
    """The smallest number of periods of a task."""
    takes_pilots: ClassVar[bool] = False
    """Whether a plan can use prior knowledge of people's streams (a pilot)."""
    outlook_class: ClassVar[type[Outlook]] = Outlook
    """The class that predicts how a task of this stream can be run, and how well."""

    enrols: bool = False
    """Whether devices say once that they take part, so that means are over those who have."""

    @classmethod
    def refuse_enrolment(cls, task: Mapping[str, Any]) -> None:
        """Raise ConfigurationError unless the devices of a task can say that they take part.

        Parameters
        ----------
        task
            The fields of the task, checked and as plain data.

        """
        del task
        raise ConfigurationError(
            f"enrolment is 'counted' for the stream {cls.name!r}; its means are over the devices "
            "that answer, so that it is left out."
        )

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return what a published task has of this stream beyond its file, as plain data."""

    @classmethod
    @abstractmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream that a published task describes in full, as plain data."""

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stream's own fields of a task, checked and with their defaults, as plain data.

        A wrong field raises a :class:`sfumato.wire.fields.Problem` that names it. Passing the
        result in again returns it unchanged.

        Parameters
        ----------
        task
            The common fields of all tasks (``title``, ``values``, ``epsilon``, ``periods``,
            ``period_seconds``), checked and as plain data, and the fields named in ``needed`` and
            ``optional``, unchecked, as in the task's file.

        """
        return {name: task[name] for name in (*cls.needed, *cls.optional) if name in task}

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances, for checks; every stream has at least one."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Return plain data, with the stream's name, that are enough to make this stream again.

        This is what :meth:`of` needs and what a published task holds of its stream.
        """

    @property
    def brief(self) -> str:
        """The design in a few words, for tables: the fields that differ from their defaults."""
        values = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]  # type: ignore[arg-type]
        return ", ".join(
            f"{name} {value}"
            for name, value, usual in values
            if value != usual and name != "epsilon"
        )
