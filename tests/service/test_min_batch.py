"""A crowd that is too small tells nothing: no door shows a number that comes from it.

A batch of a task with a ``shuffle`` has at least ``min_batch`` reports of each of its periods, or
nothing in it counts. The table has every door through which a number could leave the collector; a
collector that counts small batches, as a mutant, is caught at each of them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer as ran
from tests.service.fleets import Fleet, batch
from tests.service.world import World

from sfumato import catalog, engines
from sfumato.accounting.shuffle import Requirement, best
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.service import event_stream, first_door
from sfumato.service.exporting import exported
from sfumato.service.lane import Lane
from sfumato.service.running_task import RunningTask
from sfumato.streams.amplification import TOO_FEW, fewest_counted, kept_among
from sfumato.wire.reports import Batch

DEVICES, LEAST, FEW, SHORT = 80, 30, 5, 2
SHUFFLE: dict[str, Any] = {
    "url": "https://shuffler.example",
    "epsilon": 2.0,
    "delta": 1e-6,
    "min_batch": LEAST,
    "colluding": 0.1,
}
TASK = {
    "title": "Lights",
    "epsilon": 2.0,
    "periods": 4,
    "period": "10 seconds",
    "changes": 2,
    "values": {"kind": "binary"},
    "mix": {"snapshot": 0.5, "1": 0.5},
    "shuffle": SHUFFLE,
    "keep": "for ever",
}


class Scene:
    """A collector whose second period had a crowd that was too small."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = World(folder)

    def live(self) -> None:
        world = self.world
        asked = {"task": TASK, "start": int(world.now), "grace": 5, "public": True}
        headers = world.headers("operator")
        published = world.client.post("/v1/tasks", json=asked, headers=headers).json()
        self.running = world.collector.running_task(published["task_id"])
        self.fleet = Fleet(self.running, DEVICES)
        self.short: Any = None
        for period in (1, 2, 3):
            world.now = self.running.ends_at(period)
            messages = self.fleet.messages([1] * DEVICES)
            chosen = messages[:FEW] if period == SHORT else messages
            answered = world.upload(self.running, batch(self.running, chosen), role="shuffler")
            if period == SHORT:
                self.short = answered
            world.now = self.running.closes_at(period)
            world.close_periods()
        assert self.running.closed == 3

    def ask(self, **question: Any) -> Any:
        return self.world.client.get(f"/v1/tasks/{self.running.name}/answers", params=question)


def _refuses(scene: Scene, **question: Any) -> None:
    answered = scene.ask(**question)
    assert answered.status_code == 409
    problem = answered.json()
    assert problem["type"] == "urn:sfumato:problem:too-few"
    assert f"period {SHORT} has {TOO_FEW}" in problem["detail"]
    # What can still be kept is printed: what is published otherwise keeps the promise.
    assert "epsilon 2, delta 1e-06 (shuffle" in problem["detail"]


def _receipt(scene: Scene) -> None:
    assert scene.short.status_code == 409
    detail = scene.short.json()["detail"]
    assert f"{FEW} reports of period {SHORT}, {TOO_FEW}: at least {LEAST}" in detail


def _asked(decoder: str) -> Callable[[Scene], None]:
    def door(scene: Scene) -> None:
        _refuses(scene, query="mean", period=SHORT, decoder=decoder)
        _refuses(scene, query="top", k=1, period=SHORT, decoder=decoder)
        _refuses(scene, query="range", first=1, last=3, decoder=decoder)
        _refuses(scene, query="prefix", last=3, decoder=decoder)
        _refuses(scene, query="difference", before=1, after=SHORT, decoder=decoder)

    return door


def _curve(scene: Scene) -> None:
    for decoder in ("online", "smoothed"):
        points = scene.ask(query="curve", item="on", decoder=decoder).json()["answers"]
        assert [point["value"] is None for point in points] == [False, True, False]
        assert points[SHORT - 1]["low"] is points[SHORT - 1]["high"] is None


