"""A published task: what devices are asked, the key to seal to, and the address to send to.

The *spec* is the task with everything written out that a device would otherwise have to choose
(the mix and all sizes), the time at which it begins and the address that reports go to. Its hash is
the task's id: any change makes another task. Keys are not part of the id, so that they can be
renewed; a report is bound to them by the hash of spec and keys.

Specs of format 1 have no address in them, and a ``kind`` instead of the name of a stream. They can
still be read; the server that publishes them names the address for reports.
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
"""The largest number of bytes of a published task."""
MOST_KEYS: Final = 256
LONGEST_ENDPOINT: Final = 2048
LATEST: Final = 1 << 32
FORMATS: Final = (1, 2)
"""The formats of specs that can be read."""


@dataclass(frozen=True)
class Published:
    """A task that devices can join.

    Parameters
    ----------
    spec
        The whole task as plain data.
    keys
        The collector's public keys by key id; reports are sealed to the last one. Empty if the
        task's reports are not sealed.
    endpoint
        The address that reports go to; if the spec names one, that is used.
    last_period
        The last period of the task, if it was ended before its time; None if it goes on. It is not
        part of the id, and devices send nothing of later periods.

    Examples
    --------
    >>> published = Published({"title": "t", "sealed": False}, {}, "http://localhost")
    >>> Published.parse(published.encode()) == published
    True

    """

    spec: Mapping[str, Any]
    keys: Mapping[int, bytes]
    endpoint: str
    last_period: int | None = None

    @classmethod
    def of(cls, spec: Mapping[str, Any], keys: Mapping[int, bytes]) -> Published:
        """Return a task whose reports go to the address in its spec.

        Examples
        --------
        >>> spec = {"format": 2, "sealed": False, "endpoint": "https://here/{task}"}
        >>> Published.of(spec, {}).endpoint[:32]
        'https://here/0adcc459216b879269a'

        """
        return cls(spec, keys, _addressed(spec) or "")

    @cached_property
    def task_id(self) -> bytes:
        """The SHA-256 hash of the spec, which is the task's id."""
        return _hash(self.spec)

    @cached_property
    def spec_hash(self) -> bytes:
        """The SHA-256 hash of the spec and the keys."""
        return hashlib.sha256(self.task_id + canonical(self._plain_keys())).digest()

    @property
    def shuffle(self) -> dict[str, Any] | None:
        """The promise about shuffled reports as plain data; None if they are not shuffled.

        It is empty if a stranger's task has something else there, which no device takes.
        """
        table = self.spec.get("shuffle")
        if table is None:
            return None
        try:
            return dict(table)  # a table, or the list of its pairs
        except (TypeError, ValueError):
            return {}

    @property
    def addresses(self) -> tuple[str, str]:
        """The addresses of the shuffler and the collector, if the spec names them."""
        return str((self.shuffle or {}).get("url", "")), str(self.spec.get("collector", ""))

    @property
    def context(self) -> Context:
        """The task id and hash that the seals of reports are bound to."""
        return Context(self.task_id, self.spec_hash)

    @property
    def key_id(self) -> int:
        """The number of the key that reports are sealed to; 0 if they are not sealed."""
        return max(self.keys, default=0)

    @cached_property
    def public_key(self) -> X25519PublicKey | None:
        """The key that reports are sealed to; InputError if nothing can be sealed to it."""
        return recipient(self.keys[self.key_id]) if self.keys else None

    @property
    def periods(self) -> int:
        """The number of periods of which devices send something."""
        periods = int(self.spec["periods"])
        return periods if self.last_period is None else min(periods, self.last_period)

    def _plain_keys(self) -> list[list[Any]]:
        return [[name, key.hex()] for name, key in sorted(self.keys.items())]

    def encode(self) -> bytes:
        """Return the task as JSON."""
        data = {"spec": self.spec, "keys": self._plain_keys(), "endpoint": self.endpoint}
        end = {} if self.last_period is None else {"last_period": self.last_period}
        return json.dumps(data | end).encode()

    @classmethod
    def parse(cls, data: bytes) -> Published:
        """Return the published task in these bytes; raise InputError if they are not one."""
        if len(data) > LARGEST:
            raise InputError(f"the task has {len(data):,} bytes; up to {LARGEST:,} are expected.")
        task = read_json(data, "the task")
        fields = {"spec": dict, "keys": list, "endpoint": str}
        for name, kind in fields.items():
            if not isinstance(task, dict) or not isinstance(task.get(name), kind):
                raise InputError(
                    f"the task has no proper field {name!r}; spec, keys and endpoint are expected."
                )
        if task["spec"].get("format", 1) not in FORMATS:
            raise InputError(
                f"the task has format {str(task['spec']['format'])[:40]!r}; "
                f"{' and '.join(map(str, FORMATS))} are known here."
            )
        endpoint = _endpoint(task["endpoint"])
        if _addressed(task["spec"]) not in (None, endpoint):
            raise InputError(
                f"the task's endpoint is {endpoint[:80]!r}; its spec says "
                f"{str(task['spec']['endpoint'])[:80]!r}, and reports go nowhere else."
            )
        keys = _keys(task["keys"])
        if keys:  # a key that nothing can be sealed to is refused here
            recipient(keys[max(keys)])
        return cls(task["spec"], keys, endpoint, _last_period(task.get("last_period")))


def _hash(spec: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(canonical(spec)).digest()


def _addressed(spec: Mapping[str, Any]) -> str | None:
    """Return the address for reports that a spec names; None if it names none."""
    if "endpoint" not in spec:
        return None
    return str(spec["endpoint"]).replace("{task}", _hash(spec).hex())


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


def _last_period(given: Any) -> int | None:
    if given is not None and (type(given) is not int or not 0 <= given < LATEST):
        raise InputError(
            f"last_period is {str(given)[:40]!r}; the number of a period, or 0, is expected."
        )
    return given


def _endpoint(given: str) -> str:
    if len(given) > LONGEST_ENDPOINT or not given.isprintable():
        raise InputError(
            f"endpoint has {len(given):,} characters, or one that cannot be printed; an address of "
            f"up to {LONGEST_ENDPOINT:,} is expected."
        )
    return given
