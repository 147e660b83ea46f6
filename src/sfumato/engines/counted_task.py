"""A task that an engine has counted, asked by name as a collector is."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, Final, Self

from sfumato.core.answers import Answers
from sfumato.core.decoded import ONLINE
from sfumato.core.domain import shortened
from sfumato.engines.tally_files import CountedReports
from sfumato.errors import ConfigurationError
from sfumato.queries.history import History

__all__ = ["CountedTask"]

QUESTIONS: Final = ("mean", "range", "prefix", "difference", "top", "curve", "events")
PERIODS: Final = ("period", "first", "last", "before", "after")


@dataclass(frozen=True)
class CountedTask:
    """Answers questions from tallies, with the verbs of a collector's client.

    Parameters
    ----------
    history
        The history that the tallies tell.

    """

    history: History

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the task of a file of tallies; raise MismatchError if it has none."""
        return cls(CountedReports.read(path).history())

    @property
    def closed(self) -> int:
        """The last period that has reports."""
        return self.history.closed

    def curve(self, item: Any = None, *, decoder: str = ONLINE) -> Answers:
        """Return an item's value in every period."""
        return self.ask("curve", item=item, decoder=decoder)

    def ask(self, query: str, **fields: Any) -> Answers:
        """Return the answers to a question; raise ConfigurationError if it is none."""
        if query not in QUESTIONS:
            raise ConfigurationError(
                f"the question is {query[:40]!r}; {', '.join(QUESTIONS)} are known."
            )
        verb, item = getattr(self.history, query), fields.pop("item", None)
        labels = {str(label): label for label in self.history.stream.labels}
        if item is not None and str(item) not in labels:
            raise ConfigurationError(f"item is {item!r}; there are {shortened([*labels])}.")
        known = signature(verb).parameters
        wanted = {name: _read(name, value) for name, value in fields.items() if value is not None}
        for name in wanted.keys() - known.keys():
            raise ConfigurationError(f"{query} has no field {name!r}; it has {', '.join(known)}.")
        missing = [
            each.name
            for each in known.values()
            if each.default is each.empty and each.name not in wanted and each.name != "item"
        ]
        if missing:
            raise ConfigurationError(f"{missing[0]} is missing; {query} needs it.")
        label = None if item is None else labels[str(item)]
        if "item" in known:
            answered: Answers = verb(**wanted, item=label)
            return answered
        answered = verb(**wanted)
        return answered if label is None else answered.pick([answered.labels.index(label)])


def _read(name: str, value: Any) -> Any:
    """Return the value of a field; periods are named by their number."""
    if name not in PERIODS or isinstance(value, int):
        return value
    if not str(value).isdecimal():
        raise ConfigurationError(f"{name} is {value!r}; the number of a period is expected.")
    return int(value)
