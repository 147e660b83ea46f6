"""Connections with limits of their own: how many, how long, and how much before a body."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sfumato.web.clients import Room

__all__ = ["MOST_CONNECTIONS", "Connection", "OpenConnections"]

MOST_CONNECTIONS: Final = 4096
"""The largest number of open connections; an address has no more of them than are left over."""

LONGEST_HEAD: Final = 1 << 14
"""The largest number of bytes of a request before its body, which uvicorn does not limit."""

MOST_HEADERS: Final = 100
MOST_PIPELINED: Final = 16
"""The largest number of requests of a connection that wait for the one before them."""

HEAD: Final = 10.0
"""The time in seconds in which the first head, or one that has begun, must arrive."""
IDLE: Final = 30.0
"""The time in seconds after a response in which the next request must begin."""
UNREAD: Final = 30.0
"""The time in seconds for which a client may read nothing of a response."""

SWEEP: Final = 1.0


class _Seat(Protocol):
    """A connection as the others see it."""

    host: str
    deadline: float | None

    def close_now(self) -> None:
        """Close the connection."""


class OpenConnections:
    """All open connections.

    Parameters
    ----------
    most
        The largest number of connections.
    ended
        Called for each connection that has ended, also if there was no room for it.

    """

    def __init__(
        self, most: int = MOST_CONNECTIONS, ended: Callable[[], None] = lambda: None
    ) -> None:
        self.ended = ended
        self._room = Room(most)
        self._open: set[_Seat] = set()
        self._idle: dict[str, OrderedDict[_Seat, None]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, seat: _Seat) -> bool:
        """Return whether there is room for a connection; for it the longest idle one may go.

        That is one of the same address, so that nobody makes others lose theirs.
        """
        while not self._room.take(seat.host, 1):
            idle = self._idle.get(seat.host)
            if not idle:
                return False
            oldest = next(iter(idle))
            self.leave(oldest)
            oldest.close_now()
        self._open.add(seat)
        self.rest(seat)
        return True

    def leave(self, seat: _Seat) -> None:
        """Forget a connection."""
        if seat in self._open:
            self._open.remove(seat)
            self._room.give_back(seat.host, 1)
            self.work(seat)

    def rest(self, seat: _Seat) -> None:
        """Note that a connection has no request that is being answered."""
        if seat in self._open:
            self._idle.setdefault(seat.host, OrderedDict())[seat] = None

    def work(self, seat: _Seat) -> None:
        """Note that a connection has a request that is being answered."""
        idle = self._idle.get(seat.host)
        if idle is not None:
            idle.pop(seat, None)
            if not idle:
                del self._idle[seat.host]

    def watch(self) -> None:
        """Close connections whose time is over, once a second from now on."""
        now = time.monotonic()
        for seat in [each for each in self._open if each.deadline and each.deadline < now]:
            self.leave(seat)
            seat.close_now()
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP, self.watch)

    def stop(self) -> None:
        """Stop watching."""
        if self._sweeping is not None:
            self._sweeping.cancel()


class Connection(HttpToolsProtocol):
    """One connection; a client that keeps it without a request, or with half of one, loses it."""

    others = OpenConnections()
    host = ""
    deadline: float | None = None
    has_left = False
    """Whether the client has gone, so that nobody waits for a response."""
    _heading = 0

    def connection_made(self, transport: Any) -> None:
        """Enter among the others, or close at once."""
        super().connection_made(transport)
        self.host = self.client[0] if self.client else ""
        self.deadline = time.monotonic() + HEAD
        if not self.others.enter(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the others."""
        self.has_left = True
        self.others.leave(self)
        self.others.ended()
        super().connection_lost(exc)

    def close_now(self) -> None:
        """Close the connection, whatever is still to be sent."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read data, and count the bytes since the last head, body or end of a request."""
        self._heading += len(data)
        super().data_received(data)
        if self._heading > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """Give the head of a request its time."""
        self.deadline = time.monotonic() + HEAD
        super().on_message_begin()
        self.scope["sfumato.connection"] = self  # type: ignore[typeddict-unknown-key]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, of a number that nobody needs more of."""
        if len(self.headers) >= MOST_HEADERS:
            raise HttpParserError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Reset the count, because a head has ended; whoever answers has time limits of its own."""
        if len(self.pipeline) >= MOST_PIPELINED:
            raise HttpParserError("too many requests at once")
        self._heading = 0
        self.deadline = None
        self.others.work(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Reset the count, because a body continues, which has its own limit."""
        self._heading = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Reset the count, because a request has ended; and listen, so that a leave is noticed."""
        self._heading = 0
        self.flow.resume_reading()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, but not for ever."""
        if not self.pipeline:
            self.deadline = time.monotonic() + IDLE
            self.others.rest(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Give a client that does not read its response some time."""
        self.deadline = time.monotonic() + UNREAD
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on, because the client has read."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        self.deadline = None if is_answering else time.monotonic() + IDLE
        super().resume_writing()
