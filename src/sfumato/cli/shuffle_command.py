"""`sfumato shuffle serve` and `status`: a shuffler on this machine, and what becomes of reports."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from sfumato.cli import console
from sfumato.cli.command import Result, show
from sfumato.errors import InputError

__all__ = ["serve", "status"]

TOKEN: Final = "SFUMATO_SHUFFLER_TOKEN"  # noqa: S105 -- the name of a variable


@dataclass(frozen=True)
class ShuffleOptions:
    """Whose reports a shuffler mixes, where it keeps them, and where it listens."""

    collector: str = "http://127.0.0.1:8080"
    """The address of the collector that mixed reports are handed on to."""
    store: Path = Path("shuffler.db")
    """The file that holds sealed reports until then; made if there is none."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, typer.Option(min=0, max=65_535)] = 8081
    """The port to listen on; 0 takes a free one."""
    url: str | None = None
    """The address devices see, if it is another one."""
    credentials: str | None = None
    """The function that checks what devices show, as package.module:function; built-in tokens are
    sfumato.shuffler.credentials:hmac_token. Without it, anybody may send."""
    as_json: bool = False


def serve(asked: ShuffleOptions) -> None:
    """Take sealed reports, mix them, and hand them on to a collector until Ctrl-C.

    It is meant to be run by somebody else than the collector. The collector knows it by the token
    in SFUMATO_SHUFFLER_TOKEN. Nothing about senders is logged or written.

    Example:  sfumato shuffle serve --collector https://collector.example
    """
    from sfumato.cli.role_tokens import refuse_equal
    from sfumato.shuffler.credentials import anybody, check_named
    from sfumato.shuffler.front import OPERATOR, Front, make_front
    from sfumato.shuffler.handing_on import Collecting
    from sfumato.shuffler.holding import Holding
    from sfumato.shuffler.mixing import Shuffler
    from sfumato.web import logs
    from sfumato.web.serving import listening
    from sfumato.web.serving import serve as run
    from sfumato.wire.web_addresses import refuse_address

    for name, address in (("--url", asked.url), ("--collector", asked.collector)):
        if address is not None:
            refuse_address(name, address)
    refuse_equal(TOKEN, OPERATOR)
    token = os.environ.get(TOKEN, "")
    if not token:
        raise InputError(f"{TOKEN} is not set; the token that the collector knows is expected.")
    check = anybody if asked.credentials is None else check_named(asked.credentials)
    with closing(Holding(asked.store)) as holding:
        sock = listening(asked.host, asked.port)
        name = f"[{asked.host}]" if ":" in asked.host else asked.host
        here = f"http://{name}:{sock.getsockname()[1]}"
        shuffler = Shuffler(holding, (asked.url or here).rstrip("/"), asked.collector.rstrip("/"))
        logs.to_stderr()
        front = Front(Collecting(shuffler, token), check, os.environ.get(OPERATOR, ""))
        run(make_front(front), sock, partial(_say, asked, here))


def _say(asked: ShuffleOptions, here: str) -> None:
    """Print where the shuffler is, and for whom."""
    with console.while_read():
        show(
            Result(
                {"url": here, "store": str(asked.store), "collector": asked.collector},
                (
                    f"The shuffler is at {here}; it mixes reports for {asked.collector}.",
                    f"It holds them in {asked.store}, and erases them once they are handed on.",
                    "Ctrl-C stops it; nothing that was acknowledged is lost.",
                ),
                next_command=f'write  shuffle = {{url = "{here}", ...}}  into a task file\n'
                f"sfumato task publish my-task.toml --to {asked.collector}",
            ),
            as_json=asked.as_json,
        )


@dataclass(frozen=True)
class StatusOptions:
    """The shuffler to ask."""

    url: str = "http://127.0.0.1:8081"
    """The address of the shuffler."""


FATES: Final = ("acknowledged", "counted", "refused", "expired")


def status(asked: StatusOptions) -> Result:
    """Show what has become of the reports of each task of a shuffler.

    Only its operator may know, by the token in SFUMATO_SHUFFLER_OPERATOR_TOKEN, with which the
    shuffler was started, too. Reports expire if fewer than min_batch came in a period.

    Example:  sfumato shuffle status --url https://shuffler.example
    """
    from sfumato.cli.text_tables import grid, label
    from sfumato.shuffler.front import OPERATOR
    from sfumato.shuffler.handing_on import told

    answer = told(asked.url, os.environ.get(OPERATOR, ""))
    headings = ("task", ">period", ">min_batch", ">waiting", ">leaving", *(f">{f}" for f in FATES))
    rows = [
        (
            f"{label(task['title'])} ({task_id[:8]})",
            f"{task['period']}/{task['periods']}",
            *(f"{task[name]:,}" for name in ("min_batch", "waiting", "leaving")),
            *(f"{task['counts'].get(fate, 0):,}" for fate in FATES),
        )
        for task_id, task in answer["tasks"].items()
    ]
    problem = [f"The last exchange failed: {label(answer['problem'])}"] if answer["problem"] else []
    return Result(answer, [grid(headings, rows) if rows else "It has no task yet.", *problem])
