"""A worker: ``python -m sfumato.service.worker_process``, started by the process that listens.

It reads what it has to know from its standard input, and ends when that process does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.service.asgi import make_app
from sfumato.service.assembly import ServicePlan
from sfumato.service.board import Board
from sfumato.service.caps import Caps
from sfumato.service.crew import Crew
from sfumato.service.shared_counts import SharedCounts
from sfumato.store.store_addresses import open_store
from sfumato.web import logs
from sfumato.web.serving import serve_handed

__all__: list[str] = []


def _main(told: dict[str, Any]) -> int:
    number = int(told["number"])
    logs.to_stderr(worker=number)
    boards = {int(name): Board(descriptor) for name, descriptor in told["boards"].items()}
    bells = {int(name): (ends[0], ends[1]) for name, ends in told["bells"].items()}
    plan = ServicePlan(**told["plan"] | {"proxies": tuple(told["plan"]["proxies"])})
    door = socket.socket(fileno=told["door"])
    try:
        with closing(open_store(plan.store, claimed=True)) as opened:
            # Without its line it could count nothing in tasks with a cap; its successor can.
            leave = partial(os.kill, os.getpid(), signal.SIGTERM)
            counts = SharedCounts(Connection(told["counts"]), leave)
            service = plan.service(opened, Crew(number, boards, bells), Caps(counts))
            app = make_app(service)
            serve_handed(app, door, service.bell.stop, boards[number].count_ended)
    except SfumatoError as error:
        page = json.loads(boards[number].read() or b"{}") | {"failed": str(error)}
        boards[number].write(json.dumps(page).encode())
        logs.log().error("worker failed", problem=str(error)[:200])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(json.load(sys.stdin)))
