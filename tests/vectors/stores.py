"""Vectors of a collector's store: tasks of all kinds in the middle of their time, and its answers.

The store of today is kept as statements, and so are those of schema 3, in which one process
counted, of schema 4, in which no task ended before its time, and the last one with tasks of format
1; those of schemas 1, 2, 5 and 6 are what is left of later ones without all that came after them.
Beside them is what a collector answers from it, the receipts of batches that come next, and what is
released when their periods close.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.service.fleets import Fleet, batch
from tests.vectors.keeping import FOLDER, Files, changed, database, dumped, sql_of
from tests.vectors.machines import Asking, key_of, known

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.errors import SfumatoError
from sfumato.randomness import seeded
from sfumato.service import Collector, RunningTask
from sfumato.service.query_parameters import answer
from sfumato.store import SQLiteStore
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.reports import report_id

__all__ = ["AS_OF", "Scene", "answers", "files", "kept_store", "releases"]

VERSION: Final = 1
START: Final = 1000
SECONDS: Final = 10
GRACE: Final = 6
DEVICES: Final = 9
ASKED: Final = 12
CLOSED: Final = 3
"""How many periods have closed; the next one is in its second round."""
AS_OF: Final = START + (CLOSED + 1) * SECONDS + 3.5
BASE: Final = "http://here"

_HORIZON: Final = 'title = "{}"\nepsilon = 3\nperiods = 6\nperiod = "10 seconds"\nchanges = 3\n'
_WINDOW: Final = (
    'kind = "window"\ntitle = "{}"\nepsilon = 4\nwindow = 3\ndevices = 12\nperiods = 6\n'
    'period = "10 seconds"\n'
)
TEXTS: Final = {
    "listening": _HORIZON
    + 'mix = {{snapshot = 0.4, 1 = 0.6}}\nweights = "planned"\n'
    + 'values = {{kind = "category", items = ["home", "work", "road"]}}\n',
    "sealed": _HORIZON + 'protocol = "snapshots"\nvalues = {{kind = "binary"}}\n',
    "moves": _HORIZON + 'values = {{kind = "moves", items = ["up", "down"]}}\n',
    "places": _WINDOW
    + 'method = "lpd"\nvalues = {{kind = "category", items = ["home", "work", "road"]}}\n',
    "degrees": _WINDOW + 'method = "lpu"\nvalues = {{kind = "number", low = -10, high = 40}}\n',
}
WORDS: Final = ("question", "guarantee")
"""What an answer says to people, in words that may change."""
KEYS: Final = {name: bytes([name]) * 32 for name in (1, 2)}

_USUAL: Final = [
    {"query": "mean", "period": "2"},
    {"query": "mean", "period": "3", "level": "0.5"},
    {"query": "range", "first": "1", "last": "3"},
    {"query": "range", "first": "2", "last": "3", "average": "true"},
    {"query": "prefix", "last": "2"},
    {"query": "difference", "before": "1", "after": "3"},
    {"query": "top", "k": "1", "period": "3"},
]
_REFUSED: Final = [
    {"query": "mean"},
    {"query": "mean", "period": "9"},
    {"query": "mean", "period": "2", "item": "nowhere"},
    {"query": "sum", "period": "2"},
    {"query": "mean", "period": "2", "level": "1"},
]
_DECODED: Final = [
    {"query": "mean", "period": "2", "decoder": "smoothed"},
    {"query": "mean", "period": "2", "decoder": "filtered"},
    {"query": "difference", "before": "1", "after": "2", "decoder": "filtered"},
    {"query": "mean", "period": "2", "decoder": "posterior"},
    {"query": "curve", "item": "home", "simultaneous": "true"},
]
QUERIES: Final = {name: [_USUAL[1], _USUAL[2], _USUAL[5]] for name in TEXTS} | {
    "listening": [*_USUAL, *_REFUSED, *_DECODED]
}


def published(name: str) -> Published:
    """Return what devices are told of a task."""
    task = parse(TEXTS[name].format(name))
    sealed = name == "sealed"
    where = f"{BASE}/v1/tasks/{{task}}/reports"
    spec = spec_of(task, catalog.stream(task), START, grace=GRACE, sealed=sealed, endpoint=where)
    key = X25519PrivateKey.from_private_bytes(KEYS[2]).public_key().public_bytes_raw()
    return Published.of(spec, {2: key} if sealed else {})


class Scene:
    """A collector over a store, under a clock of its own."""

    def __init__(self, path: Path, now: float) -> None:
        self.now = now
        self.store = SQLiteStore(path, rng=seeded(1))
        self.collector = Collector(self.store, BASE, lambda: self.now)
        titles = {
            str(running.published.spec["title"]): running
            for running in self.collector.running_tasks.values()
        }
        self.running_tasks: dict[str, RunningTask] = titles

    def take(self, name: str, body: bytes) -> dict[str, Any]:
        """Return the receipt of a batch."""
        return self.collector.take(self.running_tasks[name], body).plain()

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()


class Crowd:
    """The devices of all tasks, which go on where they are."""

    def __init__(self, running_tasks: Mapping[str, RunningTask]) -> None:
        self.running_tasks = running_tasks
        self.fleets = {
            name: Fleet(running_tasks[name], DEVICES, seed)
            for seed, name in enumerate(("listening", "sealed", "moves"), 1)
        }
        self.asking = {
            name: Asking(name, running_tasks[name].protocol, ASKED)
            for name in ("places", "degrees")
        }

    def due(self, name: str, period: int) -> bytes | None:
        """Return what the devices of a horizon send at the end of a period; None if nobody does."""
        messages = self.fleets[name].messages([_seen(name, i, period) for i in range(DEVICES)])
        return batch(self.running_tasks[name], messages) if messages else None

    def answered(self, name: str) -> bytes | None:
        """Return what devices answer to the question that is open; None if nobody does."""
        running, asking = self.running_tasks[name], self.asking[name]
        driver = running.driver
        asked = driver.question
        assert asked is not None
        ask = driver.asked[driver._step.place]  # type: ignore[union-attr]  # noqa: SLF001
        while asking.machines[0].period < asked.period:
            asking.see([_seen(name, i, asked.period) for i in range(len(asking.machines))])
        for machine in asking.machines:  # whom a question reaches before its time, and again
            machine.round = -1
        said = asking.answers(asked, ask)
        reports = []
        for number, payload in enumerate(said):
            if payload is not None:
                secret = key_of(name, number)
                own = report_id(secret, running.task_id, asked.period, asked.round)
                content = running.layout.content(0, asked.round, payload)
                reports.append((own, asked.period, content))
        return batch(running, reports) if reports else None


def _seen(name: str, i: int, period: int) -> Any:
    late = period > 2
    if name == "sealed":
        return int(i % 3 == 0 or late)
    if name == "moves":
        return [int(i % 4 == 0), -int(late)]
    if name == "degrees":
        return float(i % 7 + period)
    return ["home", "work", "road"][(i * i + late) % 3]


def _lived(path: Path) -> tuple[Scene, list[dict[str, Any]]]:
    """Return a collector in its fourth period, and what comes next, batch by batch."""
    store = SQLiteStore(path)
    for name in TEXTS:
        told = published(name)
        keys = {1: KEYS[1]} if told.keys else {}
        store.add_task(told.task_id, told.encode(), keys, public=name != "moves")
        if told.keys:
            store.replace_key(told.task_id, 2, KEYS[2], told.encode(), until=5)
    store.set_token("operator", bytes([7]) * 32)
    store.close()
    scene = Scene(path, START)
    crowd = Crowd(scene.running_tasks)
    for period in range(1, CLOSED + 2):
        _live(scene, crowd, period)
    return scene, _coming(scene, crowd)


def _live(scene: Scene, crowd: Crowd, period: int) -> None:
    end = START + period * SECONDS
    scene.now = end + 0.5
    scene.collector.close_due(patience=600)
    for name in crowd.fleets:
        if (body := crowd.due(name, period)) is not None:
            scene.take(name, body)
    for name in crowd.asking:
        if (body := crowd.answered(name)) is not None:
            scene.take(name, body)
    scene.now = end + 3.5
    scene.collector.close_due(patience=600)
    if period <= CLOSED:  # the last one stays in its second round
        if (body := crowd.answered("places")) is not None:
            scene.take("places", body)
        scene.now = end + GRACE + 0.5
        scene.collector.close_due(patience=600)
        for asking in crowd.asking.values():
            asking.step()


def _coming(scene: Scene, crowd: Crowd) -> list[dict[str, Any]]:
    """Return batches for the open period, good and bad ones, with their receipts to come."""
    body = crowd.due("listening", CLOSED + 2)
    assert body is not None
    name = scene.running_tasks["listening"].task_id
    head, size = 44, scene.running_tasks["listening"].layout.report_dtype.itemsize
    rows = [body[at : at + size] for at in range(head, len(body), size)][:9]

    def of(*reports: bytes, task_id: bytes = name, key_id: int = 0) -> bytes:
        count = len(reports).to_bytes(4, "little")
        return b"SFR1" + task_id + key_id.to_bytes(4, "little") + count + b"".join(reports)

    def at(row: bytes, period: int) -> bytes:
        return row[:16] + period.to_bytes(4, "little") + row[20:]

    now = [at(row, CLOSED + 1) for row in rows]
    broken = now[4][:20] + b"\x02" + now[4][21:]
    nowhere = now[4][:21] + b"\x4d\x00" + now[4][23:]
    again = [
        {"task": "listening", "batch": of(*now[:3]).hex()},
        {"task": "listening", "batch": of(*now[2:4]).hex()},
        {"task": "listening", "batch": of(now[4], task_id=bytes(32)).hex()},
        {"task": "listening", "batch": of(now[4], key_id=1).hex()},
        {
            "task": "listening",
            "batch": of(
                at(now[4], 0), at(now[4], 1), at(now[4], 6), at(now[4], 7), broken, nowhere
            ).hex(),
        },
    ]
    answers_ = crowd.answered("places")
    return again if answers_ is None else [*again, {"task": "places", "batch": answers_.hex()}]


def answers(scene: Scene, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return what a collector answers to each question, or the sentence that refuses it."""
    return {
        name: [
            {"asked": asked, **_answer(scene.running_tasks[name], asked)} for asked in QUERIES[name]
        ]
        for name in names
    }


