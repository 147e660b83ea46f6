"""Sources whose bytes are a keystream of AES-256: secure, seeded and keyed."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from sfumato.errors import ConfigurationError, InsecureRandomness
from sfumato.randomness.source import Source
from sfumato.randomness.whole_numbers import BLOCK

__all__ = ["Keyed", "Secure", "Seeded", "refuse_seeded", "secure", "seeded"]

_POOL: Final = 1 << 16
_ZEROS: Final = bytes(1 << 20)
_NONCE: Final = bytes(16)


def _keystream(key: bytes, size: int) -> bytearray:
    """Return ``size`` bytes that look random to everybody without ``key``."""
    stream = Cipher(AES(key), CTR(_NONCE)).encryptor()
    keystream = bytearray(size + 16)  # update_into needs one spare block
    view = memoryview(keystream)
    for start in range(0, size, len(_ZEROS)):
        take = min(len(_ZEROS), size - start)
        stream.update_into(memoryview(_ZEROS)[:take], view[start : start + take + 15])
    view.release()
    del keystream[size:]
    return keystream


class Secure(Source):
    """AES-256-CTR keyed by the operating system, with fast key erasure; safe across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()
        if hasattr(os, "register_at_fork"):  # systems without it do not fork
            os.register_at_fork(after_in_child=self._after_fork)

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled, because two copies would return the same coins."""
        raise InsecureRandomness("a secure source cannot be copied; call secure() instead.")

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        """Start with a new key from the operating system."""
        self._key = os.urandom(32)
        self._pool = bytearray()
        self._used = 0

    def take(self, size: int) -> bytearray:
        """Return ``size`` new bytes and erase them here."""
        if size > _POOL // 4:  # a large block is made with its own key, used once
            return _keystream(bytes(self.take(32)), size)
        with self._lock:
            if self._used + size > len(self._pool):
                # Fast key erasure: the first bytes of the block replace the key that made it.
                self._pool = _keystream(self._key, _POOL)
                # New entropy is mixed in, so that a cloned machine gets different coins.
                fresh = zip(self._pool[:32], os.urandom(32), strict=True)
                self._key = bytes(one ^ other for one, other in fresh)
                self._pool[:32] = bytes(32)
                self._used = 32
            start, self._used = self._used, self._used + size
            taken = self._pool[start : self._used]
            self._pool[start : self._used] = bytes(size)
            return taken


class _Repeating(Source):
    """A source whose bytes can be drawn again with the same key."""

    def __init__(self, key: bytes) -> None:
        self._stream = Cipher(AES(key), CTR(_NONCE)).encryptor()

    def take(self, size: int) -> bytearray:
        """Return the next ``size`` bytes of the key's stream."""
        return bytearray(self._stream.update(bytes(size)))


class Seeded(_Repeating):
    """The same coins for the same seed, on every machine, for ever; for experiments and tests."""

    def __init__(self, seed: int) -> None:
        super().__init__(hashlib.sha256(b"sfumato seeded %d" % seed).digest())
        self.seed = seed


class Keyed(_Repeating):
    """The same coins for the same key and purpose, so that noise survives a crash.

    Whoever knows the key knows the coins, so a key must be kept as secret as the data that they
    protect, and erased as soon as nothing has to be drawn again. Randomizing a value uses the coins
    that are :meth:`bound` to it: the same value repeats its report, and another value gets
    independent coins.

    Examples
    --------
    >>> key = bytes(secure().take(32))
    >>> Keyed(key, "noise 1").take(8) == Keyed(key, "noise 1").take(8)
    True
    >>> Keyed(key, "noise 1").take(8) == Keyed(key, "noise 2").take(8)
    False
    >>> Keyed(key, "report").bound([3]).take(8) == Keyed(key, "report").bound([4]).take(8)
    False

    """

    def __init__(self, key: bytes, purpose: str) -> None:
        if len(key) != BLOCK:
            raise ConfigurationError(f"the key has {len(key)} bytes; {BLOCK} are expected.")
        super().__init__(hmac.digest(key, b"sfumato keyed " + purpose.encode(), "sha256"))
        self._key, self._purpose = key, purpose

    def bound(self, code: Iterable[int]) -> Source:
        """Return the coins of this key and purpose for one encoded value."""
        return Keyed(self._key, f"{self._purpose}, value {','.join(map(str, code))}")

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled, because two copies would return the same coins."""
        raise InsecureRandomness("a keyed source cannot be copied; make it from its key again.")


@cache
def secure() -> Secure:
    """Return the process-wide secure source.

    Examples
    --------
    >>> secure().words(3).size
    3

    """
    return Secure()


def seeded(seed: int) -> Seeded:
    """Return a source that repeats itself, for simulated people and never for real ones.

    Examples
    --------
    >>> bool((seeded(7).words(3) == seeded(7).words(3)).all())
    True

    """
    return Seeded(seed)


def refuse_seeded(source: Source) -> Source:
    """Return ``source`` if it is safe for real people; raise InsecureRandomness otherwise."""
    if not isinstance(source, (Secure, Keyed)):
        raise InsecureRandomness(
            f"the source is {type(source).__name__}, whose coins anyone can repeat; "
            "real data need randomness.secure()."
        )
    return source
