"""`sfumato serve`: a collector on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import console
from sfumato.cli.command import Result, show

if TYPE_CHECKING:
    from socket import socket

    from sfumato.service.assembly import ServicePlan
    from sfumato.store import Store
    from sfumato.store.report_tables import ReportTables

__all__ = ["serve"]

UNWRAPPED = (
    "Private keys are kept as they are: a copy of the store opens its reports. Start with "
    "SFUMATO_KEY_SECRET or --key-secret-file to wrap them."
)

UNREAD = "Nobody has read the new tokens, so that they do not count; the next start draws others."


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
    from sfumato.cli.role_tokens import chosen_tokens, keep_tokens
    from sfumato.service.assembly import ServicePlan
    from sfumato.store.store_addresses import claimed_for_workers, open_store
    from sfumato.web import logs
    from sfumato.web.serving import listening
    from sfumato.wire.web_addresses import refuse_address

    url, host = asked.url, asked.host
    if url is not None:
        refuse_address("--url", url)
    chosen = chosen_tokens()
    with ExitStack() as stack:
        held: tuple[int, ...] = ()
        if asked.workers > 1:
            held = stack.enter_context(claimed_for_workers(asked.store))
        opened = stack.enter_context(closing(open_store(asked.store, claimed=asked.workers > 1)))
        is_new = not opened.tokens() and not opened.tasks()
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
        keep_tokens(opened, chosen)
        place = _Place(asked, here, opened.name, is_new, warnings)
        _run(plan, opened, sock, held, place)


@dataclass(frozen=True)
class _Place:
    """Where a collector is, and what should be known of its state."""

    asked: ServeOptions
    here: str
    store: str
    is_new: bool
    warnings: list[str]

    def ready(self, store: Store, refresh: Callable[[], None]) -> None:
        """Say that requests are answered; new tokens count once they have been shown."""
        from sfumato.cli.role_tokens import drawn_tokens, keep_tokens

        fresh, is_read = drawn_tokens(store, renew=self.asked.new_tokens), False
        with console.while_read():
            self._say(fresh)
            is_read = True
        if fresh and is_read:
            keep_tokens(store, fresh)
            refresh()
        elif fresh:
            with suppress(OSError):
                console.say(UNREAD, to=console.err())

    def _say(self, fresh: dict[str, str]) -> None:
        for sentence in self.warnings:
            with suppress(OSError):  # where logs go the disk may be full
                console.say(sentence, to=console.err())
        devices = "" if self.asked.url is None else self.asked.url.rstrip("/")
        named = fresh.items()
        tokens = (f"Token of the {role}, shown this once:  {token}" for role, token in named)
        record = {"url": self.here, "store": self.store, "new": self.is_new, "tokens": fresh}
        kept = f"{self.store}, which is new" if self.is_new else self.store
        show(
            Result(
                record | ({"devices": devices} if devices else {}),
                (
                    f"The collector is at {self.here}; it keeps everything in {kept}.",
                    *([f"Devices reach it at {devices}."] if devices else []),
                    *tokens,
                    "Ctrl-C stops it; nothing that was acknowledged is lost.",
                ),
                next_command="sfumato task new my-task.toml\n"
                f"SFUMATO_OPERATOR_TOKEN=...  sfumato task publish my-task.toml --to {self.here}",
            ),
            as_json=self.asked.as_json,
        )


def _run(
    plan: ServicePlan, opened: ReportTables, sock: socket, held: tuple[int, ...], place: _Place
) -> None:
    """Serve in this process, or in several that it starts."""
    if place.asked.workers > 1:
        from sfumato.service.access import REFRESH
        from sfumato.service.supervisor import Supervisor
        from sfumato.store.store_addresses import open_store

        opened.close()

        def ready() -> None:
            with closing(open_store(plan.store, claimed=True)) as store:
                place.ready(store, partial(time.sleep, REFRESH))  # so that all workers know them

        Supervisor(plan, sock, place.asked.workers, held).run(ready)
        return
    from sfumato.service.asgi import make_app
    from sfumato.web.serving import serve as run

    service = plan.service(opened)
    ready_here = partial(place.ready, opened, service.access.refresh)
    run(make_app(service), sock, ready_here, service.bell.stop)


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