def _answer(running: RunningTask, asked: Mapping[str, str]) -> dict[str, Any]:
    try:
        plain = answer(running, asked)
    except SfumatoError as error:
        return {"refused": str(error)}
    return {"answer": {name: part for name, part in plain.items() if name not in WORDS}}


def releases(scene: Scene) -> dict[str, list[Any]]:
    """Return what each task has released, and what it asks now."""
    found: dict[str, list[Any]] = {}
    for name, running in scene.running_tasks.items():
        question = running.question_at(scene.now)
        asked = None if question is None else question.encode().decode()
        told = [[one.period, one.n, *_plain(one)] for one in running.releases]
        found[name] = [asked, *told]
    return found


def _plain(release: Any) -> list[list[float | None]]:
    return [known(release.values), known(release.variances)]


_TO_2: Final = """
CREATE TEMP TABLE windows AS
  SELECT task_id FROM tasks WHERE CAST(published AS TEXT) LIKE '%"kind": "window"%';
DELETE FROM batches WHERE task_id IN windows;
DELETE FROM tallies WHERE task_id IN windows;
DELETE FROM releases WHERE task_id IN windows;
DELETE FROM tasks WHERE task_id IN windows;
DROP TABLE rounds;
ALTER TABLE keys DROP COLUMN until;
PRAGMA user_version = 2;
"""
"""Schema 2 had horizons only, and keys without an end."""
_TO_1: Final = _TO_2 + "DROP TABLE tokens; PRAGMA user_version = 1;"
"""Schema 1 had no tokens."""
BEFORE: Final = {"1": _TO_1, "2": _TO_2, "3_format_1": ""}
"""What each earlier store lacks of the last one with tasks of format 1."""
_TO_6: Final = "DROP TABLE deleted; PRAGMA user_version = 6;"
"""Schema 6 did not remember which tasks were deleted."""
_TO_5: Final = _TO_6 + "DROP TABLE progress; PRAGMA user_version = 5;"
"""Schema 5 knew no engines."""
LATELY: Final = {"5": _TO_5, "6": _TO_6}
"""What each earlier store lacks of that of today."""


