"""The device keeps the promise, whatever the server, the clock or a backup does."""

from __future__ import annotations

import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.device.app import ALWAYS, VALUES, Clock, lived, opened, setting
from tests.device.collecting import HOUR, published

from sfumato.device import Device, Limits
from sfumato.device.enrolment import ROOT
from sfumato.errors import (
    BudgetError,
    ConfigurationError,
    InputError,
    MismatchError,
)
from sfumato.wire.published import Published


def test_ten_lines_take_part_in_a_whole_horizon(tmp_path: Path) -> None:
    collector, clock = setting()
    device = opened(tmp_path / "journal", collector, clock)
    task = device.join("http://collector/task")
    lived(device, clock, VALUES)
    due = {period for period, _, _ in collector.seen}
    assert len(collector.seen) == len(due) >= 1
    assert device.left == 1.0
    log = device.log()
    assert "joined 't'" in log[0]
    assert task[:12] in log[0]
    assert log[-1] == "Epsilon 1 of 2 is left."
    assert sum("was sent" in line for line in log) == len(due)


def test_a_task_is_paid_once_however_often_it_is_joined() -> None:
    collector, clock = setting()
    device = opened(":memory:", collector, clock)
    first = device.join("http://x")
    assert device.join(collector.task) == first
    assert device.left == 1.0


def test_a_new_version_of_a_task_is_another_task_and_costs_again() -> None:
    collector, clock = setting()
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    other, _ = published(title="t2")
    device.join(other)
    assert device.left == 0.0
    third, _ = published(title="t3")
    with pytest.raises(BudgetError, match=r"asks for epsilon 1; 0 of the limit of 2 is left"):
        device.join(third)


def test_new_keys_do_not_make_a_device_answer_twice() -> None:
    """A server that hands one device a key of its own gets nothing more from it."""
    collector, clock = setting(mix=ALWAYS)
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    lived(device, clock, VALUES[:4])
    before = list(collector.seen)
    _, key = published()
    own = replace(collector.task, keys={2: key.public_key().public_bytes_raw()})
    device.join(own)
    device.flush(force=True)
    assert collector.seen == before
    assert device.left == 1.0


def test_what_the_owner_does_not_allow_is_refused() -> None:
    collector, clock = setting()
    limits = Limits(2.0, kinds=frozenset({"binary"}))
    device = Device.open(":memory:", limits, collector, clock)
    with pytest.raises(BudgetError, match="values of kind 'category'; the owner allows binary"):
        device.join(collector.task)
    bare = Published(collector.task.spec, {}, "http://collector")
    with pytest.raises(BudgetError, match="no key to seal"):
        opened(":memory:", collector, clock).join(bare)
    with pytest.raises(BudgetError, match=r"0\.5 of the limit of 0\.5 is left"):
        opened(":memory:", collector, clock, epsilon=0.5).join(collector.task)


def test_a_refused_task_leaves_no_trace() -> None:
    collector, clock = setting()
    device = opened(":memory:", collector, clock, epsilon=0.5)
    with pytest.raises(BudgetError):
        device.join(collector.task)
    assert device.journal.tasks() == []
    device.limits = Limits(2.0)
    device.join(collector.task)  # its key was not used up
    assert device.left == 1.0


@pytest.mark.parametrize("kept", range(9))
def test_a_restored_backup_repeats_itself_to_the_byte(tmp_path: Path, kept: int) -> None:
    collector, clock = setting(mix=ALWAYS)
    device = opened(tmp_path / "journal", collector, clock)
    if kept:
        device.join(collector.task)
    lived(device, clock, VALUES[: kept - 1] if kept else [])
    device.close()
    shutil.copy(tmp_path / "journal", tmp_path / "backup")
    device = opened(tmp_path / "journal", collector, clock)
    device.join(collector.task)
    first = max(kept - 1, 0)
    lived(device, clock, VALUES[first:], first)
    original = dict.fromkeys(collector.seen)
    restored = opened(tmp_path / "backup", collector, Clock())
    clock = restored.clock  # type: ignore[assignment]
    restored.join(collector.task)
    lived(restored, clock, VALUES[first:], first)
    assert dict.fromkeys(collector.seen) == original  # nothing new, under the same ids


def test_a_report_is_saved_before_it_leaves_and_re_sent_as_it_was(tmp_path: Path) -> None:
    collector, clock = setting(mix=ALWAYS)
    collector.lost = 3
    device = opened(tmp_path / "journal", collector, clock)
    device.join(collector.task)
    for period, value in enumerate(VALUES):
        clock.now = period * HOUR + 10.0
        device.observe(value)
        clock.now = (period + 1) * HOUR + 1.0
        device.flush(force=True)
        device.close()  # every period ends with a crash
        device = opened(tmp_path / "journal", collector, clock)
    by_period: dict[int, set[tuple[bytes, bytes]]] = {}
    for period, name, content in collector.seen:
        by_period.setdefault(period, set()).add((name, content))
    assert all(len(answers) == 1 for answers in by_period.values())
    assert set(by_period) == set(range(1, 9))


