"""`sfumato serve`: a collector on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import console
from sfumato.cli.command import Result, show
from sfumato.errors import InputError

if TYPE_CHECKING:
    from socket import socket

    from sfumato.service.assembly import ServicePlan
    from sfumato.store import Store
    from sfumato.store.report_tables import ReportTables

__all__ = ["serve"]

VARIABLES = {
    "operator": "SFUMATO_OPERATOR_TOKEN",
    "analyst": "SFUMATO_ANALYST_TOKEN",
    "shuffler": "SFUMATO_SHUFFLER_TOKEN",
}
UNWRAPPED = (
    "Private keys are kept as they are: a copy of the store opens its reports. Start with "
    "SFUMATO_KEY_SECRET or --key-secret-file to wrap them."
)
ON_REQUEST = "shuffler"
"""A role that has a token only if it is given one."""


@dataclass(frozen=True)
class ServeOptions:
    """Where a collector keeps what it receives, and where it listens."""

    store: str = "collector.db"
    """The file that keeps everything, made if there is none; or postgresql://user@host/database."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, typer.Option(min=0, max=65_535)] = 8080
    """The port to listen on; 0 takes a free one."""
    url: str | None = None
    """The address devices see, if it is another one."""
    rate: Annotated[float, typer.Option(min=0)] = 100.0
    """Uploads a second from one client; 0 for no limit."""
    most_ids: Annotated[int, typer.Option(min=1)] = 33_554_432
    """Reports of open periods that a process remembers of a task, in 11 to 16 bytes each."""
    trusted_proxy: tuple[str, ...] = ()
    """An address or network of a proxy that is believed when it says for whom it asks."""
    key_secret_file: Path | None = None
    """A file with the secret that wraps the private keys of tasks; otherwise SFUMATO_KEY_SECRET."""
    workers: Annotated[int, typer.Option(min=1, max=64)] = 1
    """The number of processes that share the work, behind one address."""
    new_tokens: bool = False
    """Replace the tokens of operator and analyst."""
    as_json: bool = False


def serve(asked: ServeOptions) -> None:
    """Receive reports, close periods and answer questions until Ctrl-C.

    Tokens are drawn at the first start and shown this once, or read from SFUMATO_OPERATOR_TOKEN
    and SFUMATO_ANALYST_TOKEN. Reports of tasks with a shuffler come with SFUMATO_SHUFFLER_TOKEN, if
    it is set. Logs go to stderr as lines of JSON.

    With SFUMATO_KEY_SECRET, or --key-secret-file, the private keys in the store are wrapped, so
    that a copy of it opens no report. While the secret changes, SFUMATO_FORMER_KEY_SECRET holds the
    one from before.

    Example:  sfumato serve --store collector.db
    """
    from sfumato.service.assembly import ServicePlan
    from sfumato.store.store_addresses import claimed_for_workers, open_store
    from sfumato.web import logs
    from sfumato.web.serving import listening

    url, host = asked.url, asked.host
    if url is not None and not url.startswith(("http://", "https://")):
        raise InputError(f"--url is {url!r}; an address with http:// or https:// is expected.")
    with ExitStack() as stack:
        held: tuple[int, ...] = ()
        if asked.workers > 1:
            held = stack.enter_context(claimed_for_workers(asked.store))
        opened = stack.enter_context(closing(open_store(asked.store, claimed=asked.workers > 1)))
        fresh = _tokens(opened, renew=asked.new_tokens)
        sock = stack.enter_context(listening(host, asked.port))
        name = f"[{host}]" if ":" in host else host
        here = f"http://{name}:{sock.getsockname()[1]}"
        base = (url or here).rstrip("/")
        secret = asked.key_secret_file
        plan = ServicePlan(
            asked.store,
            base,
            asked.rate,
            asked.trusted_proxy,
            key_secret_file=str(secret) if secret else None,
            most_ids=asked.most_ids,
        )
        logs.to_stderr()
        bare = [] if plan.wrapping.wraps else [UNWRAPPED]
        warnings = [*bare, *_elsewhere(opened, base)]
        ready = partial(_say, asked, opened.name, here, fresh, warnings)
        _run(plan, opened, sock, asked.workers, held, ready)


def _run(
    plan: ServicePlan,
    opened: ReportTables,
    sock: socket,
    workers: int,
    held: tuple[int, ...],
    ready: Callable[[], None],
) -> None:
    """Serve in this process, or in several that it starts."""
    if workers > 1:
        from sfumato.service.supervisor import Supervisor

        opened.close()
        Supervisor(plan, sock, workers, held).run(ready)
        return
    from sfumato.service.asgi import make_app
    from sfumato.web.serving import serve as run

    service = plan.service(opened)
    run(make_app(service), sock, ready, service.bell.stop)


def _tokens(store: Store, *, renew: bool) -> dict[str, str]:
    """Set the tokens that are asked for or missing; return those that nobody has seen yet."""
    from sfumato.service.access import new_token, set_token

    known = set(store.tokens().values())
    fresh = {}
    for role, variable in VARIABLES.items():
        if token := os.environ.get(variable):
            set_token(store, role, token)
        elif role != ON_REQUEST and (renew or role not in known):
            fresh[role] = new_token()
            set_token(store, role, fresh[role])
    return fresh


def _elsewhere(store: Store, base: str) -> list[str]:
    """Return a sentence for each task whose devices send to another address than this one."""
    from sfumato.streams.amplification import requirement
    from sfumato.wire.published import Published

    sentences = []
    for stored in store.tasks():
        published = Published.parse(stored.published)
        spec, where = published.spec, published.endpoint
        last = spec["periods"] if stored.last_period is None else stored.last_period
        if stored.closed >= last or not where or where.startswith(f"{base}/") or requirement(spec):
            continue
        sentences.append(
            f"Devices of {spec['title']!r} send to {where}, which is not {base}: they come here "
            "only if that address leads here (--url says so)."
        )
    return sentences


def _say(
    asked: ServeOptions, store: str, here: str, fresh: dict[str, str], warnings: list[str]
) -> None:
    """Print where the collector is, its new tokens, and what should be known of its state."""
    for sentence in warnings:
        with suppress(OSError):  # where logs go the disk may be full
            console.say(sentence, to=console.err())
    tokens = (f"Token of the {role}, shown this once:  {token}" for role, token in fresh.items())
    show(
        Result(
            {"url": here, "store": store, "tokens": fresh},
            (
                f"The collector is at {here}; it keeps everything in {store}.",
                *tokens,
                "Ctrl-C stops it; nothing that was acknowledged is lost.",
            ),
            next_command="sfumato task new my-task.toml\n"
            f"SFUMATO_OPERATOR_TOKEN=...  sfumato task publish my-task.toml --to {here}",
        ),
        as_json=asked.as_json,
    )
