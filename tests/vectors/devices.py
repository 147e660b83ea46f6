"""Vectors of whole devices: a life with all kinds of tasks, and the journal after each step of it.

The life has values, nothing new, values that are none, days away, a server that cannot be reached,
one that is too early, a crash after a report was saved and before it was heard, and restarts. The
journal in the middle of it is kept as it is on disk; earlier forms are what is left of a kept one
without what came later.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.vectors.keeping import FOLDER, Files, changed, database, dumped, sql_of

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.device import Delivery, Device, Limits
from sfumato.device.journal import Journal
from sfumato.device.keys import Root
from sfumato.device.transport import Unreachable
from sfumato.errors import SfumatoError
from sfumato.randomness import Keyed
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch, Layout

__all__ = ["KEPT_AFTER", "STEPS", "Life", "files", "kept_journal"]

VERSION: Final = 1
HOUR: Final = 3600
LIMITS: Final = Limits(40.0, unsealed=True, windows=True)
ROOT: Final = bytes(range(32))

_HORIZON: Final = 'title = "{}"\nepsilon = 1\nperiods = 8\nperiod = "1 hour"\nchanges = 5\n'
_ABC: Final = 'values = {kind = "category", items = ["a", "b", "c"]}\n'
_WINDOW: Final = (
    'kind = "window"\ntitle = "{}"\nepsilon = 4\nwindow = 2\ndevices = 100\nperiods = 8\n'
    'period = "1 hour"\n'
)
TEXTS: Final = {
    "differences": _HORIZON + "mix = {{1 = 1.0}}\n" + _ABC.replace("{", "{{").replace("}", "}}"),
    "snapshot": _HORIZON + 'protocol = "snapshots"\nvalues = {{kind = "binary"}}\n',
    "set": _HORIZON
    + "mix = {{1 = 0.5, snapshot = 0.5}}\n"
    + 'values = {{kind = "set", items = 4}}\n',
    "moves": _HORIZON + 'values = {{kind = "moves", items = ["up", "down"]}}\n',
    "window": _WINDOW + 'method = "lpd"\nvalues = {{kind = "category", items = ["a", "b", "c"]}}\n',
    "left": _HORIZON + 'values = {{kind = "binary"}}\n' + "mix = {{1 = 1.0}}\n",
}
SEEN: Final[Mapping[str, list[Any]]] = {
    "differences": ["a", "b", "zebra", None, "c", "a", "b", "b"],
    "snapshot": [1, 0, "on", None, 1, 1, 0, 0],
    "set": [[0], [0, 3], [9], None, [], [1, 2], [1], [1]],
    "moves": [[1, 0], [0, -1], [5, 5], None, [1, 1], [0, 0], [-1, 0], [0, 0]],
    "window": ["a", "c", "zebra", None, "b", "b", "a", "a"],
}
ASKED: Final = {
    "window": {"mechanism": "grr", "epsilon": 2.0, "domain": ["a", "b", "c"]},
}

STEPS: Final[list[dict[str, Any]]] = [
    {"at": 5, "do": "join"},
    {"at": 10, "do": "observe", "of": 0},
    {"at": HOUR + 1, "do": "flush"},
    {"at": HOUR + 9, "do": "observe", "of": 1},
    {"at": HOUR + 10, "do": "leave", "task": "left"},
    {"at": 2 * HOUR + 1, "do": "flush", "line": "down"},
    {"at": 2 * HOUR + 9, "do": "observe", "of": 2},
    {"at": 2 * HOUR + 10, "do": "restart"},
    {"at": 3 * HOUR + 1, "do": "flush", "line": "crash"},
    {"at": 3 * HOUR + 2, "do": "restart"},
    {"at": 3 * HOUR + 9, "do": "observe", "of": 4},
    {"at": 5 * HOUR + 1, "do": "flush"},  # the period before had nothing new
    {"at": 5 * HOUR + 2, "do": "flush"},  # asked again, and answered once
    {"at": 5 * HOUR + 9, "do": "observe", "of": 5},
    {"at": 6 * HOUR + 1, "do": "flush", "line": "early"},
    {"at": 6 * HOUR + 5, "do": "restart"},
    {"at": 6 * HOUR + 9, "do": "observe", "of": 6},
    {"at": 8 * HOUR + 1, "do": "flush"},
    {"at": 9 * HOUR + 1, "do": "flush"},
]
KEPT_AFTER: Final = 10
"""After so many steps the journal is kept as a file."""


class Crash(BaseException):
    """The process ends here."""


def tasks() -> dict[str, Published]:
    """Return the tasks that the device takes part in."""
    made = {}
    for name, text in TEXTS.items():
        task = parse(text.format(name))
        spec = spec_of(task, catalog.stream(task), 0, sealed=False)
        made[name] = Published(spec, {}, f"http://collector/{name}/reports")
    return made


class Life:
    """One device with its journal and a server that writes down all it hears."""

    def __init__(self, path: Path, published: Mapping[str, Published]) -> None:
        self.path = path
        self.tasks = published
        self.now = 0.0
        self.line = "up"
        self.heard: list[list[Any]] = []
        self._before: Any = {}
        self._open()

    def _open(self) -> None:
        rng = Keyed(ROOT, "device")
        self.device = Device(Journal(self.path), LIMITS, self, lambda: self.now, rng)

    # ---- the server --------------------------------------------------------------------------

    def fetch(self, url: str) -> bytes:
        """Return what is asked now."""
        if self.line == "down":
            raise Unreachable("nobody is there")
        name = url.split("/")[3]
        return Question(int(self.now // HOUR), 0, ASKED[name], 0.75).encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        """Write a batch down; it may be lost all the same, or too early."""
        if self.line == "down":
            raise Unreachable("nobody is there")
        name = url.split("/")[3]
        layout = Layout(self.tasks[name].spec["payload"])
        reports = Batch.decode(batch, layout).reports
        for report in reports:
            place = [name, int(report["period"])]
            self.heard.append(
                [*place, report["id"].tobytes().hex(), report["sealed"].tobytes().hex()]
            )
        if self.line == "crash":
            raise Crash
        last = len(reports) - 1
        return Delivery({last: "future"} if self.line == "early" else {})

    # ---- the life ----------------------------------------------------------------------------

    def live(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Take one step; return what was heard and what the journal has now, if that is new."""
        self.now, self.line = float(step["at"]), step.get("line", "up")
        self.heard = []
        flushed = None
        if step["do"] == "join":
            for one in self.tasks.values():
                self.device.join(one)
        elif step["do"] == "observe":
            for name, values in SEEN.items():
                self.device.observe(values[step["of"]], self.tasks[name].task_id.hex())
        elif step["do"] == "leave":
            self.device.leave(self.tasks[step["task"]].task_id.hex())
        elif step["do"] == "flush":
            flushed = self._flushed()
        else:
            self.device.close()
            self._open()
        said = {"heard": self.heard} if step["do"] == "flush" else {}
        return {
            **step,
            **({} if flushed is None else {"flushed": flushed}),
            **said,
            "journal": self._news(),
        }

    def _flushed(self) -> list[int]:
        try:
            done = self.device.flush(force=True)
        except Crash:
            return []
        return [done.sent, done.refused, done.waiting]

    def _news(self) -> dict[str, Any]:
        """Return the rows of the journal that are new or have changed; a task by its name."""
        rows = dict(self._rows())
        news = {name: row for name, row in rows.items() if self._before.get(name) != row}
        gone = [name for name in self._before if name not in rows]
        self._before = rows
        return news | ({"gone": gone} if gone else {})

    def _rows(self) -> Iterator[tuple[str, Any]]:
        journal = self.device.journal
        names = {one.task_id: name for name, one in self.tasks.items()}
        for fact in ("schema", "now", "root 2"):
            value = journal.fact(fact)
            if value is not None:
                digest = hashlib.sha256(value).hexdigest()
                yield fact, digest if fact.startswith("root") else value.decode()
        for task_id, *paid in journal.payments():
            yield f"{names[task_id]} paid", paid
        for joined in journal.tasks():
            name = names[joined.task_id]
            keys = [joined.ids.hex(), joined.chain.hex(), joined.format]
            yield f"{name} state", joined.state
            yield f"{name} keys", keys
            yield f"{name} value", joined.value
            for period, value in journal.postponed(joined.task_id).items():
                yield f"{name} later {period}", value
            for period, outcome, at in journal.outcomes(joined.task_id):
                yield f"{name} report {period}", [outcome, at]
            for one in journal.waiting(joined.task_id):
                body = [one.round, one.key_id, one.body.hex(), one.tries]
                yield f"{name} waiting {one.period}", body

    def log(self) -> list[str]:
        """Return what the device tells its owner."""
        return self.device.log()

    def close(self) -> None:
        """Let go of the journal."""
        self.device.close()


