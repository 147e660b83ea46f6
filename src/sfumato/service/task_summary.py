"""A running task in a few words, as lists of tasks have it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TaskSummary"]


@dataclass(frozen=True)
class TaskSummary:
    """A running task in a few words.

    Parameters
    ----------
    task_id
        The SHA-256 of the task's spec.
    title
        The title of the task.
    epsilon
        The epsilon that a device pays.
    periods
        The number of periods.
    period_seconds
        The length of a period in seconds.
    start
        The start of the first period in seconds since 1970.
    closed
        The number of periods that have closed.
    public
        Whether anybody may read answers.
    guarantee
        The guarantee of the task.
    offers
        The guarantee of each of the windows that an owner can pick.
    last_period
        The last period that closes, if the task was ended before its time; null if it was not.
    archived
        Whether nothing is kept of the task but what it has released.

    """

    task_id: str
    title: str
    epsilon: float
    periods: int
    period_seconds: int
    start: int
    closed: int
    public: bool
    guarantee: str
    offers: list[str]
    last_period: int | None
    archived: bool
