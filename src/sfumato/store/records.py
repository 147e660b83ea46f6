"""What goes into a store and comes out of it: new reports, rows of logs, releases and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.arrays import Floats
from sfumato.core.tally import Place, Tally

__all__ = ["Filled", "LogRow", "Release", "StoredTask"]


@dataclass(frozen=True)
class Filled:
    """New reports of one bucket, and their tallies.

    Parameters
    ----------
    task_id, key_id, period
        The three parts that identify the bucket.
    ids, contents
        The ids and the opened contents of the reports, concatenated.
    n
        How many reports there are.
    tallies
        The tallies of the reports, by place.
    round
        The round of the period that the reports answer; 0 if the task asks no questions.

    """

    task_id: bytes
    key_id: int
    period: int
    n: int
    ids: bytes
    contents: bytes
    tallies: Mapping[Place, Tally]
    round: int = 0


@dataclass(frozen=True)
class LogRow:
    """Contents of reports of one closed period, in random order, which are counted together, once.

    Parameters
    ----------
    sequence
        The number of the row within its task, counted from 1; it is given when the row appears.
    key_id, period
        The key and the period of all reports.
    n
        How many reports there are.
    contents
        The opened contents of the reports, concatenated. If an engine counts the task, they are
        those that were sent, each after its id.

    """

    sequence: int
    key_id: int
    period: int
    n: int
    contents: bytes


@dataclass(frozen=True, eq=False)
class Release:
    """What was published when a period closed; it never changes.

    Parameters
    ----------
    period
        The period that has closed.
    n
        The number of reports up to and including this period.
    values, variances
        The value and variance of each entry; nan and infinite where nothing is known.
    ends
        The two ends of each entry's interval, from the estimate that was released. They follow from
        the tallies and are not kept: a store returns releases without them.

    """

    period: int
    n: int
    values: Floats
    variances: Floats
    ends: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class StoredTask:
    """A task as the collector stores it.

    Parameters
    ----------
    task_id
        The task's id, 32 bytes.
    published
        The published task that devices fetch, as JSON.
    keys
        What is kept of the private keys, by number: each as it is, or wrapped by a secret. Empty if
        reports are not sealed.
    public
        Whether anybody may read answers, or analysts only.
    closed
        The last period that has closed.
    until
        For each key that was replaced, the last period whose reports it still opens.
    last_period
        The last period that closes, if the task was ended before all of them; None if it was not.
    archived
        Whether nothing is left of the task but its tallies and releases.
    gaps
        The first and the last of the periods that may lack reports, each time the store was put in
        place from a copy.

    """

    task_id: bytes
    published: bytes
    keys: Mapping[int, bytes] = field(repr=False)
    public: bool
    closed: int
    until: Mapping[int, int] = field(default_factory=dict)
    last_period: int | None = None
    archived: bool = False
    gaps: Sequence[tuple[int, int]] = ()
