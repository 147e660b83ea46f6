"""Wrapped private keys, which open nothing without a secret that is not in the store.

A wrapped key is encrypted with AES-256-GCM under a key that scrypt derives from the secret; the
task and the number of the key are authenticated with it, so that it cannot take the place of
another one. Whoever has a copy of the store, such as a stolen backup, opens no report with it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from sfumato.errors import InputError

__all__ = ["FORMER", "PRIVATE", "SECRET", "WRAPPED", "KeyWrapping", "secret_in"]

SECRET: Final = "SFUMATO_KEY_SECRET"  # noqa: S105 -- the name of a variable
"""The variable that holds the secret."""
FORMER: Final = "SFUMATO_FORMER_KEY_SECRET"
"""The variable that holds the secret from before, while it changes."""
SHORTEST: Final = 20
LARGEST_FILE: Final = 4096

PRIVATE: Final = 32
"""The number of bytes of a private key that is not wrapped."""
_VERSION: Final = b"\x01"
_SALT: Final = 16
_NONCE: Final = 12
_HEAD: Final = len(_VERSION) + _SALT + _NONCE
WRAPPED: Final = _HEAD + PRIVATE + 16
"""The number of bytes of a wrapped key."""


def secret_in(path: Path) -> str:
    """Return the secret in a file, without the end of its line; raise InputError if unreadable."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        text = content.decode()
    except (OSError, ValueError) as error:
        raise InputError(
            f"the secret of keys is in {path}, which cannot be read ({error}); one line of "
            "text is expected."
        ) from None
    return _checked(text.rstrip("\r\n"), f"the secret in {path}")


def _checked(secret: str, what: str) -> str:
    if not SHORTEST <= len(secret) <= LARGEST_FILE or not secret.isprintable():
        raise InputError(
            f"{what} has {len(secret)} characters; {SHORTEST} or more on one line are expected, as "
            "`openssl rand -base64 32` prints them."
        )
    return secret


@lru_cache(maxsize=64)
def _derived(secret: str, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=1 << 15, r=8, p=1).derive(secret.encode()))


@dataclass(frozen=True)
class KeyWrapping:
    """The way in which a collector keeps private keys: wrapped by a secret, or as they are.

    Parameters
    ----------
    secret
        The secret that wraps keys; empty if they are kept as they are.
    former
        The secret that wrapped keys before, if it has changed.

    Examples
    --------
    >>> wrapping, task_id = KeyWrapping("a secret of the operator"), bytes(32)
    >>> wrapped = wrapping.wrap(task_id, 7, bytes(32))
    >>> wrapping.unwrap(task_id, 7, wrapped) == bytes(32), len(wrapped) == WRAPPED
    (True, True)
    >>> KeyWrapping("another secret altogether").unwrap(task_id, 7, wrapped)
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: key 7 of task 000000000000 was wrapped with another secret than ...

    """

    secret: str = field(default="", repr=False)
    former: str = field(default="", repr=False)

    @classmethod
    def of(cls, file: Path | None = None, variables: Mapping[str, str] = os.environ) -> KeyWrapping:
        """Return the wrapping with the secret in a file or, if there is none, in the variables."""
        secrets = {name: variables.get(name, "") for name in (SECRET, FORMER)}
        checked = {name: text and _checked(text, name) for name, text in secrets.items()}
        return cls(secret_in(file) if file else checked[SECRET], checked[FORMER])

    @property
    def wraps(self) -> bool:
        """Whether private keys are wrapped."""
        return bool(self.secret)

    @cached_property
    def _salt(self) -> bytes:
        """The salt of all keys that this object wraps, since each costs a derivation."""
        return os.urandom(_SALT)

    def wrap(self, task_id: bytes, number: int, private: bytes) -> bytes:
        """Return a private key as it is to be kept."""
        if not self.wraps:
            return private
        nonce = os.urandom(_NONCE)
        sealed = _derived(self.secret, self._salt).encrypt(nonce, private, _about(task_id, number))
        return _VERSION + self._salt + nonce + sealed

    def unwrap(self, task_id: bytes, number: int, kept: bytes) -> bytes:
        """Return a private key from what is kept of it; raise InputError with another secret."""
        if len(kept) == PRIVATE:
            return kept
        known = [secret for secret in (self.secret, self.former) if secret]
        for secret in known:
            opened = _opened(secret, task_id, number, kept)
            if opened is not None:
                return opened
        name = f"key {number} of task {task_id.hex()[:12]}"
        if not known:
            raise InputError(
                f"{name} is wrapped, and there is no secret; the one that wrapped it is expected, "
                f"in {SECRET} or in a file."
            )
        raise InputError(
            f"{name} was wrapped with another secret than the one in {SECRET} or in the file; "
            f"while the secret changes, {FORMER} holds the one from before."
        )

    def unwrapped(self, task_id: bytes, keys: Mapping[int, bytes]) -> dict[int, bytes]:
        """Return all private keys of a task; InputError if the secret does not fit."""
        return {number: self.unwrap(task_id, number, kept) for number, kept in keys.items()}

    def rewrapped(self, task_id: bytes, keys: Mapping[int, bytes]) -> dict[int, bytes]:
        """Return the keys that are not kept as they are to be, as they are to be kept."""
        changed = {}
        for number, kept in keys.items():
            if len(kept) == (WRAPPED if self.wraps else PRIVATE) and (
                not self.wraps or _opened(self.secret, task_id, number, kept) is not None
            ):
                continue
            changed[number] = self.wrap(task_id, number, self.unwrap(task_id, number, kept))
        return changed


def _about(task_id: bytes, number: int) -> bytes:
    return b"sfumato key 1" + task_id + struct.pack("<I", number)


def _opened(secret: str, task_id: bytes, number: int, kept: bytes) -> bytes | None:
    if len(kept) != WRAPPED or kept[:1] != _VERSION:
        return None
    salt, nonce = kept[1 : 1 + _SALT], kept[1 + _SALT : _HEAD]
    try:
        return _derived(secret, salt).decrypt(nonce, kept[_HEAD:], _about(task_id, number))
    except InvalidTag:
        return None
