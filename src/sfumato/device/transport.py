"""How a device talks to a collector: two verbs, over HTTP by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable
from urllib.parse import SplitResult, urlsplit

from sfumato.errors import InputError
from sfumato.wire.published import LARGEST
from sfumato.wire.reading import read_json
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["Delivery", "Http", "Patient", "Transport", "Unreachable"]


class Unreachable(Exception):
    """Nobody answered, or not now; try again later."""


@dataclass(frozen=True)
class Delivery:
    """What became of a batch.

    Parameters
    ----------
    refused
        The reasons of reports that were refused, by place.
    key_id
        The key that new reports should be sealed to, if the collector has said so.

    """

    refused: Mapping[int, str] = field(default_factory=dict)
    key_id: int | None = None


class Transport(Protocol):
    """What a device needs of the world."""

    def fetch(self, url: str) -> bytes:
        """Return what is at an address: a published task, or an open question."""

    def send(self, url: str, batch: bytes) -> Delivery:
        """Hand a batch over; return once it is safe, or raise Unreachable."""


@runtime_checkable
class Patient(Protocol):
    """A transport that can be told how long an exchange may take."""

    def within(self, seconds: float) -> Transport:
        """Return the same transport, whose exchanges end within so many seconds each."""


@dataclass(frozen=True)
class Http:
    """By HTTP, with nothing but the standard library.

    An exchange is one request to the address itself: whoever answers with a redirect has not
    answered. Finding the host, connecting, sending and reading the answer take ``timeout`` seconds
    together, however slowly the other side sends.

    Parameters
    ----------
    timeout
        How many seconds an exchange takes, at most.

    """

    timeout: float = 10.0

    def within(self, seconds: float) -> Self:
        """Return the same transport, whose exchanges end within so many seconds each."""
        return replace(self, timeout=min(self.timeout, seconds))

    def fetch(self, url: str) -> bytes:
        """Return what is at an address."""
        return self._exchange(_checked(url), None)

    def send(self, url: str, batch: bytes) -> Delivery:
        """Hand a batch over."""
        try:
            address = _checked(url)
        except InputError as error:  # a task may say anything; an app that flushes is not stopped
            raise Unreachable(f"the task has no proper address ({error})") from error
        try:
            return _outcome(read_json(self._exchange(address, batch), "it"))
        except (InputError, KeyError, TypeError) as error:
            raise Unreachable(f"the answer makes no sense ({str(error)[:80]})") from error

    def _exchange(self, url: SplitResult, batch: bytes | None) -> bytes:
        # An app that has a way of its own, or nothing to send yet, does not pay for this one.
        from sfumato.device import http  # noqa: PLC0415

        kind = {} if batch is None else {"Content-Type": BATCH_TYPE}
        try:
            status, body = http.exchange(url, batch, kind, self.timeout, LARGEST)
        except (OSError, http.HTTPException, ValueError) as error:
            raise Unreachable(f"the collector cannot be reached ({str(error)[:120]})") from error
        if not 200 <= status < 300:
            raise Unreachable(f"the collector answered {status}")
        if len(body) > LARGEST:
            raise Unreachable("the answer is too long")
        return body


def _outcome(said: Any) -> Delivery:
    refused = {}
    for report in said["refused"]:
        place, reason = report["index"], report["reason"]
        if type(place) is not int or not isinstance(reason, str):
            raise TypeError("refused has no index and reason")
        refused[place] = reason
    key_id = said.get("key_id")
    return Delivery(refused, key_id if type(key_id) is int else None)


def _checked(url: str) -> SplitResult:
    wrong = InputError(f"url is {url[:200]!r}; one that begins with https:// is expected.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise wrong
    return parts
