"""Everything that can go wrong, as one tree.

    SfumatoError
    ├── ConfigurationError   a parameter that no mechanism, task or query can have
    ├── InputError           a value, column or file that was handed in and cannot be used
    ├── ReportError          bytes that are not a report of this mechanism
    ├── MismatchError        two tallies (or estimates) that do not belong together
    ├── BudgetError          a promise that a device's owner has not allowed
    ├── InsecureRandomness   reproducible randomness where somebody's privacy is real
    └── MissingExtra         an optional dependency that is not installed

Every message is one sentence that names the field, the value and what would be right.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BudgetError",
    "ConfigurationError",
    "InputError",
    "InsecureRandomness",
    "MismatchError",
    "MissingExtra",
    "ReportError",
    "SfumatoError",
]

LONGEST: Final = 600
"""Characters of a message; of a longer one the middle is left out."""


class SfumatoError(Exception):
    r"""Base of all errors this package raises on purpose.

    Whatever a message quotes, it is one line that can be printed, and not a long one.

    Examples
    --------
    >>> print(InputError("title is \x1b[2J; text is expected."))
    title is \x1b[2J; text is expected.

    """

    def __str__(self) -> str:
        said = super().__str__()
        if len(said) > LONGEST:
            said = f"{said[: LONGEST * 2 // 3]} ... {said[-LONGEST // 4 :]}"
        if said.isprintable():
            return said
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in said)


class ConfigurationError(SfumatoError, ValueError):
    """A parameter is outside of what it can be."""


class InputError(SfumatoError, ValueError):
    """A value, column or file cannot be used as it is."""


class ReportError(SfumatoError, ValueError):
    """Bytes or an array that are not valid reports."""


class MismatchError(SfumatoError, ValueError):
    """Two objects that cannot be combined."""


class BudgetError(SfumatoError, RuntimeError):
    """More was asked for than the owner of a device allows."""


class InsecureRandomness(SfumatoError, RuntimeError):
    """A reproducible source was offered where privacy is real."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, need: str, extra: str | None = None) -> None:
        """Say what is needed, and which extra brings it; without one it is a package of its own."""
        package = need if extra is None else f"'sfumato[{extra}]'"
        super().__init__(f"{need} is not installed; `pip install {package}` adds it.")