# ---- earlier forms of journals -----------------------------------------------------------------

_TO_3: Final = f"""
DROP TABLE later;
UPDATE facts SET value = X'{Root.fresh(ROOT).encode().hex()}' WHERE name = 'root 2';
UPDATE facts SET value = X'33' WHERE name = 'schema';
"""  # noqa: S608 -- all of it is written here
_TO_1: Final = f"""
UPDATE facts SET value = X'{Root.fresh(ROOT).encode().hex()}' WHERE name = 'root';
CREATE TABLE paid (task_id BLOB PRIMARY KEY, units INTEGER NOT NULL, title TEXT NOT NULL,
                     at INTEGER NOT NULL, left_at INTEGER) WITHOUT ROWID;
INSERT INTO paid SELECT task_id, units, title, at, left_at FROM ledger
  WHERE task_id NOT IN (SELECT task_id FROM tasks
                        WHERE CAST(published AS TEXT) LIKE '%"kind": "window"%');
DROP TABLE ledger;
ALTER TABLE paid RENAME TO ledger;
DELETE FROM reports WHERE task_id NOT IN (SELECT task_id FROM ledger);
DELETE FROM tasks WHERE task_id NOT IN (SELECT task_id FROM ledger);
CREATE TABLE sent (task_id BLOB NOT NULL, period INTEGER NOT NULL, body BLOB,
                      outcome TEXT, at INTEGER, tries INTEGER NOT NULL DEFAULT 0,
                      PRIMARY KEY (task_id, period)) WITHOUT ROWID;
INSERT INTO sent SELECT task_id, period, body, outcome, at, tries FROM reports;
DROP TABLE reports;
ALTER TABLE sent RENAME TO reports;
UPDATE facts SET value = X'31' WHERE name = 'schema';
"""  # noqa: S608 -- all of it is written here
"""Schema 1 had horizons only, and no word on what was promised: the tables as they were then.

Roots, which only new tasks need, are short in both.
"""


