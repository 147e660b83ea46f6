"""Whatever a collector answers, a device that flushes is not stopped by it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Thread

import pytest

from sfumato.device import Http
from sfumato.device.transport import Unreachable
from sfumato.errors import InputError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


def said(body: bytes) -> bytes:
    return OK % (len(body), body)


class Server:
    """Gives one answer, byte for byte."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.answer = b""
        self.heard = b""
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"
        self.thread = Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.heard = connection.recv(1 << 16)
                connection.sendall(self.answer)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.socket.shutdown(socket.SHUT_RDWR)
    made.socket.close()
    made.thread.join()


def test_an_answer_says_what_was_refused(server: Server) -> None:
    server.answer = said(b'{"accepted": 1, "refused": [{"index": 1, "reason": "stale"}]}')
    assert Http().send(server.url, b"batch").refused == {1: "stale"}
    assert server.heard.startswith(b"POST /v1 HTTP/1.1")
    assert b"application/vnd.sfumato.reports" in server.heard


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n",
        said(b""),
        said(b"[]"),
        said(b"{}"),
        said(b'{"refused": 1}'),
        said(b'{"refused": [{"index": 1e999, "reason": "stale"}]}'),
        said(b'{"refused": [{"index": "x", "reason": "stale"}]}'),
        said(b"[" * 100_000),
        said(b"\xff\xfe"),
        said(b" " * ((1 << 20) + 1)),
    ],
)
def test_any_other_answer_means_not_now(server: Server, answer: bytes) -> None:
    server.answer = answer
    with pytest.raises(Unreachable):
        Http(timeout=5.0).send(server.url, b"batch")


@pytest.mark.parametrize(
    "url", ["", "ftp://here/", "file:///etc/hostname", "http://", "http://[", "http://a b/\n"]
)
def test_an_address_that_is_none_means_not_now_and_is_refused_when_joining(url: str) -> None:
    with pytest.raises(Unreachable):
        Http(timeout=1.0).send(url, b"batch")
    with pytest.raises((InputError, Unreachable)):
        Http(timeout=1.0).fetch(url)


def test_nobody_there_means_not_now(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match="cannot be reached"):
        Http(timeout=1.0).send(f"http://127.0.0.1:{port}/", b"batch")
    del server
