"""Tasks that an engine counts: what the collector keeps and erases, and that the numbers agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.service.engine_scenes import ENGINE, GRACE, LENGTH, PERIODS, START, TEXT, VALUES, Scene
from tests.service.fleets import Fleet, batch
from tests.service.test_enrolment import Street
from tests.service.world import World

from sfumato.catalog import parse
from sfumato.engines.log_following import LogFollower
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.service import Collector
from sfumato.service.access import set_token
from sfumato.service.asgi import Service, make_app
from sfumato.service.query_parameters import answer
from sfumato.store import SQLiteStore
from sfumato.wire.sealing import OVERHEAD


@pytest.fixture(params=[True, False], ids=["sealed", "plain"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, sealed=request.param)
    yield made
    made.store.close()


def test_both_tasks_release_the_same_to_the_last_bit(scene: Scene) -> None:
    for period in range(1, PERIODS + 1):
        scene.live(period)
        scene.close(period)
    assert (scene.running.closed, scene.running.sealed, scene.twin.closed) == (0, 4, 4)
    assert not scene.tallies(scene.running)
    assert scene.running.participation() == scene.twin.participation()
    assert [(epoch.first, epoch.refused) for epoch in scene.counted()] == [(1, 0)]
    assert scene.counted() == []
    released = [release for running, release in scene.collector.close_due()]
    assert len(released) == PERIODS
    assert scene.running.is_over
    assert dict(scene.tallies(scene.running)) == dict(scene.tallies(scene.twin))
    for one, other in zip(scene.running.releases, scene.twin.releases, strict=True):
        assert (one.period, one.n) == (other.period, other.n)
        for pair in ((one.values, other.values), (one.variances, other.variances)):
            assert np.array_equal(*pair, equal_nan=True)
    asked = {"query": "range", "first": "1", "last": "4"}
    assert answer(scene.running, asked) == answer(scene.twin, asked)
    assert scene.running.participation() == scene.twin.participation()


def test_reports_are_erased_when_their_epoch_is_acknowledged_and_never_before(
    scene: Scene,
) -> None:
    kept: list[bytes] = []
    for period in (1, 2):
        kept += [content for _, _, content in scene.live(period)]
        scene.close(period)
        scene.collector.close_due()
    task_id = scene.running.task_id
    rows = list(scene.store.log(task_id))
    width = scene.running.layout.content_dtype.itemsize
    width += (16 + OVERHEAD) * (scene.running.layout.overhead > 0)
    assert [len(row.contents) for row in rows] == [row.n * width for row in rows]
    assert sum(row.n for row in rows) == len(kept)
    assert list(scene.store.uncounted(task_id).values()) == [row.n for row in rows]
    scene.counted()
    assert sum(row.n for row in scene.store.log(task_id)) == len(kept)  # nothing is released yet
    scene.collector.close_due()
    assert list(scene.store.log(task_id)) == []
    assert scene.store.uncounted(task_id) == {}
    scene.store.close()
    files = b"".join(path.read_bytes() for path in scene.path.parent.iterdir())
    for row in rows:
        assert row.contents not in files
        if scene.running.layout.overhead:
            assert row.contents[:width] not in files
            assert row.contents[-width:] not in files


def test_a_collector_that_starts_again_goes_on_where_it_was(scene: Scene) -> None:
    for period in (1, 2):
        scene.live(period)
        scene.close(period)
    again = Collector(scene.store, "http://here", lambda: scene.now)
    running = again.running_task(scene.running.name)
    assert (running.closed, running.sealed) == (0, 2)
    scene.counted()
    assert [release.period for _, release in again.close_due()] == [1, 2]
    scene.collector.close_due()  # it takes over what the other one has released
    assert (scene.running.closed, scene.running.sealed) == (2, 2)
    assert list(scene.store.log(running.task_id)) == []


def test_late_and_repeated_reports_are_told_so(scene: Scene) -> None:
    messages = scene.live(1)
    running = scene.running
    assert scene.collector.take(running, batch(running, messages)).repeated == len(messages)
    scene.close(1)
    assert scene.collector.take(running, batch(running, messages)).repeated == len(messages)
    stranger = [(bytes(16), 1, messages[0][2])]
    assert scene.collector.take(running, batch(running, stranger)).refused == [(0, "stale")]
    scene.counted()
    scene.collector.close_due()
    assert scene.collector.take(running, batch(running, messages)).repeated == len(messages)


def test_what_no_device_can_have_sent_is_left_out_by_the_engine(scene: Scene) -> None:
    messages = scene.live(1)
    running = scene.running
    bad = [(bytes([255, i]) * 8, 1, bytes([i]) * len(messages[0][2])) for i in range(5)]
    body = bytearray(batch(running, bad))
    body[-1] ^= 1  # a seal that does not open
    assert scene.collector.take(running, bytes(body)).accepted == 5
    scene.close(1)
    (epoch,) = scene.counted()
    assert (epoch.counted, epoch.refused) == (len(messages), 5)
    scene.collector.close_due()
    assert scene.running.progress is not None
    assert scene.running.progress.refused == 5
    assert dict(scene.tallies(running)) == dict(scene.tallies(scene.twin))


def test_a_period_without_reports_waits_for_nobody(scene: Scene) -> None:
    closed = scene.close(1)
    assert [running.name for running, _ in closed].count(scene.running.name) == 1


def test_a_period_that_is_not_counted_has_no_answer_yet(scene: Scene) -> None:
    scene.live(1)
    scene.close(1)
    lag = scene.running.lag
    assert lag is not None
    waits = "period 1 has closed and waits for the engine, for 7 minutes"
    assert lag.words(scene.now + 420) == waits
    for asked in ({"query": "mean", "period": "1"}, {"query": "curve", "item": "home"}):
        with pytest.raises(MismatchError, match="period 1 has closed and waits for the engine"):
            answer(scene.running, asked)
    scene.live(2)
    scene.close(2)
    assert scene.running.lag is not None
    assert "periods 1 to 2 have closed and wait" in scene.running.lag.words(scene.now)


def test_a_task_that_is_ended_early_is_over_once_it_is_counted(scene: Scene) -> None:
    for period in (1, 2):
        scene.live(period)
        scene.close(period)
    for running in (scene.running, scene.twin):
        assert scene.collector.end(running) == 2
    scene.end_of(PERIODS, 60.0)
    scene.collector.close_due()
    assert (scene.running.sealed, scene.running.is_over, scene.twin.is_over) == (2, False, True)
    with pytest.raises(ConfigurationError, match="archive it when its last period has closed"):
        scene.collector.archive(scene.running)
    scene.counted()
    scene.collector.close_due()
    assert scene.running.is_over
    scene.collector.archive(scene.running)
    assert dict(scene.tallies(scene.running)) == dict(scene.tallies(scene.twin))


def test_whoever_archives_a_task_is_told_what_it_waits_for(scene: Scene) -> None:
    set_token(scene.store, "operator", "o" * 40)
    headers = {"Authorization": f"Bearer {'o' * 40}"}
    name = scene.running.name
    with TestClient(make_app(Service(scene.collector))) as client:

        def refusal() -> str:
            address = f"/v1/tasks/{name}/archive?confirm={name}"
            answer = client.post(address, headers=headers)
            assert answer.status_code == 409
            return str(answer.json()["detail"])

        assert refusal().startswith("The task goes on; its period 1 has not closed yet. End it, ")
        for period in range(1, PERIODS + 1):
            scene.live(period)
            scene.close(period)
        told = refusal()
        assert told.startswith("No further period closes, and periods 1 to 4 have closed and wait")
        assert told.endswith("; archive it when that is done.")


def test_devices_that_say_that_they_take_part_are_counted_by_an_engine_too(tmp_path: Path) -> None:
    for counts in ("engine", "collector"):
        own = tmp_path / counts
        own.mkdir()
        street = Street(own, **({"counts": counts} if counts == "engine" else {}))
        street.join(20, on=True)
        for period in range(1, 5):
            street.at(10 * period + 1)
            street.flush()
            if period == 3:
                street.join(10, on=False)
            street.at(10 * period + 4)
            street.close()
            if counts == "engine":
                assert len(list(LogFollower(street.world.store).catch_up())) == 1
                street.close()
        running = street.running
        assert (running.closed, street.world.store.enrolled(running.task_id)) == (4, {1: 20, 4: 10})
        assert running.history().mean(4).n == 20 * 4 + 10
        street.world.store.close()


def test_a_task_that_asks_its_devices_is_counted_by_the_collector(tmp_path: Path) -> None:
    collector = Collector(SQLiteStore(tmp_path / "collector.db"), "http://here")
    asking = parse(
        'title = "t"\nkind = "window"\nepsilon = 4\nwindow = 3\ndevices = 12\nperiods = 6\n'
        'period = "10 seconds"\nmethod = "lpd"\ncounts = "engine"\n'
        'values = {kind = "category", items = ["home", "work"]}\n'
    )
    with pytest.raises(ConfigurationError, match="counts is 'engine'; the next question"):
        collector.publish(asking)
    with pytest.raises(ConfigurationError, match="keep is 3600 where counts is 'engine'"):
        collector.publish(parse(TEXT + 'counts = "engine"\nkeep = "1 hour"\n'))
    collector.store.close()


def test_pages_and_metrics_say_that_a_task_waits_for_its_engine(tmp_path: Path) -> None:
    world = World(tmp_path)
    running = world.collector.publish(ENGINE, START, grace=GRACE, public=True)
    fleet = Fleet(running, len(VALUES))
    with world.client:
        world.now = START + LENGTH + 1
        assert world.upload(running, fleet.body(VALUES)).status_code == 200
        world.now = START + LENGTH + GRACE + 90.0
        while running.sealed < PERIODS:  # other tasks of this collector have their turns
            world.close_periods()
        waits = "eriods 1 to 4 have closed and wait for the engine, the first one for 90 seconds"
        assert f"P{waits}." in world.client.get(f"/tasks/{running.name}").text
        assert "waits for the engine" in world.client.get("/").text
        operator = world.headers("operator")
        page = world.client.get("/ops", headers=operator).text
        assert f"p{waits}" in page
        assert "Engines are behind" in page
        text = world.client.get("/metrics", headers=operator).text
        labels = f'task="{running.name}"'
        assert f"sfumato_engine_waiting_seconds{{{labels}}} 90.0" in text
        assert f'sfumato_engine_reports{{outcome="counted",{labels}}} 0.0' in text
        asked = world.client.get(f"/v1/tasks/{running.name}/answers?query=mean&period=2").json()
        assert waits[1:60] in asked["detail"]
    world.store.close()
