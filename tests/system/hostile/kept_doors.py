"""Doors of what is kept on disk: journals of devices and releases, and the collector's store."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from tests.service.fleets import Fleet
from tests.system.hostile.databases import damaged_database
from tests.system.hostile.judging import Door, Faulty, is_sentence
from tests.system.hostile.mutation import damaged, damaged_plain, json_text
from tests.system.hostile.wire_doors import TASKS, Silent, published

from sfumato import catalog
from sfumato.device import Device, Limits
from sfumato.device.journal import Journal
from sfumato.errors import SfumatoError
from sfumato.files import released_files
from sfumato.files.follower import follow
from sfumato.files.output_journal import beside
from sfumato.pages.task_page import TaskPage
from sfumato.pages.wanted import Wanted
from sfumato.randomness import seeded
from sfumato.service.collector import Collector
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.task_subject import TaskSubject
from sfumato.store import SQLiteStore
from sfumato.streams.published import plan
from sfumato.streams.published.amounts import Amounts

__all__ = ["DeviceJournals", "ReleaseJournals", "Stores"]


def _each(steps: list[Any]) -> str:
    """Take all steps, whatever the ones before said; return whether all of them worked."""
    refusals = 0
    for step in steps:
        try:
            step()
        except SfumatoError as error:
            refusals += 1
            if not is_sentence(str(error)):
                raise Faulty(f"no sentence: {error}") from error
    return "refused" if refusals else "taken"


class DeviceJournals(Door, name="device journals", share=50):
    """The journal of a device, opened again after something happened to it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "device.journal"
        self._good = [self._lived(plain) for plain in TASKS]
        self._fresh = published(TASKS[0] | {"title": "Another"})

    def _lived(self, plain: dict[str, Any]) -> bytes:
        device = self._device(15.0)
        task = device.join(published(plain))
        for value in ("home", 1, 0, {"home"}, {"room": "hall", "lamp": 1}, {"up": 1}, 4.0):
            device.observe(value, task)
        device.flush(force=True)
        device.close()
        good = self._path.read_bytes()
        self._path.unlink()
        return good

    def _device(self, now: float) -> Device:
        limits = Limits(8.0, unsealed=True, windows=True)
        journal = Journal(self._path)
        try:
            return Device(journal, limits, Silent(), lambda: now, seeded(1))
        except BaseException:
            journal.close()
            raise

    def make(self, rng: Random) -> bytes:
        """Return a damaged journal."""
        return damaged_database(rng.choice(self._good), self.folder, rng)

    def enter(self, item: bytes) -> str:
        """Open it, look at it, live on, and leave."""
        for name in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + name).unlink(missing_ok=True)
        self._path.write_bytes(item)
        device = self._device(45.0)
        try:
            return _each(
                [
                    device.log,
                    lambda: device.left,
                    lambda: device.observe("home"),
                    lambda: device.flush(force=True),
                    lambda: device.join(self._fresh),
                    device.log,
                    lambda: device.leave(self._fresh.task_id.hex()),
                    device.erase,
                ]
            )
        finally:
            device.close()


class ReleaseJournals(Door, name="release journals", share=40):
    """The journal of a release that is followed, opened again after something happened to it."""

    _release: Final = plan(epsilon=1.0, bound=100, holdout=8, limit=1 << 10, block=4)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._input, self._output = folder / "input.txt", folder / "output.csv"
        self._amounts = Amounts(100.0, 1.0)
        self._good: list[tuple[bytes, bytes]] = []
        for count in (3, 30, 200):
            self._clear()
            self._input.write_text("".join(f"{value % 90}\n" for value in range(count)))
            self._stopped()
            self._good.append((beside(self._output).read_bytes(), self._output.read_bytes()))
        # A journal goes on with its own output alone, so all belong to the file that is there now.
        here = self._output.stat().st_ino
        self._good = [(_bound(journal, here), output) for journal, output in self._good]

    def _clear(self) -> None:
        self._output.unlink(missing_ok=True)
        beside(self._output).unlink(missing_ok=True)

    def _stopped(self) -> None:
        """Follow the input until all of it is in, and stop before its end is written down."""

        def stop(values: int, sums: int) -> None:
            del values, sums
            raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            follow(self._input, self._output, self._release, self._amounts, moved=stop)

    def make(self, rng: Random) -> tuple[bytes, bytes]:
        """Return a damaged journal, and the output beside it, which is damaged at times as well."""
        journal, output = rng.choice(self._good)
        if rng.random() < 0.2:
            output = damaged(output, rng)
        if rng.random() < 0.2:
            return damaged(journal, rng), output
        lines = [json.loads(line.partition(b" ")[2]) for line in journal.splitlines()]
        place = rng.randrange(len(lines))
        lines[place] = damaged_plain(lines[place], rng)
        return b"".join(_summed(json_text(line)) for line in lines), output

    def enter(self, item: tuple[bytes, bytes]) -> str:
        """Go on with the release until its input ends."""
        journal, output = item
        self._output.write_bytes(output)
        beside(self._output).write_bytes(journal)
        self._input.write_text("".join(f"{value % 90}\n" for value in range(230)))
        follow(self._input, self._output, self._release, self._amounts)
        released_files.read_released(self._output)
        return "taken"


def _bound(journal: bytes, output: int) -> bytes:
    """Return the journal of another output file."""
    first, *rest = journal.splitlines(keepends=True)
    about = json.loads(first.partition(b" ")[2]) | {"output": output}
    return b"".join([_summed(json_text(about)), *rest])


def _summed(text: str) -> bytes:
    body = text.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
    return b"%08x %s\n" % (zlib.crc32(body), body)


class Stores(Door, name="stores", share=30):
    """The collector's store, opened again after something happened to it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "collector.db"
        store = SQLiteStore(self._path)
        collector = Collector(store, "http://here", lambda: 25.0)
        for place in (1, -1):
            running = collector.publish(catalog.task(TASKS[place]), 0, grace=5, sealed=place == 1)
            if place == 1:  # two periods of real reports, so that there is something to answer
                fleet = Fleet(running, 40)
                for _ in range(2):
                    collector.take(running, fleet.body(["b"] * 40))
        store.set_token("analyst", bytes(32))
        collector.close_due()
        store.close()
        self._good = self._path.read_bytes()

    def make(self, rng: Random) -> bytes:
        """Return a damaged store."""
        return damaged_database(self._good, self.folder, rng)

    def enter(self, item: bytes) -> str:
        """Open it, start a collector on it, let periods close, and ask."""
        for name in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + name).unlink(missing_ok=True)
        self._path.write_bytes(item)
        store = SQLiteStore(self._path)
        try:
            store.tokens()
            collector = Collector(store, "http://here", lambda: 37.0)
            metrics = CollectorMetrics(collector)
            outcomes = [_each([collector.close_due])]
            for running in list(collector.running_tasks.values()):
                steps = [
                    lambda running=running: collector.take(running, _batch(running)),
                    lambda running=running: TaskPage(
                        TaskSubject(running, metrics), Wanted(), 37.0
                    ).html(),
                    lambda running=running: store.recount(running.task_id, lambda *_: {}),
                    lambda running=running: running.history(),
                ]
                outcomes.append(_each(steps))
            return "refused" if "refused" in outcomes else "taken"
        finally:
            store.close()


def _batch(running: Any) -> bytes:
    from sfumato.wire.reports import Batch  # noqa: PLC0415

    reports = np.zeros(3, dtype=running.layout.report_dtype)
    reports["period"] = [1, 2, 3]
    return Batch(running.task_id, running.published.key_id, reports).encode()
