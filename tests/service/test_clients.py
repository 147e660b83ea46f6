"""Who a request comes from, and how bodies share the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from sfumato.errors import InputError
from sfumato.web.clients import Clients, Room
from sfumato.web.intake_limits import Gate
from sfumato.web.problems import Refused

PROXIES = ["10.0.0.0/8", "2001:db8:1::/48"]


def _scope(host: str, *headers: tuple[str, str]) -> dict[str, Any]:
    return {"client": (host, 5), "headers": [(a.encode(), b.encode()) for a, b in headers]}


@pytest.mark.parametrize(
    ("host", "headers", "client"),
    [
        ("192.0.2.1", [("x-forwarded-for", "198.51.100.7")], "192.0.2.1"),  # not a proxy
        ("10.1.1.1", [("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
        ("10.1.1.1", [("x-forwarded-for", "1.1.1.1, 198.51.100.7")], "198.51.100.7"),  # forged
        ("10.1.1.1", [("x-forwarded-for", "198.51.100.7, 10.2.2.2")], "198.51.100.7"),
        ("10.1.1.1", [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2")], "2.2.2.2"),
        ("10.1.1.1", [("forwarded", 'for="[2001:db8:9::1]:47"; proto=https')], "2001:db8:9::"),
        ("10.1.1.1", [("forwarded", "for=1.1.1.1, for=198.51.100.7:80")], "198.51.100.7"),
        # One of the two may be the client's own; who sends both and differs is the proxy's guest.
        ("10.1.1.1", [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "2.2.2.2")], "10.1.1.1"),
        ("10.1.1.1", [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "1.1.1.1")], "1.1.1.1"),
        ("10.1.1.1", [("x-forwarded-for", "a secret")], "10.1.1.1"),
        ("10.1.1.1", [("forwarded", "by=1.1.1.1")], "10.1.1.1"),
        ("10.1.1.1", [], "10.1.1.1"),
        ("::ffff:10.1.1.1", [("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
        ("2001:db8:1::5", [("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
        ("2001:db8:2:3:4:5:6:7", [], "2001:db8:2:3::"),  # one house, however many addresses
        ("testclient", [], "testclient"),
    ],
)
def test_a_client_is_who_the_last_trusted_proxy_saw(
    host: str, headers: list[tuple[str, str]], client: str
) -> None:
    assert Clients(PROXIES).of(_scope(host, *headers)) == client


def test_without_proxies_headers_say_nothing() -> None:
    scope = _scope("10.1.1.1", ("x-forwarded-for", "198.51.100.7"))
    assert Clients().of(scope) == "10.1.1.1"
    with pytest.raises(InputError, match="a trusted proxy is 'here'"):
        Clients(["here"])


def test_room_is_left_for_whoever_holds_nothing() -> None:
    room = Room(1000)
    for holder in range(6):
        while room.take(holder, 1):
            pass
    assert room.take("new", 1)
    room = Room(1000)
    assert room.take("shuffler", 800, weight=4)
    assert not room.take("shuffler", 1, weight=4)
    assert room.take("device", 100)


class _Body:
    """A body that arrives in parts, with pauses."""

    def __init__(self, parts: Iterable[bytes], pause: float = 0.0) -> None:
        self._parts = list(parts)
        self._pause = pause

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self._pause)
        part = self._parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self._parts)}


def _read(gate: Gate, body: _Body, length: int, client: str = "a") -> bytes:
    return asyncio.run(gate.read(body.receive, length, client))


def _problem(gate: Gate, body: _Body, length: int, client: str = "a") -> str:
    with pytest.raises(Refused) as caught:
        _read(gate, body, length, client)
    return caught.value.name


def test_bodies_count_by_what_has_arrived_and_leave_nothing_behind() -> None:
    gate = Gate(Room(100))
    assert _read(gate, _Body([b"ab", b"", b"cd"]), 4) == b"abcd"
    assert gate.room.held == 4
    gate.leave("a", 4)
    # Announced bytes are not held; those that have arrived are, up to a half.
    assert _problem(gate, _Body([b"x" * 40, b"x" * 40]), 80) == "too-many"
    assert _problem(gate, _Body([b"ab", b"cd"]), 3) == "too-large"
    gate = Gate(gate.room, patience=0.3, pause=0.1)
    assert _problem(gate, _Body([b"ab", b"cd"], pause=0.2), 4) == "too-slow"
    assert _problem(gate, _Body([b"a"] * 20, pause=0.05), 20) == "too-slow"
    assert gate.room.held == 0


def test_silent_bodies_hold_no_room() -> None:
    """Eight that announce much and stay silent leave all room to others."""

    async def scene() -> tuple[bytes, int]:
        gate = Gate(Room(1 << 20), pause=5.0)

        async def silent() -> Any:
            await asyncio.Event().wait()

        reading = [asyncio.create_task(gate.read(silent, 8 << 20, "evil")) for _ in range(8)]
        await asyncio.sleep(0)
        body = await gate.read(_Body([b"x" * 1000]).receive, 1000, "honest")
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        return body, gate.room.held

    body, held = asyncio.run(scene())
    assert len(body) == held == 1000
