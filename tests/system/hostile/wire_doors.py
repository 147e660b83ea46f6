"""Doors of what comes over a line: tasks, questions, receipts and batches of reports."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import SplitResult

from tests.system.hostile.judging import Door
from tests.system.hostile.mutation import damaged, damaged_plain, json_text, toml_text

from sfumato import catalog
from sfumato.device import Device, Http, Limits
from sfumato.device.part import Part
from sfumato.device.transport import Unreachable
from sfumato.mechanisms import GRR
from sfumato.service.task_submission import PublishRequest
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch, Layout

__all__ = ["Batches", "Questions", "Receipts", "Requests", "TaskFiles", "Tasks", "published"]

_VALUES: Final[tuple[dict[str, Any], ...]] = (
    {"kind": "binary"},
    {"kind": "category", "items": ["home", "work", "road"], "optional": True},
    {"kind": "set", "items": 4, "most": 2},
    {"kind": "attributes", "attributes": {"room": ["hall", "attic"], "lamp": 2}},
    {"kind": "moves", "items": ["up"]},
)
_HORIZON: Final[dict[str, Any]] = {
    "title": "Where people are",
    "epsilon": 1.0,
    "periods": 8,
    "period": "10 seconds",
    "changes": 3,
}
_MORE: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"queries": {"online": 1.0, "ranges": 2.0}, "decoder": "smoothed"},
    {"protocol": "tree", "fan_out": 2},
    {"protocol": "snapshots"},
    {"mix": {"snapshot": 0.6, "1": 0.4}, "mechanism": "concord"},
    {
        "shuffle": {
            "epsilon": 0.5,
            "delta": 1e-6,
            "min_batch": 20_000,
            "colluding": 0.1,
            "url": "http://shuffler",
        }
    },
)
_WINDOW: Final[dict[str, Any]] = {
    "kind": "window",
    "title": "Where people are",
    "epsilon": 2.0,
    "window": 3,
    "devices": 60,
    "periods": 8,
    "period": "10 seconds",
    "values": {"kind": "category", "items": ["home", "work", "road"]},
    "method": "lpu",
}
TASKS: Final[tuple[dict[str, Any], ...]] = (
    *(_HORIZON | {"values": values} for values in _VALUES),
    *(_HORIZON | {"values": _VALUES[1]} | more for more in _MORE),
    _WINDOW,
    _WINDOW | {"values": {"kind": "number", "low": 0.0, "high": 9.0, "clip": True}},
    _WINDOW | {"oracle": "oue", "tiers": [{"window": 6, "epsilon": 0.5, "devices": 9}]},
    _WINDOW | {"method": "lpd", "parameters": {}},
    {
        "stream": "topl",
        "title": "Fares",
        "epsilon": 1.0,
        "periods": 8,
        "period": "10 seconds",
        "values": {"kind": "number", "low": 0.0, "high": 9.0},
    },
)
"""Good tasks of all kinds, as their files say them."""


def published(plain: dict[str, Any]) -> Published:
    """Return a task as devices are given it; reports are sealed if they are shuffled."""
    task = catalog.task(plain)
    if "shuffle" not in plain:
        spec = spec_of(task, catalog.stream(task), start=0)
        return Published(spec, {}, "http://collector/v1/tasks/1f3a/reports")
    where = "http://shuffler/v1/tasks/{task}/reports"
    spec = spec_of(task, catalog.stream(task), start=0, endpoint=where)
    return Published.of(spec | {"collector": "http://collector"}, {1: bytes(range(32))})


def _damaged_json(plain: Any, rng: Random) -> bytes:
    """Return JSON with a damaged structure, or with damaged bytes."""
    if rng.random() < 0.7:
        return json_text(damaged_plain(plain, rng)).encode("utf-8", "surrogatepass")
    return damaged(json.dumps(plain).encode(), rng)


class TaskFiles(Door, name="task files", share=150):
    """Task files, as `plan`, `simulate`, `task publish` and `serve` read them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "task.toml"
        examples = Path(catalog.__file__).parents[2] / "docs" / "examples"
        self._texts = [path.read_bytes() for path in sorted(examples.glob("*.toml"))]
        self._texts += [toml_text(plain).encode() for plain in TASKS]
        self._plain = [tomllib.loads(text.decode()) for text in self._texts]

    def make(self, rng: Random) -> bytes:
        """Return a damaged file."""
        if rng.random() < 0.6:
            plain = damaged_plain(rng.choice(self._plain), rng)
            return toml_text(plain).encode("utf-8", "surrogatepass")
        return damaged(rng.choice(self._texts), rng)

    def enter(self, item: bytes) -> str:
        """Read the file, and hash the task if it is one."""
        self._path.write_bytes(item)
        task = catalog.read(self._path)
        assert len(task.task_id) == 64
        return "taken"


