"""Addresses of servers, which are written into tasks and stay there."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final

from sfumato.errors import InputError

__all__ = ["refuse_address"]

_ADDRESS: Final = re.compile(
    r"https?://(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?)"
    r"(?::(?P<port>[0-9]{1,5}))?(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?"
)
_LAST_PORT: Final = 65_535


def refuse_address(field: str, address: str) -> None:
    """Raise InputError unless an address has a scheme, a host, perhaps a port and a path.

    Parameters
    ----------
    field
        What the address is for, as it is called where it was typed.
    address
        The address.

    Examples
    --------
    >>> refuse_address("--url", "https://sums.example:8443/phones")
    >>> refuse_address("--url", "https://sums.example/?a=1")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: --url is 'https://sums.example/?a=1'; an address like ...

    """
    matched = _ADDRESS.fullmatch(address)
    if matched is None or not _is_host(matched["six"]) or not _is_port(matched["port"]):
        raise InputError(
            f"{field} is {address!r}; an address like https://sums.example:8443/path is expected, "
            "with http or https and a host, and without user, query or fragment."
        )


def _is_host(six: str | None) -> bool:
    try:
        return six is None or bool(IPv6Address(six).compressed)
    except ValueError:
        return False


def _is_port(port: str | None) -> bool:
    return port is None or 0 < int(port) <= _LAST_PORT
