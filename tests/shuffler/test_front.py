"""The shuffler's addresses: what devices may do there, and what nobody may."""

from __future__ import annotations

import base64
import logging
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from rich.console import Console
from starlette.testclient import TestClient
from tests.service.fleets import Fleet, batch
from tests.shuffler.mixers import HERE, LEAST, TASK, Mixer

from sfumato import catalog
from sfumato.cli import shuffle_command
from sfumato.device import Device, Limits
from sfumato.device.transport import Delivery, Unreachable
from sfumato.errors import BudgetError, ConfigurationError, InputError
from sfumato.shuffler import credentials
from sfumato.shuffler import front as front_module
from sfumato.shuffler.front import OPERATOR, Front, make_front
from sfumato.wire.published import Published
from sfumato.wire.reports import BATCH_TYPE


@pytest.fixture
def mixer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixer]:
    mixer = Mixer(tmp_path, monkeypatch)
    monkeypatch.setattr("sfumato.shuffler.front.TICK", 60.0)
    with mixer.world.client, mixer.client:
        yield mixer
    mixer.close()


def _problem(answered: Any, status: int, name: str) -> str:
    assert answered.status_code == status, answered.text
    problem = answered.json()
    assert problem["type"] == f"urn:sfumato:problem:{name}"
    detail: str = problem["detail"]
    assert detail.endswith(".")
    return detail


def test_devices_fetch_the_task_and_send_one_report_at_a_time(mixer: Mixer) -> None:
    fetched = mixer.client.get(f"/v1/tasks/{mixer.running.name}")
    assert Published.parse(fetched.content) == mixer.published
    assert mixer.published.endpoint == f"{HERE}/v1/tasks/{mixer.running.name}/reports"
    asked = mixer.client.get(f"/v1/tasks/{mixer.running.name}/question")
    assert asked.json() == {"version": 1, "question": None}
    mixer.end_of(1)
    bodies = mixer.bodies(Fleet(mixer.running, LEAST + 3))
    for body in bodies:
        receipt = mixer.upload(body).json()
        counts = {"accepted": 1, "repeated": 0, "refused": []}
        assert receipt == counts | {"key_id": mixer.published.key_id}
    assert mixer.upload(bodies[0]).json()["repeated"] == 1
    mixer.hand_on(1)
    assert mixer.world.store.participation(mixer.running.task_id) == {1: LEAST + 3}
    assert mixer.client.get("/healthz").json() == {"status": "ok"}
    for shown in ({}, {"Authorization": f"Bearer {mixer.world.tokens['shuffler']}"}):
        _problem(mixer.client.get("/v1/counts", headers=shown), 401, "no-token")
    with TestClient(make_front(Front(mixer.collecting, operator="mine"))) as client:
        told = client.get("/v1/counts", headers={"Authorization": "Bearer mine"}).json()
        _problem(client.get("/v1/counts", headers={"Authorization": "Bearer "}), 401, "no-token")
    assert told == {
        "problem": "",
        "tasks": {
            mixer.running.name: {
                "title": TASK["title"],
                "period": 2,
                "periods": 3,
                "min_batch": LEAST,
                "waiting": 0,
                "leaving": 0,
                "counts": {"acknowledged": LEAST + 3, "counted": LEAST + 3},
            }
        },
    }


def test_an_operator_sees_all_tasks(mixer: Mixer, monkeypatch: pytest.MonkeyPatch) -> None:
    mixer.collecting.fetch(mixer.running.task_id)
    spec = dict(mixer.published.spec) | {"title": "Other\x1b[31m"}  # a collector may be hostile
    other = mixer.shuffler.learn(Published.of(spec, mixer.published.keys))
    mixer.end_of(1)
    mixer.take(mixer.bodies(Fleet(mixer.running, LEAST - 1)))
    client = TestClient(make_front(Front(mixer.collecting, operator="mine")))

    def exchange(url: Any, _: Any, headers: dict[str, str], *__: Any) -> tuple[int, bytes]:
        answered = client.get(url.path, headers=headers)
        return answered.status_code, answered.content

    monkeypatch.setattr("sfumato.shuffler.handing_on.exchange", exchange)
    monkeypatch.delenv(OPERATOR, raising=False)
    with pytest.raises(InputError, match="does not know the operator's token"):
        shuffle_command.status(shuffle_command.StatusOptions())
    monkeypatch.setenv(OPERATOR, "mine")
    shown = shuffle_command.status(shuffle_command.StatusOptions())
    assert shown.record["tasks"][mixer.running.name]["waiting"] == LEAST - 1
    console = Console(file=StringIO(), width=120)
    console.print(*shown.text)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    (line,) = [line for line in text.splitlines() if mixer.running.name[:8] in line]
    assert line.split()[-8:] == ["2/3", str(LEAST), str(LEAST - 1), "0", str(LEAST - 1), *"000"]
    assert other.task_id.hex()[:8] in text
    assert "\x1b" not in text


