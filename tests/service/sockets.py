"""A collector of a test on a socket of this machine, for clients that open one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.service.world import World

__all__ = ["served"]


@contextmanager
def served(world: World) -> Iterator[str]:
    """Yield an address at which a world's collector answers."""

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {"Authorization": self.headers.get("Authorization", "")}
            answer = world.client.get(self.path, headers=headers)
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["content-type"])
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
