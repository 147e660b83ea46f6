"""Chaff on its way: nothing links the messages of a device for who sees what is mixed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.shuffler.mixers import HERE, Mixer

from sfumato.device import Device, Limits
from sfumato.device.transport import Delivery
from sfumato.wire.reports import Batch

FEWEST = 30
CHAFF: dict[str, Any] = {
    "title": "Moves",
    "epsilon": 6.0,
    "periods": 3,
    "period": "10 seconds",
    "changes": 2,
    "values": {"kind": "moves", "items": 4},
    "chaff": {"messages": 3},
    "shuffle": {"url": HERE, "epsilon": 1.0, "delta": 0.01, "min_batch": FEWEST},
}


class Noting:
    """A device's line to the shuffler, which notes each upload."""

    def __init__(self, mixer: Mixer) -> None:
        self.mixer, self.uploads = mixer, []  # type: ignore[var-annotated]

    def fetch(self, url: str) -> bytes:
        client = self.mixer.client if url.startswith(HERE) else self.mixer.world.client
        return bytes(client.get("/" + url.split("/", 3)[3]).content)

    def send(self, url: str, body: bytes) -> Delivery:
        assert url.startswith(HERE)
        self.uploads.append(body)
        receipt = self.mixer.upload(body).json()
        return Delivery({each["index"]: each["reason"] for each in receipt["refused"]}, 1)


@pytest.fixture
def mixer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixer]:
    mixer = Mixer(tmp_path, monkeypatch, task=CHAFF)
    monkeypatch.setattr("sfumato.shuffler.front.TICK", 60.0)
    with mixer.world.client, mixer.client:
        yield mixer
    mixer.close()


def _devices(mixer: Mixer, n: int) -> list[tuple[Device, Noting]]:
    mixer.world.now = mixer.running.ends_at(0) + 1
    made = []
    for _ in range(n):
        line = Noting(mixer)
        device = Device.open(":memory:", Limits(8.0), line, lambda: mixer.world.now)
        device.join(f"http://testserver/v1/tasks/{mixer.running.name}")
        made.append((device, line))
    return made


def test_each_message_goes_alone_at_a_moment_of_its_own(mixer: Mixer) -> None:
    dummies = mixer.published.spec["dummies"]
    assert dummies > 0
    people = _devices(mixer, FEWEST + 4)
    moments: list[set[int]] = []
    for number, (device, line) in enumerate(people):
        (joined, *_) = device.log()
        assert f"at least {mixer.published.spec['min_messages']}" in joined
        mixer.world.now = mixer.running.ends_at(0) + 1
        device.observe([1, 0, -1, 0] if number % 2 else [0, 0, 0, 0])
        when = set()
        for tenth in range(41):
            mixer.world.now = mixer.running.ends_at(1) + tenth / 10
            before = len(line.uploads)
            device.flush()
            when |= {tenth} if len(line.uploads) > before else set()
        moments.append(when)
        line_of_period = [each for each in device.log() if "real or meaningless" in each]
        assert line_of_period
        device.close()
    # However many moves, a device has 1 + k messages: each is one upload with an id of its own.
    numbers = [len(line.uploads) for _, line in people]
    assert set(numbers) <= {1 + int(dummies), 2 + int(dummies)}
    uploads = [body for _, line in people for body in line.uploads]
    assert {Batch.head(body)[2] for body in uploads} == {1}
    assert len({len(body) for body in uploads}) == 1
    ids = [name for body in uploads for name in mixer.ids(body)]
    assert len(set(ids)) == len(ids)
    assert sum(map(len, moments)) > 1.5 * len(moments)  # not all at once
    # The collector counts them all, and divides by what each device sends.
    mixer.hand_on(1)
    assert mixer.world.store.participation(mixer.running.task_id) == {1: len(ids)}
    assert sorted(mixer.ids(mixer.left[0])) == sorted(ids)
    assert mixer.ids(mixer.left[0]) != ids


