"""Private keys are wrapped, have numbers that never come again, and devices outlive their loss."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.service.fleets import Fleet
from tests.service.test_collector import START, TASK_FIELDS, VALUES, Clock
from tests.service.world import World

from sfumato import catalog
from sfumato.device import Delivery, Device, Limits
from sfumato.device.transport import Unreachable
from sfumato.errors import ConfigurationError, InputError
from sfumato.service import Collector, RunningTask
from sfumato.service.key_numbers import LARGEST, fresh_number
from sfumato.store import SQLiteStore
from sfumato.store.key_wrapping import WRAPPED, KeyWrapping, secret_in
from sfumato.wire.reports import Batch

SECRET, OTHER = "the first secret of the operator", "the next secret of the operator"
TASK = catalog.task(
    TASK_FIELDS
    | {
        "values": {"kind": "category", "items": ["home", "work"]},
        "mix": {"1": 1.0},
        "renew": "20 seconds",
    }
)


class Place:
    """A collector whose store is copied, lost and brought back, and the way to it."""

    def __init__(self, path: Path, wrapping: KeyWrapping | None = None) -> None:
        self.path, self.clock, self.wrapping = path, Clock(), wrapping
        self.answers, self.fetched = True, 0
        self.refusals: list[str] = []
        self.open()

    def open(self) -> None:
        self.store = SQLiteStore(self.path)
        self.collector = Collector(self.store, "http://here", self.clock, wrapping=self.wrapping)

    def publish(self) -> RunningTask:
        return self.collector.publish(TASK, START, grace=5)

    @property
    def running(self) -> RunningTask:
        (running,) = self.collector.running_tasks.values()
        return running

    def kept(self) -> bytes:
        """Return the store as a file that can be put in place again."""
        self.store.close()
        content = self.path.read_bytes()
        self.open()
        return content

    def bring_back(self, content: bytes) -> None:
        self.store.close()
        self.path.write_bytes(content)
        self.open()

    def fetch(self, url: str) -> bytes:
        assert url.endswith(f"/v1/tasks/{self.running.name}")
        if not self.answers:
            raise Unreachable("nobody is there")
        self.fetched += 1
        return self.running.published.encode()

    def send(self, url: str, body: bytes) -> Delivery:
        assert url == self.running.published.endpoint
        receipt = self.collector.take(self.running, body)
        self.refusals += [reason for _, reason in receipt.refused]
        has_ended = receipt.last_period is not None
        return Delivery(dict(receipt.refused), receipt.key_id, has_ended)


def device_at(place: Place) -> Device:
    device = Device.open(":memory:", Limits(2.0), place, place.clock)
    device.join(f"http://here/v1/tasks/{place.running.name}")
    return device


def live(place: Place, device: Device, period: int) -> None:
    """Let a device see a period, and make its report of it; nothing is sent."""
    place.clock.now = START + 10.0 * (period - 1) + 2
    device.observe("home")
    place.clock.now = START + 10.0 * period + 1


# ---- numbers -------------------------------------------------------------------------------------


def test_a_key_that_is_renewed_after_a_backup_came_back_has_a_new_number(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    backup = place.kept()
    place.clock.now += 3
    lost = place.collector.rotate(place.running)
    place.clock.now += 3
    place.bring_back(backup)
    assert lost not in place.running.keys
    assert place.collector.rotate(place.running) > lost


def test_numbers_of_two_copies_differ_where_their_clock_stands_still() -> None:
    numbers = {fresh_number(0.0, last=2_000_000_000) for _ in range(40)}
    assert len(numbers) > 36  # one is lost once in 85 runs, four once in 1,800,000,000
    assert min(numbers) > 2_000_000_000
    assert fresh_number(-5.0) == 1 << 16


def test_no_number_is_larger_than_the_wire_takes() -> None:
    with pytest.raises(ConfigurationError, match="after the year 2105"):
        fresh_number(float(LARGEST + 1))


def test_a_task_renews_its_key_by_itself(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    numbers = {place.running.published.key_id}
    for second in range(50):
        place.clock.now = START + second
        place.collector.close_due()
        numbers.add(place.running.published.key_id)
    assert len(numbers) == 3  # of the start, and after 20 and 40 seconds
    assert sorted(numbers)[1:] == [START + 20, START + 40]


# ---- devices -------------------------------------------------------------------------------------


def test_a_report_sealed_to_a_lost_key_is_sealed_anew_and_counts(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    backup = place.kept()
    place.collector.rotate(place.running)
    device = device_at(place)
    place.bring_back(backup)
    live(place, device, 1)
    place.fetched = 0
    flushed = device.flush(force=True)
    assert (flushed.sent, flushed.refused, flushed.waiting) == (1, 0, 0)
    assert place.refusals == ["unknown_key"]
    assert place.fetched == 1
    assert place.running.participation() == {1: 1}


def test_another_key_under_the_same_number_is_noticed(tmp_path: Path) -> None:
    """Two keys that are made in one second, before and after a backup comes back."""
    place = Place(tmp_path / "collector.db")
    place.publish()
    backup = place.kept()
    place.clock.now += 3
    first = place.collector.rotate(place.running)
    device = device_at(place)
    place.bring_back(backup)
    assert place.collector.rotate(place.running) == first
    live(place, device, 1)
    assert device.flush(force=True).sent == 1
    assert place.refusals == ["unopened"]


def test_a_report_is_sealed_anew_once_and_no_more(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    device = device_at(place)
    live(place, device, 1)
    sent = []

    def refusing(url: str, body: bytes) -> Delivery:
        del url
        sent.append(body)
        place.collector.rotate(place.running)  # every key is lost at once
        return Delivery({0: "unopened"}, place.running.published.key_id)

    place.send = refusing  # type: ignore[method-assign]
    flushed = device.flush(force=True)
    assert (flushed.sent, flushed.refused, flushed.waiting) == (0, 1, 0)
    first, second = (Batch.decode(body, place.running.layout) for body in sent)
    assert first.reports["id"] == second.reports["id"]
    assert first.key_id < second.key_id


def test_a_key_that_is_the_same_after_all_is_not_tried_again(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    device = device_at(place)
    live(place, device, 1)
    place.send = lambda url, body: Delivery({0: "unopened"})  # type: ignore[method-assign] # noqa: ARG005
    flushed = device.flush(force=True)
    assert (flushed.sent, flushed.refused, flushed.waiting) == (0, 1, 0)


def test_a_report_waits_while_the_task_cannot_be_fetched(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    backup = place.kept()
    place.collector.rotate(place.running)
    device = device_at(place)
    place.bring_back(backup)
    live(place, device, 1)
    place.answers = False
    assert device.flush(force=True).waiting == 1
    place.answers = True
    assert device.flush(force=True).sent == 1
    assert device.journal.waiting(place.running.task_id) == []


# ---- wrapping ------------------------------------------------------------------------------------


def _privates(place: Place) -> list[bytes]:
    return [key.private.private_bytes_raw() for key in place.running.keys.values()]


def _bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("collector.db*"))


def test_a_wrapped_key_is_nowhere_in_the_files_and_opens_reports(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db", KeyWrapping(SECRET))
    place.publish()
    place.collector.rotate(place.running)
    privates = _privates(place)
    assert len(privates) == 2
    assert all(private not in _bytes_of(tmp_path) for private in privates)
    place.store.close()
    place.open()
    assert _privates(place) == privates
    fleet = Fleet(place.running, len(VALUES))
    place.clock.now = START + 11.0
    receipt = place.collector.take(place.running, fleet.body(["home"] * len(VALUES)))
    assert receipt.accepted
    assert not receipt.refused


def test_a_stolen_backup_opens_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db", KeyWrapping(SECRET))
    place.publish()
    place.store.close()
    stolen = shutil.copy(tmp_path / "collector.db", tmp_path / "stolen.db")
    for wrapping, words in ((None, "there is no secret"), (KeyWrapping(OTHER), "another secret")):
        store = SQLiteStore(stolen)
        with pytest.raises(InputError, match=words):
            Collector(store, wrapping=wrapping)
        store.close()


def test_keys_of_before_are_wrapped_and_gone_from_the_files(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    privates = _privates(place)
    assert all(private in _bytes_of(tmp_path) for private in privates)
    place.store.close()
    place.wrapping = KeyWrapping(SECRET)
    place.open()
    assert _privates(place) == privates
    assert all(private not in _bytes_of(tmp_path) for private in privates)


def test_a_changed_secret_wraps_anew(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db", KeyWrapping(SECRET))
    place.publish()
    privates = _privates(place)
    for wrapping in (KeyWrapping(OTHER, SECRET), KeyWrapping(OTHER), KeyWrapping("", OTHER)):
        place.store.close()
        place.wrapping = wrapping
        place.open()
        assert _privates(place) == privates
    assert all(private in _bytes_of(tmp_path) for private in privates)  # on request


def test_a_wrapped_key_takes_the_place_of_no_other_one() -> None:
    wrapping = KeyWrapping(SECRET)
    wrapped = wrapping.wrap(bytes(32), 7, bytes(range(32)))
    assert len(wrapped) == WRAPPED
    broken = [wrapped[:at] + bytes([wrapped[at] ^ 1]) + wrapped[at + 1 :] for at in range(WRAPPED)]
    for task_id, number, kept in (
        (bytes(31) + b"1", 7, wrapped),
        (bytes(32), 8, wrapped),
        *((bytes(32), 7, kept) for kept in broken[::12]),
        (bytes(32), 7, wrapped[:-1]),
    ):
        with pytest.raises(InputError, match="another secret"):
            wrapping.unwrap(task_id, number, kept)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"short\n", "5 characters"), (b"\xff" * 30, "cannot be read"), (b"a\nb" * 20, "on one line")],
)
def test_a_bad_secret_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        secret_in(path)


def test_a_secret_file_is_read_without_the_end_of_its_line(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    assert KeyWrapping.of(path, {}) == KeyWrapping.of(None, {"SFUMATO_KEY_SECRET": SECRET})
    assert SECRET not in repr(KeyWrapping.of(path, {}))


def test_the_operator_sees_how_old_each_key_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.now += 3 * 86_400
    with world.client:
        world.service.writer.call(lambda: world.collector.rotate(world.open)).result()
        world.now += 7_200
        text = world.client.get("/ops", headers=world.headers("operator")).text
    rows = re.findall(r"<td>(\d+)</td><td>([^<]+ ago)</td><td>([^<]+)</td>", text)
    assert [(made, state.partition(";")[0]) for _, made, state in rows] == [
        ("3 days ago", "replaced"),
        ("2 hours ago", "current"),
        ("3 days ago", "current"),
    ]
    world.store.close()
