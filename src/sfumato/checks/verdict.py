"""Failures of checks, and the verdict of all checks together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ALARM", "BUDGET_WASTED", "CheckFailed", "Verdict", "demand", "failures_of"]

ALARM: Final = 1e-9
"""The largest probability that a statistical check fails something that is right."""
BUDGET_WASTED: Final = 1e-6


class CheckFailed(AssertionError):
    """A mechanism, noise or stream does not do what it claims."""


def demand(claim: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise CheckFailed with this message unless the claim is true."""
    if not claim:
        raise CheckFailed(otherwise)


@dataclass(frozen=True)
class Verdict:
    """The result of all checks of one mechanism, noise or stream.

    ``failures`` has the name of each failed check and its message.
    """

    mechanism: Any
    epsilon_claimed: float
    epsilon_exact_upper: float
    budget_used: float
    failures: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.failures


def failures_of(
    checks: Sequence[Callable[[Any], None]], subject: Any, progress: Callable[[str], None]
) -> tuple[tuple[str, str], ...]:
    """Run checks on one subject; return the name and message of each that failed."""
    failures = []
    for check in checks:
        progress(check.__name__)
        try:
            check(subject)
        except CheckFailed as finding:
            failures.append((check.__name__, str(finding)))
        except Exception as error:  # noqa: BLE001 - a crash is a finding too
            failures.append((check.__name__, f"{type(error).__name__}: {error}"))
    return tuple(failures)