def test_as_many_messages_as_promised_devices_send_have_to_come(mixer: Mixer) -> None:
    """As many messages as ``min_batch`` would come from fewer devices, and do not leave."""
    least = mixer.published.spec["min_messages"]
    assert least > FEWEST
    people = _devices(mixer, FEWEST - 1)
    for device, _ in people:
        device.observe([0, 0, 0, 0])
    mixer.world.now = mixer.running.ends_at(1) + 4
    for device, _ in people:
        device.flush()
        device.close()
    sent = sum(len(line.uploads) for _, line in people)
    assert FEWEST < sent < least
    mixer.hand_on(1)
    assert not mixer.left
    assert mixer.holding.counts(mixer.running.task_id)["expired"] == sent


def test_a_collector_refuses_a_batch_of_too_few_messages(mixer: Mixer) -> None:
    people = _devices(mixer, FEWEST - 1)
    mixer.world.now = mixer.running.ends_at(1) + 4
    for device, _ in people:
        device.flush()
        device.close()
    bodies = [body for _, line in people for body in line.uploads]
    task = mixer.shuffler.tasks[mixer.running.task_id]
    reports = b"".join(Batch.records(body, task.report_bytes)[2][0] for body in bodies)
    held = np.frombuffer(reports, dtype=task.layout.report_dtype)
    body = Batch(mixer.running.task_id, 1, held).encode()
    token = {"Authorization": f"Bearer {mixer.world.tokens['shuffler']}"}
    answered = mixer.world.client.post(
        f"/v1/tasks/{mixer.running.name}/reports",
        content=body,
        headers={"Content-Type": "application/vnd.sfumato.reports", **token},
    )
    assert answered.status_code != 200
    assert "few" in answered.text
    assert not mixer.world.store.participation(mixer.running.task_id)


def test_a_log_says_what_all_tasks_promise_together(mixer: Mixer) -> None:
    """The promise about mixed reports, and the local one of a task that is not mixed."""
    device = Device.open(":memory:", Limits(20.0), Noting(mixer), lambda: mixer.world.now)
    device.join(f"http://testserver/v1/tasks/{mixer.running.name}")
    assert not any(line.startswith("All tasks together") for line in device.log())
    other = mixer.world.open
    device.join(f"http://testserver/v1/tasks/{other.name}")
    (line,) = [line for line in device.log() if line.startswith("All tasks together")]
    epsilon = float(line.split()[4])
    local = other.protocol.guarantee.epsilon
    assert local < epsilon <= 1 + local
    assert "delta 0.0201 hold against who sees" in line
    device.close()


WOVEN: dict[str, Any] = CHAFF | {
    "values": {"kind": "binary"},
    "periods": 12,
    "mix": {"snapshot": 0.2, "1": 0.8},
    "shuffle": {"url": HERE, "epsilon": 0.5, "delta": 0.01, "min_batch": FEWEST},
}


def test_dummies_on_other_threads_leave_the_device_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device sends its dummies also in a period in which nothing of its own is due."""
    mixer = Mixer(tmp_path, monkeypatch, task=WOVEN)
    monkeypatch.setattr("sfumato.shuffler.front.TICK", 60.0)
    with mixer.world.client, mixer.client:
        dummies = mixer.published.spec["dummies"]
        assert dummies > 0
        people = _devices(mixer, 60)
        for period in (1, 2):
            for device, _ in people:
                device.observe(period - 1)
            mixer.world.now = mixer.running.ends_at(period) + 4
            for device, _ in people:
                device.flush()
            mixer.hand_on(period)
        uploads = [line.uploads for _, line in people]
        stream: Any = mixer.running.protocol
        shares = [
            share
            for thread, share in stream.threads()
            for _, end in stream.edges(thread)
            if end <= 2
        ]
        assert sum(map(len, uploads)) == pytest.approx(60 * sum(shares), rel=0.2)
        assert len({len(body) for each in uploads for body in each}) == 1
        ids = [name for each in uploads for body in each for name in mixer.ids(body)]
        assert len(set(ids)) == len(ids)
        counted = mixer.world.store.participation(mixer.running.task_id)
        least = mixer.published.spec["min_messages"]
        for number in counted.values():
            assert number >= least
        for device, _ in people:
            assert any("real or meaningless" in line for line in device.log())
            device.close()
    mixer.close()
