"""The mechanisms, one file each; a new one needs its file and its line in ``__init__.pyi``.

A file is imported when its mechanism is first used, so that a device does not import all of them.
The stub beside this file says in which file each mechanism is.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from sfumato.extras import stub_names

_FILES: Final = stub_names(__file__)

__all__ = sorted(_FILES)  # noqa: PLE0605 -- one list, in one place


def __dir__() -> list[str]:
    """Return the names of all mechanisms."""
    return __all__


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(import_module(_FILES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
