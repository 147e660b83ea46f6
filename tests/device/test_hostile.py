"""An app and its other tasks go on, whatever task it joins and whatever its journal says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.device.collecting import HOUR, published
from tests.device.hostile_scenes import ALWAYS, ASKED, DOCUMENTS, Scene, plain, plain_bytes, window

from sfumato.device import Device, Limits, errands, sdk
from sfumato.errors import BudgetError, ConfigurationError, InputError
from sfumato.wire.published import Published
from sfumato.wire.sealing import new_key


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        (DOCUMENTS[-3], {"kind": "horizon", "stream": "window"}),
        (DOCUMENTS[0], {"kind": "window", "stream": "weave"}),
        (DOCUMENTS[0], {"kind": "window", "stream": "flat"}),
        (DOCUMENTS[0], {"kind": "other"}),
    ],
)
def test_a_task_cannot_run_another_kind_of_stream_than_it_says(
    document: dict[str, Any], changes: dict[str, Any]
) -> None:
    document = document | {"spec": document["spec"] | changes}
    device = Device.open(":memory:", Limits(2.0))
    with pytest.raises(ConfigurationError, match=r"kind is '(horizon|window|other)'"):
        device.join(json.dumps(document).encode())
    assert device.left == 2.0


@pytest.mark.parametrize("stream", ["window", "topl"])
def test_what_an_owner_allows_hangs_on_the_promise_and_on_no_name(stream: str) -> None:
    """Owners who want a promise for ever would be asked window after window."""
    document = DOCUMENTS[-3]
    spec = {name: part for name, part in document["spec"].items() if name != "kind"}
    spec |= {"stream": stream, "bound": 9.0, "learning": 1, "limit": 64, "variant": "white"}
    if stream == "topl":
        spec["values"] = {"kind": "number", "low": 0, "high": 9}
    device = Device.open(":memory:", Limits(100.0, unsealed=True))
    with pytest.raises(BudgetError, match="for a window of time only"):
        device.join(json.dumps(document | {"spec": spec}).encode())
    assert device.left == 100.0


def test_a_renewed_task_brings_its_keys_and_nothing_else() -> None:
    document = plain(published(mix=ALWAYS)[0])
    scene = Scene(lambda _url, _batch: b'{"refused": []}')
    task = scene.device.join(json.dumps(document).encode())
    for name in ("periods", "period_seconds", "payload"):
        document["spec"][name] = float(document["spec"][name])  # the same to a hash
    document["keys"] = [[2, new_key().public_key().public_bytes_raw().hex()]]
    assert scene.device.join(json.dumps(document).encode()) == task
    scene.now = HOUR + 1.0
    flushed = scene.device.flush()
    assert not flushed.problems
    assert flushed.sent == 2
    kept = scene.device.journal.task(bytes.fromhex(task)).published
    assert list(Published.parse(kept).keys) == [2]


@pytest.mark.parametrize("title", ["a\ud800", "\x00", "x" * 201, 7, None, ["a"]])
def test_a_title_that_cannot_be_shown_is_refused_in_a_sentence(title: Any) -> None:
    document = plain(published()[0])
    document["spec"]["title"] = title
    device = Device.open(":memory:", Limits(2.0))
    with pytest.raises((InputError, ConfigurationError), match=r"title|surrogates"):
        device.join(json.dumps(document).encode())
    assert device.left == 2.0


def test_a_key_that_nothing_can_be_sealed_to_is_refused() -> None:
    document = plain(published()[0])
    document["keys"] = [[1, "00" * 32]]
    with pytest.raises(InputError, match="nothing can be sealed to it"):
        Device.open(":memory:", Limits(2.0)).join(json.dumps(document).encode())


def test_a_task_in_the_journal_that_cannot_be_read_stops_no_other() -> None:
    scene = Scene()
    other = scene.device.join(published(title="other")[0])
    with scene.device.journal.transaction():
        scene.device.journal.set_published(bytes.fromhex(other), b"{}")
    device = sdk.Device(
        scene.device.journal, scene.device.limits, scene.device.transport, scene.device.clock
    )
    scene.now = HOUR + 1.0
    device.observe("a", other)
    flushed = device.flush()
    assert list(flushed.problems) == [other]
    assert scene.arrived == [1]


@pytest.mark.parametrize("field", ["value", "sent", "stream", "held"])
def test_what_is_said_of_a_damaged_journal_quotes_no_value(field: str) -> None:
    """Apps log what went wrong, and send their logs home."""
    scene = Scene()
    made = window(ASKED[0]) if field == "held" else published(mix=ALWAYS)[0]
    task_id = bytes.fromhex(scene.device.join(made))
    journal = scene.device.journal
    joined = journal.task(task_id)
    assert field in joined.state
    wrong = {field: [753_951]} | ({"round": -2} if field == "held" else {})
    journal.step(task_id, joined.state | wrong, joined.chain)
    device = sdk.Device(journal, scene.device.limits, scene.device.transport, scene.device.clock)
    problem = device.flush().problems[task_id.hex()]
    assert "is damaged" in problem
    assert "753951" not in problem


def test_an_unforeseen_error_is_a_sentence_and_stops_no_other() -> None:
    def fail(url: str, batch: bytes | None) -> bytes:
        raise RecursionError(f"{url} {batch!r}" + "x" * 10_000)

    scene = Scene(fail)
    task = scene.device.join(plain_bytes(published(mix=ALWAYS)[0]))
    scene.now = HOUR + 1.0
    flushed = scene.device.flush()
    assert list(flushed.problems) == [task]
    assert "unforeseen" in flushed.problem
    assert len(flushed.problem) <= errands.LONGEST_PROBLEM
    assert scene.arrived == [1]


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf"), "1", True])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(InputError, match="limit is"):
        Device.open(":memory:", Limits(2.0)).flush(limit=limit)
