"""The capacity model: what more load takes, what units scale, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from sfumato import catalog
from sfumato.errors import ConfigurationError
from sfumato.planner import Capacity, Load, UnitCosts, capacity
from sfumato.planner.capacity_model import MOST_HELD
from sfumato.planner.capacity_roles import WORDS
from sfumato.planner.joining import Rounds
from sfumato.planner.unit_costs import COSTS
from sfumato.shuffler.mixing import MOST_IDS

UNITS = UnitCosts.shipped()
HOUR = 3600
LOADS: Mapping[str, Mapping[str, Any]] = {
    "direct": {},
    "new connections": {"connections": "new"},
    "batches": {"batch": 24},
    "plain": {"sealed": False},
    "shuffled": {"min_batch": 1000},
    "database": {"store": "postgresql"},
    "hashed": {"hashed": True, "entries": 256, "payload": 9},
    "places": {"places": 8},
    "engine": {"engine": "spark"},
    "by an engine": {"engine": "local", "counts": "engine"},
}


def needed(devices: int = 10_000_000, every: int = HOUR, **run: Any) -> Capacity:
    return capacity(Load(devices, every, **run), UNITS)


def seconds(found: Capacity) -> float:
    return sum(role.seconds for role in found.roles)


@pytest.mark.parametrize("run", LOADS.values(), ids=LOADS)
def test_more_devices_never_need_less(run: Mapping[str, Any]) -> None:
    before = needed(10_000, **run)
    for devices in (30_000, 100_000, 10**6, 10**7, 10**8, 10**9, 10**11):
        now = needed(devices, **run)
        assert now.cores >= before.cores
        assert seconds(now) > seconds(before)
        for role in now.roles:
            if role.name != "database" or "database" in [each.name for each in before.roles]:
                assert role.memory >= before.role(role.name).memory
        before = now


@pytest.mark.parametrize("run", LOADS.values(), ids=LOADS)
def test_a_longer_period_never_needs_more_cores(run: Mapping[str, Any]) -> None:
    cores = [needed(10**8, every, **run).cores for every in (600, HOUR, 24 * HOUR, 168 * HOUR)]
    assert cores == sorted(cores, reverse=True)


@pytest.mark.parametrize("name", COSTS)
def test_no_cost_makes_anything_cheaper(name: str) -> None:
    if name.endswith("wall"):
        return  # more uploads are joined to a round
    dear = replace(UNITS, **{name: 2 * getattr(UNITS, name)})
    for run in LOADS.values():
        before = capacity(Load(10**8, HOUR, **run), UNITS)
        anew, same = capacity(Load(10**8, HOUR, **run), dear), capacity(before.load, dear)
        for role in before.roles:
            # Dearer rounds of collectors are larger ones, of which a database has fewer.
            if role.name != "database" or name.startswith("database"):
                assert anew.role(role.name).cores >= role.cores
                assert same.role(role.name).seconds >= 0.999 * role.seconds


def test_costs_that_are_all_twice_as_high_make_it_twice_as_much_work() -> None:
    walls = [name for name in COSTS if name.endswith(("wall", "bytes", "factor"))]
    twice = {name: 2 * getattr(UNITS, name) for name in COSTS if name not in walls}
    load = Load(10**6, HOUR, collectors=4, batch=1000)
    one, two = (capacity(load, units) for units in (UNITS, replace(UNITS, **twice)))
    assert seconds(two) == pytest.approx(2 * seconds(one), rel=1e-6)


def test_a_report_costs_the_same_whatever_the_unit_of_time_of_its_period() -> None:
    hour, day = needed(10**6, HOUR, peak=40.0), needed(24 * 10**6, 24 * HOUR, peak=40.0)
    assert hour.role("collectors").processes == pytest.approx(
        day.role("collectors").processes, rel=0.02
    )


def test_the_work_of_a_seal_is_linear_in_reports() -> None:
    few, many = (needed(n).role("collectors").parts["seal"] for n in (10**6, 10**8))
    assert few == pytest.approx(10**6 * UNITS.seal)
    assert many == pytest.approx(100 * few)


def test_rounds_join_more_uploads_as_more_come() -> None:
    rounds = Rounds(fixed=2.5e-3, upload=1.5e-4, window=4e-3, work=6e-5)
    sizes = [rounds.size(rate) for rate in (0, 1, 10, 100, 1000, 5000, 10**6)]
    assert sizes[0] == 1
    assert sizes == sorted(sizes)
    assert sizes[3] == pytest.approx(1.4, rel=0.01)
    assert sizes[-1] == pytest.approx(rounds.most)
    assert rounds.busy(0.9 * rounds.limit) == pytest.approx(1.0, rel=0.02)
    assert rounds.busy(100) == pytest.approx(100 * (1.5e-4 + 2.5e-3 / sizes[3]))


def test_a_shuffler_bears_the_requests_instead_of_the_collectors() -> None:
    direct, shuffled = needed(10**8), needed(10**8, min_batch=1000)
    assert shuffled.roles[0].name == "shufflers"
    assert shuffled.role("collectors").cores < direct.role("collectors").cores / 2
    assert shuffled.role("collectors").parts["seal"] == direct.role("collectors").parts["seal"]


def test_what_shufflers_hold_is_what_they_refuse_beyond() -> None:
    assert MOST_HELD == MOST_IDS // 2
    assert needed(10**9, 24 * HOUR, min_batch=1000).role("shufflers").processes >= 250


def test_peaks_take_cores_and_not_work() -> None:
    flat, steep = (needed(10**8, peak=peak, batch=1000) for peak in (1.0, 12.0))
    assert steep.cores > 2 * flat.cores
    assert steep.role("collectors").parts["seal"] == flat.role("collectors").parts["seal"]


def test_what_is_kept_takes_disk() -> None:
    week, month = (needed(10**6, keep=days * 86_400).role("collectors").disk for days in (7, 28))
    logged = 10**6 * 13 * 24 * 21
    assert month - week == pytest.approx(logged)
    nothing, ever, day = (
        needed(10**6, keep=keep).role("collectors").disk for keep in (None, "for ever", 86_400)
    )
    assert ever == day == pytest.approx(nothing + 10**6 * 13 * 24)


def test_what_an_engine_opens_its_collector_does_not() -> None:
    load: dict[str, Any] = {"store": "postgresql", "engine": "local"}
    own, left = needed(**load), needed(**load, counts="engine")
    assert own.role("engine (local)").parts.keys() == {"report", "count"}
    assert left.role("collectors").parts.keys().isdisjoint({"seal", "count"})
    assert left.role("engine (local)").parts["seal"] == own.role("collectors").parts["seal"]
    assert left.role("database").disk > own.role("database").disk  # sealed, with its id
    spark = needed(**(load | {"engine": "spark"}), counts="engine").role("engine (spark)")
    assert spark.parts["seal"] == left.role("engine (local)").parts["seal"]
    assert spark.parts["count"] > left.role("engine (local)").parts["count"]
    with pytest.raises(ConfigurationError, match="engine is 'none' where counts is 'engine'"):
        Load(1000, HOUR, counts="engine")


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ({"devices": 10**12}, "closing a period"),
        ({"devices": 10**9, "store": "sqlite"}, "one file"),
        ({"devices": 10**9, "collectors": 2, "store": "postgresql"}, "too few collectors"),
        ({"devices": 10**8, "min_batch": 1000, "shufflers": 1}, "too few shufflers"),
    ],
)
def test_what_more_cores_do_not_help_with_is_the_bottleneck(run: Any, name: str) -> None:
    found = needed(**run)
    assert found.bottleneck.startswith(name)
    assert found.bottleneck == found.limits[0].name
    assert all(limit.sentence.endswith(".") for limit in found.limits)


def test_a_bottleneck_is_what_takes_most_of_the_processor_time() -> None:
    found = needed()
    part, role = max(
        ((cost, (part, role)) for role in found.roles for part, cost in role.parts.items()),
        key=lambda pair: pair[0],
    )[1]
    assert found.bottleneck == f"{WORDS[part]} in the {role.name}"
    assert set().union(*(role.parts for role in found.roles)) <= set(WORDS)


def test_where_ids_fill_the_memory_they_are_the_bottleneck() -> None:
    daily = needed(10**9, 24 * HOUR)
    assert daily.role("collectors").processes == 30
    assert daily.bottleneck == "the ids of open periods in the collectors"
    assert "ids" not in needed(10**9).bottleneck


def test_a_file_is_enough_as_long_as_one_machine_is() -> None:
    assert needed(10**6).load.store == "sqlite"
    assert needed(10**9).load.store == "postgresql"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("devices", 0),
        ("devices", 1.5),
        ("every", 0),
        ("messages", 0.0),
        ("messages", float("nan")),
        ("batch", 0),
        ("peak", 0.5),
        ("peak", float("inf")),
        ("connections", "both"),
        ("store", "mysql"),
        ("engine", "ray"),
        ("counts", "nobody"),
        ("keep", "weekly"),
        ("payload", 0),
        ("entries", -1),
        ("collectors", 0),
        ("keep", -1),
        ("min_batch", 0),
        ("shufflers", 2),
    ],
)
def test_a_load_that_cannot_be_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{field} is {value}|^{field} is '{value}'"):
        Load(**({"devices": 1000, "every": HOUR} | {field: value}))


def test_a_crowd_too_small_for_its_shuffler_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="erases them all"):
        Load(999, HOUR, min_batch=1000)
    with pytest.raises(ConfigurationError, match="erases them all"):
        Load(5000, HOUR, min_batch=1000, shufflers=6)
    with pytest.raises(ConfigurationError, match="would read them"):
        Load(5000, HOUR, min_batch=1000, sealed=False)


def test_a_task_says_its_load() -> None:
    task = catalog.parse(
        """
        title = "Lights"
        epsilon = 1.0
        periods = 16
        period = "1 hour"
        changes = 3
        keep = "30 days"
        values = { kind = "binary" }
        """
    )
    stream = catalog.stream(task)
    load = Load.of(task, stream, 10**6, peak=2.0)
    assert (load.every, load.keep, load.entries, load.peak) == (HOUR, 30 * 86_400, 1, 2.0)
    assert load.messages == pytest.approx(stream.sent.messages / 16)
    assert load.payload == stream.payload
    assert not load.is_shuffled
    ever = Load.of(replace(task, keep="for ever"), stream, 10**6)
    assert (ever.keep, ever.counts, ever.engine) == ("for ever", "collector", "none")
    by_engine = Load.of(replace(task, keep=None, counts="engine"), stream, 10**6)
    assert (by_engine.counts, by_engine.engine) == ("engine", "local")
    assert by_engine.content_bytes > ever.content_bytes
    with pytest.raises(ConfigurationError, match="the task's period is 1 hour"):
        Load.of(task, stream, 10**6, every=60)


def test_it_is_plain_data() -> None:
    plain = needed(min_batch=1000, store="postgresql", engine="local").plain()
    assert [role["name"] for role in plain["roles"]] == [
        "shufflers",
        "collectors",
        "database",
        "engine (local)",
    ]
    assert plain["units"] == asdict(UNITS)
    assert plain["load"].keys() == {field.name for field in fields(Load)}