def test_hostile_input_gets_one_sentence_and_changes_nothing(mixer: Mixer) -> None:
    mixer.end_of(1)
    url = f"/v1/tasks/{mixer.running.name}/reports"
    good = mixer.bodies(Fleet(mixer.running, 1))[0]
    kind = {"Content-Type": BATCH_TYPE}

    def post(address: str, body: Any, headers: dict[str, str] = kind) -> Any:
        return mixer.client.post(address, content=body, headers=headers)

    for body in (b"", b"SFR1", b"nonsense" * 20, good[:-1], good + b"x", good[:40] + bytes(4)):
        _problem(post(url, body), 400, "not-a-batch")
    _problem(post(url, good, {"Content-Type": "text/plain"}), 415, "wrong-type")
    _problem(post(url, bytes((8 << 20) + 1)), 413, "too-large")
    _problem(post(url, iter([b"SF", b"R1"])), 411, "length-needed")
    for name in ("0" * 64, "x", "%00", "0" * 63):
        _problem(post(f"/v1/tasks/{name}/reports", good), 404, "unknown-task")
        _problem(mixer.client.get(f"/v1/tasks/{name}"), 404, "unknown-task")
        _problem(mixer.client.get(f"/v1/tasks/{name}/question"), 404, "unknown-task")
    _problem(mixer.client.get("/v1/tasks"), 404, "not-found")
    _problem(mixer.client.get("/tasks/x"), 404, "not-found")
    _problem(mixer.client.delete(url), 405, "wrong-method")
    swapped = {
        "wrong_task": good[:4] + bytes(32) + good[36:],
        "unknown_key": good[:36] + (7).to_bytes(4, "little") + good[40:],
        "invalid": good[:60] + (9).to_bytes(4, "little") + good[64:],
        "future": good[:60] + (3).to_bytes(4, "little") + good[64:],
    }
    for reason, body in swapped.items():
        assert post(url, body).json()["refused"] == [{"index": 0, "reason": reason}]
    assert not mixer.holding.waiting()
    assert mixer.holding.counts(mixer.running.task_id) == {}


def test_devices_that_ask_at_once_wait_for_the_same_fetch(mixer: Mixer) -> None:
    """The first fetch of a task may take a while; nobody is told meanwhile that there is none."""
    fetches: list[bytes] = []
    fetch = mixer.collecting.fetch

    def slowly(task_id: bytes) -> None:
        fetches.append(task_id)
        time.sleep(0.5)
        fetch(task_id)

    mixer.collecting.fetch = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(5) as pool:
        url = f"/v1/tasks/{mixer.running.name}"
        codes = [each.status_code for each in pool.map(mixer.client.get, [url] * 5)]
    assert codes == [200] * 5
    assert len(fetches) == 1


