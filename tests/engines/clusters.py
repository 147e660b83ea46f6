"""A standalone cluster of Spark on this machine: a master and workers, each a process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest
from tests.ports import own_port

NEEDS_JAVA = pytest.mark.skipif(
    shutil.which("java") is None, reason="needs java; on Debian, openjdk-17-jre-headless"
)
SPARK = Path(pyspark.__file__).parent
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A Java machine that does little needs little, and compiles less."""
SMALL = f"{QUICK} -Dspark.master.rest.enabled=false"
FRUGAL = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "512m",
}
"""Settings of a session that counts little."""
NETWORK = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "a-secret-of-all-machines",
    "spark.network.crypto.enabled": "true",
}
"""Settings of machines whose network is encrypted."""


@dataclass
class Standalone:
    """A master and its workers."""

    master: str
    settings: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self) -> list[int]:
        """Return the ids of the processes that run tasks."""
        return [pid for pid, words in processes() if "CoarseGrainedExecutorBackend" in words]


@contextmanager
def standalone(
    folder: Path, workers: int = 2, settings: Mapping[str, str] | None = None
) -> Iterator[Standalone]:
    """Start a cluster, and stop it at the end; its files are in the folder.

    Its settings are in a file, because one of them may be a secret.
    """
    port = own_port()
    cluster = Standalone(f"spark://127.0.0.1:{port}", folder / "conf")
    cluster.settings.mkdir()
    lines = [f"{name} {value}\n" for name, value in (settings or {}).items()]
    (cluster.settings / "spark-defaults.conf").write_text("".join(lines))
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_started("Master", ["--host", "127.0.0.1", "--port", str(port)], cluster))
        _wait_for(port)
        for number in range(workers):
            own = folder / f"worker {number}"
            own.mkdir()
            words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            words += ["--work-dir", str(own), cluster.master]
            cluster.workers.append(_started("Worker", words, cluster))
            started.append(cluster.workers[-1])
        yield cluster
    finally:
        for process in reversed(started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(30)


def _started(role: str, words: Sequence[str], cluster: Standalone) -> subprocess.Popen[bytes]:
    folder = cluster.settings.parent
    home = {"SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable}
    home["SPARK_CONF_DIR"] = str(cluster.settings)
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": SMALL}
    with (folder / f"{role}.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603
            [
                str(SPARK / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{role.lower()}.{role}",
                *("--webui-port", "0"),
                *words,
            ],
            env=os.environ | home | own,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_for(port: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the master does not listen")


def processes() -> Iterator[tuple[int, str]]:
    """Yield all processes, with their command lines."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            yield int(folder.name), words.replace(b"\0", b" ").decode(errors="replace")
