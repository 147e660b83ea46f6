"""Whatever a collector answers, a device that flushes is not stopped by it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from threading import Thread

import pytest
from tests.device.collecting import HOUR, published

from sfumato.device import Device, Http, Limits
from sfumato.device.transport import Unreachable
from sfumato.errors import InputError

HEAD = b"HTTP/1.1 200 OK\r\n"
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


@pytest.mark.parametrize("heads", [b"", b"Connection: close\r\n", b"Server: some\r\n"])
def test_an_answer_is_read_whether_or_not_the_line_stays_open(server: Server, heads: bytes) -> None:
    server.answer = HEAD + heads + b'Content-Length: 15\r\n\r\n{"refused": []}'
    assert Http(timeout=5.0).send(server.url, b"batch").refused == {}
    server.answer = HEAD + heads + b'\r\n{"refused": []}'
    assert Http(timeout=5.0).fetch(server.url) == b'{"refused": []}'


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


class Dripping(Server):
    """Sends part after part, with a pause after each, for as long as anybody listens."""

    def __init__(self, parts: Iterable[bytes], pause: float = 0.02, *, deaf: bool = False) -> None:
        self.parts, self.pause, self.deaf = parts, pause, deaf
        self.over = threading.Event()
        self.asked = 0
        super().__init__()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.asked += 1
            with connection, contextlib.suppress(OSError):
                if not self.deaf:
                    connection.recv(1 << 16)
                for part in self.parts:
                    connection.sendall(part)
                    if self.over.wait(self.pause):
                        return

    def close(self) -> None:
        self.over.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


LONG = HEAD + b"Content-Length: 1000000\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [b"H"] * 10_000,  # a first line without an end
        [HEAD] + [b"X: y\r\n"] * 10_000,
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 10_000,
        [LONG] + [b" "] * 10_000,
        [CHUNKED] + [b"1\r\n \r\n"] * 10_000,
        [b""] * 10_000,  # nothing at all
    ],
    ids=["line", "heads", "continue", "body", "chunks", "silence"],
)
def test_one_that_drips_holds_nobody_beyond_the_timeout(parts: list[bytes]) -> None:
    server = Dripping(parts)
    try:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"cannot be reached \((it took too long|timed out)"):
            Http(timeout=0.3).send(server.url, b"batch")
        assert 0.25 < time.monotonic() - began < 60.0  # and not for as long as it drips
    finally:
        server.close()


def test_one_that_does_not_read_holds_nobody_beyond_the_timeout() -> None:
    server = Dripping([b""] * 10_000, deaf=True)
    try:
        began = time.monotonic()
        with pytest.raises(Unreachable):
            Http(timeout=0.3).send(server.url, bytes(64 << 20))
        assert time.monotonic() - began < 60.0
    finally:
        server.close()


@pytest.mark.parametrize(
    "parts",
    [
        [CHUNKED] + [b"10000\r\n" + bytes(1 << 16) + b"\r\n"] * 1_000,
        [HEAD] + [b"X: " + b"y" * 60_000 + b"\r\n"] * 1_000,
        [b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000] * 1_000,
        [b"HTTP/1.1 200 " + bytes(1 << 16)] * 1_000,
    ],
    ids=["chunks", "heads", "continue", "line"],
)
def test_an_answer_without_an_end_is_read_no_further_than_it_may_be(parts: list[bytes]) -> None:
    server = Dripping(parts, pause=0.0)
    try:
        began = time.process_time()
        with pytest.raises(Unreachable):
            Http(timeout=20.0).send(server.url, b"batch")
        assert time.process_time() - began < 2.0
    finally:
        server.close()


def test_redirects_are_not_followed() -> None:
    other = Dripping([said(b'{"refused": []}')])
    server = Dripping(
        [b"HTTP/1.1 302 Found\r\nLocation: %s\r\n\r\n" % other.url.encode()], pause=0.0
    )
    try:
        with pytest.raises(Unreachable, match="answered 302"):
            Http(timeout=5.0).fetch(server.url)
        assert (server.asked, other.asked) == (1, 0)
    finally:
        server.close()
        other.close()


def test_a_name_that_is_looked_up_for_ever_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    over, ask = threading.Event(), socket.getaddrinfo

    def slow(host: str, *args: object, **more: object) -> object:
        if host == "collector.invalid" and "flags" not in more:
            over.wait(120.0)
        return ask(host, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    began = time.monotonic()
    with pytest.raises(Unreachable, match="looking the host up took too long"):
        Http(timeout=0.2).fetch("http://collector.invalid/v1")
    over.set()
    assert time.monotonic() - began < 60.0


def test_a_flush_over_http_ends_in_time_and_other_tasks_are_served() -> None:
    honest, _ = published(title="honest", mix="mix = {1 = 1.0}")
    slow, _ = published(title="slow", mix="mix = {1 = 1.0}")
    good, bad = Dripping([said(b'{"refused": []}')]), Dripping([LONG] + [b" "] * 10_000)
    now = [0.0]
    device = Device.open(":memory:", Limits(4.0), clock=lambda: now[0])
    try:
        device.join(replace(honest, endpoint=good.url))
        troubled = device.join(replace(slow, endpoint=bad.url))
        now[0] = HOUR + 1.0
        began = time.monotonic()
        flushed = device.flush(limit=4.0)
        assert time.monotonic() - began < 60.0  # what drips would take more than three minutes
        assert (flushed.sent, flushed.waiting, list(flushed.problems)) == (1, 1, [troubled])
    finally:
        good.close()
        bad.close()
