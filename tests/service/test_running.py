"""How a task is run is part of the task: where reports go, and what its collector promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service.fleets import LISTENING
from tests.service.test_collector import START, Setting
from tests.service.test_renewal import Line

from sfumato import catalog
from sfumato.device import Device, Limits
from sfumato.errors import ConfigurationError, InputError
from sfumato.service import Collector
from sfumato.service.task_submission import PublishRequest
from sfumato.store import SQLiteStore
from sfumato.wire.canonical import canonical
from sfumato.wire.published import Published


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    made = Setting(tmp_path / "collector.db")
    yield made
    made.store.close()


def test_whoever_serves_a_task_fixes_where_reports_go(setting: Setting, tmp_path: Path) -> None:
    running = setting.running()
    spec = running.published.spec
    assert (spec["format"], spec["endpoint"]) == (2, "http://here/v1/tasks/{task}/reports")
    assert running.published.endpoint == f"http://here/v1/tasks/{running.name}/reports"
    store = SQLiteStore(tmp_path / "other.db")
    other = Collector(store, "http://there", setting.clock).publish(LISTENING, START, grace=5)
    assert other.task_id != running.task_id
    store.close()
    # Served from elsewhere, it is the same task still, and devices send where they did.
    setting.store.close()
    setting.store = SQLiteStore(setting.path)
    (again,) = Collector(setting.store, "http://there", setting.clock).running_tasks.values()
    assert (again.task_id, again.published) == (running.task_id, running.published)


@pytest.mark.parametrize("where", ["https://mixer.example/{task}/in", "https://mixer.example/in"])
def test_a_task_may_name_where_reports_go(setting: Setting, where: str) -> None:
    named = setting.collector.publish(replace(LISTENING, endpoint=where), START)
    assert named.published.endpoint == where.replace("{task}", named.name)
    asked = setting.collector.publish(LISTENING, START, endpoint=where)
    assert asked.task_id == named.task_id


def test_a_device_sends_nowhere_but_where_the_spec_says(setting: Setting) -> None:
    running = setting.running()
    device = Device.open(":memory:", Limits(2.0), Line(setting, running), setting.clock)
    moved = replace(running.published, endpoint="http://elsewhere/reports")
    for _ in range(2):  # before it has joined, and after
        with pytest.raises(InputError, match="endpoint is 'http://elsewhere/reports'; its spec"):
            device.join(moved)
        device.join(running.published)
    # What was published before addresses were part of a task may be served from anywhere.
    spec = {k: v for k, v in running.published.spec.items() if k not in ("endpoint", "stream")}
    before = Published(
        spec | {"format": 1, "kind": "horizon"}, running.published.keys, "http://a/b"
    )
    device = Device.open(":memory:", Limits(2.0), Line(setting, running), setting.clock)
    device.join(before)
    device.join(replace(before, endpoint="http://c/d"))
    (joined,) = device.journal.tasks()
    assert Published.parse(joined.published).endpoint == "http://c/d"


def test_a_format_that_nobody_knows_yet_is_refused(setting: Setting) -> None:
    running = setting.running()
    later = replace(running.published, spec={**running.published.spec, "format": 3})
    with pytest.raises(InputError, match="the task has format '3'; 1 and 2 are known here"):
        Published.parse(later.encode())


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ({"shuffler": "https://mixer.example"}, "shuffler is 'https://mixer.example'; this coll"),
        ({"enrolment": "credentials"}, "enrolment is 'credentials'; anybody may take part in"),
        ({"counts": "engine"}, "keep is 'for ever' where counts is 'engine'; reports that an"),
    ],
)
def test_what_nothing_here_can_do_is_refused(
    setting: Setting, run: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        setting.collector.publish(catalog.changed(LISTENING, **run), START)
    assert not setting.collector.running_tasks


def test_there_is_no_key_to_renew_without_seals(setting: Setting) -> None:
    with pytest.raises(ConfigurationError, match="renew is 20 seconds; the task's reports are not"):
        setting.collector.publish(replace(LISTENING, renew=20), START, sealed=False)


def test_what_is_usual_is_left_out() -> None:
    usual = catalog.changed(LISTENING, enrolment="open", counts="collector")
    assert usual == LISTENING
    assert usual.task_id == LISTENING.task_id
    later = catalog.changed(LISTENING, renew="1 day", keep="1 week", endpoint="https://here")
    assert (later.renew, later.keep) == (86_400, 604_800)
    assert canonical(catalog.changed(later).plain()) == later.canonical()
    assert len({later.task_id, LISTENING.task_id}) == 2


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('endpoint = "here"', "endpoint is 'here'; an address with https:// is expected."),
        ("shuffler = 3", "shuffler is 3; an address with https:// is expected."),
        ('enrolment = "opne"', "enrolment is 'opne'; open, counted or credentials is expected"),
        ('renew = "often"', "renew is 'often'; a whole number of seconds, minutes,"),
        ('renew = "5 seconds"', "renew is 5 seconds; at least a period, 3600 seconds, is expec"),
        ('counts = "me"', "counts is 'me'; collector or engine is expected."),
        ("keep = 0", "keep is 0; a whole number of seconds, minutes,"),
    ],
)
def test_a_mistake_gets_one_sentence_with_its_line(line: str, sentence: str) -> None:
    text = f"""title = "t"
