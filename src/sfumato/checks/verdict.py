"""What a check is, and what all checks together find out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ALARM", "BUDGET_WASTED", "CheckFailed", "Verdict", "demand", "failures_of"]

ALARM: Final = 1e-9
"""How often a statistical check may fail something that is right, at most."""
BUDGET_WASTED: Final = 1e-6


class CheckFailed(AssertionError):
    """A mechanism does not do what it claims."""


def demand(claim: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise unless the claim holds."""
    if not claim:
        raise CheckFailed(otherwise)


@dataclass(frozen=True)
class Verdict:
    """What the checks found about one mechanism, one kind of noise or one protocol.

    ``failures`` has the name of each failed check and what it found.
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
    """Run checks on one subject; return the name of each that failed and what it found."""
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
