"""A worker: ``python -m sfumato.service.worker_process``, started by the process that listens.

It reads what it has to know from its standard input, and ends when that process does.
"""

from __future__ import annotations

import json
import socket
import sys
from contextlib import closing
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.service.asgi import make_app
from sfumato.service.assembly import ServicePlan
from sfumato.service.board import Board
from sfumato.service.crew import Crew
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
            service = plan.service(opened, Crew(number, boards, bells))
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
