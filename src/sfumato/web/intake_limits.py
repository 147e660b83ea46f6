"""Limits on what comes in: sizes of bodies, bytes in memory, requests of one client."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import Request
from starlette.types import Receive

from sfumato.web.clients import Room
from sfumato.web.problems import Refused

__all__ = ["LARGEST_BODY", "Gate", "Rate"]

LARGEST_BODY: Final = 8 << 20
MOST_BYTES: Final = 128 << 20
PATIENCE: Final = 30.0
"""The time in seconds in which a body must arrive."""
PAUSE: Final = 10.0
"""The longest time in seconds in which nothing of a body arrives."""


@dataclass
class Gate:
    """Admits request bodies as long as what has arrived of them fits into memory together.

    Only bytes that have arrived count, not those that are announced, and a client may hold no more
    of the room than is left over.
    """

    room: Room = field(default_factory=lambda: Room(MOST_BYTES))
    patience: float = PATIENCE
    pause: float = PAUSE

    @asynccontextmanager
    async def body(
        self, request: Request, largest: int = LARGEST_BODY, client: str = ""
    ) -> AsyncIterator[bytes]:
        """Read a body, which counts as in memory until the context ends."""
        length = announced(request.headers.get("content-length", ""), largest)
        body = await self.read(request.receive, length, client)
        try:
            yield body
        finally:
            self.leave(client, len(body))

    async def read(self, receive: Receive, length: int, client: str, weight: int = 1) -> bytes:
        """Return a body of the announced length; its bytes are held until they leave."""
        body: bytes | bytearray = b""
        more = True
        try:
            async with asyncio.timeout(self.pause) as limit:
                begun = limit.when() or 0.0
                while more:
                    part, more = _part(await receive())
                    self._hold(len(body), len(part), length, client, weight)
                    if not body:
                        body = part
                        continue
                    if isinstance(body, bytes):
                        body = bytearray(body)
                    body += part
                    last = begun - self.pause + self.patience
                    limit.reschedule(min(last, asyncio.get_running_loop().time() + self.pause))
        except TimeoutError:
            self.leave(client, len(body))
            raise Refused("too-slow", "The body did not arrive in time.") from None
        except BaseException:
            self.leave(client, len(body))
            raise
        return body if isinstance(body, bytes) else bytes(body)

    def _hold(self, held: int, size: int, length: int, client: str, weight: int) -> None:
        """Take room for bytes that have arrived; raise Refused if they are too many."""
        if held + size > length:
            raise Refused("too-large", "The body is longer than Content-Length says.")
        if size and not self.room.take(client, size, weight):
            raise Refused(
                "too-many", "Too many bodies wait to be read; try again.", {"Retry-After": "1"}
            )

    def leave(self, client: str, size: int) -> None:
        """Release the bytes of a body that is no longer in memory."""
        if size:
            self.room.give_back(client, size)


def _part(message: Any) -> tuple[bytes, bool]:
    """Return the bytes of a message, and whether more will come."""
    if message["type"] != "http.request":
        raise Refused("bad-request", "The body ended early.")
    return message.get("body", b""), message.get("more_body", False)


def announced(length: str, largest: int) -> int:
    """Return the announced length of a body; raise Refused if there is none or it is too large."""
    if not (length.isascii() and length.isdigit()):
        raise Refused("length-needed", "The header Content-Length is missing or no number.")
    if len(length) > 12 or int(length) > largest:
        raise Refused("too-large", f"The body has {length[:12]} bytes; up to {largest} are taken.")
    return int(length)


@dataclass
class Rate:
    """A limit on the requests per second of each client.

    Parameters
    ----------
    each
        The number of requests per second; 0 for no limit.
    burst
        The number of seconds whose requests may come at once.
    clients
        The number of clients that are remembered; the one silent for longest is forgotten first.

    """

    each: float
    burst: float = 2.0
    clients: int = 10_000
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def check(self, client: str) -> None:
        """Count a request of a client; raise Refused if it is one too many."""
        if not self.each:
            return
        now = self.clock()
        most = self.each * self.burst
        left, before = self._left.pop(client, (most, now))
        left = min(most, left + (now - before) * self.each)
        self._left[client] = (left - (left >= 1), now)
        if len(self._left) > self.clients:
            self._left.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self.each))
            raise Refused(
                "too-many",
                f"More than {self.each:g} requests a second have come from here; try again.",
                {"Retry-After": str(wait)},
            )
