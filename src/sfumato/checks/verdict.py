"""Failures of checks, and the verdict of all checks together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "ALARM",
    "BUDGET_WASTED",
    "CheckFailed",
    "NotChecked",
    "Verdict",
    "demand",
    "findings_of",
    "unfinished",
]

ALARM: Final = 1e-9
"""The largest probability that a statistical check fails something that is right."""
BUDGET_WASTED: Final = 1e-6
_ABSTRACT: Final = re.compile(r"abstract class '?(\w+)'? with\D*abstract methods? (.+)")
"""The words of the interpreter about a class that lacks methods."""


class CheckFailed(AssertionError):
    """A mechanism, noise or stream does not do what it claims."""


class NotChecked(Exception):
    """A check does not apply to what is checked; the message says why."""


def unfinished(error: Exception) -> str | None:
    """Return the sentence for a class that lacks methods, if the error says that there is one.

    Examples
    --------
    >>> unfinished(TypeError("Can't instantiate abstract class Coin with abstract method law"))
    'Coin lacks law, which is abstract in its base class; it has to be written.'

    """
    words = _ABSTRACT.search(str(error)) if isinstance(error, TypeError) else None
    if words is None:
        return None
    lacks = words[2].replace("'", "")
    return f"{words[1]} lacks {lacks}, which is abstract in its base class; it has to be written."


def demand(claim: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise CheckFailed with this message unless the claim is true."""
    if not claim:
        raise CheckFailed(otherwise)


@dataclass(frozen=True)
class Verdict:
    """The result of all checks of one mechanism, noise or stream.

    ``failures`` has the name of each failed check and its message, and ``not_checked`` that of each
    check which does not apply, with the reason.
    """

    mechanism: Any
    epsilon_claimed: float
    epsilon_exact_upper: float
    budget_used: float
    failures: tuple[tuple[str, str], ...]
    not_checked: tuple[tuple[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.failures


def findings_of(
    checks: Sequence[Callable[[Any], None]], subject: Any, progress: Callable[[str], None]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Run checks on one subject; return the name and message of each that failed or cannot be run.

    A class that lacks methods fails every check in the same way, so the first one is enough.
    """
    failures, not_checked = [], []
    for check in checks:
        progress(check.__name__)
        try:
            check(subject)
        except CheckFailed as finding:
            failures.append((check.__name__, str(finding)))
        except NotChecked as reason:
            not_checked.append((check.__name__, str(reason)))
        except Exception as error:  # noqa: BLE001 - a crash is a finding too
            lacking = unfinished(error)
            failures.append((check.__name__, lacking or f"{type(error).__name__}: {error}"))
            if lacking:
                break
    return tuple(failures), tuple(not_checked)
