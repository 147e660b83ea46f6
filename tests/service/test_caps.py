"""Tasks that say how many reports of a period count from one client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.device.app import opened, setting
from tests.device.collecting import HOUR
from tests.service.fleets import LISTENING, Fleet, batch
from tests.service.test_collector import START, VALUES, Clock
from tests.service.test_enrolment import Street

from sfumato import catalog
from sfumato.catalog import task
from sfumato.core.tally import ENROLMENT
from sfumato.errors import ConfigurationError
from sfumato.service import Collector
from sfumato.service.caps import Caps
from sfumato.service.client_counts import ClientCounts, Demand
from sfumato.service.running_task import RunningTask
from sfumato.service.shared_counts import SharedCounts, answered_line
from sfumato.store import SQLiteStore

CAP = 5


class House:
    """A collector of a task with a cap, alone or one of several workers, and a fleet's reports."""

    def __init__(self, folder: Path, *, is_worker: bool) -> None:
        self.clock = Clock()
        self.store = SQLiteStore(folder / "collector.db")
        self.counts = ClientCounts()
        shared = SharedCounts(answered_line(self.counts), lambda: None) if is_worker else None
        caps = Caps(shared or self.counts)
        self.collector = Collector(self.store, "http://here", self.clock, caps=caps)
        asked = catalog.changed(LISTENING, cap=CAP)
        self.running = self.collector.publish(asked, START, grace=5, sealed=False)
        self.fleet = Fleet(self.running, len(VALUES))

    def messages(self, period: int) -> list[Any]:
        self.clock.now = START + 10.0 * period + 1
        return self.fleet.messages(VALUES)

    def sent(self, *uploads: tuple[list[Any], str]) -> list[tuple[int, int, list[str]]]:
        """Let uploads come together; return what was accepted, repeated and refused of each."""
        admitted = [
            self.collector.admit(self.running, batch(self.running, some), client=client)
            for some, client in uploads
        ]
        self.collector.settle(self.collector.screen(admitted))
        receipts = [upload.receipt for upload in admitted]
        return [(r.accepted, r.repeated, [why for _, why in r.refused]) for r in receipts]


@pytest.fixture(params=[False, True], ids=["alone", "worker"])
def house(request: Any, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path, is_worker=request.param)
    yield made
    made.store.close()


def _counted(running: RunningTask) -> int:
    return sum(running.participation().values())


def test_no_more_reports_of_a_client_count_than_the_task_says(house: House) -> None:
    some = house.messages(1)
    assert len(some) > 2 * CAP
    assert house.sent((some[:4], "one")) == [(4, 0, [])]
    assert house.sent((some[:8], "one")) == [(1, 4, ["too_many"] * 3)]
    # Those that were refused count from elsewhere, and nothing else does from here.
    assert house.sent((some[5:8], "one"), (some[5:8], "two"), (some[5:8], "one")) == [
        (0, 0, ["too_many"] * 3),
        (3, 0, []),
        (0, 3, []),
    ]
    assert _counted(house.running) == 8


def test_a_copy_of_what_is_refused_is_not_acknowledged(house: House) -> None:
    some = house.messages(1)
    house.sent((some[:CAP], "one"))
    twice = [some[CAP], some[CAP], some[0]]
    assert house.sent((twice, "one")) == [(0, 1, ["too_many"] * 2)]
    assert house.sent((twice, "two")) == [(1, 2, [])]


def test_uploads_that_come_together_are_counted_together(house: House) -> None:
    some = house.messages(1)
    ours = [([message], "one") for message in some[:8]]
    assert house.sent(*ours, (some[8:12], "two")) == [
        *[(1, 0, [])] * CAP,
        *[(0, 0, ["too_many"])] * 3,
        (4, 0, []),
    ]


@pytest.mark.parametrize("cap", [1, 2, 3, 6, 7, 8, 1000])
def test_whatever_comes_together_as_many_count_as_if_one_came_after_the_other(cap: int) -> None:
    counts, rng, counted, of = ClientCounts(), np.random.default_rng(cap), Counter[int](), (b"", 1)
    caps, pool = Caps(counts), rng.integers(0, 1 << 64, 19, dtype=np.uint64)
    running: Any = SimpleNamespace(protocol=SimpleNamespace(enrols=False))
    names = np.arange(1, 4000, dtype=np.uint64)
    for chosen in np.split(rng.permutation(names), [1, 5, 300, 301, 2000]):
        clients, owners = rng.choice(pool, 40).tolist(), rng.integers(0, 40, len(chosen))
        entry: Any = SimpleNamespace(running=running, clients=clients, owners=owners)
        senders = caps.senders(entry, np.arange(len(chosen)))
        with caps.reserve({of: (cap, [senders])}) as reservation:
            known = np.zeros(len(chosen), dtype=bool)
            new, many = caps.told_apart(chosen, known, senders, reservation.rooms()[of])
            reservation.count(of, senders[new])
        assert (new ^ many).all()
        for sender, counts_ in zip(senders.tolist(), new.tolist(), strict=True):
            assert counts_ == (counted[sender] < cap)
            counted[sender] += counts_
    (left,) = counts.take([Demand(*of, cap, pool, np.full(len(pool), cap, np.uint64))])
    assert left.tolist() == [cap - counted[client] for client in pool.tolist()]


