"""A task as it is handed to devices: what is asked, under which key, and where to send.

The *spec* is the task with everything written out that a device would otherwise have to choose
(the mix and all sizes) and the time at which it begins. Its hash is the task's id: whoever changes
anything in it has made another task. Keys and endpoints stand outside of the id, so that they can
be renewed; a report is bound to them by the spec's whole hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from sfumato.errors import InputError
from sfumato.wire.canonical import canonical
from sfumato.wire.reading import read_json
from sfumato.wire.sealing import Context, recipient

__all__ = ["LARGEST", "Published"]

LARGEST: Final = 1 << 20
"""Bytes of a published task, at most."""
MOST_KEYS: Final = 256
LONGEST_ENDPOINT: Final = 2048


@dataclass(frozen=True)
class Published:
    """A task that devices can join.

    Parameters
    ----------
    spec
        The whole task as plain data.
    keys
        The collector's public keys by key id; reports are sealed to the last one. None if the
        task's reports are not sealed.
    endpoint
        Where reports go.

    Examples
    --------
    >>> published = Published({"title": "t", "sealed": False}, {}, "http://localhost")
    >>> Published.parse(published.encode()) == published
    True

    """

    spec: Mapping[str, Any]
    keys: Mapping[int, bytes]
    endpoint: str

    @cached_property
    def task_id(self) -> bytes:
        """The hash of the spec."""
        return hashlib.sha256(canonical(self.spec)).digest()

    @cached_property
    def spec_hash(self) -> bytes:
        """The hash of the spec and the keys."""
        return hashlib.sha256(self.task_id + canonical(self._plain_keys())).digest()

    @property
    def context(self) -> Context:
        """What reports are bound to."""
        return Context(self.task_id, self.spec_hash)

    @property
    def key_id(self) -> int:
        """The key that reports are sealed to; 0 if they are not."""
        return max(self.keys, default=0)

    @cached_property
    def public_key(self) -> X25519PublicKey | None:
        """The same, as a key; raises InputError if nothing can be sealed to it."""
        return recipient(self.keys[self.key_id]) if self.keys else None

    def _plain_keys(self) -> list[list[Any]]:
        return [[name, key.hex()] for name, key in sorted(self.keys.items())]

    def encode(self) -> bytes:
        """Return the task as JSON."""
        data = {"spec": self.spec, "keys": self._plain_keys(), "endpoint": self.endpoint}
        return json.dumps(data).encode()

    @classmethod
    def parse(cls, data: bytes) -> Published:
        """Return the task of these bytes; raise InputError if they are none."""
        if len(data) > LARGEST:
            raise InputError(f"the task has {len(data):,} bytes; up to {LARGEST:,} are expected.")
        given = read_json(data, "the task")
        fields = {"spec": dict, "keys": list, "endpoint": str}
        for name, kind in fields.items():
            if not isinstance(given, dict) or not isinstance(given.get(name), kind):
                raise InputError(
                    f"the task has no proper field {name!r}; spec, keys and endpoint are expected."
                )
        keys = _keys(given["keys"])
        if keys:  # whatever came, a key that nothing can be sealed to is refused here
            recipient(keys[max(keys)])
        return cls(given["spec"], keys, _endpoint(given["endpoint"]))


def _keys(given: list[Any]) -> dict[int, bytes]:
    if len(given) > MOST_KEYS:
        raise InputError(f"keys has {len(given):,}; up to {MOST_KEYS} are expected.")
    keys = {}
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int:
            raise InputError("keys are not pairs of a number and a key in hexadecimal.")
        name, key = pair
        if not 0 < name < 1 << 32 or not re.fullmatch("[0-9a-f]{64}", str(key)):
            raise InputError("keys has one that is not 32 bytes under a number from 1 on.")
        keys[name] = bytes.fromhex(key)
    return keys


def _endpoint(given: str) -> str:
    if len(given) > LONGEST_ENDPOINT or not given.isprintable():
        raise InputError(
            f"endpoint has {len(given):,} characters, or one that cannot be printed; an address of "
            f"up to {LONGEST_ENDPOINT:,} is expected."
        )
    return given