epsilon = 1
periods = 8
period = "1 hour"
changes = 2
{line}
values = {{kind = "binary"}}
"""
    with pytest.raises(ConfigurationError, match=re.escape(f"t.toml, line 6: {sentence}")):
        catalog.parse(text, "t.toml")


def test_a_request_names_one_address(setting: Setting) -> None:
    told = {"title": "t", "epsilon": 1, "periods": 8, "period": "1 hour", "changes": 2}
    told |= {"values": {"kind": "binary"}, "endpoint": "https://here"}
    body = canonical({"task": told, "endpoint": "https://there"})
    with pytest.raises(InputError, match="endpoint is 'https://there' where that of the task is"):
        PublishRequest.parse(body)
    running = PublishRequest.parse(canonical({"task": told})).publish(setting.collector)
    assert running.published.endpoint == "https://here"


def test_a_task_whose_last_period_has_closed_is_not_published(setting: Setting) -> None:
    told = {"title": "t", "epsilon": 1, "periods": 8, "period": "1 hour", "changes": 2}
    told |= {"values": {"kind": "binary"}}
    end, last = int(setting.clock()), 8 * 3600 + 30
    for start, grace in ((end - last, 30), (end - last - 3570, None), (0, None)):
        request = PublishRequest.parse(canonical({"task": told, "start": start, "grace": grace}))
        with pytest.raises(ConfigurationError, match=f"start is {start}, from which the 8 periods"):
            request.publish(setting.collector)
        assert not setting.store.tasks()
    late = canonical({"task": told, "start": end - last + 1, "grace": 30})
    PublishRequest.parse(late).publish(setting.collector)
    assert len(setting.store.tasks()) == 1


def test_keys_are_renewed_when_they_are_due(setting: Setting) -> None:
    running = setting.collector.publish(replace(LISTENING, renew=20), START, grace=5)
    line = Line(setting, running)
    device = Device.open(":memory:", Limits(2.0), line, setting.clock)
    device.join(f"http://here/v1/tasks/{running.name}")
    newest = []
    for seconds in (0, 19, 20, 39, 41, 43):
        setting.clock.now = START + float(seconds)
        setting.collector.close_due()
        newest.append(max(running.keys))
    assert [number - START for number in newest] == [0, 0, 20, 20, 41, 41]
    assert running.published.key_id == newest[-1]
    assert running.published.endpoint == f"http://here/v1/tasks/{running.name}/reports"
    device.join(f"http://here/v1/tasks/{running.name}")
    (joined,) = device.journal.tasks()
    assert Published.parse(joined.published).key_id == newest[-1]


def test_a_collector_that_was_away_renews_once(setting: Setting) -> None:
    running = setting.collector.publish(replace(LISTENING, renew=10), START, grace=5)
    setting.clock.now = START + 35.0
    setting.collector.close_due()
    assert max(running.keys) == START + 35
    assert len(running.keys) <= 2
    setting.reopen()
    (again,) = setting.collector.running_tasks.values()
    setting.collector.close_due()
    assert max(again.keys) == START + 35