def _page(decoder: str) -> Callable[[Scene], None]:
    def door(scene: Scene) -> None:
        address = f"/tasks/{scene.running.name}?decoder={decoder}"
        data: dict[str, Any] = {"closed": 0}
        while not data["closed"]:  # other decoders read in the background
            page = scene.world.client.get(address).text
            assert f"with {TOO_FEW}: period {SHORT}." in page
            data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
        assert data["reports"][SHORT - 1] == 0
        for curve in data["curves"]:
            assert [curve[side][SHORT - 1] for side in ("value", "low", "high")] == [None] * 3
        spanning = scene.world.client.get(f"{address}&first=1&last={SHORT}").text
        assert f"period {SHORT} has {TOO_FEW}, so nothing is said of this range." in spanning
        for kind in ("csv", "json"):
            taken = scene.world.client.get(address.replace("?", f"/shown.{kind}?")).text
            assert len(re.findall(r'"value": null|,on,,,', taken)) == 1

    return door


def _silent(release: dict[str, Any]) -> None:
    assert release.get("problem") == TOO_FEW
    assert release["reports"] == 0
    assert release["value"] == release["low"] == release["high"] == [None]


def _events(scene: Scene) -> None:
    async def heard() -> list[str]:
        bell, events = scene.world.service.bell, []
        build = partial(Lane(1, "news").ask, "")
        async for event in event_stream.stream(scene.running, bell, 0, lambda: None, build):
            events.append(event)
            if len(events) == 4:
                return events
        return events

    _silent(json.loads(asyncio.run(heard())[SHORT].partition("data: ")[2]))


