"""What analysts hold in Python: a collector somewhere else, its tasks, and their answers.

Only the standard library and numpy are needed; tables need pandas, polars or pyarrow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sfumato.client.collectors import TOKENS, ask, no_task, task_of
from sfumato.core.answers import Answers
from sfumato.errors import InputError

__all__ = ["Collector", "CollectorClient", "TaskClient"]

Period = int | str | date
"""A period's number, or a date or time within it."""


def Collector(url: str, token: str | None = None) -> CollectorClient:  # noqa: N802 -- what it returns
    """Return a collector to ask, wherever it runs.

    Parameters
    ----------
    url
        The address of the collector, such as ``http://127.0.0.1:8080``.
    token
        The token for tasks that are not public; by default it is read from the environment variable
        ``SFUMATO_ANALYST_TOKEN``.

    Examples
    --------
    >>> import sfumato
    >>> sfumato.Collector("http://127.0.0.1:8080")
    Collector('http://127.0.0.1:8080')

    With a collector there, ``.task("Where people listen").curve().to_frame()`` is a table of all
    its curves, with intervals.

    """
    return CollectorClient(url.rstrip("/"), token)


@dataclass(frozen=True, repr=False)
class CollectorClient:
    """A collector somewhere else; see :func:`Collector`.

    Parameters
    ----------
    url
        The address of the collector.
    token
        The token for tasks that are not public.

    """

    url: str
    token: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Collector({self.url!r})"

    def tasks(self, *, archived: bool = False) -> list[TaskClient]:
        """Return the tasks of the collector, in the order in which they were published.

        Archived ones, whose answers stay, are among them only if that is said.
        """
        listed = _listed(self.url, self.token, archived=archived)
        return [
            TaskClient(f"{self.url}/v1/tasks/{each['task_id']}", each["title"], self.token)
            for each in listed
        ]

    def task(self, name: str | None = None) -> TaskClient:
        """Return a task by its title, by its id or by the first digits of its id.

        The name can be left out if there is only one task. Archived tasks are looked at if no other
        one has the name.
        """
        for archived in (False, True):
            tasks = self.tasks(archived=archived)
            fitting = [
                task
                for task in tasks
                if name in (None, task.title) or task.task_id.startswith(name)
            ]
            if fitting:
                break
        if len(fitting) == 1:
            return fitting[0]
        listed = "; ".join(f"{task.title!r} ({task.task_id[:12]})" for task in tasks[:8])
        if not tasks:
            raise no_task(self.url, self.token)
        many = "more than one task" if fitting else "no task"
        what = "" if name is None else f" called {name!r}"
        raise InputError(f"{self.url} has {many}{what}; there are {listed}.")


@dataclass(frozen=True, repr=False)
class TaskClient:
    """A task of a collector somewhere else, which answers questions with intervals.

    A question without a period is about the last one that has closed. Any number of questions costs
    no privacy.

    Parameters
    ----------
    url
        The address of the task.
    title
        The title of the task.
    token
        The token for tasks that are not public.

    """

    url: str
    title: str = ""
    token: str | None = field(default=None, repr=False)

    @classmethod
    def at(cls, address: str, token: str | None = None) -> TaskClient:
        """Return the task at the address of its data or of its page."""
        return cls(task_of(address), token=token)

    def __repr__(self) -> str:
        return f"<task {self.title!r}, {self.task_id[:12]}>"

    @property
    def task_id(self) -> str:
        """The id of the task, the SHA-256 of what it asks."""
        return self.url.rpartition("/")[2]

    def summary(self) -> dict[str, Any]:
        """Return the task in a few words: title, epsilon, periods, how many of them have closed."""
        base = self.url.rpartition("/v1/tasks/")[0]
        for summary in _listed(base, self.token, archived=True):
            if summary["task_id"] == self.task_id:
                return dict(summary)
        raise InputError(
            f"{base} has no task {self.task_id[:12]} that may be read like this; the token of "
            f"one that is not public is read from {' or '.join(TOKENS)}."
        )

    @property
    def closed(self) -> int:
        """The last period that has closed; 0 if none has."""
        return int(self.summary()["closed"])

    # ---- questions -------------------------------------------------------------------------

    def mean(self, period: Period | None = None, item: str | None = None, **how: Any) -> Answers:
        """Return each item's value in a period.

        ``how`` is what all questions take: ``decoder``, ``level`` and, where shares sum to one,
        ``projection``.
        """
        return self.ask("mean", period=self._or_last(period), item=item, **how)

    def range(
        self,
        first: Period,
        last: Period,
        item: str | None = None,
        *,
        average: bool = False,
        **how: Any,
    ) -> Answers:
        """Return each item's sum (or average) over the periods from first to last."""
        return self.ask("range", first=first, last=last, item=item, average=average, **how)

    def prefix(
        self, last: Period, item: str | None = None, *, average: bool = False, **how: Any
    ) -> Answers:
        """Return each item's sum (or average) from the first period to the last one."""
        return self.ask("prefix", last=last, item=item, average=average, **how)

    def difference(
        self, before: Period, after: Period, item: str | None = None, **how: Any
    ) -> Answers:
        """Return the change of each item's value from one period to another."""
        return self.ask("difference", before=before, after=after, item=item, **how)

    def top(self, k: int, period: Period | None = None, **how: Any) -> Answers:
        """Return the k largest items of a period; the level holds for all intervals at once."""
        return self.ask("top", k=k, period=self._or_last(period), **how)

    def curve(self, item: str | None = None, *, simultaneous: bool = False, **how: Any) -> Answers:
        """Return an item's value in every period; the curves of all items if none is named."""
        return self.ask("curve", item=item, simultaneous=simultaneous, **how)

    def events(
        self, above: float, item: str | None = None, *, rate: float = 0.01, **how: Any
    ) -> Answers:
        """Return the periods in which an item is above a threshold beyond doubt.

        ``rate`` is the largest probability of an alarm in a period in which it is not above.
        """
        return self.ask("events", above=above, item=item, rate=rate, **how)

    def ask(self, query: str, **fields: Any) -> Answers:
        """Return the answers to a question, given by the fields of its address."""
        asked = {"query": query} | {
            name: _text(value) for name, value in fields.items() if value is not None
        }
        return Answers.of_plain(
            ask(f"{self.url}/answers", asked, variables=TOKENS, token=self.token)
        )

    def _or_last(self, period: Period | None) -> Period:
        return max(self.closed, 1) if period is None else period


def _listed(base: str, token: str | None, *, archived: bool) -> list[dict[str, Any]]:
    """Return the summaries of a collector's tasks, in the order of their publication."""
    fields = {"archived": "true"} if archived else None
    answer = ask(f"{base}/v1/tasks", fields, variables=TOKENS, token=token)
    return list(answer["tasks"])


def _text(value: Any) -> str:
    """Return a value as the query of an address has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)
