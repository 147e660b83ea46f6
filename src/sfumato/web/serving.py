"""Runs a server in this process until it is told to stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sfumato.errors import InputError

__all__ = ["listening", "serve"]


LONGEST_HEAD: Final = 1 << 16
"""The largest number of bytes of a request before its body, which uvicorn does not limit."""


class _Connection(HttpToolsProtocol):
    """One connection; a client that sends headers without an end is disconnected."""

    _heading = 0

    def data_received(self, data: bytes) -> None:
        """Read data, and count the bytes since the last head, body or end of a request."""
        self._heading += len(data)
        super().data_received(data)
        if self._heading > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_headers_complete(self) -> None:
        """Reset the count, because a head has ended."""
        self._heading = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Reset the count, because a body continues, which has its own limit."""
        self._heading = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Reset the count, because a request has ended."""
        self._heading = 0
        super().on_message_complete()


class _Server(uvicorn.Server):
    """A server that ends the streams of events before it waits for open connections."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], stopping: Callable[[bool], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that requests are now answered."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop within seconds after a signal; everything accepted is written first."""
        del sig, frame
        self._stopping(False)  # noqa: FBT003 -- from a signal, where nobody can be woken
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wake the listeners to events, so that they end."""
        self._stopping(True)  # noqa: FBT003
        await super().shutdown(sockets)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free port. Raise InputError if it fails."""
    try:
        return socket.create_server((host, port), backlog=512)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)  # the error's own text repeats host and port
        reason = os.strerror(number) if number and number > 0 else error
        raise InputError(
            f"nothing can listen on {host}, port {port} ({reason}); another port may be free."
        ) from error


def serve(
    app: ASGIApp,
    sock: socket.socket,
    ready: Callable[[], None],
    stopping: Callable[[bool], None] = lambda _: None,
) -> None:
    """Answer requests on a socket until a signal comes.

    Parameters
    ----------
    app
        The app that answers.
    sock
        The listening socket.
    ready
        Called when requests are answered.
    stopping
        Called with False when a signal has come, and with True when nobody is let in any more.

    """
    config = uvicorn.Config(
        app,
        http=_Connection,
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        date_header=False,
        limit_concurrency=1024,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    _Server(config, ready, stopping).run(sockets=[sock])
