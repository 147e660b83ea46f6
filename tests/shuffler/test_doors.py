"""A hostile collector gets a shuffled report by no door, question, key or task of its own making.

The doors are those that the apps themselves name: a new one fails here until it has been judged.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.service.fleets import Fleet
from tests.shuffler.mixers import HERE, LEAST, Mixer
from tests.shuffler.test_front import Line

from sfumato import catalog
from sfumato.device import Device, Limits
from sfumato.errors import SfumatoError
from sfumato.service.asgi import make_app
from sfumato.shuffler.front import Front, make_front
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.reports import BATCH_TYPE, Batch
from sfumato.wire.sealing import new_key

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OF_SHUFFLER: Final = {
    "/v1/tasks/{task_id}": "the task, which the collector has published itself",
    "/v1/tasks/{task_id}/reports": "a receipt of what the sender has sent",
    "/v1/tasks/{task_id}/question": "the question, which the collector asks itself",
    "/v1/counts": "nothing, without the token of the shuffler's operator",
    "/healthz": "that the process is alive",
}
"""What whoever calls gets at each address of a shuffler: never a report that waits there."""
OF_COLLECTOR: Final = {
    "/v1/tasks": "no report: a new task is a new id",
    "/v1/tasks/{task_id}": "no report: it is told, or deleted",
    "/v1/tasks/{task_id}/reports": "reports from the shuffler alone, min_batch at a time",
    "/v1/tasks/{task_id}/question": "no report",
    "/v1/tasks/{task_id}/end": "no report",
    "/v1/tasks/{task_id}/archive": "no report",
    "/v1/tasks/{task_id}/keys": "no report: devices take keys from the shuffler",
    "/v1/tasks/{task_id}/tokens": "no report",
    "/v1/tasks/{task_id}/answers": "no report",
    "/v1/tasks/{task_id}/events": "no report",
    "/login": "no report",
    "/healthz": "no report",
    "/readyz": "no report",
    "/metrics": "no report",
    "/openapi.json": "no report",
    "/tasks/{task_id}": "no report",
    "/tasks/{task_id}/shown.{kind}": "no report",
    "/static/{name}": "no report",
    "/ops": "no report",
    "/": "no report",
}
"""What each address of a collector takes in: reports of a shuffled task at one of them only."""


def starlette_of(app: Any) -> Starlette:
    """Return the app with the routes, behind whatever is in front of it."""
    while not isinstance(app, Starlette):
        inside = {**getattr(app, "__dict__", {})}
        if inspect.isfunction(app):
            inside |= inspect.getclosurevars(app).nonlocals
        app = inside.get("app") or inside["_app"]
    return app


def doors(app: Any) -> set[str]:
    """Return all paths that an app has routes for."""
    return {route.path for route in starlette_of(app).routes}  # type: ignore[attr-defined]


@pytest.fixture
def mixer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixer]:
    mixer = Mixer(tmp_path, monkeypatch)
    monkeypatch.setattr("sfumato.shuffler.front.TICK", 60.0)
    with mixer.world.client, mixer.client:
        yield mixer
    mixer.close()


def at(path: str, mixer: Mixer) -> str:
    for name, to in (("task_id", mixer.running.name), ("kind", "json"), ("name", "sfumato.css")):
        path = path.replace(f"{{{name}}}", to)
    return path


def shapes(secret: bytes) -> tuple[bytes, ...]:
    """Return the forms in which some bytes may be written."""
    return secret, secret.hex().encode(), base64.b64encode(secret)[:-4]


def test_every_door_has_been_judged(mixer: Mixer) -> None:
    assert doors(make_front(mixer.front)) == set(OF_SHUFFLER)
    assert doors(make_app(mixer.world.service)) == set(OF_COLLECTOR)


def test_no_door_of_a_shuffler_lets_a_report_out(mixer: Mixer) -> None:
    """One report is missing to a crowd, and whoever calls has all that a collector has."""
    mixer.end_of(1)
    *bodies, own = mixer.bodies(Fleet(mixer.running, LEAST))
    mixer.take(bodies)
    task = mixer.shuffler.tasks[mixer.running.task_id]
    reports = [Batch.records(body, task.report_bytes)[2][0] for body in bodies]
    secrets = [form for report in reports for form in (*shapes(report[:16]), *shapes(report[-32:]))]
    held, left = mixer.holding.waiting(), list(mixer.left)
    headers = [{}, *(mixer.world.headers(role) for role in mixer.world.tokens)]
    app = make_front(Front(mixer.collecting, lambda shown: shown == b"a device", "an operator"))
    with TestClient(app, raise_server_exceptions=False) as client:
        calls = product(sorted(doors(app)), METHODS, headers, (b"", b"{}", bodies[0], own))
        for path, method, shown, body in calls:
            kind = {"Content-Type": BATCH_TYPE if body[:3] == b"SFR" else "application/json"}
            url = f"{at(path, mixer)}?period=1&all=1"
            answered = client.request(method, url, content=body, headers=kind | shown)
            said = answered.content + repr(answered.headers).encode()
            assert not any(secret in said for secret in secrets), (path, method)
    assert mixer.holding.waiting() == held
    mixer.hand_on(1)
    assert mixer.left == left
    assert mixer.holding.counts(mixer.running.task_id)["expired"] == LEAST - 1


def test_no_door_of_a_collector_takes_a_report_of_a_crowd_too_small(mixer: Mixer) -> None:
    mixer.end_of(1)
    world, running = mixer.world, mixer.running
    bodies = mixer.bodies(Fleet(running, LEAST - 1))
    task = mixer.shuffler.learn(running.published)
    both = b"".join(Batch.records(body, task.report_bytes)[2][0] for body in bodies)
    few = bodies[0][:40] + len(bodies).to_bytes(4, "little") + both
    assert Batch.head(few)[2] == LEAST - 1
    tried = 0
    end_of_all = {"/v1/tasks/{task_id}/archive", "/v1/tasks/{task_id}/end"}
    # Whatever ends or deletes the task is tried last, and events last as long as one listens.
    paths = sorted(doors(make_app(world.service)), key=lambda path: (path in end_of_all, path))
    for path, method, role, body in product(
        paths, METHODS, (None, *world.tokens), (few, bodies[0])
    ):
        listens = path.endswith("/events") and method in ("GET", "HEAD")
        if listens or (method == "DELETE" and path == "/v1/tasks/{task_id}"):
            continue
        headers = {"Content-Type": BATCH_TYPE} | world.headers(role)
        answered = world.client.request(method, at(path, mixer), content=body, headers=headers)
        if path.endswith("/reports") and method == "POST":
            tried += 1
            if answered.status_code == 200:  # with a receipt that refuses all of it
                assert answered.json()["accepted"] == 0
    assert tried == 4 * 2
    assert not world.store.participation(running.task_id)


# ---- what the shuffler asks a collector for -----------------------------------------------------

HOSTILE: Final[tuple[tuple[int, bytes], ...]] = (
    (200, b""),
    (200, b"{}"),
    (200, b"[]"),
    (200, b"\xff" * 100),
    (200, b'{"accepted": 1, "repeated": 0, "refused": []}'),
    (200, b'{"accepted": -5, "repeated": 5, "refused": []}'),
    (200, b'{"accepted": 0, "repeated": 0, "refused": [{"index": 0, "reason": "stale"}]}'),
    (200, b'{"accepted": 0, "repeated": 0, "refused": 7}'),
    (301, b"http://testserver/elsewhere"),
    (401, b""),
    (429, b""),
    (500, b""),
    (503, b'{"send": "the rest"}'),
)


def test_whatever_a_collector_answers_it_gets_the_same_batches(
    mixer: Mixer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer makes the shuffler send a part of a batch, another order, or what has to wait."""
    mixer.end_of(1)
    mixer.take(mixer.bodies(Fleet(mixer.running, LEAST + 5)))
    mixer.world.now = mixer.running.ends_at(2)
    mixer.take(mixer.bodies(Fleet(mixer.running, LEAST - 1, seed=2)))
    asked: list[tuple[str, bytes | None]] = []
    answer = HOSTILE[0]

    def hostile(url: Any, body: bytes | None, *_: Any) -> tuple[int, bytes]:
        asked.append((url.geturl(), body))
        return answer

    monkeypatch.setattr("sfumato.shuffler.handing_on.exchange", hostile)
    monkeypatch.setattr("sfumato.shuffler.handing_on.LONGEST_WAIT", 0.0)
    mixer.world.now = mixer.running.ends_at(2) + 5
    mixer.shuffler.mix_due()
    for answer in HOSTILE:  # noqa: B007 -- what is answered next
        mixer.collecting.refresh()
        mixer.collecting.hand_on()
    sent = {body for _, body in asked if body is not None}
    assert [Batch.head(body)[2] for body in sent] == [LEAST + 5]
    task = f"http://testserver/v1/tasks/{mixer.running.name}"
    assert {url for url, body in asked if body is not None} == {f"{task}/reports"}
    assert {url for url, body in asked if body is None} == {task}
    assert mixer.shuffler.tasks[mixer.running.task_id].published == mixer.published


