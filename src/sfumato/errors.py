"""All errors of this package, as one tree.

    SfumatoError
    ├── ConfigurationError   a parameter that no mechanism, task or query can have
    │   └── SpentError       a release that failed after a private choice, which stays paid for
    ├── InputError           a value, column or file that was handed in and cannot be used
    │   └── ExistingFile     a file that is there already and would be replaced
    ├── ReportError          bytes that are not a report of this mechanism
    ├── MismatchError        two tallies (or estimates) that do not belong together
    ├── BudgetError          a promise that a device's owner has not allowed
    ├── InsecureRandomness   reproducible randomness where somebody's privacy is real
    └── MissingExtra         an optional dependency that is not installed

Every message is one sentence that names the field, the value and what would be right.
"""

from __future__ import annotations

from typing import ClassVar, Final

__all__ = [
    "BudgetError",
    "ConfigurationError",
    "ExistingFile",
    "InputError",
    "InsecureRandomness",
    "MismatchError",
    "MissingExtra",
    "ReportError",
    "SfumatoError",
    "SpentError",
]

LONGEST: Final = 600
"""The largest number of characters of a message; of a longer one the middle is left out."""


class SfumatoError(Exception):
    r"""The base of all errors that this package raises on purpose.

    Every message is one short printable line, whatever it quotes.

    Examples
    --------
    >>> print(InputError("title is \x1b[2J; text is expected."))
    title is \x1b[2J; text is expected.

    """

    def __str__(self) -> str:
        message = super().__str__()
        if len(message) > LONGEST:
            message = f"{message[: LONGEST * 2 // 3]} ... {message[-LONGEST // 4 :]}"
        if message.isprintable():
            return message
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in message)


class ConfigurationError(SfumatoError, ValueError):
    """A parameter has a value that is not allowed."""


class SpentError(ConfigurationError):
    """A release failed because of a private choice, so that the failure itself tells of values.

    The message has nothing of what was chosen, and what the choice has cost stays spent.
    """


class InputError(SfumatoError, ValueError):
    """A value, column or file cannot be used."""


class ExistingFile(InputError):
    """A file is there already, and nobody has said that it may be replaced."""

    remedy: ClassVar[str] = "it is replaced only with force"
    """How the message ends; the command line names its option instead."""


class ReportError(SfumatoError, ValueError):
    """Bytes or an array are not valid reports."""


class MismatchError(SfumatoError, ValueError):
    """Two objects do not belong together."""


class BudgetError(SfumatoError, RuntimeError):
    """The owner of a device does not allow what is asked for."""


class InsecureRandomness(SfumatoError, RuntimeError):
    """A reproducible source was passed where real people's privacy depends on it."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, need: str, extra: str | None = None) -> None:
        """Say what is needed, and which extra installs it (or none, for a package of its own)."""
        package = need if extra is None else f"'sfumato[{extra}]'"
        super().__init__(f"{need} is not installed; `pip install {package}` adds it.")
