"""Doors of a running collector: requests to the app itself, and bytes on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from tests.service.fleets import LISTENING, Fleet
from tests.service.running import TOKENS, Running
from tests.system.hostile.judging import Door, Faulty, is_sentence
from tests.system.hostile.mutation import damaged, damaged_plain, json_text, nasty
from tests.system.hostile.wire_doors import TASKS

from sfumato.service import Collector
from sfumato.service.access import set_token
from sfumato.service.asgi import Service, make_app
from sfumato.service.query_parameters import QUERIES
from sfumato.store import SQLiteStore
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["Addresses", "Sockets"]

START: Final = 1_000_000
TOKEN: Final = TOKENS["SFUMATO_OPERATOR_TOKEN"]
METHODS: Final = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "gEt", "")
TYPES: Final = (BATCH_TYPE, "application/json", "text/plain", "", "a/b; charset=\xff", "x" * 999)
HEADS: Final = (
    "authorization",
    "content-length",
    "content-type",
    "accept",
    "accept-encoding",
    "cookie",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "last-event-id",
    "origin",
    "range",
    "x-forwarded-for",
)
ENDS: Final = ("", "/reports", "/question", "/keys", "/answers", "/events", "/../..", "/%00", "//")

Request = tuple[str, str, str, list[tuple[bytes, bytes]], bytes]
"""Method, path, query, heads and body."""


def _text(rng: Random) -> str:
    """Return hostile text without what cannot be sent at all."""
    value = nasty(rng)
    text = value if isinstance(value, str) else json_text(value)
    return text[:4000]


class _Made:
    """Makes requests to tasks of these names."""

    def __init__(self, names: Iterable[str], batch: bytes) -> None:
        self._names, self._batch = list(names), batch

    def request(self, rng: Random) -> Request:
        name = rng.choice([*self._names * 4, "0" * 64, "", "%ff", _text(rng)])
        end = rng.choice(ENDS)
        path = f"/v1/tasks/{name}{end}"
        if rng.random() < 0.3:
            pages = ("/", "/v1/tasks", f"/tasks/{name}", "/static/page.js", f"/static/{_text(rng)}")
            path = rng.choice((*pages, "/healthz", "/readyz", "/metrics", "/openapi.json", "*", ""))
        taking = path == "/v1/tasks" or path.endswith(("/reports", "/keys"))
        method = rng.choice(METHODS) if rng.random() < 0.2 else "POST" if taking else "GET"
        query = self._query(rng) if end in ("/answers", "/events") else ""
        body = self._body(rng) if method in ("POST", "PUT") else b""
        return method, path, query, self._heads(rng, body), body

    @staticmethod
    def _query(rng: Random) -> str:
        name = rng.choice(sorted(QUERIES))
        usual = {"item": "home", "average": "true", "simultaneous": "false", "k": "2"}
        fields = {"query": name} | {each: usual.get(each, "1") for each in QUERIES[name]}
        if rng.random() < 0.3:
            fields |= {"level": "0.9", "decoder": "online"}
        pairs = list(damaged_plain(fields, rng).items())
        if rng.random() < 0.1:
            pairs += pairs[:1]
        if rng.random() < 0.1:
            return damaged(urlencode(fields).encode(), rng).decode("latin-1")
        texts = (
            (each, value if isinstance(value, str) else json_text(value)) for each, value in pairs
        )
        return "&".join(f"{_quoted(each)}={_quoted(value)}" for each, value in texts)[:8000]

    def _body(self, rng: Random) -> bytes:
        way = rng.randrange(3)
        if way == 0:
            return damaged(self._batch, rng)
        if way == 1:
            plain = {"task": rng.choice(TASKS), "start": START, "sealed": False}
            return json_text(damaged_plain(plain, rng)).encode("utf-8", "surrogatepass")
        return rng.randbytes(rng.randrange(200))

    @staticmethod
    def _heads(rng: Random, body: bytes) -> list[tuple[bytes, bytes]]:
        heads = {"host": "testserver", "content-type": rng.choice(TYPES)}
        if body or rng.random() < 0.2:
            heads["content-length"] = str(len(body))
        if rng.random() < 0.4:
            heads["authorization"] = f"Bearer {TOKEN}"
        for _ in range(rng.choice((0, 0, 1, 3))):
            heads[rng.choice(HEADS)] = _text(rng)
        return [
            (name.encode(), value.encode("utf-8", "surrogatepass").replace(b"\n", b" "))
            for name, value in heads.items()
        ]


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"))


class Addresses(Door, name="addresses", share=130):
    """Requests to the app of a collector, without a network between."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._store = SQLiteStore(folder / "collector.db")
        set_token(self._store, "operator", TOKEN)
        self._now = START + 11.0
        collector = Collector(self._store, "http://testserver", lambda: self._now)
        running_tasks = [
            collector.publish(LISTENING, START, grace=grace, public=grace == 5) for grace in (5, 6)
        ]
        fleet = Fleet(running_tasks[0], 20)
        collector.take(running_tasks[0], fleet.body(["home"] * 20))
        self._made = _Made(
            (running_task.name for running_task in running_tasks), fleet.body(["work"] * 20)
        )
        self._now += 10.0
        self._service = Service(collector)
        self._app = make_app(self._service)
        self._loop = asyncio.new_event_loop()
        self._life = self._service.lifespan(None)  # type: ignore[arg-type]
        self._loop.run_until_complete(self._life.__aenter__())
        self._loop.run_until_complete(asyncio.sleep(0.3))  # a period closes

    def close(self) -> None:
        """Stop the collector."""
        self._loop.run_until_complete(self._life.__aexit__(None, None, None))
        self._loop.close()
        self._store.close()

    def make(self, rng: Random) -> Request:
        """Return a hostile request."""
        return self._made.request(rng)

    def enter(self, item: Request) -> str:
        """Send it, and look at the answer."""
        method, path, query, heads, body = item
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "surrogatepass"),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": heads,
            "client": ("127.0.0.1", 9),
            "server": ("testserver", 80),
        }
        said: list[dict[str, Any]] = []
        sent = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            return next(sent, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            said.append(message)

        try:
            self._loop.run_until_complete(asyncio.wait_for(self._app(scope, receive, send), 30.0))
        except Exception as error:
            status = next((each["status"] for each in said if "status" in each), None)
            raise Faulty(f"status {status}, {error!r}") from error
        return _judged(said[0]["status"], b"".join(each.get("body", b"") for each in said))


def _judged(status: int, body: bytes) -> str:
    """Return the status in a word; raise if it is one of failure, or says nothing."""
    if status >= 500:
        raise Faulty(f"status {status}: {body[:200]!r}")
    if status >= 400 and body:
        problem = json.loads(body)
        if not is_sentence(problem["detail"]) or problem["status"] != status:
            raise Faulty(f"no problem document: {body[:400]!r}")
    return f"status {status}"


class Sockets(Door, name="sockets", share=20):
    """Bytes on a connection to a collector in a process of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._running = Running(folder / "collector.db")
        made = self._running.publish(dict(TASKS[1]) | {"period": "1 hour"}, public=True)
        parts = urlsplit(self._running.url)
        self._place = (parts.hostname or "", parts.port or 80)
        self._made = _Made([made["task_id"]], b"SFR1" + bytes(80))

    def close(self) -> None:
        """Stop the collector, which must have lived through all of it."""
        code = self._running.stop()
        if code:
            raise Faulty(f"the collector ended with {code}")

    def make(self, rng: Random) -> bytes:
        """Return a hostile request as bytes, damaged half of the time."""
        method, path, query, heads, body = self._made.request(rng)
        if path.endswith("/events"):
            path = path.removesuffix("s")
        line = f"{method} {path}{'?' if query else ''}{query} HTTP/1.{rng.randrange(3)}\r\n"
        raw = line.encode("utf-8", "surrogatepass")
        raw += (
            b"".join(b"%s: %s\r\n" % pair for pair in heads) + b"connection: close\r\n\r\n" + body
        )
        return damaged(raw, rng) if rng.random() < 0.5 else raw

    def enter(self, item: bytes) -> str:
        """Send it, read to the end, and look at the first answer."""
        with socket.create_connection(self._place, timeout=5) as sock:
            try:
                sock.sendall(item)
                sock.shutdown(socket.SHUT_WR)
                answer = b""
                while chunk := sock.recv(1 << 16):
                    answer += chunk
            except ConnectionError:
                return "cut off"
        if not answer:
            return "no answer"
        status = int(answer.split(b" ", 2)[1])
        if status >= 500:
            raise Faulty(f"{answer[:300]!r}")
        return f"status {status}"