def _export(scene: Scene) -> None:
    size = scene.running.layout.content_dtype.itemsize
    rows = exported(scene.world.store, scene.running)
    counts = {row.period: len(row.contents) // size for row in rows}
    assert set(counts) == {1, 3}
    assert min(counts.values()) >= LEAST


def _store(scene: Scene) -> None:
    store, running = scene.world.store, scene.running
    assert not store.tallies(running.task_id, SHORT)
    assert not list(store.ids(running.task_id, SHORT))
    counted = store.recount(running.task_id, running.judge.count)
    assert SHORT not in {place.period for place in counted}
    release = running.releases[SHORT - 1]
    assert np.isnan(release.values).all()
    assert release.n == running.releases[0].n


def _restarted(scene: Scene) -> None:
    (stored,) = (t for t in scene.world.store.tasks() if t.task_id == scene.running.task_id)
    again = RunningTask(stored, scene.world.store)
    assert again.short_periods() == [SHORT]
    ends = again.releases[SHORT - 1].ends
    assert ends is not None
    assert not np.isfinite(np.concatenate(ends)).any()


def _later(scene: Scene) -> None:
    """Later answers are those of a collector that never heard of the small crowd."""
    tallies = scene.world.store.tallies(scene.running.task_id)
    assert {place.period for place in tallies} == {1, 3}


DOORS: dict[str, Callable[[Scene], None]] = {
    "receipt": _receipt,
    "online answers": _asked("online"),
    "smoothed answers": _asked("smoothed"),
    "filtered answers": _asked("filtered"),
    "posterior answers": _asked("posterior"),
    "curve": _curve,
    "page": _page("online"),
    "page of smoothed curves": _page("smoothed"),
    "page of posterior curves": _page("posterior"),
    "events": _events,
    "export": _export,
    "store": _store,
    "restart": _restarted,
    "later answers": _later,
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("short"))
    with scene.world.client:
        scene.live()
        yield scene
    scene.world.store.close()


@pytest.fixture(scope="module")
def mutant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return the same with a collector that counts batches of any size."""
    scene = Scene(tmp_path_factory.mktemp("mutant"))
    with scene.world.client:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(first_door, "_refuse_few", lambda *_: None)
            patch.setattr(RunningTask, "fewest_counted", 1)
            scene.live()
        yield scene
    scene.world.store.close()


@pytest.mark.parametrize("door", DOORS)
def test_a_crowd_that_is_too_small_tells_nothing_at_any_door(scene: Scene, door: str) -> None:
    DOORS[door](scene)


@pytest.mark.parametrize("door", DOORS)
def test_a_collector_that_counts_small_crowds_is_caught_at_each_door(
    mutant: Scene, door: str
) -> None:
    with pytest.raises(AssertionError):
        DOORS[door](mutant)


def test_other_periods_are_published(scene: Scene) -> None:
    for period in (1, 3):
        (found,) = scene.ask(query="mean", period=period).json()["answers"]
        assert found["low"] <= found["value"] <= found["high"]


def test_a_crowd_whose_reports_do_not_count_is_too_small(tmp_path: Path) -> None:
    """What does not open hides nobody; up to a tenth may collude, so 27 of 30 have to be good."""
    world = World(tmp_path)
    with world.client:
        running = world.collector.publish(catalog.task(TASK), int(world.now), grace=5, public=True)
        assert running.fewest_counted == 27
        world.now = running.ends_at(1)
        messages = Fleet(running, DEVICES).messages([1] * DEVICES)
        for good, accepted in ((26, 0), (27, 27)):
            packed = bytearray(batch(running, messages[:LEAST]))
            size = running.layout.report_dtype.itemsize
            for place in range(LEAST - good):
                packed[-1 - place * size] ^= 1
            receipt = world.upload(running, bytes(packed), role="shuffler").json()
            reasons = [each["reason"] for each in receipt["refused"]]
            assert receipt["accepted"] == accepted
            assert reasons.count("unopened") == LEAST - good
            assert reasons.count("too_few") == (good if not accepted else 0)
        # The few that are new in a batch of which the rest was counted before would stand out.
        again = world.upload(running, batch(running, messages[: LEAST + 5]), role="shuffler").json()
        assert (again["accepted"], again["repeated"]) == (0, 27)
        assert {each["reason"] for each in again["refused"]} == {"too_few"}
        # A batch that comes again is acknowledged again, and changes nothing.
        assert world.store.participation(running.task_id) == {1: 27}
    world.store.close()


def test_the_sentence_names_what_so_few_could_keep(scene: Scene) -> None:
    required = Requirement(2.0, 1e-6, LEAST, 0.1)
    stream = scene.running.shuffled
    assert kept_among(stream, required, 1) == stream.epsilon
    among = [kept_among(stream, required, n) for n in (100, 1_000, 10_000)]
    assert among == sorted(among, reverse=True)
    assert among[-1] == best(stream.message(), 9_000, 1e-6).epsilon
    assert f"only epsilon {stream.epsilon:.4g}, delta 1e-06" in scene.short.json()["detail"]


def test_a_file_with_too_few_reports_is_not_counted(tmp_path: Path) -> None:
    """Not of a collector's making, but a file is a door as well."""
    scene = Scene(tmp_path)
    with scene.world.client:
        scene.live()
    scene.world.store.close()
    target, store = tmp_path / "reports.parquet", tmp_path / "collector.db"
    printed = ran("export", target, "--store", store, "--task", scene.running.name)
    assert printed["short_periods"] == [SHORT]
    lake = engines.Lake.open(target)
    assert {place.period for place in engines.aggregate(lake.counter, lake)} == {1, 3}
    table, spec = pq.read_table(target), lake.counter.plain()["task"]["spec"]
    few = fewest_counted(spec) - 1
    (first, *_) = table.to_pylist()
    cut = first | {"n": few, "contents": first["contents"][: few * lake.counter.size]}
    pq.write_table(pa.Table.from_pylist([cut], table.schema), target)
    lake = engines.Lake.open(target)
    with pytest.raises(MismatchError, match=TOO_FEW):
        engines.aggregate(lake.counter, lake)


def test_a_promise_that_no_batch_can_keep_is_not_published(tmp_path: Path) -> None:
    world = World(tmp_path)
    task = catalog.task(TASK)
    with pytest.raises(ConfigurationError, match="sealed is false where the task has a shuffle"):
        world.collector.publish(task, sealed=False)
    large = TASK | {"shuffle": SHUFFLE | {"min_batch": 10**9}}
    with pytest.raises(ConfigurationError, match="mixed up to 32,768 at a time"):
        world.collector.publish(catalog.task(large))
    world.store.close()


def test_reports_of_a_mixed_task_come_through_its_shuffler_only(scene: Scene) -> None:
    world, running = scene.world, scene.running
    body = batch(running, Fleet(running, DEVICES, seed=2).messages([1] * DEVICES))
    n = Batch.head(body)[2]
    for role in (None, "analyst", "operator"):
        refused = world.upload(running, body, role=role).json()
        assert refused["accepted"] == 0
        assert [each["reason"] for each in refused["refused"]] == ["direct"] * n
    page = world.client.get(f"/tasks/{running.name}").text
    assert "is protected with epsilon 2, delta 1e-06 (shuffle" in page
    words = f"every batch has at least {LEAST} reports of devices that take part in the whole"
    assert words in page
