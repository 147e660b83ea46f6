"""Every request is answered without a crash or status 500, and no wrong report is counted."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.service.fleets import LISTENING, Fleet, joined
from tests.service.running import TOKENS, Running
from tests.service.world import START, VALUES, World

from sfumato.errors import InputError, ReportError
from sfumato.service import openapi
from sfumato.service.task_submission import PublishRequest
from sfumato.store import SQLiteStore
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import BATCH_TYPE, Batch, Layout

FEW = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("hostile"))
    with made.client:
        made.upload(made.open, Fleet(made.open, len(VALUES)).body(VALUES))
        made.now = START + 16.0
        made.close_periods()
        yield made
    made.store.close()


@schemathesis.serializer(BATCH_TYPE)
def _as_it_is(context: Any, value: Any) -> bytes:
    del context
    data = getattr(value, "data", value)
    return data if isinstance(data, bytes) else str(data).encode()


SCHEMA = schemathesis.openapi.from_dict(openapi.document())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """A collector in its own process, with a task that has answers."""
    with Running(tmp_path_factory.mktemp("served") / "collector.db") as running:
        short = {"period": "1 second", "periods": 3, "values": {"kind": "binary"}}
        task = {"title": "Short", "epsilon": 2.0, "changes": 1} | short
        now = int(time.time())
        made = running.publish(task, start=now - 1, grace=8, public=True, sealed=False)
        running_task = joined(running, made["task_id"])
        running.upload(running_task.name, Fleet(running_task, 60).body([0, 1] * 30))
        running.wait_until_closed(running_task.name, 3)
        yield running, running_task.name


@SCHEMA.exclude(operation_id="listen").parametrize()
@settings(FEW, max_examples=20)
def test_every_operation_keeps_to_its_description(case: Any, served: tuple[Running, str]) -> None:
    running, task_id = served
    if "task_id" in case.path_parameters:
        case.path_parameters["task_id"] = task_id
    headers = {"Authorization": f"Bearer {TOKENS['SFUMATO_OPERATOR_TOKEN']}"}
    response = case.call(base_url=running.url, headers=headers)
    checks: list[Any] = [not_a_server_error]
    if case.method in {"GET", "POST"}:
        checks += [content_type_conformance, response_schema_conformance, status_code_conformance]
    case.validate_response(response, checks=checks)


@FEW
@given(body=st.binary(max_size=400))
def test_any_bytes_as_a_batch_are_refused_or_judged(world: World, body: bytes) -> None:
    answer = world.upload(world.open, body)
    assert answer.status_code in (200, 400)


@cache
def _second_period(world: World) -> bytes:
    fleet = Fleet(world.open, 40, seed=9)
    fleet.messages(["home"] * 40)
    return fleet.body(["home"] * 40)


@FEW
@given(data=st.data())
def test_a_batch_with_flipped_bytes_counts_nothing_new(world: World, data: Any) -> None:
    body = bytearray(_second_period(world))
    head, size = 44, world.open.layout.report_dtype.itemsize
    before = world.open.participation().get(2, 0)
    # Every report of the batch is changed somewhere, so none of them may open.
    for start in range(head, len(body), size):
        place = data.draw(st.integers(0, size - 1))
        body[start + place] ^= data.draw(st.integers(1, 255))
    answer = world.upload(world.open, bytes(body))
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 0
    assert world.open.participation().get(2, 0) == before


@FEW
@given(
    contents=st.lists(
        st.tuples(st.integers(0, 255), st.integers(0, 65_535), st.integers(0, 65_535), st.binary()),
        min_size=1,
        max_size=30,
    ),
    period=st.integers(0, 2**32 - 1),
)
def test_the_judge_has_an_opinion_on_any_content(
    world: World, contents: list[tuple[int, int, int, bytes]], period: int
) -> None:
    running_task = world.open
    array = np.zeros(len(contents), dtype=running_task.layout.content_dtype)
    for place, (version, span, block, payload) in enumerate(contents):
        cut = payload[: running_task.layout.payload].ljust(running_task.layout.payload, b"\0")
        array[place] = (version, span % 8, block % 3, np.frombuffer(cut, np.uint8))
    periods = np.full(len(contents), period % 10, dtype=np.uint32)
    valid = running_task.judge.valid(periods, array)
    counted = running_task.judge.count(int(period % 10), array[valid])
    assert sum(tally.n for tally in counted.values()) == np.count_nonzero(valid)


@FEW
@given(body=st.binary(max_size=300))
def test_decoders_raise_nothing_but_their_own_errors(body: bytes) -> None:
    for decode in (
        lambda: Batch.decode(b"SFR1" + body, Layout(3)),
        lambda: Published.parse(body),
        lambda: PublishRequest.parse(body),
        lambda: Question.parse(body),
    ):
        with pytest.raises((ReportError, InputError)):
            decode()


def test_a_large_batch_of_garbage_takes_bounded_memory(tmp_path: Path) -> None:
    import tracemalloc  # noqa: PLC0415

    from sfumato.service import Collector  # noqa: PLC0415

    store = SQLiteStore(tmp_path / "c.db")
    collector = Collector(store, clock=lambda: START + 11.0)
    running_task = collector.publish(LISTENING, START, sealed=False)
    reports = np.random.default_rng(1).integers(
        0, 256, 65_536 * running_task.layout.report_dtype.itemsize, dtype=np.uint8
    )
    packed = reports.view(running_task.layout.report_dtype)
    packed["period"] = 1
    body = Batch(running_task.task_id, 0, packed).encode()
    tracemalloc.start()
    receipt = collector.take(running_task, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert receipt.accepted + len(receipt.refused) == 65_536
    assert peak < 20 * len(body)
    # Spans and blocks that nobody has leave nothing behind.
    judge: Any = running_task.judge
    assert len(judge._forms) <= len(running_task.protocol.spans)  # type: ignore[attr-defined]  # noqa: SLF001
    store.close()


def test_events_tell_what_closed_and_end_with_the_task(served: tuple[Running, str]) -> None:
    running, task_id = served
    told = running.read(f"/v1/tasks/{task_id}/events").decode()
    assert re.findall(r"^id: (\d)$", told, re.MULTILINE) == ["1", "2", "3"]
    assert told.rstrip().endswith("event: over\ndata: {}")
    later = running.read(f"/v1/tasks/{task_id}/events?since=2").decode()
    assert re.findall(r"^id: (\d)$", later, re.MULTILINE) == ["3"]
    data = json.loads(re.findall(r"^data: (.*)$", told, re.MULTILINE)[0])
    assert data["reports"] == data["n"] > 0
    assert data["low"][0] < data["value"][0] < data["high"][0]


@pytest.mark.parametrize(
    "start", ["GET /health/live HTTP/1.1\r\nHost: h\r\n", "GET /", "head", "trailer"]
)
def test_heads_without_an_end_are_cut_off(served: tuple[Running, str], start: str) -> None:
    running, name = served
    chunked = (
        f"POST /v1/tasks/{name}/reports HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    begin, more = {
        "head": ("GET /health/live HTTP/1.1\r\nHost: ", "h" * 4096),
        "trailer": (chunked + "1\r\nx\r\n0\r\n", "x-more: " + "y" * 4096 + "\r\n"),
        "GET /": ("GET /", "a" * 4096),
    }.get(start, (start, "x-more: " + "y" * 4096 + "\r\n"))
    parts = urlsplit(running.url)
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=10) as sock:
        sent = sock.send(begin.encode())
        with suppress(ConnectionError):
            while sent < 4 << 20:
                sent += sock.send(more.encode())
        assert sent < 4 << 20, "the collector reads on for ever"