def test_unknown_tasks_do_not_keep_batches_from_being_handed_on(
    mixer: Mixer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for tasks that do not exist, of a collector that is slow, delays nobody else."""
    mixer.end_of(1)
    mixer.take(mixer.bodies(Fleet(mixer.running, 20)))
    mixer.world.now = mixer.running.ends_at(1) + 5
    monkeypatch.setattr("sfumato.shuffler.front.TICK", 0.05)
    answering = Event()

    def never(task_id: bytes) -> None:
        answering.wait(120)
        raise InputError(f"the collector has no {task_id.hex()}.")

    mixer.collecting.fetch, fetch = never, mixer.collecting.fetch  # type: ignore[method-assign]
    mixer.collecting.refresh = lambda: None  # type: ignore[method-assign]
    front = Front(mixer.collecting)
    with TestClient(make_front(front)) as client, ThreadPoolExecutor(40) as pool:
        names = [f"/v1/tasks/{number:064x}" for number in range(40)]
        asked = [pool.submit(client.get, name) for name in names]
        end = time.monotonic() + 60
        refused = 40 - front_module.MOST_ASKED
        while (
            mixer.holding.batches()
            or mixer.holding.waiting()
            or sum(each.done() for each in asked) < refused
        ):
            assert time.monotonic() < end
            time.sleep(0.02)
        answering.set()
        codes = Counter(each.result().status_code for each in asked)
    assert codes == {404: front_module.MOST_ASKED, 503: refused}
    mixer.collecting.fetch = fetch  # type: ignore[method-assign]
    assert mixer.world.store.participation(mixer.running.task_id) == {1: 20}


def test_a_task_that_is_not_shuffled_here_is_not_known_here(mixer: Mixer) -> None:
    plain = mixer.world.open
    detail = _problem(mixer.client.get(f"/v1/tasks/{plain.name}"), 404, "unknown-task")
    assert "this is http://shuffler.example" in detail


def test_credentials_are_checked_and_dropped(
    mixer: Mixer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(credentials.KEY, "ab" * 16)
    check = credentials.check_named("sfumato.shuffler.credentials:hmac_token")
    token = credentials.new_hmac_token()
    assert check(token)
    assert not any(check(bad) for bad in (b"", token[:-1], bytes(48), token + b"x"))
    mixer.end_of(1)
    url, body = f"/v1/tasks/{mixer.running.name}/reports", mixer.bodies(Fleet(mixer.running, 1))[0]
    with (
        caplog.at_level(logging.DEBUG),
        TestClient(make_front(Front(mixer.collecting, check))) as client,
    ):
        for shown, status in ((token, 200), (bytes(48), 401), (b"", 401)):
            bearer = f"Bearer {base64.b64encode(shown).decode()}"
            headers = {"Content-Type": BATCH_TYPE, "Authorization": bearer, "User-Agent": "mine"}
            assert client.post(url, content=body, headers=headers).status_code == status
        headers = {"Content-Type": BATCH_TYPE, "Authorization": "Bearer ???"}
        assert client.post(url, content=body, headers=headers).status_code == 401
    kept = b"".join(path.read_bytes() for path in mixer.folder.glob("shuffler.db*"))
    for secret in (token, base64.b64encode(token), b"mine", b"testclient"):
        assert secret not in kept
        assert secret.decode("latin-1") not in caplog.text


def test_a_check_that_fails_does_not_print_the_credential(
    mixer: Mixer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing(credential: bytes) -> bool:
        raise ValueError(f"bad {credential!r}")

    mixer.end_of(1)
    url, body = f"/v1/tasks/{mixer.running.name}/reports", mixer.bodies(Fleet(mixer.running, 1))[0]
    with TestClient(make_front(Front(mixer.collecting, failing))) as client:
        bearer = f"Bearer {base64.b64encode(b'secret of one').decode()}"
        headers = {"Content-Type": BATCH_TYPE, "Authorization": bearer}
        detail = _problem(client.post(url, content=body, headers=headers), 401, "no-token")
    assert "ValueError" in detail
    printed = caplog.text + "".join(capfd.readouterr()) + detail
    assert "secret of one" not in printed


@pytest.mark.parametrize("name", ["", "nowhere:f", "sfumato.shuffler.credentials:none", "os"])
def test_a_check_that_does_not_exist_gets_a_sentence(name: str) -> None:
    with pytest.raises(InputError, match="credentials is"):
        credentials.check_named(name)


# ---- devices ------------------------------------------------------------------------------------


class Line:
    """A device's line to the shuffler alone; it notes what is asked for."""

    def __init__(self, mixer: Mixer) -> None:
        self.mixer, self.asked = mixer, []  # type: ignore[var-annotated]

    def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        client = self.mixer.client if url.startswith(HERE) else self.mixer.world.client
        answered = client.get("/" + url.split("/", 3)[3])
        if answered.status_code != 200:
            raise Unreachable(answered.text)
        return bytes(answered.content)

    def send(self, url: str, body: bytes) -> Delivery:
        self.asked.append(url)
        assert url.startswith(HERE)
        receipt = self.mixer.upload(body).json()
        return Delivery({each["index"]: each["reason"] for each in receipt["refused"]}, 1)


def test_a_device_sends_through_the_shuffler_at_a_random_moment(mixer: Mixer) -> None:
    waited = []
    for _ in range(12):
        line = Line(mixer)
        mixer.world.now = mixer.running.ends_at(0) + 1
        device = Device.open(":memory:", Limits(4.0), line, lambda: mixer.world.now)
        device.join(f"http://testserver/v1/tasks/{mixer.running.name}")
        # The task came from the collector's address, and again from the shuffler, with its keys.
        assert [url.partition("/v1")[0] for url in line.asked] == ["http://testserver", HERE]
        (joined, *_) = device.log()
        assert "which costs epsilon 2 for everything it will ever send" in joined
        assert f"{HERE} has mixed its reports with those of others, at least {LEAST}" in joined
        assert "epsilon 2 and delta 1e-06 hold against who sees no more than that" in joined
        device.observe(1)
        line.asked.clear()
        for tenth in range(41):
            mixer.world.now = mixer.running.ends_at(1) + tenth / 10
            if device.flush().sent:
                waited.append(tenth)
                break
        assert all(url.startswith(HERE) for url in line.asked)
        device.close()
    assert len(waited) == 12
    assert len(set(waited)) > 4
    assert max(waited) < 40  # within three quarters of a grace of 5 seconds


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://testserver/v1/tasks/{task}/reports"},
        {"endpoint": f"{HERE}/v1/tasks/{{task}}/elsewhere"},
        {"collector": HERE},
        {"collector": ""},
        {"shuffle": [["delta", 1e-6], ["epsilon", 2.0], ["min_batch", LEAST]]},
        {"shuffle": [["min_batch", LEAST], ["url", "http://testserver"]]},
    ],
)
def test_a_device_refuses_a_shuffled_task_that_asks_for_direct_uploads(
    mixer: Mixer, change: dict[str, Any]
) -> None:
    spec = dict(mixer.published.spec) | change
    device = Device.open(":memory:", Limits(4.0), Line(mixer), lambda: mixer.world.now)
    with pytest.raises(BudgetError, match="promises that reports are shuffled, and asks for them"):
        device.join(Published.of(spec, mixer.published.keys))
    assert device.left == 4.0
    device.close()


