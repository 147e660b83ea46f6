"""Where clients ask: quick answers at one desk, those that take long at another."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, TypeVar

from starlette.requests import Request

from sfumato.service.effort import TakesLong
from sfumato.service.lane import Lane, NotBegun
from sfumato.web.clients import Clients, Room
from sfumato.web.problems import Refused

__all__ = ["Desk", "Desks", "has_left"]

T = TypeVar("T")

MOST_QUESTIONS: Final = 64
"""The largest number of questions and pages that wait at a desk; of these, a client has no more
than are left over.
"""

QUICK: Final = 2
"""The number of threads for what takes moments; what takes long has one."""


class Desk:
    """Threads that work for clients in turns, and room for those who wait.

    Parameters
    ----------
    threads
        The number of threads.
    name
        The name of the threads.
    most
        The largest number of requests that wait.
    clients
        Tells clients apart.

    """

    def __init__(self, threads: int, name: str, most: int, clients: Clients) -> None:
        self.lane = Lane(threads, name)
        self._room = Room(most)
        self._clients = clients

    async def ask(self, request: Request, work: Callable[[], T], key: Hashable = None) -> T:
        """Return what a function finds out for a client; raise Refused if too much waits.

        Parameters
        ----------
        request
            The request of the client.
        work
            The function.
        key
            What it finds out, if that is the same for all who ask; it is then found out once.

        """
        client = self._clients.of(request.scope)
        if not self._room.take(client, 1):
            raise Refused("busy", "Too many questions wait; try again.", {"Retry-After": "2"})
        try:
            return await self.lane.ask(client, work, key, partial(has_left, request))
        except NotBegun:
            raise Refused("busy", "Nothing is answered any more; try again.") from None
        finally:
            self._room.give_back(client, 1)

    def stop(self) -> None:
        """Begin nothing new."""
        self.lane.stop()


class Desks:
    """The desk of quick answers, and the one of long work, at which others do not wait.

    Parameters
    ----------
    clients
        Tells clients apart.

    """

    def __init__(self, clients: Clients) -> None:
        self.quick = Desk(QUICK, "desk", MOST_QUESTIONS, clients)
        self.long = Desk(1, "long", MOST_QUESTIONS, clients)

    async def ask(self, request: Request, work: Callable[[bool], T], key: Hashable = None) -> T:
        """Return what a function finds out for a client, at the desk where it belongs.

        The function is called with True, and raises TakesLong if it is not quick; it is then called
        with False at the desk of long work. For ``key`` see :meth:`Desk.ask`.
        """
        try:
            return await self.quick.ask(request, partial(work, True))  # noqa: FBT003
        except TakesLong:
            return await self.long.ask(request, partial(work, False), key)  # noqa: FBT003

    def stop(self) -> None:
        """Begin nothing new."""
        self.quick.stop()
        self.long.stop()


def has_left(request: Request) -> bool:
    """Return whether the client has gone, so that nobody waits for a response."""
    connection: Any = request.scope.get("sfumato.connection")
    return connection is not None and connection.has_left
