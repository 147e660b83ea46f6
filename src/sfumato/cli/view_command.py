"""`sfumato view`: the page of a released stream, on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.command import Result, show

__all__ = ["view"]


@dataclass(frozen=True)
class ViewOptions:
    """The file, and where its page is."""

    source: Annotated[Path, typer.Argument()]
    """A released stream, as `sfumato release` writes it."""
    port: Annotated[int, typer.Option(min=0, max=65_535)] = 0
    """The port to listen on; 0 takes a free one."""
    as_json: bool = False


def view(asked: ViewOptions) -> None:
    """Look at a released stream in a browser: its curve, ranges, guarantee and files to take away.

    The page is on this machine only, asks nobody else for anything, and stays until Ctrl-C.

    Example:  sfumato view public.parquet
    """
    from sfumato.pages.viewer import view_app
    from sfumato.web.serving import listening, serve

    app = view_app(asked.source)
    sock = listening("127.0.0.1", asked.port)
    address = f"http://127.0.0.1:{sock.getsockname()[1]}/"

    def ready() -> None:
        text = (f"The page of {asked.source} is at {address}", "Ctrl-C stops it.")
        ask = f"sfumato range {asked.source} FIRST LAST"
        show(
            Result({"url": address, "source": str(asked.source)}, text, next_command=ask),
            as_json=asked.as_json,
        )

    serve(app, sock, ready)
