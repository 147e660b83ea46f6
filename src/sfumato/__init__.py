"""Statistics over time from many people's devices, without anyone handing over their data.

The names that most people need can be imported from here; the stub beside this file lists them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from sfumato.extras import explain_imports, stub_names

__version__: Final = "0.1.0"

explain_imports()


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*stub_names(__file__), *import_module(f"{__name__}.mechanisms").__all__} - {"*"})


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that `import sfumato` is fast."""
    if name in ("core", "mechanisms"):
        return import_module(f"{__name__}.{name}")
    if name == "__all__":
        return __dir__()
    if name in (modules := stub_names(__file__)):
        return getattr(import_module(modules[name]), name)
    if name in (mechanisms := import_module(f"{__name__}.mechanisms")).__all__:
        return getattr(mechanisms, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