def kept_store(schema: str = "7") -> bytes:
    """Return the statements of the store of today, or of an earlier one."""
    if schema in LATELY:
        return changed(kept_store(), LATELY[schema])
    if schema not in BEFORE:
        return (FOLDER / "stores" / f"schema_{schema}.sql").read_bytes()
    return changed((FOLDER / "stores" / "schema_3_format_1.sql").read_bytes(), BEFORE[schema])


BAD: Final = {
    "of_a_later_version": "PRAGMA user_version = 99",
    "of_another_program": "PRAGMA application_id = 1",
    "without_a_table": "DROP TABLE tallies",
    "a_task_that_was_changed": (
        "UPDATE tasks SET published = CAST(replace(published, '1000', '1001') AS BLOB)"
    ),
    "a_task_without_its_key": "DELETE FROM keys",
    "a_release_less": "DELETE FROM releases WHERE period = 2",
    "a_release_cut_short": "UPDATE releases SET figures = X'00' WHERE period = 1",
    "a_tally_cut_short": "UPDATE tallies SET sums = X'0000'",
    "a_tally_of_text": "UPDATE tallies SET n = 'many'",
}


def refusal(script: bytes, statement: str) -> str:
    """Return what is said of a store that was spoilt: as it is opened, or asked."""
    with tempfile.TemporaryDirectory() as folder:
        path = database(Path(folder) / "collector.db", script, statement)
        try:
            scene = Scene(path, AS_OF)
        except SfumatoError as error:
            return str(error).replace(str(path), "STORE")
        try:
            answer(scene.running_tasks["listening"], {"query": "mean", "period": "2"})
        except SfumatoError as error:
            return str(error).replace(str(path), "STORE")
        finally:
            scene.close()
    raise AssertionError(statement)


def files() -> Files:
    """Return the vectors of stores."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "collector.db"
        scene, coming = _lived(path)
        told, asked = releases(scene), answers(scene, list(TEXTS))
        scene.close()
        script = sql_of(path)
        scene = Scene(path, AS_OF)
        for one in coming:
            one["receipt"] = scene.take(one["task"], bytes.fromhex(one["batch"]))
        scene.now = AS_OF + GRACE
        scene.collector.close_due(patience=600)
        after = releases(scene)
        scene.close()
    bad = [
        {"name": name, "statement": statement, "refused": refusal(script, statement)}
        for name, statement in BAD.items()
    ]
    whole = {"as_of": AS_OF, "released": told, "answers": asked, "coming": coming, "after": after}
    what = "what a collector answers from the store, and what it does next"
    spoilt = "what spoils a store, and the sentences that say so"
    return {
        "stores/schema_7.sql": script,
        "stores/collector.json": dumped(VERSION, what, whole),
        "stores/bad_stores.json": dumped(VERSION, spoilt, {"cases": bad}),
    }
