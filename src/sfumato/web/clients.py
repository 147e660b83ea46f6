"""Clients: who a request comes from, and the room that clients share.

Counts are kept in memory only, for as long as somebody holds something.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sfumato.errors import InputError

__all__ = ["Clients", "Room"]

HOUSE: Final = 64
"""The number of leading bits of an IPv6 address that one client has for itself."""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Clients:
    """Tells clients apart by their addresses.

    Parameters
    ----------
    proxies
        Addresses or networks of the proxies that are believed when they say for whom they ask.

    Examples
    --------
    >>> scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", b"1.2.3.4, 5.6.7.8")]}
    >>> Clients().of(scope), Clients(["10.0.0.0/8"]).of(scope)
    ('10.0.0.1', '5.6.7.8')

    """

    def __init__(self, proxies: Sequence[str] = ()) -> None:
        self._proxies = tuple(_network(proxy) for proxy in proxies)

    def of(self, scope: Any) -> str:
        """Return the client of an ASGI request; an empty text if it has no address."""
        host = scope["client"][0] if scope.get("client") else ""
        if self._proxies and self._is_proxy(host):
            host = self._behind(host, scope["headers"])
        return _house(host) if ":" in host else host

    def _is_proxy(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._proxies)

    def _behind(self, proxy: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """Return the address that a proxy names; its own if it names none, or two different ones.

        What the client itself wrote into a header stands to the left of what proxies add.
        """
        named = set()
        for header, split in ((b"x-forwarded-for", _plain), (b"forwarded", _forwarded)):
            values = [value.decode("latin-1") for name, value in headers if name == header]
            if values:
                hops = split(",".join(values))
                last = next((hop for hop in reversed(hops) if not self._is_proxy(hop)), proxy)
                named.add(last)
        (client,) = named if len(named) == 1 else (proxy,)
        try:
            ipaddress.ip_address(client)
        except ValueError:
            return proxy
        return client


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise InputError(
            f"a trusted proxy is {text[:60]!r}; an address such as 10.0.0.7 or a network such as "
            "10.0.0.0/8 is expected."
        ) from None


def _plain(header: str) -> list[str]:
    return [_bare(hop) for hop in header.split(",")]


def _forwarded(header: str) -> list[str]:
    """Return the ``for`` of each element of a header after RFC 7239."""
    hops = []
    for element in header.split(","):
        pairs = (pair.partition("=") for pair in element.split(";"))
        named = [value for name, _, value in pairs if name.strip().lower() == "for"]
        hops.append(_bare(named[0]) if named else "")
    return hops


def _bare(hop: str) -> str:
    """Return an address without quotes, brackets and port."""
    hop = hop.strip().strip('"')
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _house(host: str) -> str:
    """Return the part of an IPv6 address that one client has for itself."""
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), HOUSE), strict=False).network_address)


@dataclass
class Room:
    """Room that is shared: nobody may hold more than is left over.

    So whoever holds nothing finds room as long as any is left, and one who takes all that is to be
    had never has more than half.

    Parameters
    ----------
    most
        The room as a whole.

    Examples
    --------
    >>> room = Room(100)
    >>> room.take("a", 50), room.take("a", 1), room.take("b", 25), room.take("b", 1)
    (True, False, True, False)
    >>> room.give_back("a", 50)
    >>> room.take("b", 12)
    True

    """

    most: int
    held: int = 0
    _holders: dict[Hashable, int] = field(default_factory=dict)

    def take(self, holder: Hashable, amount: int, weight: int = 1) -> bool:
        """Return whether there is room; if so, it is taken.

        With a ``weight``, a holder may hold so many times what is left over.
        """
        own = self._holders.get(holder, 0) + amount
        left = self.most - self.held - amount
        if left < 0 or own > weight * left:
            return False
        self.held += amount
        self._holders[holder] = own
        return True

    def held_by(self, holder: Hashable) -> int:
        """Return how much of the room somebody holds."""
        return self._holders.get(holder, 0)

    def give_back(self, holder: Hashable, amount: int) -> None:
        """Return room that was taken."""
        self.held -= amount
        own = self._holders[holder] - amount
        if own:
            self._holders[holder] = own
        else:
            del self._holders[holder]
