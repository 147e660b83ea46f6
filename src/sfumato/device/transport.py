"""How a device talks to a collector: two verbs, over HTTP by default."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from sfumato.errors import InputError
from sfumato.wire.published import LARGEST
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["Http", "Outcome", "Transport", "Unreachable"]


class Unreachable(Exception):
    """Nobody answered, or not now; try again later."""


@dataclass(frozen=True)
class Outcome:
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

    def send(self, url: str, batch: bytes) -> Outcome:
        """Hand a batch over; return once it is safe, or raise Unreachable."""


@dataclass(frozen=True)
class Http:
    """By HTTP, with nothing but the standard library."""

    timeout: float = 10.0

    def fetch(self, url: str) -> bytes:
        """Return what is at an address."""
        return self._open(_checked(url), None)

    def send(self, url: str, batch: bytes) -> Outcome:
        """Hand a batch over."""
        try:
            address = _checked(url)
        except InputError as error:  # a task may say anything; an app that flushes is not stopped
            raise Unreachable(f"the task has no proper address ({error})") from error
        try:
            said = json.loads(self._open(address, batch))
            refused = {int(one["index"]): str(one["reason"]) for one in said["refused"]}
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise Unreachable(f"the answer makes no sense ({str(error)[:80]})") from error
        key_id = said.get("key_id")
        return Outcome(refused, key_id if type(key_id) is int else None)

    def _open(self, url: str, batch: bytes | None) -> bytes:
        # An app that has a way of its own, or nothing to send yet, does not pay for this one.
        import urllib.error  # noqa: PLC0415
        import urllib.request  # noqa: PLC0415
        from http.client import HTTPException  # noqa: PLC0415

        kind = {} if batch is None else {"Content-Type": BATCH_TYPE}
        request = urllib.request.Request(url, batch, kind)  # noqa: S310 -- checked
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                body: bytes = answer.read(LARGEST + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise Unreachable(f"the collector answered {error.code}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"the collector cannot be reached ({error})") from error
        if len(body) > LARGEST:
            raise Unreachable("the answer is too long")
        return body


def _checked(url: str) -> str:
    wrong = InputError(f"url is {url!r}; one that begins with https:// is expected.")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    return url
