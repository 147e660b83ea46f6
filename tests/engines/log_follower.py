"""A follower of the log of a store, in a process that dies as tests want it.

    python log_follower.py STORE FATE

It dies right ``before`` or ``after`` its first epoch is acknowledged, or ``never``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from sfumato.engines.log_following import LogFollower
from sfumato.store.store_addresses import open_store


def main(address: str, fate: str) -> None:
    """Count what waits."""
    store = open_store(address, claimed=True)
    acknowledge = store.acknowledge

    def doomed(*about: Any) -> bool:
        if fate == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = acknowledge(*about)
        if fate == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    store.acknowledge = doomed  # type: ignore[assignment, method-assign]
    for epoch in LogFollower(store).catch_up():
        print(epoch.first, epoch.last)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