def test_a_task_without_an_address_of_its_shuffler_is_not_published(mixer: Mixer) -> None:
    shuffle = {name: to for name, to in TASK["shuffle"].items() if name != "url"}
    with pytest.raises(ConfigurationError, match=r"shuffle\.url is missing"):
        mixer.world.collector.publish(catalog.task(TASK | {"shuffle": shuffle}))
    with pytest.raises(ConfigurationError, match="so leave the endpoint out"):
        mixer.world.collector.publish(catalog.task(TASK), endpoint="http://other.example")


def test_a_line_that_loses_everything_keeps_the_batch(mixer: Mixer) -> None:
    mixer.end_of(1)
    mixer.take([batch(mixer.running, Fleet(mixer.running, 20).messages([1] * 20))])
    mixer.lost = lambda: True
    mixer.hand_on(1)
    assert mixer.collecting.problem == "the line is dead"
    assert len(mixer.holding.batches()) == 1
    mixer.lost = lambda: False
    mixer.collecting.token = "not the right one at all"  # noqa: S105
    mixer.collecting.hand_on()
    assert "does not know this shuffler's token" in mixer.collecting.problem
    assert len(mixer.holding.batches()) == 1
    mixer.collecting.token = mixer.world.tokens["shuffler"]
    assert mixer.collecting.hand_on() == 1
    assert mixer.holding.counts(mixer.running.task_id)["counted"] == 20
