"""Runs a collector in this process until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from sfumato.errors import InputError
from sfumato.service.app import Service, make_app

__all__ = ["listening", "serve"]


class _Server(uvicorn.Server):
    """Sends those who listen to events home before it waits for everybody to leave."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say when requests are answered."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop within seconds, and once: what has been taken in is written down before."""
        del sig, frame
        self._service.bell.stopping = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wake those who listen, so that they see that it is over."""
        self._service.bell.ring(stop=True)
        await super().shutdown(sockets)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    try:
        return socket.create_server((host, port), backlog=512)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"nothing can listen on {host}, port {port} ({error}); another --port may be free."
        ) from error


def serve(service: Service, sock: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Answer requests on a socket until a signal comes."""
    config = uvicorn.Config(
        make_app(service),
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        date_header=False,
        limit_concurrency=1024,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=1 << 16,
    )
    _Server(config, service, ready).run(sockets=[sock])
