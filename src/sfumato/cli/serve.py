"""`sfumato serve`: a collector on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import console
from sfumato.cli.options import Json
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.service.collector import Collector
    from sfumato.store import Store

__all__ = ["serve"]

VARIABLES = {
    "operator": "SFUMATO_OPERATOR_TOKEN",
    "analyst": "SFUMATO_ANALYST_TOKEN",
    "shuffler": "SFUMATO_SHUFFLER_TOKEN",
}
ON_REQUEST = "shuffler"
"""A role that has a token only if it is given one."""


def serve(
    *,
    store: Annotated[
        Path, typer.Option(help="The file that keeps everything; made if there is none.")
    ] = Path("collector.db"),
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 8080,
    url: Annotated[
        str | None,
        typer.Option(help="The address devices see, if it is another one.", show_default=False),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Uploads a second from one client; 0 for no limit.")
    ] = 100.0,
    new_tokens: Annotated[
        bool, typer.Option("--new-tokens", help="Replace the tokens of operator and analyst.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Receive reports, close periods and answer questions until Ctrl-C.

    Tokens are drawn at the first start and shown this once, or read from SFUMATO_OPERATOR_TOKEN
    and SFUMATO_ANALYST_TOKEN. Reports of tasks with a shuffler come with SFUMATO_SHUFFLER_TOKEN, if
    it is set. Logs go to stderr as lines of JSON.

    Example:  sfumato serve --store collector.db
    """
    from sfumato.service import logs
    from sfumato.service.asgi import Service
    from sfumato.service.collector import Collector
    from sfumato.service.serving import listening
    from sfumato.service.serving import serve as run
    from sfumato.store import SQLiteStore

    if url is not None and not url.startswith(("http://", "https://")):
        raise InputError(f"--url is {url!r}; an address with http:// or https:// is expected.")
    opened = SQLiteStore(store)
    try:
        fresh = _tokens(opened, renew=new_tokens)
        sock = listening(host, port)
        name = f"[{host}]" if ":" in host else host
        here = f"http://{name}:{sock.getsockname()[1]}"
        base = (url or here).rstrip("/")
        collector = Collector(opened, base)
        service = Service(collector, rate=rate)
        logs.to_stderr()
        lost = _elsewhere(collector, base)
        run(service, sock, ready=lambda: _say(here, store, fresh, lost, as_json=as_json))
    finally:
        opened.close()


def _tokens(store: Store, *, renew: bool) -> dict[str, str]:
    """Set the tokens that are asked for or missing; return those that nobody has seen yet."""
    from sfumato.service.access import new_token, set_token

    known = set(store.tokens().values())
    fresh = {}
    for role, variable in VARIABLES.items():
        if given := os.environ.get(variable):
            set_token(store, role, given)
        elif role != ON_REQUEST and (renew or role not in known):
            fresh[role] = new_token()
            set_token(store, role, fresh[role])
    return fresh


def _elsewhere(collector: Collector, base: str) -> list[str]:
    """Return a sentence for each task whose devices send to another address than this one."""
    return [
        f"Devices of {running.published.spec['title']!r} send to {running.published.endpoint}, "
        f"which is not {base}: they come here only if that address leads here (--url says so)."
        for running in collector.running_tasks.values()
        if not running.is_over
        and not running.is_mixed
        and not running.published.endpoint.startswith(f"{base}/")
    ]


def _say(here: str, store: Path, fresh: dict[str, str], lost: list[str], *, as_json: bool) -> None:
    for sentence in lost:
        console.say(sentence, to=console.err())
    if as_json:
        console.print_json({"url": here, "store": str(store), "tokens": fresh})
        return
    console.say(f"The collector is at {here}; it keeps everything in {store}.")
    for role, token in fresh.items():
        console.say(f"Token of the {role}, shown this once:  {token}")
    console.say(
        f"\nNext:  sfumato task new my-task.toml\n       SFUMATO_OPERATOR_TOKEN=...  sfumato task "
        f"publish my-task.toml --to {here}\nCtrl-C stops it; nothing that was acknowledged is lost."
    )