class Tasks(Door, name="published tasks", share=100):
    """Published tasks, as a device joins them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._plain = [json.loads(published(plain).encode()) for plain in TASKS]

    def make(self, rng: Random) -> bytes:
        """Return a damaged task."""
        return _damaged_json(rng.choice(self._plain), rng)

    def enter(self, item: bytes) -> str:
        """Join it and live through a few periods."""
        device = Device.open(
            ":memory:", Limits(64.0, unsealed=True, windows=True), Silent(), lambda: 25.0
        )
        try:
            device.join(item)
            device.observe("home")
            device.flush(force=True)
            device.log()
        finally:
            device.close()
        return "taken"


class Silent:
    """A line on which nobody ever answers."""

    def fetch(self, url: str) -> bytes:
        """Fetch nothing."""
        raise Unreachable(f"nobody is at {url[:40]!r}")

    def send(self, url: str, batch: bytes) -> Any:
        """Send nothing."""
        raise Unreachable(f"nobody takes {len(batch)} bytes at {url[:40]!r}")


class Questions(Door, name="questions", share=120):
    """Questions of a collector, as a device is asked them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._part = Part.of(published(_WINDOW))
        self._state = {"period": 3, "tick": 3, "held": "home", "round": -1}
        mechanisms = [
            GRR(epsilon, ("home", "work", "road")).configuration() for epsilon in (0.25, 1.0)
        ]
        self._plain = [
            json.loads(Question(3, 0, mechanism, probability).encode())
            for mechanism in mechanisms
            for probability in (1.0, 0.25)
        ]

    def make(self, rng: Random) -> bytes:
        """Return a damaged question."""
        return _damaged_json(rng.choice(self._plain), rng)

    def enter(self, item: bytes) -> str:
        """Answer it."""
        from sfumato.device.keys import Chain  # noqa: PLC0415 -- its shape is the device's affair

        question = Question.parse(item)
        if question is None:
            return "nothing asked"
        state = self._state | {"ledger": {"period": 0, "spent": []}}
        machine = self._part.stream.restore(state)
        self._part.answer(machine, question, Chain(bytes(32)))
        return "taken"


class Receipts(Door, name="receipts", share=120):
    """What a collector answers to a batch."""

    _plain: Final = (
        {"accepted": 3, "repeated": 1, "refused": [], "key_id": 2},
        {"accepted": 0, "repeated": 0, "refused": [{"index": 1, "reason": "stale"}], "key_id": 0},
    )

    def make(self, rng: Random) -> bytes:
        """Return a damaged receipt."""
        return _damaged_json(rng.choice(self._plain), rng)

    def enter(self, item: bytes) -> str:
        """Read it as a device does."""
        try:
            outcome = _Answering(item).send("http://collector", b"")
        except Unreachable:
            return "try again"
        assert all(type(place) is int for place in outcome.refused)
        return "taken"


class _Answering(Http):
    """A line on which every answer is the same."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        object.__setattr__(self, "body", body)

    def _exchange(self, url: SplitResult, batch: bytes | None) -> bytes:
        del url, batch
        return self.body  # type: ignore[attr-defined,no-any-return]


class Requests(Door, name="publish requests", share=80):
    """What an operator sends to publish a task, without the network."""

    def make(self, rng: Random) -> bytes:
        """Return a damaged request."""
        more = {"start": 1_000_000, "grace": 5, "sealed": False, "public": True}
        return _damaged_json({"task": rng.choice(TASKS), **more}, rng)

    def enter(self, item: bytes) -> str:
        """Read it."""
        PublishRequest.parse(item)
        return "taken"


class Batches(Door, name="batches", share=100):
    """Batches of reports, decoded alone."""

    def make(self, rng: Random) -> bytes:
        """Return a damaged batch."""
        import numpy as np  # noqa: PLC0415

        reports = np.zeros(rng.randrange(1, 9), dtype=Layout(3).report_dtype)
        return damaged(Batch(rng.randbytes(32), 1, reports).encode(), rng)

    def enter(self, item: bytes) -> str:
        """Decode it."""
        batch = Batch.decode(item, Layout(3))
        assert len(batch.encode()) == len(item)
        return "taken"
