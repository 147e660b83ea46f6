"""A collector and its shuffler in one process, with a clock of ours and a line that is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.testclient import TestClient
from tests.service.fleets import Fleet, batch
from tests.service.world import World
from tests.small_tasks import lights

from sfumato import catalog
from sfumato.randomness import Source, secure
from sfumato.shuffler import handing_on
from sfumato.shuffler.front import Front, make_front
from sfumato.shuffler.handing_on import Collecting
from sfumato.shuffler.holding import Holding
from sfumato.shuffler.mixing import Shuffler
from sfumato.wire.published import Published
from sfumato.wire.reports import BATCH_TYPE, Batch

__all__ = ["HERE", "LEAST", "TASK", "Mixer"]

HERE: Final = "http://shuffler.example"
LEAST: Final = 12
TASK: Final = lights(
    *(3, "10 seconds"),
    shuffle={"url": HERE, "epsilon": 2.0, "delta": 1e-6, "min_batch": LEAST},
)


class Mixer:
    """A shuffler in front of a collector; what leaves it is in ``left``."""

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        rng: Source | None = None,
        task: dict[str, Any] = TASK,
    ) -> None:
        self.folder, self.rng = folder, rng or secure()
        self.world = World(folder)
        self.running = self.world.collector.publish(
            catalog.task(task), int(self.world.now), grace=5, public=True
        )
        self.left: list[bytes] = []
        self.lost: Callable[[], bool] = lambda: False
        patch.setattr(handing_on, "exchange", self._exchange)
        patch.setattr(handing_on, "FIRST_WAIT", 0.0)
        self.start()

    def start(self) -> None:
        self.holding = Holding(self.folder / "shuffler.db")
        self.shuffler = Shuffler(
            self.holding, HERE, "http://testserver", lambda: self.world.now, self.rng
        )
        self.collecting = Collecting(self.shuffler, self.world.tokens["shuffler"])
        self.front = Front(self.collecting)
        self.client = TestClient(make_front(self.front), raise_server_exceptions=False)

    def restart(self) -> None:
        """Start again from what is on disk."""
        self.holding.close()
        self.start()

    def close(self) -> None:
        self.holding.close()
        self.world.store.close()

    def _exchange(
        self, url: Any, body: bytes | None, headers: dict[str, str], timeout: float, largest: int
    ) -> tuple[int, bytes]:
        """Pass on a request to the collector; the line may lose the request or the response."""
        del timeout, largest
        if body is not None:
            self.left.append(body)
        if self.lost():
            raise OSError("the line is dead")
        verb = "GET" if body is None else "POST"
        answered = self.world.client.request(verb, url.path, content=body, headers=headers)
        if self.lost():
            raise OSError("the line is dead")
        return answered.status_code, answered.content

    @property
    def published(self) -> Published:
        return self.running.published

    def bodies(self, fleet: Fleet, keep: slice = slice(None)) -> list[bytes]:
        """Return what each device uploads after the next period."""
        messages = fleet.messages([1] * len(fleet.machines))[keep]
        return [batch(self.running, [message]) for message in messages]

    def upload(self, body: bytes) -> Any:
        url = f"/v1/tasks/{self.running.name}/reports"
        return self.client.post(url, content=body, headers={"Content-Type": BATCH_TYPE})

    def take(self, bodies: Sequence[bytes]) -> list[dict[str, Any]]:
        """Take uploads without HTTP; return their receipts."""
        if self.running.task_id not in self.shuffler.tasks:
            self.collecting.fetch(self.running.task_id)
        task = self.shuffler.tasks[self.running.task_id]
        taken = [self.shuffler.read(task, body) for body in bodies]
        self.shuffler.hold(taken)
        return [each.plain() for each in taken]

    def end_of(self, period: int) -> None:
        self.world.now = self.running.ends_at(period)

    def hand_on(self, period: int) -> None:
        """Let the grace of a period pass, mix and hand on."""
        self.world.now = self.running.ends_at(period) + 5
        self.shuffler.mix_due()
        self.collecting.hand_on()

    def ids(self, body: bytes) -> list[bytes]:
        names: list[bytes] = Batch.decode(body, self.running.layout).reports["id"].tolist()
        return names