def test_clocks_that_jump_free_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    collector, clock = setting(mix=ALWAYS)
    device = opened(tmp_path / "journal", collector, clock)
    device.join(collector.task)
    for now in (2.5, 0.1, 5.2, -100.0, 3.0, 7.0, 1e6, 0.0, 8.0):
        clock.now = now * HOUR
        device.observe("b")
        device.flush(force=True)
        device.close()
        device = opened(tmp_path / "journal", collector, clock)
    periods = [period for period, _, _ in collector.seen]
    assert sorted(periods) == list(range(1, 9))
    assert device.left == 1.0


def test_what_was_left_or_erased_stays_spent_and_cannot_be_joined_again(tmp_path: Path) -> None:
    collector, clock = setting()
    device = opened(tmp_path / "journal", collector, clock)
    device.join(collector.task)
    device.leave()
    assert device.left == 1.0
    assert any("left 't' and erased it" in line for line in device.log())
    with pytest.raises(BudgetError, match="was taken before"):
        device.join(collector.task)
    other, _ = published(title="other")
    device.join(other)
    device.erase()
    assert device.journal.tasks() == []
    assert device.left == 0.0


def test_used_keys_are_gone_from_the_file(tmp_path: Path) -> None:
    collector, clock = setting(mix=ALWAYS)
    device = opened(tmp_path / "journal", collector, clock)
    root = device.journal.fact(ROOT)
    device.join(collector.task)
    chains = []
    for period in range(4):
        chains.append(device.journal.tasks()[0].chain)
        lived(device, clock, ["a"], period)
    device.close()
    content = (tmp_path / "journal").read_bytes()
    assert root is not None
    assert root[9:] not in content
    assert not [key for key in chains if key in content]


def test_an_unknown_value_is_no_news_and_changes_nothing_that_can_be_seen() -> None:
    sent = []
    for odd in (None, "zebra"):
        collector, clock = setting(mix=ALWAYS)
        device = opened(":memory:", collector, clock)
        device.join(collector.task)
        for period in range(8):
            clock.now = period * HOUR + 10.0
            if period != 3:
                device.observe("a")
            elif odd is not None:
                device.observe(odd)
            clock.now = (period + 1) * HOUR + 1.0
            device.flush()
        sent.append([(period, len(content)) for period, _, content in collector.seen])
    assert sent[0] == sent[1]
    with pytest.raises(InputError, match="zebra"):
        device.observe("zebra", strict=True)


def test_before_the_first_value_a_device_sends_like_any_other() -> None:
    collector, clock = setting(mix=ALWAYS)
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    clock.now = 8 * HOUR + 1.0
    device.flush()
    assert {period for period, _, _ in collector.seen} == set(range(1, 9))


def test_without_a_network_reports_wait_and_are_sent_later() -> None:
    collector, clock = setting(mix=ALWAYS)
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    collector.reachable = False
    clock.now = 3 * HOUR + 1.0
    first = device.flush()
    assert (first.sent, first.waiting) == (0, 3)
    assert first.problem == "nobody is there"
    collector.reachable = True
    assert device.flush().sent == 0  # not yet: it waits a little, and longer each time
    clock.now += 10.0
    assert device.flush().sent == 3
    assert device.flush().waiting == 0


def test_refused_reports_are_dropped_or_kept_by_their_reason() -> None:
    collector, clock = setting(mix=ALWAYS)
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    collector.refuse = {2: "stale", 3: "future"}
    clock.now = 4 * HOUR + 1.0
    done = device.flush()
    assert (done.sent, done.refused, done.waiting) == (2, 1, 1)
    collector.refuse = {}
    assert device.flush().sent == 1
    assert any("refused (stale)" in line for line in device.log())


def test_the_journal_is_for_its_owner_and_one_process_only(tmp_path: Path) -> None:
    collector, clock = setting()
    path = tmp_path / "journal"
    path.touch(mode=0o644)
    device = opened(path, collector, clock)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="is in use already"):
        opened(path, collector, clock)
    device.close()
    broken = tmp_path / "broken"
    broken.write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="is no journal, and is left as it is"):
        opened(broken, collector, clock)
    with pytest.raises(InputError, match="is in no folder"):
        opened(tmp_path / "nowhere" / "journal", collector, clock)


def test_mistakes_get_a_sentence() -> None:
    collector, clock = setting()
    device = opened(":memory:", collector, clock)
    with pytest.raises(ConfigurationError, match="takes part in 0 tasks"):
        device.observe("a")
    with pytest.raises(MismatchError, match="takes no part in it"):
        device.observe("a", "00" * 32)
    with pytest.raises(InputError, match="a task's id is expected"):
        device.observe("a", "zz")
    collector.reachable = False
    with pytest.raises(InputError, match="cannot be fetched: nobody is there"):
        device.join("http://x")
    with pytest.raises(InputError, match="no JSON"):
        device.join(b"not a task")
