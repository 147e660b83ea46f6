"""The allowed outcomes of a hostile input: it is accepted, or refused with one sentence."""

from __future__ import annotations

import signal
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

from sfumato.errors import SfumatoError

__all__ = ["Door", "Faulty", "Seen", "is_sentence", "resident", "through"]

PATIENCE: Final = 20.0
"""Seconds of processor time for one input, at most."""
LONGEST: Final = 1_200
"""Characters of a sentence, at most."""


class Faulty(AssertionError):
    """An answer that breaks the rule, such as a status of 500 or a refusal in two lines."""


class Endless(BaseException):
    """An input took more than its share of processor time."""


class Door(ABC):
    """One way in: it makes hostile inputs and lets them in.

    Parameters
    ----------
    folder
        For whatever the door keeps on disk.

    """

    name: ClassVar[str]
    share: ClassVar[int]
    """Of 1,000 inputs, how many come to this door."""

    def __init_subclass__(cls, name: str, share: int) -> None:
        super().__init_subclass__()
        cls.name, cls.share = name, share

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def make(self, rng: Random) -> Any:
        """Return a hostile input."""

    @abstractmethod
    def enter(self, item: Any) -> str:
        """Let an input in; return in a word what came of it, or raise."""

    def close(self) -> None:  # noqa: B027 -- most doors hold nothing
        """Let go of whatever the door holds."""


@dataclass
class Seen:
    """What came of all inputs of one door."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    slowest: float = 0.0
    before: float = 0.0
    after: float = 0.0

    @property
    def count(self) -> int:
        """How many inputs there were."""
        return self.outcomes.total()

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count:,} {word}" for word, count in self.outcomes.most_common())
        return (
            f"{self.count:>8,} inputs {self.seconds:>6.1f} s, the slowest {self.slowest:.2f} s; "
            f"{self.before:.0f} to {self.after:.0f} MB; {outcomes}"
        )


def through(door: Door, count: int, seed: int = 1) -> Seen:
    """Send so many inputs through a door; the same seed makes the same inputs."""
    rng, seen = Random(f"{door.name} {seed}"), Seen()  # noqa: S311 -- not for secrets
    started = time.process_time()
    for place in range(count):
        if place == count // 3:  # by now whatever is loaded once is loaded
            seen.before = resident()
        item = door.make(rng)
        begun = time.process_time()
        try:
            with _limited():
                outcome = door.enter(item)
        except SfumatoError as error:
            outcome = "refused" if is_sentence(str(error)) else "fault"
            if outcome == "fault":
                seen.faults.append(f"no sentence: {str(error)[:300]!r}, from {_shown(item)}")
        except (Exception, Endless) as error:  # noqa: BLE001 -- that is what this looks for
            outcome = "fault"
            seen.faults.append(f"{_where(error)}, from {_shown(item)}")
        seen.outcomes[outcome] += 1
        seen.slowest = max(seen.slowest, time.process_time() - begun)
    seen.seconds, seen.after = time.process_time() - started, resident()
    return seen


def is_sentence(text: str) -> bool:
    """Return whether this is one sentence, in one line, that people can read."""
    return 10 < len(text) <= LONGEST and text.endswith((".", "?")) and text.isprintable()


def resident() -> float:
    """Return the megabytes that this process has in memory; 0 where nobody can say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
    except OSError:
        return 0.0


def _shown(item: Any) -> str:
    text = repr(item)
    return text if len(text) < 400 else f"{text[:300]} ... {text[-80:]}"


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-4:]
    lines = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(last))
    return f"{type(error).__name__}: {str(error)[:200]} ({lines})"


@contextmanager
def _limited() -> Iterator[None]:
    """Stop whatever takes too much processor time."""

    def stop(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
