"""A driver of Spark that follows the log of a store, in a process that tests kill.

    python spark_driver.py DSN FOLDER [MASTER] [FATE]

It ends when nothing waits. With the fate ``after`` it is killed right after its first epoch was
acknowledged, before its checkpoint knows of that; with ``before``, right before.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sfumato.engines.log_following import followed
from sfumato.engines.spark_following import SparkFollower
from sfumato.engines.spark_session import SECRETIVE, SETTINGS
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.postgres import PostgresStore

PATIENCE = 150.0


class Doomed(PostgresStore):
    """A store whose process dies as it acknowledges."""

    fate = ""

    def acknowledge(self, *about: Any) -> bool:
        if self.fate == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = super().acknowledge(*about)
        if self.fate == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done


def main(dsn: str, folder: Path, master: str = "local[2]", fate: str = "") -> None:
    """Follow all tasks until nothing of them waits."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    events = folder / "events"
    events.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(master).appName("driver")
    own = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{events}",
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": "700m",
        "spark.log.level": "WARN",
        "spark.sql.planChangeLog.level": "WARN",
    }
    for name, value in (SETTINGS | SECRETIVE | own).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    Doomed.fate = fate
    store = Doomed(dsn)
    follower = SparkFollower(session, store, dsn, folder / "checkpoint", KeyWrapping.of())
    queries = [follower.start(task.task_id) for task in followed(store)]
    print("following", flush=True)  # noqa: T201
    end = time.monotonic() + PATIENCE
    while any(store.uncounted(task.task_id) for task in followed(store)):
        waiting = [
            list(store.log(task.task_id, store.progress(task.task_id).sequence))
            for task in followed(store)
        ]
        if not any(waiting) or time.monotonic() > end:
            break
        for query in queries:
            if not query.isActive:
                print("ended", query.exception(), flush=True)  # noqa: T201
                session.stop()
                sys.exit(1)
        time.sleep(0.3)
    for query in queries:
        query.explain(extended=True)
        query.stop()
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
