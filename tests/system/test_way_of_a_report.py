"""The way of one report through every room, for each kind of stream: a tour for new readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.core.stream import Place, Stream
from sfumato.device import Delivery, Device, Limits
from sfumato.device.journal import Journal
from sfumato.errors import MismatchError
from sfumato.randomness import seeded
from sfumato.service import Collector, RunningTask
from sfumato.store import Release, SQLiteStore
from sfumato.streams.judging import Judge
from sfumato.streams.registry import spec_of, stream_of
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch
from sfumato.wire.unsealing import open_sealed

START, SECONDS = 1_000_000, 10

HORIZON = f"""
title = "A tour"
epsilon = 8
periods = 2
period = "{SECONDS} seconds"
changes = 2
keep = "for ever"
"""
ENDLESS = f"""
kind = "window"
title = "A tour"
epsilon = 8
window = 1
devices = 1
periods = 2
period = "{SECONDS} seconds"
keep = "for ever"
"""
AMOUNTS = f"""
stream = "topl"
title = "A tour"
epsilon = 8
periods = 2
period = "{SECONDS} seconds"
values = {{kind = "number", low = 0, high = 50}}
keep = "for ever"
"""
PLACES = 'values = {kind = "category", items = ["home", "work"]}\n'
KINDS: list[Any] = [
    pytest.param(HORIZON + PLACES + 'protocol = "snapshots"\n', "work", id="snapshots"),
    pytest.param(HORIZON + 'values = {kind = "binary"}\nmix = {1 = 1.0}\n', 1, id="differences"),
    pytest.param(HORIZON + 'values = {kind = "moves", items = ["ACME"]}\n', [1], id="moves"),
    pytest.param(ENDLESS + PLACES + 'method = "lbu"\n', "work", id="window of items"),
    pytest.param(
        ENDLESS + 'values = {kind = "number", low = 0, high = 50}\nmethod = "lbu"\n',
        37.5,
        id="window of numbers",
    ),
    pytest.param(
        ENDLESS + PLACES + 'method = "lbu"\ntiers = [{window = 2, epsilon = 4, devices = 1}]\n',
        "work",
        id="tiers",
    ),
    pytest.param(AMOUNTS, 37.5, id="amounts"),
]


class Wire:
    """Between the device and the collector: it keeps the last batch that passes."""

    def __init__(self, collector: Collector, task_id: bytes) -> None:
        self.collector, self.running = collector, collector.running_tasks[task_id]
        self.batch = b""

    def fetch(self, url: str) -> bytes:
        """Return what is asked now."""
        assert url.endswith("/question")
        question = self.running.question_at(self.collector.clock())
        return Question.none() if question is None else question.encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        """Hand a batch over."""
        assert url == self.running.published.endpoint
        self.batch = batch
        receipt = self.collector.take(self.running, batch)
        return Delivery(dict(receipt.refused), receipt.key_id)


@pytest.mark.parametrize(("text", "value"), KINDS)
def test_a_report_passes_through_every_room(tmp_path: Path, text: str, value: Any) -> None:
    now = float(START)

    # wire/ reads the task file; streams/ chooses what the task leaves open, and writes it out.
    task = parse(text)
    stream = catalog.stream(task)
    where = "http://here/v1/tasks/{task}/reports"
    spec = spec_of(task, stream, START, grace=SECONDS, endpoint=where)
    assert stream_of(spec).plain() == stream.plain()

    # service/ publishes it: its id is the hash of the spec, address included; its key is new.
    collector = Collector(SQLiteStore(tmp_path / "store.db"), "http://here", lambda: now)
    running = collector.publish(task, START, grace=SECONDS)
    published = Published.parse(running.published.encode())
    assert published.task_id == Published.of(spec, {}).task_id == running.task_id

    # device/ joins: it pays and draws everything that must not depend on data.
    wire = Wire(collector, running.task_id)
    limits = Limits(epsilon=8.0, windows=True)
    device = Device(Journal(":memory:"), limits, wire, lambda: now, seeded(1))
    tier = len(stream.offers) - 1  # of several windows it picks the last
    device.join(published, tier)
    assert device.left == 8.0 - stream.offers[tier].epsilon

    # It observes; when the period has ended, its report is blurred, kept, sealed and sent.
    device.observe(value, strict=True)
    for later in (1.0, 6.0, SECONDS + 1.0):  # at once, in a later round, or of the second period
        now = START + SECONDS + later
        collector.close_due()
        flushed = device.flush(force=True)
        if flushed.sent:
            break
        device.observe(value, strict=True)
    assert (flushed.sent, flushed.refused, flushed.problem) == (1, 0, "")

    # On the wire it is one sealed record of fixed size, bound to task, id and period.
    batch = Batch.decode(wire.batch, running.layout)
    (report,) = batch.reports
    key, period = running.keys[batch.key_id], int(report["period"])
    sealed, name = report["sealed"].tobytes(), report["id"].tobytes()
    content = open_sealed(sealed, key.private, key.context, name, period)
    contents = running.layout.contents(content)

    # streams/ judges the contents by the form that their place has, and counts them.
    judge = Judge(running.protocol, running.layout, running.driver.asked)
    assert judge.valid(np.array([period]), contents).all()
    counted = judge.count(period, contents)
    ((place, tally),) = counted.items()
    assert (place, tally.n) == (Place(contents["span"][0], period, contents["block"][0]), 1)

    # store/ has the very tally.
    assert dict(collector.store.tallies(running.task_id)) == dict(counted)

    # The period closes: the curator turns its tallies into an estimate that never changes.
    now = START + (period + 1) * SECONDS + 1.0
    collector.close_due()
    release = running.releases[period - 1]
    assert release.n == 1

    # queries/ answers, with an interval and under the guarantee of the task.
    check_answers(running, stream, release)

    # And the person whose device it is can read what it did.
    log = device.log()
    assert "one blurred report was sent" in "".join(log)
    assert f"costs epsilon {stream.offers[tier].epsilon:g} {stream.offers[tier].promise}." in log[0]
    device.close()
    collector.store.close()


def check_answers(running: RunningTask, stream: Stream, release: Release) -> None:
    """Ask about a period that has closed: the answer is what was released."""
    known = np.isfinite(release.values)
    if stream.quantity.kind == "amount":  # the first period has only shown where to cut
        with pytest.raises(MismatchError, match="nothing is known of these periods"):
            running.history().mean(release.period)
        return
    answers = running.history().mean(release.period)
    assert answers.labels == stream.labels
    assert answers.guarantee == stream.guarantee
    assert (answers.low[known] <= answers.high[known]).all()
    assert np.array_equal(answers.values[known], release.values[known])
