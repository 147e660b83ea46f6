"""A collector with pages on a free port, whose time and releases a test decides."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
import uvicorn
from tests.service.houses import House

from sfumato.service.access import set_token
from sfumato.service.asgi import Service, make_app
from sfumato.web.serving import listening

__all__ = ["OPERATOR", "Host", "host"]

OPERATOR = "an-operator-of-tests-only"


class Host(House):
    """A house that answers requests; its clock closes nothing by itself."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        set_token(self.store, "operator", OPERATOR)
        self.service = Service(self.collector)
        self.metrics = self.service.metrics
        socket = listening("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{socket.getsockname()[1]}"
        config = uvicorn.Config(make_app(self.service), lifespan="off", log_config=None)
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, args=(socket,), daemon=True)
        self._thread.start()

    def _run(self, socket: Any) -> None:
        async def run() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[socket])

        asyncio.run(run())

    def ring(self) -> None:
        """Tell all who listen that a period has closed."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.service.bell.ring)

    def stop(self) -> None:
        """Answer nothing any more."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.service.bell.stop, True)  # noqa: FBT003
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.stop()
        self.store.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A collector with pages, which is gone after the test."""
    with Host(tmp_path) as made:
        yield made
