"""Opening of sealed reports, by the collector alone; see :mod:`sfumato.wire.sealing`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato.errors import ReportError
from sfumato.wire.published import Published
from sfumato.wire.sealing import SUITE, Context

__all__ = ["Key", "open_sealed"]


@dataclass(frozen=True)
class Key:
    """A private key, and the context that reports sealed to it are bound to."""

    private: X25519PrivateKey = field(repr=False)
    context: Context

    @classmethod
    def of(cls, spec: Mapping[str, Any], name: int, private: bytes) -> Self:
        """Return one key of a task, with the context in which reports are sealed to it."""
        key = X25519PrivateKey.from_private_bytes(private)
        published = Published(spec, {name: key.public_key().public_bytes_raw()}, "")
        return cls(key, published.context)


def open_sealed(
    sealed: bytes, key: X25519PrivateKey, context: Context, report_id: bytes, period: int
) -> bytes:
    """Return the content; raise ReportError unless it was sealed to this key as this report.

    Examples
    --------
    >>> from sfumato.wire.sealing import new_key, seal
    >>> key, context = new_key(), Context(bytes(32), bytes(32))
    >>> sealed = seal(b"content", key.public_key(), context, bytes(16), 7)
    >>> open_sealed(sealed, key, context, bytes(16), 7)
    b'content'
    >>> open_sealed(sealed, key, context, bytes(16), 8)
    Traceback (most recent call last):
    ...
    sfumato.errors.ReportError: the seal does not open as this report of this task.

    """
    try:
        return SUITE.decrypt(sealed, key, info=context.info(report_id, period))
    except (InvalidTag, ValueError):
        raise ReportError("the seal does not open as this report of this task.") from None
