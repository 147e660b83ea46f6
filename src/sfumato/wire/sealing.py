"""Seals: only the collector can open a report, and only as the report that was sealed.

They are hybrid public-key encryption (HPKE, RFC 9180) with X25519, HKDF-SHA256 and AES-128-GCM. The
task, its whole spec, the report's id and its period are part of the seal's context, so a report
that is moved to another task, id or period does not open. Opening is a module of its own,
:mod:`~sfumato.wire.unsealing`, which a shuffler does not have.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sfumato.errors import InputError

__all__ = ["OVERHEAD", "SUITE", "Context", "new_key", "recipient", "seal"]

OVERHEAD: Final = 48
"""The number of bytes that a seal adds: the encapsulated key and the tag."""

SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
"""The algorithms of a seal."""


@dataclass(frozen=True)
class Context:
    """The task that a seal is bound to: its id, and the hash of its spec and keys."""

    task_id: bytes
    spec_hash: bytes

    def info(self, report_id: bytes, period: int) -> bytes:
        """Return the bytes that a seal binds a report to."""
        report = report_id + struct.pack("<I", period)
        return b"sfumato report 1" + self.task_id + self.spec_hash + report


def new_key() -> X25519PrivateKey:
    """Return a new private key for a collector."""
    return X25519PrivateKey.generate()


def recipient(key: bytes) -> X25519PublicKey:
    """Return the public key in these bytes; raise InputError if nothing can be sealed to it.

    With a few points of the curve everybody gets the same shared secret, so a seal to such a point
    hides nothing.

    Examples
    --------
    >>> recipient(bytes(32))
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: the public key is 000000000000...; nothing can be sealed to it.

    """
    try:
        public = X25519PublicKey.from_public_bytes(key)
        new_key().exchange(public)
    except ValueError:
        raise InputError(
            f"the public key is {key.hex()[:12]}...; nothing can be sealed to it."
        ) from None
    return public


def seal(
    content: bytes, key: X25519PublicKey, context: Context, report_id: bytes, period: int
) -> bytes:
    """Return the content sealed to a key and bound to this report of this task.

    Examples
    --------
    >>> key, context = new_key(), Context(bytes(32), bytes(32))
    >>> sealed = seal(b"content", key.public_key(), context, bytes(16), 7)
    >>> len(sealed) - len(b"content") == OVERHEAD
    True

    """
    return SUITE.encrypt(content, key, info=context.info(report_id, period))
