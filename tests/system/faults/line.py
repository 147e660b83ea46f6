"""The line between devices and collectors, on which everything that can happen does happen.

What happens to a connection follows from the seed and the connection's number.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Self

__all__ = ["MISHAPS", "FaultyLine"]

MISHAPS: Final = (
    "delay",
    "reset before the collector has it",
    "reset of the response",
    "truncated request",
    "truncated response",
    "repeated",
    "overtaken",
    "lost request",
    "lost response",
)
"""What can happen to a connection."""

LONGEST: Final = 5.0
"""The longest time in seconds for which a connection goes on."""


class FaultyLine:
    """A proxy on this machine that hands each connection to one of the collectors.

    Parameters
    ----------
    seed
        What decides which connections are disturbed, and how.

    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.share = 0.0
        """The share of connections that something happens to."""
        self.ports: list[int] = []
        """Where the collectors listen."""
        self.seen: Counter[str] = Counter()
        """How often each mishap has come."""
        self._number = 0
        self._answered = asyncio.Event()
        self._work: set[asyncio.Task[None]] = set()
        self._sock = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address that devices see."""
        return f"http://127.0.0.1:{self._sock.getsockname()[1]}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        opening = asyncio.start_server(self._entered, sock=self._sock)
        server = self._loop.run_until_complete(opening)
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        """End all connections, and wait until they are closed."""
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await asyncio.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._sock.close()

    # ---- one connection ----------------------------------------------------------------------

    def _entered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._number += 1
        rng = random.Random(f"{self._seed} {self._number}")  # noqa: S311
        mishap = rng.choice(MISHAPS) if rng.random() < self.share else ""
        self.seen[mishap] += 1
        self._begin(self._passed(reader, writer, mishap, rng))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _passed(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        mishap: str,
        rng: random.Random,
    ) -> None:
        """Hand one request over, and its response back, unless something happens."""
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(LONGEST):
                    request = await _request(reader)
                    response = await self._through(request, mishap, rng)
                    if mishap == "lost response":
                        await reader.read()  # until the sender gives up
                    if mishap in ("reset of the response", "truncated response"):
                        response = response[: rng.randrange(len(response) + 1)]
                    writer.write(response)
                    await writer.drain()
            if mishap.startswith("reset"):
                _reset(writer)
        finally:
            writer.close()

    async def _through(self, request: bytes, mishap: str, rng: random.Random) -> bytes:
        """Return the response to a request, or to what is left of it."""
        if mishap == "delay":
            await asyncio.sleep(rng.uniform(0.0, 0.8))
        elif mishap == "lost request":
            await asyncio.sleep(LONGEST)
        elif mishap == "overtaken":
            with suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), 0.8)
        elif mishap in ("truncated request", "reset before the collector has it"):
            request = request[: rng.randrange(len(request))]
        elif mishap == "repeated":
            for _ in range(rng.randint(1, 2)):
                self._begin(self._again(request, rng.uniform(0.0, 4.0), rng))
        response = await self._exchanged(request, rng, hard=mishap.startswith("reset"))
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()
        return response

    async def _again(self, request: bytes, pause: float, rng: random.Random) -> None:
        """Send a request once more, some time later; nobody hears the response."""
        await asyncio.sleep(pause)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(LONGEST):
                await self._exchanged(request, rng)

    async def _exchanged(self, request: bytes, rng: random.Random, *, hard: bool = False) -> bytes:
        """Return what a collector answers; empty if there is none."""
        if not self.ports:
            return b""
        reader, writer = await asyncio.open_connection("127.0.0.1", rng.choice(self.ports))
        try:
            writer.write(request)
            await writer.drain()
            if not _is_whole(request):
                if hard:
                    _reset(writer)
                return b""
            return await reader.read()
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(_length(head))


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0] or 0)


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    return bool(end) and len(body) >= _length(head)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Let a connection end with a reset, not with a polite end."""
    sock = writer.get_extra_info("socket")
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
