"""What leaves a shuffler: each acknowledged report once, in an order that tells nothing."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.service.fleets import Fleet, batch
from tests.shuffler.mixers import HERE, LEAST, TASK, Mixer

from sfumato import catalog
from sfumato.errors import InputError
from sfumato.randomness import Keyed, seeded
from sfumato.shuffler.holding import Holding
from sfumato.shuffler.mixing import Shuffler
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch


@pytest.fixture
def mixer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixer]:
    mixer = Mixer(tmp_path, monkeypatch)
    with mixer.world.client:
        yield mixer
    mixer.close()


def test_a_period_leaves_in_one_mixed_batch_and_is_counted_once(mixer: Mixer) -> None:
    fleet = Fleet(mixer.running, 30)
    mixer.end_of(1)
    bodies = mixer.bodies(fleet)
    receipts = mixer.take([*bodies, *bodies])  # each is sent twice
    assert sum(each["accepted"] for each in receipts) == len(bodies) == 30
    assert sum(each["repeated"] for each in receipts) == 30
    assert not mixer.left
    mixer.hand_on(1)
    (body,) = mixer.left
    came = [name for each in bodies for name in mixer.ids(each)]
    assert sorted(mixer.ids(body)) == sorted(came)
    assert mixer.ids(body) != came
    assert mixer.world.store.participation(mixer.running.task_id) == {1: 30}
    assert mixer.holding.counts(mixer.running.task_id) == {"acknowledged": 30, "counted": 30}
    assert not mixer.holding.batches()
    assert mixer.take(bodies)[0]["refused"] == [{"index": 0, "reason": "stale"}]


def test_nothing_below_min_batch_leaves_and_it_expires_counted(mixer: Mixer) -> None:
    fleet = Fleet(mixer.running, LEAST)
    mixer.end_of(1)
    mixer.take(mixer.bodies(fleet, slice(1, None)))
    mixer.hand_on(1)
    mixer.end_of(2)
    mixer.take(mixer.bodies(fleet))
    mixer.hand_on(2)
    assert [Batch.head(body)[2] for body in mixer.left] == [LEAST]
    counts = mixer.holding.counts(mixer.running.task_id)
    assert counts == {"acknowledged": 2 * LEAST - 1, "expired": LEAST - 1, "counted": LEAST}
    assert not mixer.holding.waiting()


def test_reports_under_two_keys_are_two_crowds(mixer: Mixer) -> None:
    """Whoever is handed a key of his own is alone with it, and nothing of his ever leaves."""
    fleet = Fleet(mixer.running, 2 * LEAST)
    mixer.end_of(1)
    messages = fleet.messages([1] * 2 * LEAST)
    mixer.take([batch(mixer.running, messages[: LEAST + 1])])
    before = mixer.running.published.key_id
    mixer.world.collector.rotate(mixer.running)
    mixer.collecting.fetch(mixer.running.task_id)
    mixer.take([batch(mixer.running, messages[LEAST + 1 :])])
    mixer.hand_on(1)
    assert [Batch.head(body)[1:] for body in mixer.left] == [(before, LEAST + 1)]
    assert mixer.holding.counts(mixer.running.task_id)["expired"] == LEAST - 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_period_stays_over_when_the_clock_is_set_back(mixer: Mixer, *, restarted: bool) -> None:
    """Or one who came late could leave with reports that have left before, and be told apart."""
    mixer.end_of(1)
    bodies = mixer.bodies(Fleet(mixer.running, LEAST + 1))
    mixer.take(bodies[:-1])
    mixer.hand_on(1)
    mixer.end_of(1)
    if restarted:
        mixer.restart()
    reasons = [receipt["refused"] for receipt in mixer.take(bodies)]
    assert reasons == [[{"index": 0, "reason": "stale"}]] * len(bodies)
    mixer.hand_on(1)
    assert len(mixer.left) == 1
    counts = mixer.holding.counts(mixer.running.task_id)
    assert counts == {"acknowledged": LEAST, "counted": LEAST}


def test_many_reports_are_cut_into_batches_that_are_all_large_enough(mixer: Mixer) -> None:
    mixer.collecting.fetch(mixer.running.task_id)
    task = mixer.shuffler.tasks[mixer.running.task_id]
    task.__dict__["most_together"] = 2 * LEAST
    for n in (LEAST, 2 * LEAST, 2 * LEAST + 1, 5 * LEAST - 1, 7 * LEAST + 3):
        held = np.zeros(n, dtype=task.layout.report_dtype)
        sizes = [size for size, _ in mixer.shuffler._mixed(task, held.tobytes())]  # noqa: SLF001
        assert sum(sizes) == n
        assert LEAST <= min(sizes) <= max(sizes) <= 2 * LEAST


def test_killed_at_any_moment_every_acknowledged_report_counts_once(mixer: Mixer) -> None:
    """The shuffler starts anew between any two steps, and the line loses requests and responses."""
    rng = random.Random(7)  # noqa: S311
    mixer.lost = lambda: rng.random() < 0.4
    fleet = Fleet(mixer.running, 40)
    acknowledged: Counter[int] = Counter()
    for period, keep in ((1, 40), (2, LEAST - 1), (3, 25)):
        mixer.end_of(period)
        bodies = 2 * mixer.bodies(fleet, slice(keep))
        rng.shuffle(bodies)
        for start in range(0, len(bodies), 7):
            while mixer.running.task_id not in mixer.shuffler.tasks:
                try:
                    mixer.collecting.fetch(mixer.running.task_id)
                except InputError:
                    mixer.restart()
            receipts = mixer.take(bodies[start : start + 7])
            acknowledged[period] += sum(each["accepted"] for each in receipts)
            mixer.restart()
        mixer.world.now = mixer.running.ends_at(period) + 5
        mixer.shuffler.mix_due()
        for _ in range(100):
            mixer.restart()
            mixer.shuffler.mix_due()
            mixer.collecting.hand_on()
        mixer.world.now = mixer.running.closes_at(period)
        mixer.world.close_periods()
    assert acknowledged == {1: 40, 2: LEAST - 1, 3: 25}
    assert mixer.world.store.participation(mixer.running.task_id) == {1: 40, 3: 25}
    counts = mixer.holding.counts(mixer.running.task_id)
    assert counts == {"acknowledged": 40 + LEAST - 1 + 25, "expired": LEAST - 1, "counted": 65}
    assert min(Batch.head(body)[2] for body in mixer.left) >= LEAST
    assert len(set(mixer.left)) == 2  # what is sent again is the very same batch


def test_nothing_of_a_batch_stays_on_disk(mixer: Mixer) -> None:
    fleet = Fleet(mixer.running, 20)
    mixer.end_of(1)
    bodies = mixer.bodies(fleet)
    mixer.take(bodies)
    sealed = [body[-40:] for body in bodies]
    there = b"".join(path.read_bytes() for path in mixer.folder.glob("shuffler.db*"))
    assert all(part in there for part in sealed)
    mixer.hand_on(1)
    there = b"".join(path.read_bytes() for path in mixer.folder.glob("shuffler.db*"))
    assert not any(part in there for part in sealed)
    ids = [name for body in bodies for name in mixer.ids(body)]
    assert not any(name in there for name in ids)


def test_what_was_erased_before_a_crash_is_gone_after_the_start(
    mixer: Mixer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixer.end_of(1)
    bodies = mixer.bodies(Fleet(mixer.running, 20))
    mixer.take(bodies)
    monkeypatch.setattr(type(mixer.holding), "_empty_log", lambda _: None)
    mixer.hand_on(1)  # the log still has the reports, as after a kill before it is emptied
    sealed = [body[-40:] for body in bodies]
    copy = mixer.folder / "crashed.db"
    for path in mixer.folder.glob("shuffler.db*"):
        if path.name.removeprefix("shuffler.db") in ("", "-wal"):
            end = path.name.removeprefix("shuffler.db")
            (mixer.folder / f"crashed.db{end}").write_bytes(path.read_bytes())
    there = b"".join(path.read_bytes() for path in mixer.folder.glob("crashed.db*"))
    assert any(part in there for part in sealed)
    monkeypatch.undo()
    again = type(mixer.holding)(copy)
    there = b"".join(path.read_bytes() for path in mixer.folder.glob("crashed.db*"))
    again.close()
    assert not any(part in there for part in sealed)


# ---- order --------------------------------------------------------------------------------------


def _orders(mixer: Mixer, mixed: Any, n: int, times: int) -> list[list[int]]:
    """Return for some runs where each of n reports, numbered as they came, is in the batch."""
    task = mixer.shuffler.tasks[mixer.running.task_id]
    orders = []
    for _ in range(times):
        held = np.zeros(n, dtype=task.layout.report_dtype)
        held["period"] = np.arange(n)  # any mark will do
        ((_, body),) = mixed(task, held.tobytes())
        left: Any = np.frombuffer(body, dtype=task.layout.report_dtype)
        orders.append(left["period"].tolist())
    return orders


def _p_values(orders: list[list[int]]) -> tuple[float, float]:
    """Return p-values for: each place is uniform, and neighbours do not stay together."""
    table = np.array(orders)
    n, times = table.shape[1], len(table)
    places = np.array([[np.sum(table[:, at] == who) for at in range(n)] for who in range(n)])
    uniform = float(stats.chisquare(places.ravel(), ddof=2 * n - 2).pvalue)
    beside = int(np.sum(np.diff(table, axis=1) == 1))
    expected = times * (n - 1) / n  # of n - 1 pairs, each is one of n - 1 follow-ups out of n (n-1)
    together = float(2 * stats.norm.sf(abs(beside - expected) / expected**0.5))
    return uniform, together


def _kept(task: Any, reports: bytes) -> list[tuple[int, bytes]]:
    del task
    return [(0, reports)]


def test_the_order_is_uniform_and_tells_nothing_of_arrivals(mixer: Mixer) -> None:
    mixer.collecting.fetch(mixer.running.task_id)
    mixer.shuffler._rng = Keyed(bytes(32), "mixing")  # noqa: SLF001 -- a test that repeats itself
    uniform, together = _p_values(_orders(mixer, mixer.shuffler._mixed, 12, 600))  # noqa: SLF001
    assert min(uniform, together) > 1e-6


def test_shufflers_that_keep_the_order_or_blocks_of_it_are_caught(mixer: Mixer) -> None:
    mixer.collecting.fetch(mixer.running.task_id)
    source = seeded(3)

    def blocks(task: Any, reports: bytes) -> list[tuple[int, bytes]]:
        held = np.frombuffer(reports, dtype=task.layout.report_dtype).reshape(-1, 4)
        return [(0, held[source.permutation(len(held))].tobytes())]

    assert max(_p_values(_orders(mixer, _kept, 12, 600))) < 1e-6
    assert min(_p_values(_orders(mixer, blocks, 12, 600))) < 1e-6


def test_the_list_of_tasks_says_what_they_promise_together(mixer: Mixer) -> None:
    """Of shuffled tasks the promise about mixed reports counts, of others the local one."""
    page = " ".join(mixer.world.client.get("/").text.split())
    local = mixer.world.open.protocol.guarantee.epsilon
    assert f"is in all 2 tasks, whatever became of them, epsilon {2 + local:g} and delta" in page
    assert "no more than mixed reports" in page


# ---- a collector that is hostile ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"collector": "http://other.example"}, "this is http://shuffler.example for"),
        ({"shuffle": [["min_batch", LEAST], ["url", "http://o.example"]]}, "are mixed by"),
        ({"shuffle": [["url", HERE]]}, "lacks"),
        ({"shuffle": [["min_batch", 0], ["url", HERE]]}, "min_batch is 0"),
        ({"shuffle": [["min_batch", 10**9], ["url", HERE]]}, "can be mixed"),
        ({"grace": -1}, "lacks"),
        ({"payload": "many"}, "lacks"),
    ],
)
def test_a_task_of_its_own_making_is_not_taken(
    mixer: Mixer, change: dict[str, Any], sentence: str
) -> None:
    spec = dict(mixer.published.spec) | change
    with pytest.raises(InputError, match=sentence):
        mixer.shuffler.learn(Published.of(spec, mixer.published.keys))


def test_a_key_is_pinned_to_its_number(mixer: Mixer) -> None:
    mixer.collecting.fetch(mixer.running.task_id)
    keys = {mixer.published.key_id: b"\x09" + bytes(31)}
    spec, endpoint = mixer.published.spec, mixer.published.endpoint
    with pytest.raises(InputError, match="another key under the same number"):
        mixer.shuffler.learn(Published(spec, keys, endpoint))
    with pytest.raises(InputError, match="older key"):
        mixer.shuffler.learn(Published(spec, {}, endpoint))


def test_a_task_of_ones_own_is_a_crowd_of_ones_own(mixer: Mixer) -> None:
    other = mixer.world.collector.publish(
        catalog.task(TASK | {"title": "For you alone"}), int(mixer.world.now), grace=5
    )
    mixer.end_of(1)
    mixer.collecting.fetch(other.task_id)
    body = batch(other, Fleet(other, 1).messages([1]))
    taken = mixer.shuffler.read(mixer.shuffler.tasks[other.task_id], body)
    mixer.shuffler.hold([taken])
    mixer.take(mixer.bodies(Fleet(mixer.running, 20)))
    mixer.hand_on(1)
    assert [Batch.head(left)[0] for left in mixer.left] == [mixer.running.task_id]


def test_memory_is_bounded_and_what_is_refused_is_not_remembered(
    tmp_path: Path, mixer: Mixer
) -> None:
    mixer.collecting.fetch(mixer.running.task_id)
    holding = Holding(tmp_path / "small.db")
    small = Shuffler(holding, HERE, "http://testserver", lambda: mixer.world.now, most_ids=20)
    small.learn(mixer.published)
    mixer.end_of(1)
    messages = Fleet(mixer.running, 20).messages([1] * 20)
    task = small.tasks[mixer.running.task_id]
    many = small.read(task, batch(mixer.running, messages))
    assert small.hold([many]) == {mixer.running.task_id}
    taken = small.read(task, batch(mixer.running, messages[:10]))
    assert not small.hold([taken])
    assert [many.accepted, taken.accepted] == [0, 10]
    # A task that is full keeps nobody out who sends for another one at the same moment.
    spec = dict(mixer.published.spec) | {"title": "Other"}
    other = small.learn(Published.of(spec, mixer.published.keys))
    moved = Batch.decode(batch(mixer.running, messages[:4]), mixer.running.layout).reports
    few = small.read(other, Batch(other.task_id, other.key_id, moved).encode())
    assert small.hold([many, few]) == {mixer.running.task_id}
    assert [many.accepted, few.accepted] == [0, 4]
    holding.close()


def test_a_file_of_another_program_is_left_alone(mixer: Mixer, tmp_path: Path) -> None:
    del mixer
    with pytest.raises(InputError, match="in use already"):
        Holding(tmp_path / "shuffler.db")
    other = tmp_path / "other.db"
    other.write_bytes(b"something else")
    with pytest.raises(InputError, match="is no store of a shuffler"):
        Holding(other)
    assert other.read_bytes() == b"something else"


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_version_is_gone_on_with(mixer: Mixer, version: int) -> None:
    """The first had the ids of reports in a table of their own; they are in the reports, too."""
    mixer.end_of(1)
    bodies = mixer.bodies(Fleet(mixer.running, 20))
    mixer.take(bodies[:15])
    mixer.holding.close()
    with closing(sqlite3.connect(mixer.folder / "shuffler.db")) as before:
        before.execute("DROP TABLE over")
        if version == 1:
            before.execute(
                "CREATE TABLE ids (row INTEGER PRIMARY KEY, task_id BLOB NOT NULL, "
                "period INTEGER NOT NULL, ids BLOB NOT NULL)"
            )
        before.execute(f"PRAGMA user_version = {version}")
    mixer.start()
    receipts = mixer.take(bodies)
    assert [each["repeated"] for each in receipts] == [1] * 15 + [0] * 5
    mixer.hand_on(1)
    assert mixer.world.store.participation(mixer.running.task_id) == {1: 20}
