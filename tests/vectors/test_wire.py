"""Kept tasks and messages are read, or refused, as they were when they were kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.vectors import keeping, tasks, wire
from tests.vectors.keeping import FOLDER, cases, load

from sfumato.catalog import parse
from sfumato.core.tally import Tallies, Tally
from sfumato.device.part import Part
from sfumato.streams.registry import spec_of, stream_of
from sfumato.wire.canonical import canonical
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch, report_id

TASKS = list(tasks.texts())
BAD = [
    pytest.param(case["reads"], bad, id=f"{case['reads']}-{bad['name']}")
    for case in (load(f"wire/{path.name}") for path in sorted(FOLDER.glob("wire/bad_*.json")))
    for bad in case["cases"]
]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_what_it_was(name: str) -> None:
    kept = load(f"tasks/{name}.json")
    task = parse(kept["toml"])
    assert task.canonical().decode() == kept["canonical"]
    assert task.task_id == kept["task_id"]
    each = tasks.alone(task)
    assert len(each) == len(kept["published"])
    for one, text, task_id, spec_hash in zip(
        each, kept["published"], kept["published_ids"], kept["spec_hashes"], strict=True
    ):
        told = Published.parse(text.encode())
        assert told.encode().decode() == text
        assert told.task_id.hex() == task_id
        assert told.spec_hash.hex() == spec_hash
        # Whoever reads the spec comes to the same stream, and would publish the same spec.
        stream = stream_of(told.spec)
        again = spec_of(one, stream, tasks.START, grace=60, endpoint=tasks.ENDPOINT)
        assert Published.of(again, told.keys).encode() == told.encode()
        assert Part.of(told).stream == stream_of(told.spec)


BEFORE = [
    pytest.param(case, id=f"{name}-{case['name']}")
    for name in ("format_1", "format_2_planned")
    for case in cases(f"tasks/{name}.json")
]
"""What versions before have published: the mixes that they chose, and weights that never learn."""


@pytest.mark.parametrize("kept", BEFORE)
def test_a_task_that_was_published_before_is_read_and_means_the_same(kept: Any) -> None:
    for text, task_id, spec_hash in zip(
        kept["published"], kept["published_ids"], kept["spec_hashes"], strict=True
    ):
        told = Published.parse(text.encode())
        assert told.encode().decode() == text
        assert (told.task_id.hex(), told.spec_hash.hex()) == (task_id, spec_hash)
        stream = Part.of(told).stream
        assert getattr(stream, "weights", "planned") == "planned"
        # All that was chosen for it is written down as it was.
        assert {name: told.spec[name] for name in stream.plain()} == stream.plain()


@pytest.mark.parametrize("kept", cases("tasks/format_1.json"), ids=lambda kept: kept["name"])
def test_a_task_of_format_1_says_what_it_would_say_today(kept: Any) -> None:
    today = load(f"tasks/{kept['name']}.json")
    for text, other in zip(kept["published"], today["published"], strict=True):
        told, later = Published.parse(text.encode()), Published.parse(other.encode())
        chosen = set(Part.of(told).stream.plain()) | {"payload", "kind", "format"}
        asked = {name: value for name, value in told.spec.items() if name not in chosen}
        assert {name: later.spec[name] for name in asked} == asked
        moved = Published(told.spec, told.keys, "https://elsewhere.example/reports")
        assert Published.parse(moved.encode()).endpoint == "https://elsewhere.example/reports"


@pytest.mark.parametrize("bad", cases("tasks/bad_tasks.json"), ids=lambda bad: bad["name"])
def test_a_text_that_is_no_task_is_refused_as_it_was(bad: Any) -> None:
    assert tasks.refusal(bad["toml"]) == bad["refused"]


def test_questions_are_what_they_were() -> None:
    for case in cases("wire/questions.json"):
        read = Question.parse(case["bytes"].encode())
        if case["question"] is None:
            assert read is None
            continue
        assert read == wire.question_of(case["question"])
        assert read is not None
        assert read.digest.decode() == case["digest"]


def test_batches_and_ids_are_what_they_were() -> None:
    for case in cases("wire/batches.json"):
        made, layout = wire.batch_of(case)
        read = Batch.decode(bytes.fromhex(case["bytes"]), layout)
        assert (read.task_id.hex(), read.key_id) == (case["task_id"], case["key_id"])
        assert read.reports.tobytes() == made.reports.tobytes()
        contents = layout.contents(read.reports["sealed"].tobytes())
        for row, (_, span, block, payload) in zip(contents, case["reports"], strict=True):
            assert [row["version"], row["span"], row["block"]] == [1, span, block]
            assert row["payload"].tobytes().hex() == payload.ljust(2 * case["payload"], "0")
    kept = load("wire/report_ids.json")
    secret, task = bytes.fromhex(kept["device_secret"]), bytes.fromhex(kept["task_id"])
    for case in kept["cases"]:
        assert report_id(secret, task, case["period"], case["number"]).hex() == case["id"]


def test_tallies_are_what_they_were() -> None:
    kept = load("wire/tallies.json")
    for case in kept["alone"]:
        assert Tally.decode(bytes.fromhex(case["bytes"])) == wire.tally_of(case)
    for case in kept["cases"]:
        read = Tallies.decode(bytes.fromhex(case["bytes"]))
        assert dict(read) == dict(wire.tallies_of(case["tallies"]))


def test_what_is_hashed_has_the_form_it_had() -> None:
    for case in cases("wire/canonical.json"):
        assert canonical(case["data"]).decode() == case["bytes"]


@pytest.mark.parametrize(("what", "bad"), BAD)
def test_bytes_that_are_none_are_refused_as_they_were(what: str, bad: Any) -> None:
    assert wire.refusal(what, bytes.fromhex(bad["bytes"])) == bad["refused"]


def test_what_differs_is_seen() -> None:
    assert keeping.like([1.0, "a"], [1.0 + 1e-12, "a"])
    assert not keeping.like([1.0, "a"], [1.001, "a"])
    assert not keeping.like({"a": 1}, {"a": 1.0})
