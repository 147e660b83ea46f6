"""Credentials of devices: opaque bytes, checked by a function, and dropped.

The operator names the function, as in ``--credentials package.module:function``; it gets the bytes
of a credential and returns whether their holder may send. Nothing else is ever done with them.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from importlib import import_module
from typing import Final

from sfumato.errors import InputError

__all__ = ["Check", "anybody", "check_named", "hmac_token", "new_hmac_token"]

Check = Callable[[bytes], bool]
"""A function that returns whether the holder of a credential may send reports."""

KEY: Final = "SFUMATO_CREDENTIAL_KEY"
"""The environment variable with the key of built-in tokens, in hexadecimal digits."""
NONCE: Final = 16


def anybody(credential: bytes) -> bool:
    """Return that everybody may send, with any credential or none."""
    del credential
    return True


def hmac_token(credential: bytes) -> bool:
    """Return whether a credential is a token that was made with the key of this shuffler."""
    nonce, tag = credential[:NONCE], credential[NONCE:]
    return len(nonce) == NONCE and hmac.compare_digest(tag, _tag(nonce))


def new_hmac_token() -> bytes:
    """Return a new token for a device, made with the key of this shuffler."""
    nonce = secrets.token_bytes(NONCE)
    return nonce + _tag(nonce)


def _tag(nonce: bytes) -> bytes:
    try:
        key = bytes.fromhex(os.environ.get(KEY, ""))
    except ValueError:
        key = b""
    if len(key) < 16:
        raise InputError(f"{KEY} is not set to 16 or more bytes in hexadecimal digits.")
    return hmac.digest(key, b"sfumato credential 1" + nonce, "sha256")


def check_named(name: str) -> Check:
    """Return the function of this name, as in ``package.module:function``."""
    module, _, attribute = name.partition(":")
    try:
        check: Check = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"credentials is {name!r}; package.module:function is expected ({error})."
        ) from None
    if check is hmac_token:
        _tag(bytes(NONCE))  # a missing key is told now, not to the first device
    return check
