"""Many examples checked at once, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from sfumato.checks.subjects import subject
from sfumato.checks.verdict import Verdict

__all__ = ["Numbered", "check_all", "claims", "numbered"]

Numbered = tuple[str, int]
"""The name of something to check, and the number of one of its examples."""

Progress = Callable[[int, str], None]
"""A function of the number of checks since its last call, and the name of a check or subject."""


def numbered(name: str) -> list[Numbered]:
    """Return all examples of something that can be checked.

    Examples
    --------
    >>> numbered("grr")[0]
    ('grr', 0)

    """
    return [(name, number) for number in range(len(subject(name).examples))]


def claims(example: Numbered) -> int:
    """Return how many checks an example has to pass."""
    return len(subject(example[0]).claims)


def check_all(
    examples: Sequence[Numbered], jobs: int = 1, progress: Progress = lambda _, __: None
) -> list[Verdict]:
    """Return the verdicts in the order of the examples, whichever process comes to them first.

    Examples
    --------
    >>> check_all([("grr", 0)])[0].ok
    True

    """
    if jobs == 1 or len(examples) == 1:
        return [_checked(example, lambda claim: progress(1, claim)) for example in examples]

    def done(example: Numbered) -> Callable[[Future[Any]], None]:
        return lambda _: progress(claims(example), example[0])

    # Fresh processes: a fork of one that shows progress would copy its threads' locks.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {}
        for example in reversed(examples):  # later ones are larger, and are begun first
            futures[example] = pool.submit(_findings, example)
            futures[example].add_done_callback(done(example))
        findings = [futures[example].result() for example in examples]
    return [
        Verdict(subject(name).examples[number], **each)
        for (name, number), each in zip(examples, findings, strict=True)
    ]


def _checked(example: Numbered, step: Callable[[str], None] = lambda _: None) -> Verdict:
    name, number = example
    own = subject(name)
    return own.check(own.examples[number], lambda claim: step(f"{name}: {claim}".replace("_", " ")))


def _findings(example: Numbered) -> dict[str, Any]:
    """Return the fields of a verdict without its mechanism, which may not be picklable."""
    verdict = vars(_checked(example)).copy()
    del verdict["mechanism"]
    return verdict
