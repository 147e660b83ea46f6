"""Limits on what comes in: sizes of bodies, bytes in memory, requests of one client."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import ClientDisconnect, Request

from sfumato.web.problems import Refused

__all__ = ["LARGEST_BODY", "Gate", "Rate"]

LARGEST_BODY: Final = 8 << 20
MOST_BYTES: Final = 64 << 20
PATIENCE: Final = 30.0
"""The time in seconds in which a body must arrive."""


@dataclass
class Gate:
    """Admits request bodies as long as they fit into memory together."""

    most: int = MOST_BYTES
    inside: int = 0

    @asynccontextmanager
    async def body(self, request: Request, largest: int = LARGEST_BODY) -> AsyncIterator[bytes]:
        """Read a body, which counts as in memory until the context ends."""
        length = _length(request, largest)
        if self.inside + length > self.most:
            raise Refused(
                "too-many", "Too many bodies wait to be read; try again.", {"Retry-After": "1"}
            )
        self.inside += length
        try:
            yield await _read(request, length)
        finally:
            self.inside -= length


def _length(request: Request, largest: int) -> int:
    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise Refused("length-needed", "The header Content-Length is missing or no number.")
    if len(length) > 12 or int(length) > largest:
        raise Refused("too-large", f"The body has {length[:12]} bytes; up to {largest} are taken.")
    return int(length)


async def _read(request: Request, length: int) -> bytes:
    parts, size = [], 0
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                size += len(part)
                if size > length:
                    raise Refused("too-large", "The body is longer than Content-Length says.")
                parts.append(part)
    except TimeoutError:
        raise Refused("too-slow", f"The body took more than {PATIENCE:.0f} seconds.") from None
    except ClientDisconnect:
        raise Refused("bad-request", "The body ended early.") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


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

    def check(self, request: Request) -> None:
        """Count a request; raise Refused if it is one too many."""
        if not self.each:
            return
        client = request.client.host if request.client else ""
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
