"""A collector with one task behind its addresses, and a clock that the test turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from tests.service.fleets import LISTENING

from sfumato.service import Collector, RunningTask
from sfumato.service.access import new_token, set_token
from sfumato.service.asgi import Service, make_app
from sfumato.store import SQLiteStore
from sfumato.wire.reports import BATCH_TYPE

START = 1_000_000
TASK = {
    "title": "Lights",
    "epsilon": 1.0,
    "periods": 4,
    "period": "1 hour",
    "changes": 2,
    "values": {"kind": "binary"},
}


class World:
    """A collector whose clock is ours, behind its addresses."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now = START + 11.0
        self.store = SQLiteStore(folder / "collector.db")
        self.tokens = {role: new_token() for role in ("operator", "analyst", "shuffler")}
        for role, token in self.tokens.items():
            set_token(self.store, role, token)
        self.collector = Collector(self.store, "http://testserver", lambda: self.now)
        self.open = self.collector.publish(LISTENING, START, grace=5, public=True)
        self.hidden = self.collector.publish(LISTENING, START, grace=6, public=False)
        self.service = Service(self.collector, **settings)
        self.client = TestClient(make_app(self.service), raise_server_exceptions=False)

    def headers(self, role: str | None) -> dict[str, str]:
        if role is None:
            return {}
        token = self.tokens.get(role, role)
        return {"Authorization": f"Bearer {token}"}

    def upload(
        self,
        running: RunningTask,
        body: bytes,
        kind: str = BATCH_TYPE,
        role: str | None = None,
    ) -> Any:
        url = f"/v1/tasks/{running.name}/reports"
        headers = {"Content-Type": kind} | self.headers(role)
        return self.client.post(url, content=body, headers=headers)

    def close_periods(self) -> None:
        self.service.writer.call(self.collector.close_due).result()


VALUES = ["home"] * 30 + ["work"] * 20 + ["road"] * 10
