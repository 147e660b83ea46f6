"""Options that several commands share, described once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Final

import typer

from sfumato.files import Dialect

__all__ = ["Force", "Json", "reads_tables"]

Json = Annotated[bool, typer.Option("--json", help="Print nothing but JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]

_PANEL: Final = "How a CSV file is written"
_DIALECT: Final[dict[str, tuple[Any, Any]]] = {
    "separator": (
        Annotated[
            str,
            typer.Option(help="What stands between two cells; or tab.", rich_help_panel=_PANEL),
        ],
        Dialect.separator,
    ),
    "encoding": (
        Annotated[str, typer.Option(help="Such as utf-16 or latin-1.", rich_help_panel=_PANEL)],
        Dialect.encoding,
    ),
    "missing": (
        Annotated[
            list[str] | None,
            typer.Option(
                help="A text that means no value, as an empty cell does; may be repeated.",
                rich_help_panel=_PANEL,
                show_default=False,
            ),
        ],
        None,
    ),
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how a CSV file is written; it gets a ``dialect``."""

    @wraps(command)
    def with_dialect(**arguments: Any) -> None:
        separator, encoding, missing = (arguments.pop(name) for name in _DIALECT)
        command(**arguments, dialect=Dialect(separator, encoding, tuple(missing or ())))

    signature = inspect.signature(command, eval_str=True)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "dialect"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _DIALECT.items()
    ]
    with_dialect.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
    return with_dialect