def test_enrolments_leave_room_for_reports(tmp_path: Path) -> None:
    street = Street(tmp_path, cap=1)
    street.at(11.0)
    running, collector = street.running, street.world.collector
    said = (bytes([9]) * 16, 1, running.layout.content(ENROLMENT, 0, b"\1"))
    again = (bytes([8]) * 16, 1, running.layout.content(ENROLMENT, 0, b"\1"))
    told = (bytes([7]) * 16, 1, running.layout.content(1, 0, b"\1"))
    upload = collector.admit(running, batch(running, [said, again, told]), client="home")
    collector.settle(collector.screen([upload]))
    assert (upload.receipt.accepted, upload.receipt.refused) == (2, [(1, "too_many")])
    street.world.store.close()


def test_each_period_counts_anew_and_nothing_is_kept_of_those_that_closed(house: House) -> None:
    assert house.sent((house.messages(1), "one"))[0][0] == CAP
    assert house.sent((house.messages(2), "one"))[0][0] == CAP
    assert len(house.counts) == 2
    house.clock.now = START + 16.0
    house.collector.close_due()
    assert len(house.counts) == 1
    house.collector.delete(house.running)
    assert len(house.counts) == 0


def test_what_was_not_written_was_not_counted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = house.messages(1)
    with monkeypatch.context() as broken:
        broken.setattr(house.store, "commit", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            house.sent((some[:CAP], "one"))
    with monkeypatch.context() as closed:  # by another process, meanwhile
        closed.setattr(house.store, "commit", lambda filled: [False for _ in filled])
        assert house.sent((some[:CAP], "one")) == [(0, 0, ["stale"] * CAP)]
    assert house.sent((some[:CAP], "one")) == [(CAP, 0, [])]


def test_copies_beside_a_report_take_no_room(house: House) -> None:
    some = house.messages(1)
    assert house.sent((some[:2] * 3, "one"), (some[1:3], "two")) == [(2, 4, []), (1, 1, [])]
    assert house.sent((some[:2] * 3, "one"), (some[3:8], "one"))[1] == (
        CAP - 2,
        0,
        ["too_many"] * 2,
    )


def test_other_tasks_have_no_cap(house: House) -> None:
    plain = house.collector.publish(LISTENING, START, grace=5, sealed=False)
    fleet = Fleet(plain, 3 * CAP)
    house.clock.now = START + 11.0
    body = fleet.body(VALUES[: 3 * CAP])
    n = house.collector.take(plain, body).accepted
    assert n == _counted(plain)
    assert plain.task_id != house.running.task_id


def test_devices_send_again_later_and_later() -> None:
    collector, clock = setting(mix="mix = {1 = 1.0}\ncap = 3")
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    collector.refuse = {1: "too_many"}
    clock.now = HOUR + 1.0
    assert device.flush().waiting == 1
    collector.refuse = {}
    assert device.flush().waiting == 1  # it waits a little first
    clock.now += 10.0
    assert device.flush().sent == 1


@pytest.mark.parametrize("cap", [0, -1, 2.5, "many", True])
def test_a_cap_is_a_number_of_reports(cap: Any) -> None:
    with pytest.raises(ConfigurationError, match="cap is"):
        catalog.changed(LISTENING, cap=cap)


def test_shuffled_reports_cannot_have_one(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "collector.db")
    collector = Collector(store, "http://here", Clock())
    shuffle = {"url": "https://mixer.example", "epsilon": 1.5, "delta": 1e-6, "min_batch": 2000}
    fields = {
        "title": "Lights",
        "epsilon": 2.0,
        "periods": 6,
        "period": "10 seconds",
        "changes": 2,
        "values": {"kind": "binary"},
        "shuffle": shuffle,
        "cap": 5,
    }
    with pytest.raises(ConfigurationError, match="cap is 5 where the task has a shuffle"):
        collector.publish(task(fields), START)
    store.close()
