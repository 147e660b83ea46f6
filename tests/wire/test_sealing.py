"""Seals open only as what they were sealed as; vectors for other languages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato.errors import ReportError
from sfumato.wire.reports import Layout, report_id
from sfumato.wire.sealing import OVERHEAD, Context, new_key, seal
from sfumato.wire.unsealing import open_sealed

VECTORS = Path(__file__).parent.parent / "vectors" / "reports"
TASK, SPEC, NAME = bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 16


def test_a_seal_opens_with_its_key_and_in_its_place_only() -> None:
    key, other = new_key(), new_key()
    sealed = seal(b"what is said", key.public_key(), Context(TASK, SPEC), NAME, 5)
    assert len(sealed) == len(b"what is said") + OVERHEAD
    assert open_sealed(sealed, key, Context(TASK, SPEC), NAME, 5) == b"what is said"
    wrong = [
        (sealed, other, Context(TASK, SPEC), NAME, 5),
        (sealed, key, Context(SPEC, SPEC), NAME, 5),
        (sealed, key, Context(TASK, TASK), NAME, 5),
        (sealed, key, Context(TASK, SPEC), bytes(16), 5),
        (sealed, key, Context(TASK, SPEC), NAME, 6),
        (sealed[:-1], key, Context(TASK, SPEC), NAME, 5),
        (b"", key, Context(TASK, SPEC), NAME, 5),
        (bytes(len(sealed)), key, Context(TASK, SPEC), NAME, 5),
    ]
    for arguments in wrong:
        with pytest.raises(ReportError, match="does not open"):
            open_sealed(*arguments)


@pytest.mark.parametrize("file", sorted(VECTORS.glob("*.json")), ids=lambda file: file.stem)
def test_vectors(file: Path) -> None:
    """What a device in another language must send, and what a collector must refuse."""
    vector = json.loads(file.read_text())
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["private_key"]))
    context = Context(bytes.fromhex(vector["task_id"]), bytes.fromhex(vector["spec_hash"]))
    name, period = bytes.fromhex(vector["report_id"]), vector["period"]
    if file.stem.startswith("bad_"):
        with pytest.raises(ReportError, match=f"^{re.escape(vector['refused'])}$"):
            open_sealed(bytes.fromhex(vector["sealed"]), key, context, name, period)
        return
    assert name == report_id(bytes.fromhex(vector["device_secret"]), context.task_id, period)
    content = open_sealed(bytes.fromhex(vector["sealed"]), key, context, name, period)
    layout = Layout(vector["payload_bytes"], OVERHEAD)
    said = layout.content(vector["span"], vector["block"], bytes.fromhex(vector["payload"]))
    assert content == said
