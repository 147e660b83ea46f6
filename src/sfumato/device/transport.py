"""The transport between a device and a collector: two methods, over HTTP by default."""

from __future__ import annotations

import base64
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
    """The collector did not answer, or not now; try again later."""


@dataclass(frozen=True)
class Delivery:
    """The result of sending a batch.

    Parameters
    ----------
    refused
        The reasons of refused reports, by their index in the batch.
    key_id
        The number of the key for new reports; None if the collector did not name one.
    has_ended
        Whether the collector says that the task was ended before its time.

    """

    refused: Mapping[int, str] = field(default_factory=dict)
    key_id: int | None = None
    has_ended: bool = False


class Transport(Protocol):
    """The connection of a device to collectors."""

    def fetch(self, url: str) -> bytes:
        """Return the content at an address: a published task, or an open question."""

    def send(self, url: str, batch: bytes) -> Delivery:
        """Send a batch; return when the collector has stored it, or raise Unreachable."""


@runtime_checkable
class Patient(Protocol):
    """A transport whose exchanges can be limited in time."""

    def within(self, seconds: float) -> Transport:
        """Return the same transport, with at most ``seconds`` seconds for each exchange."""


@dataclass(frozen=True)
class Http:
    """A transport over HTTP that only uses the standard library.

    An exchange is one request to the address itself; a redirect counts as no answer. Looking up the
    host, connecting, sending and reading the response take at most ``timeout`` seconds together,
    however slowly the other side sends.

    Parameters
    ----------
    timeout
        The longest time of an exchange in seconds.
    credential
        What a shuffler asks for before it takes reports; opaque bytes, sent with reports only.

    """

    timeout: float = 10.0
    credential: bytes = field(default=b"", repr=False)

    def within(self, seconds: float) -> Self:
        """Return the same transport, with at most ``seconds`` seconds for each exchange."""
        return replace(self, timeout=min(self.timeout, seconds))

    def fetch(self, url: str) -> bytes:
        """Return the content at an address."""
        return self._exchange(_checked(url), None)

    def send(self, url: str, batch: bytes) -> Delivery:
        """Send a batch; return when the collector has stored it, or raise Unreachable."""
        try:
            address = _checked(url)
        # A task may name any address, and that must not stop an app that flushes.
        except InputError as error:
            raise Unreachable(f"the task has no proper address ({error})") from error
        try:
            return _outcome(read_json(self._exchange(address, batch), "it"))
        except (InputError, KeyError, TypeError) as error:
            raise Unreachable(f"the answer makes no sense ({str(error)[:80]})") from error

    def _exchange(self, url: SplitResult, batch: bytes | None) -> bytes:
        # An app that has its own transport, or nothing to send yet, does not import this one.
        from sfumato.wire import exchanging  # noqa: PLC0415

        kind = {} if batch is None else {"Content-Type": BATCH_TYPE}
        if batch is not None and self.credential:
            kind["Authorization"] = f"Bearer {base64.b64encode(self.credential).decode()}"
        try:
            status, body = exchanging.exchange(url, batch, kind, self.timeout, LARGEST)
        except (OSError, exchanging.HTTPException, ValueError) as error:
            raise Unreachable(f"the collector cannot be reached ({str(error)[:120]})") from error
        if not 200 <= status < 300:
            raise Unreachable(f"the collector answered {status}")
        if len(body) > LARGEST:
            raise Unreachable("the answer is too long")
        return body


def _outcome(said: Any) -> Delivery:
    refused = {}
    for report in said["refused"]:
        index, reason = report["index"], report["reason"]
        if type(index) is not int or not isinstance(reason, str):
            raise TypeError("refused has no index and reason")
        refused[index] = reason
    key_id = said.get("key_id")
    has_ended = said.get("last_period") is not None
    return Delivery(refused, key_id if type(key_id) is int else None, has_ended)


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
