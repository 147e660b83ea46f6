"""All paths of a sampler's choices, one after the other.

A path is a sequence of choices; the sampler runs once for each. The coins that it gets determine
the choices: see :mod:`sfumato.checks.branching`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Final, TypeVar

__all__ = ["MOST_CHOICES", "Abandoned", "Path", "Unlisted", "outcomes", "paths"]

MOST_CHOICES: Final = 200_000  # in one batch; a mechanism with more needs a smaller example
DEEPEST: Final = 64  # choices on a path; only loops have more

T = TypeVar("T")
P = TypeVar("P", bound="Path")


class Unlisted(Exception):
    """The paths of a sampler cannot be listed; the message says why."""


class Abandoned(Exception):
    """A path is too long, or its noise is too large to follow."""


class Path:
    """One path of a sampler: it follows a script, and after it takes the first possible outcomes.

    It records the other possible outcomes, and its probability so far.
    """

    def __init__(self, script: Sequence[int] = ()) -> None:
        self.script = script
        self.taken: list[int] = []
        self.choices: list[Sequence[int]] = []
        self.numerator = self.denominator = 1

    def weigh(self, weights: Sequence[int]) -> int:
        """Return the index of an outcome, whose probability is proportional to its whole weight."""
        depth = len(self.taken)
        if depth == DEEPEST:
            raise Abandoned
        index = self.script[depth] if depth < len(self.script) else _following(weights, -1)
        self.taken.append(index)
        self.choices.append(weights)
        self.numerator *= weights[index]
        self.denominator *= sum(weights)
        return index

    def uniform(self, k: int) -> int:
        """Return a uniform integer below k."""
        return self.weigh(_ones(k)) if k > 1 else 0

    def next_script(self) -> list[int] | None:
        """Return the script of the path after this one; None if it is the last."""
        script = list(self.taken)
        while script:
            weights = self.choices[len(script) - 1]
            index = _following(weights, script[-1])
            if index < len(weights):
                script[-1] = index
                return script
            script.pop()
        return None


def _following(weights: Sequence[int], index: int) -> int:
    """Return the index of the next possible outcome, or the number of outcomes if there is none."""
    return next((i for i in range(index + 1, len(weights)) if weights[i]), len(weights))


@lru_cache(maxsize=256)
def _ones(k: int) -> tuple[int, ...]:
    if k > MOST_CHOICES:
        raise Unlisted(f"it draws one of {k} numbers, too many to list")
    return (1,) * k


def paths(run: Callable[[P], T], kind: type[P], most: float = inf) -> Iterator[tuple[T, P]]:
    """Yield the result of a sampler for every path, with the path; abandoned ones are left out.

    Raises :class:`Unlisted` if all paths together have more than ``most`` choices.
    """
    script: list[int] | None = []
    choices = 0
    while script is not None:
        path = kind(script)
        try:
            outcome = run(path)
        except Abandoned:
            pass
        else:
            yield outcome, path
        choices += len(path.taken)
        if choices > most:
            raise Unlisted(
                f"there are more than {most} choices; take a smaller example, and let the source "
                "repeat what has to be repeated"
            )
        script = path.next_script()


def outcomes(run: Callable[[P], T], kind: type[P]) -> Iterator[tuple[T, Fraction]]:
    """Yield the result of a sampler for every path, with its probability."""
    for outcome, path in paths(run, kind):
        yield outcome, Fraction(path.numerator, path.denominator)