# ---- what a collector tells devices -------------------------------------------------------------


def changes(published: Published) -> Iterator[Published]:
    """Yield tasks of a collector's own making: each field of a task left out, or another one."""
    spec, keys = published.spec, published.keys
    others: tuple[Any, ...] = (None, 0, 1, -1, 2.5, 10**6, "", "http://testserver", [], {}, True)
    for name in spec:
        yield Published.of({key: spec[key] for key in spec if key != name}, keys)
        for other in others:
            yield Published.of({**spec, name: other}, keys)
    promise = dict(spec["shuffle"])
    for name, other in product(promise, others):
        shuffle = sorted({**promise, name: other}.items())
        yield Published.of({**spec, "shuffle": [list(pair) for pair in shuffle]}, keys)
    elsewhere = ("http://testserver", HERE, "http://testserver/v1/tasks/{task}/reports")
    for endpoint, keys in product(
        (spec["endpoint"], *elsewhere), (published.keys, {}, _new_keys())
    ):
        yield Published.of({**spec, "endpoint": endpoint}, keys)
        yield Published(spec, keys, endpoint.replace("{task}", published.task_id.hex()))


def _new_keys() -> Mapping[int, bytes]:
    return {1: new_key().public_key().public_bytes_raw()}


def test_a_task_or_key_of_its_own_making_leads_devices_to_the_shuffler_or_nowhere(
    mixer: Mixer,
) -> None:
    """What a device sends for it is a crowd of one, which expires."""
    refused = joined = 0
    for published in changes(mixer.published):
        line = Line(mixer)
        mixer.world.now = mixer.running.ends_at(0) + 1
        device = Device.open(":memory:", Limits(4.0), line, lambda: mixer.world.now)
        try:
            device.join(published)
        except SfumatoError:
            refused += 1
            continue
        finally:
            unshuffled = published.shuffle is None
            line.asked.clear()
        joined += 1
        device.observe(1)
        mixer.world.now = mixer.running.ends_at(1) + 4
        if unshuffled:  # it makes no promise about mixed reports, and says so in its log
            assert not any("has mixed" in each for each in device.log())
            continue
        device.flush(force=True)
        assert all(url.startswith(f"{HERE}/") for url in line.asked), published
        device.close()
    assert refused > 100
    assert joined > 10
    sent = [n for bucket, n in mixer.holding.waiting().items() if bucket.period == 1]
    mixer.hand_on(1)
    assert not mixer.left, sent


