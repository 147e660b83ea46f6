"""Runs a server in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from sfumato.errors import InputError
from sfumato.web.connections import MOST_CONNECTIONS, Connection, OpenConnections
from sfumato.web.heap import return_large_blocks

__all__ = ["listening", "serve", "serve_handed"]

SPARE_FILES: Final = 256
"""The number of files that may be open beside connections."""


class _Server(uvicorn.Server):
    """A server that ends the streams of events before it waits for open connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        others: OpenConnections,
        ready: Callable[[], None],
        stopping: Callable[[bool], None],
    ) -> None:
        super().__init__(config)
        self._others = others
        self._ready = ready
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that requests are now answered."""
        await super().startup(sockets)
        self._others.watch()
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
        self._others.stop()


class _HandedServer(_Server):
    """A server whose connections are accepted by another process, which hands them on.

    It stops when that process ends.
    """

    def __init__(self, door: socket.socket, *known: Any) -> None:
        super().__init__(*known)
        self._door = door
        self._begun: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections."""
        await super().startup(sockets)
        asyncio.get_running_loop().add_reader(self._door, self._take)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take what was handed on already, and no more."""
        asyncio.get_running_loop().remove_reader(self._door)
        self._take()
        await asyncio.gather(*self._begun)
        await super().shutdown(sockets)

    def _take(self) -> None:
        """Begin to serve the connections that have been handed on."""
        while True:
            try:
                word, descriptors, _, _ = socket.recv_fds(self._door, 1, 1)
            except BlockingIOError:
                return
            except OSError:
                word, descriptors = b"", []
            if not word:  # the other process has ended
                asyncio.get_running_loop().remove_reader(self._door)
                self.handle_exit(signal.SIGTERM, None)
                return
            if not descriptors:  # no more files may be open
                self._others.ended()
            for descriptor in descriptors:
                sock = socket.socket(fileno=descriptor)
                work = asyncio.get_running_loop().create_task(self._begin(sock))
                self._begun.add(work)
                work.add_done_callback(self._begun.discard)

    async def _begin(self, sock: socket.socket) -> None:
        protocol: Any = self.config.http_protocol_class
        connection: Callable[[], Any] = partial(
            protocol,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        try:
            sock.settimeout(0)
            await asyncio.get_running_loop().connect_accepted_socket(connection, sock)
        except OSError:  # the client has gone
            sock.close()
            self._others.ended()


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free port. Raise InputError if it fails."""
    try:
        return socket.create_server((host, port), backlog=2048)
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
    others = OpenConnections(_most_connections())
    _Server(_config(app, others), others, ready, stopping).run(sockets=[sock])


def serve_handed(
    app: ASGIApp,
    door: socket.socket,
    stopping: Callable[[bool], None] = lambda _: None,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests on connections that another process hands on, until that one ends.

    A signal ends this as well.

    Parameters
    ----------
    app
        The app that answers.
    door
        The socket through which connections are handed on.
    stopping
        Called with False when a signal has come, and with True when nobody is let in any more.
    ended
        Called when a connection has ended.

    """
    others = OpenConnections(_most_connections(), ended)
    server = _HandedServer(door, _config(app, others), others, lambda: None, stopping)
    server.run(sockets=[])


def _config(app: ASGIApp, others: OpenConnections) -> uvicorn.Config:
    """Prepare this process for a server; return settings that limit its connections."""
    return_large_blocks()
    return uvicorn.Config(
        app,
        http=type("ServedConnection", (Connection,), {"others": others}),
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )


def _most_connections() -> int:
    """Return how many connections may be open."""
    return min(MOST_CONNECTIONS, _files() - SPARE_FILES)


def _files() -> int:
    """Return how many files this process may have open, after asking for as many as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    if hard == resource.RLIM_INFINITY or hard > soft:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 2 * SPARE_FILES)
