"""Sessions of Spark: begun, stopped, and what is wrong with a cluster, in one sentence each."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sfumato import extras
from sfumato.errors import ConfigurationError, InputError, SfumatoError

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

__all__ = ["SECRETIVE", "SETTINGS", "explained", "secret_broadcast", "session_at"]

ENCRYPTED: Final = "spark.io.encryption.enabled"
"""The setting by which what Spark writes to its disks is encrypted."""
NETWORK: Final = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
"""The settings by which what machines of a cluster say to each other is encrypted."""
SECRETIVE: Final = {ENCRYPTED: "true", "spark.io.encryption.keySizeBits": "256"}
"""The settings of a session that hands secrets to executors: its disks see them encrypted only."""
SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.sql.parquet.columnarReaderBatchSize": "16",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
"""Settings for packed rows, each of which may have megabytes: few of them are read at once."""
MASTER_PATIENCE: Final = 5.0
"""The number of seconds in which a master has to answer."""
WORKER_PATIENCE: Final = 30.0
"""The number of seconds in which a worker has to take part."""
LOCAL: Final = "local"
STANDALONE: Final = "spark://"


@contextmanager
def session_at(
    master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Begin a session of Spark, and stop it at the end.

    Raises one sentence if there is no PySpark or no Java, or if the master does not answer.

    Parameters
    ----------
    master
        ``local[N]``, ``spark://host:port``, ``yarn`` or ``k8s://address``.
    settings
        Further settings of the session.

    """
    extras.module("pyspark")
    if master.startswith(STANDALONE):
        _demand_master(master)
    _demand_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith((LOCAL, STANDALONE)):
        os.environ.setdefault("SPARK_LOCAL_IP", _own_address(master))
    builder = extras.module("pyspark.sql").SparkSession.builder.master(master).appName("sfumato")
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    with explained(master), _quiet_jvm():
        session = builder.getOrCreate()
    _hush(session)
    try:
        _demand_workers(session, master)
        yield session
    finally:
        _stop(session)


def _hush(session: SparkSession) -> None:
    """Keep tracebacks of a thread of PySpark from people: that Java has ended is said otherwise."""
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def _stop(session: SparkSession) -> None:
    """Stop a session, also one whose Java process has ended."""
    gateway = extras.module("py4j.protocol")
    for _ in range(2):  # what is left to do after a failure is done the second time
        with suppress(gateway.Py4JError, ConnectionError):
            session.stop()
            return


def _demand_java() -> None:
    """Raise ConfigurationError if there is no Java to run."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME is {home}, where no bin/java is" if home else "no java is on the PATH"
        raise ConfigurationError(
            f"Spark needs Java 17 or newer, and {where}; on Debian, openjdk-17-jre-headless has it."
        )


def _address(master: str) -> tuple[str, int]:
    host, _, port = master.removeprefix(STANDALONE).partition(",")[0].rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(f"master is {master!r}; spark://host:port is expected.")
    return host, int(port)


def _demand_master(master: str) -> None:
    """Raise InputError if nobody listens where the master should; Spark would try for minutes."""
    try:
        socket.create_connection(_address(master), MASTER_PATIENCE).close()
    except OSError as error:
        reason = error.strerror or str(error)
        sentence = f"the master {master} does not answer ({reason}); is it running?"
        raise InputError(sentence) from None


def _own_address(master: str) -> str:
    """Return the address by which executors reach this process."""
    if not master.startswith(STANDALONE):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect(_address(master))  # nothing is sent
        return str(towards.getsockname()[0])


def _demand_workers(session: SparkSession, master: str) -> None:
    """Raise InputError if no worker of a cluster takes part; Spark would wait for ever."""
    if not master.startswith(STANDALONE):
        return
    context: Any = session.sparkContext
    end = time.monotonic() + WORKER_PATIENCE
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # noqa: SLF001 -- not public
        if time.monotonic() > end:
            raise InputError(
                f"no worker of {master} has begun within {WORKER_PATIENCE:.0f} seconds; is one "
                "running, with cores and memory that are free?"
            )
        time.sleep(0.1)


@contextmanager
def _quiet_jvm() -> Iterator[None]:
    """Keep what a Java machine says as it starts from people who wait for an answer."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def secret_broadcast(session: SparkSession, secret: Any) -> Iterator[Broadcast[Any]]:
    """Hand a secret to the executors, and have it dropped everywhere at the end.

    Raises ConfigurationError if it would be written to a disk or cross a network as it is.
    """
    master = str(session.sparkContext.master)

    def is_on(name: str) -> bool:
        return str(session.conf.get(name, "false")).lower() == "true"

    if not is_on(ENCRYPTED):
        raise ConfigurationError(
            f"Spark at {master} would write secrets to its disks as they are; {ENCRYPTED} is "
            "expected to be true."
        )
    if not master.startswith(LOCAL) and not any(map(is_on, NETWORK)):
        raise ConfigurationError(
            f"secrets would cross the network of {master} in the clear; "
            f"{' or '.join(NETWORK)} is expected to be true, on all of its machines."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # PySpark forgets to close a socket
        shared = session.sparkContext.broadcast(secret)
    try:
        yield shared
    finally:
        shared.destroy()


@contextmanager
def explained(master: str) -> Iterator[None]:
    """Turn errors of Spark into one sentence each."""
    errors = extras.module("pyspark.errors")
    gateway = extras.module("py4j.protocol")
    try:
        yield
    except (gateway.Py4JNetworkError, ConnectionError) as error:
        raise SfumatoError(f"Spark at {master} has failed: its Java process has ended.") from error
    except (errors.PySparkException, gateway.Py4JError) as error:
        words = str(error)
        if "JAVA_GATEWAY_EXITED" in words:
            raise ConfigurationError(
                "Java does not start Spark, which needs Java 17 or newer; `java -version` says "
                "which one there is."
            ) from error
        if "No module named 'sfumato" in words:
            raise ConfigurationError(
                f"executors of {master} cannot import sfumato; install it for their Python, which "
                "PYSPARK_PYTHON names, or send an environment along (see docs/cluster.md)."
            ) from error
        first = next((line for line in words.splitlines() if line.strip()), type(error).__name__)
        raise SfumatoError(f"Spark at {master} has failed: {first.strip()[:300]}") from error