@pytest.mark.parametrize(
    ("promise", "sentence"),
    [
        ({"epsilon": 1e-3}, "which its reports do not keep"),
        ({"min_batch": 2, "epsilon": 0.5}, "which its reports do not keep"),
        ({"delta": 1e-30, "epsilon": 1.0}, "which its reports do not keep"),
        ({"colluding": 0.9, "epsilon": 1.0}, "which its reports do not keep"),
        ({"colluding": "none"}, "something wrong|is expected"),
    ],
)
def test_a_device_takes_nobodys_word_for_a_promise_about_mixed_reports(
    mixer: Mixer, promise: dict[str, Any], sentence: str
) -> None:
    shuffle = sorted({**dict(mixer.published.spec["shuffle"]), **promise}.items())
    spec = {**mixer.published.spec, "shuffle": [list(pair) for pair in shuffle]}
    with pytest.raises(SfumatoError, match=sentence):
        _join(mixer, spec)


def test_a_device_takes_no_promise_about_mixed_answers_to_questions(mixer: Mixer) -> None:
    """Nothing is proven about them, so that no question of a shuffled task is ever answered."""
    window = catalog.task(
        {
            "kind": "window",
            "title": "Where people are",
            "epsilon": 1,
            "window": 4,
            "devices": 5000,
            "periods": 24,
            "period": "10 seconds",
            "values": {"kind": "category", "items": ["home", "work"]},
        }
    )
    own = dict(mixer.published.spec)
    spec = spec_of(window, catalog.stream(window), own["start"], endpoint=own["endpoint"])
    spec |= {name: own[name] for name in ("shuffle", "collector")}
    with pytest.raises(SfumatoError, match="nothing is proven about its reports among those"):
        _join(mixer, spec)


def _join(mixer: Mixer, spec: Mapping[str, Any]) -> None:
    limits = Limits(4.0, windows=True)
    device = Device.open(":memory:", limits, Line(mixer), lambda: mixer.world.now)
    try:
        device.join(Published.of(spec, mixer.published.keys))
    finally:
        assert device.left == 4.0
        device.close()