BEFORE: Final = {
    "1": ("format_1", _TO_1),
    "3": ("schema_4", _TO_3),
    "4": ("schema_4", ""),
    "5": ("schema_5", ""),
}
"""The kept journal that has all of each schema, and what the schema lacks of it."""


def kept_journal(schema: str = "5") -> bytes:
    """Return the statements of a journal in the middle of its life."""
    name, statements = BEFORE[schema]
    return changed((FOLDER / "journals" / f"{name}.sql").read_bytes(), statements)


BAD: Final = {
    "of_a_later_version": "UPDATE facts SET value = X'39' WHERE name = 'schema'",
    "without_a_version": "DELETE FROM facts WHERE name = 'schema'",
    "without_a_table": "DROP TABLE reports",
    "a_root_cut_short": "UPDATE facts SET value = X'0102' WHERE name = 'root 2'",
    "a_time_that_is_none": "UPDATE facts SET value = X'78' WHERE name = 'now'",
    "a_state_of_another": "UPDATE tasks SET state = '{}'",
    "a_state_that_is_no_json": "UPDATE tasks SET state = '{'",
    "a_task_that_was_changed": (
        "UPDATE tasks SET published = CAST(replace(published, '3600', '3601') AS BLOB)"
    ),
    "keys_of_no_format": "UPDATE tasks SET format = 7",
    "a_short_chain": "UPDATE tasks SET chain = X'00'",
}


def refusal(script: bytes, statement: str, published: Mapping[str, Published]) -> list[str]:
    """Return what is said of a journal that was spoilt: when it is opened, or used."""
    with tempfile.TemporaryDirectory() as folder:
        path = database(Path(folder) / "journal", script, statement)
        try:
            life = Life(path, published)
        except SfumatoError as error:
            return [str(error).replace(str(path), "JOURNAL")]
        life.now = float(STEPS[KEPT_AFTER - 1]["at"])
        said = []
        try:
            said = sorted(set(life.device.flush(force=True).problems.values()))
            life.device.join(
                Published({**published["set"].spec, "title": "new"}, {}, "http://c/n/r")
            )
        except SfumatoError as error:
            said.append(str(error))
        finally:
            life.close()
        return [sentence.replace(str(path), "JOURNAL") for sentence in said]


def files() -> Files:
    """Return the vectors of whole devices and their journals."""
    published, steps = tasks(), []
    middle = b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        life = Life(path, published)
        for number, step in enumerate(STEPS, 1):
            steps.append(life.live(step))
            if number == KEPT_AFTER:
                life.close()
                middle = sql_of(path)
                life._open()  # noqa: SLF001 -- as if nothing had happened
        log = life.log()
        life.close()
    told = {name: one.encode().decode() for name, one in published.items()}
    whole = {"root": ROOT.hex(), "tasks": told, "values": SEEN, "steps": steps, "log": log}
    bad = [
        {"name": name, "statement": statement, "refused": refusal(middle, statement, published)}
        for name, statement in BAD.items()
    ]
    return {
        "devices/life.json": dumped(VERSION, "a device with all kinds of tasks", whole),
        "journals/schema_5.sql": middle,
        "journals/bad_journals.json": dumped(
            VERSION, "what spoils a journal of schema 5, and what is said of it", {"cases": bad}
        ),
    }
