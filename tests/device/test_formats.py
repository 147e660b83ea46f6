"""Journals whose keys are of format 1 go on as they began; their new tasks have keys of format 2.

``tests/vectors/journals`` has a journal that was written in format 1, with a task of each kind and
one that was left, and all that it sent afterwards in that format.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.device.collecting import HOUR, published

from sfumato.device import Delivery, Device, Limits, keys
from sfumato.device.enrolment import ROOT, ROOT_OF_FORMAT_1
from sfumato.device.keys import FORMAT, Chain, Root
from sfumato.device.owner_log import UNBOUNDED
from sfumato.errors import BudgetError, MismatchError
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch, Layout

FOLDER = Path(__file__).parent.parent / "vectors" / "journals"
BEFORE: dict[str, Any] = json.loads((FOLDER / "format_1.json").read_text())
LIVED = 3


class Line:
    """A server that asks one question in each period and writes down all it hears."""

    def __init__(self) -> None:
        self.now = LIVED * HOUR + 1.0
        self.heard: list[list[Any]] = []
        tasks = [Published.parse(task["published"].encode()) for task in BEFORE["tasks"].values()]
        self._layouts = {task.endpoint: Layout(task.spec["payload"]) for task in tasks}

    def fetch(self, url: str) -> bytes:
        assert url.endswith("/question")
        mechanism = {"mechanism": "grr", "epsilon": 1.0, "domain": ["a", "b", "c"]}
        return Question(int(self.now // HOUR), 0, mechanism, 0.75).encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        for report in Batch.decode(batch, self._layouts[url]).reports:
            name, sealed = report["id"].tobytes().hex(), report["sealed"].tobytes().hex()
            self.heard.append([url, int(report["period"]), name, sealed])
        return Delivery()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    base = sqlite3.connect(tmp_path / "journal")
    base.executescript((FOLDER / "format_1.sql").read_text())
    base.close()
    return tmp_path / "journal"


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def device(path: Path, line: Line) -> Iterator[Device]:
    limits = Limits(20.0, unsealed=True, windows=True)
    opened = Device.open(path, limits, line, lambda: line.now)
    yield opened
    opened.close()


def task_of(name: str) -> Published:
    return Published.parse(BEFORE["tasks"][name]["published"].encode())


def test_the_tasks_of_an_old_journal_go_on_to_the_byte(device: Device, line: Line) -> None:
    names = {name: task["id"] for name, task in BEFORE["tasks"].items()}
    for period in range(LIVED, len(BEFORE["values"])):
        line.now = period * HOUR + 10.0
        for name in ("differences", "snapshot", "window"):
            device.observe(BEFORE["values"][period], names[name], strict=True)
        device.observe(BEFORE["moves"][period], names["moves"], strict=True)
        line.now = (period + 1) * HOUR + 1.0
        assert not device.flush(force=True).problem
    assert line.heard == BEFORE["sent_after"]
    kinds = {url.split("/")[3] for url, *_ in line.heard}
    assert kinds == {"differences", "snapshot", "moves", "window"}


def test_its_log_says_that_copies_are_not_bounded(device: Device) -> None:
    said = [line.strip() for line in device.log() if "copy" in line]
    assert said == [UNBOUNDED] * 4  # the snapshot and the window among them


def test_what_was_joined_or_left_cannot_be_joined_anew(device: Device) -> None:
    left = device.left
    with pytest.raises(BudgetError, match="was taken before"):
        device.join(task_of("left"))
    for name in ("differences", "window"):
        device.join(task_of(name))  # changes nothing
    assert device.left == left
    device.leave(BEFORE["tasks"]["window"]["id"])
    with pytest.raises(BudgetError, match="was taken before"):
        device.join(task_of("window"))


def test_a_new_task_hangs_on_a_root_that_all_copies_come_to(device: Device) -> None:
    made, _ = published(title="new")
    device.join(made)
    joined = device.journal.task(made.task_id)
    assert joined.format == FORMAT
    # Another copy had left the journal before it joined anything: its root has all of its tree.
    root, key = _roots_of_format_1()
    for history in ([], [b"x"], [b"y", b"z"]):
        task_key, _ = root.renewed(history).take(made.task_id)
        assert Chain.start(task_key)[2].key == joined.keys.key
    assert key != joined.keys.key


def _roots_of_format_1() -> tuple[Root, bytes]:
    """Return the journal's root of format 1, and a key that the new tree would give with it."""
    text = (FOLDER / "format_1.sql").read_text()
    value = text.split("INSERT INTO \"facts\" VALUES('root',X'")[1].split("'")[0]
    root = Root.decode(bytes.fromhex(value))
    return root, Chain.start(root.take(b"task")[0])[2].key


def test_the_old_root_is_gone_from_the_file(device: Device, path: Path) -> None:
    root, _ = _roots_of_format_1()
    assert device.journal.fact(ROOT_OF_FORMAT_1) is None
    assert device.journal.fact(ROOT) is not None
    device.close()
    content = path.read_bytes()
    assert not [seed for _, _, seed in root.nodes if seed in content]


def test_a_punctured_root_of_format_1_renews_to_the_same_root() -> None:
    whole = Root.fresh(bytes(range(32)))
    _, punctured = whole._take(b"task", keys._twins_of_format_1)  # noqa: SLF001
    assert whole.renewed([b"other"]) == punctured.renewed([b"other"])
    with pytest.raises(BudgetError, match="taken before"):
        punctured.renewed([b"task"]).take(b"task")


def test_keys_of_a_format_that_nobody_knows_are_refused() -> None:
    with pytest.raises(MismatchError, match="the keys are of format 3; 1 or 2 is expected"):
        Chain(bytes(32), 3)
