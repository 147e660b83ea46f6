"""Options that several commands share, described once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Force", "Json"]

Json = Annotated[bool, typer.Option("--json", help="Print nothing but JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
