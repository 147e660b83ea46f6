"""Spark counts the same to the last bit, whatever dies; what is wrong is said in one sentence."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import lit
from tests.engines.catalogue import Case, cases, of_mechanism, written
from tests.engines.clusters import FRUGAL, NEEDS_JAVA, NETWORK, Standalone, standalone
from tests.engines.test_engines import counts_the_same, few
from tests.engines.test_keyed_releases import KEY, PLAN, values

from sfumato import GRR, OLH, engines
from sfumato.engines import Lake, Row
from sfumato.engines.keyed_releases import release_each, release_with_spark
from sfumato.engines.row_files import row_table
from sfumato.engines.spark import Spark
from sfumato.engines.spark_session import SECRETIVE, session_at
from sfumato.errors import ConfigurationError, InputError, MismatchError, ReportError

pytestmark = NEEDS_JAVA


PYSPARK_FORGETS = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
"""What is encrypted goes to Java by sockets that PySpark does not close."""
ENGINES = ["local[2]", pytest.param("standalone", marks=PYSPARK_FORGETS)]


@pytest.fixture(scope="module", params=ENGINES)
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Spark]:
    """Two cores of this machine, and then a master with two workers, which encrypt all."""
    if request.param == "local[2]":
        with Spark.at("local[2]", FRUGAL) as engine:
            yield engine
        return
    folder = tmp_path_factory.mktemp("cluster")
    with (
        standalone(folder, settings=NETWORK) as cluster,
        Spark.at(cluster.master, FRUGAL | SECRETIVE | NETWORK) as engine,
    ):
        yield engine


def test_spark_counts_the_same(spark: Spark, tmp_path: Path) -> None:
    counts_the_same(spark, few(), tmp_path)
    case = few()[-1]
    rows = [*case.rows, *case.rows]
    assert dict(engines.aggregate(case.counter, rows, engine=spark)) == dict(case.expected)
    frame = spark.session.createDataFrame(row_table(rows, case.counter.size))
    frame.write.parquet(str(tmp_path / "any table"))
    frame = spark.session.read.parquet(str(tmp_path / "any table"))
    assert dict(engines.aggregate(case.counter, frame, engine=spark)) == dict(case.expected)  # type: ignore[arg-type]
    _refuses(spark, tmp_path)
    _releases(spark)


def _releases(spark: Spark) -> None:
    """Executors that encrypt are handed a key, and release what one process releases."""
    table = values()
    again = spark.session.createDataFrame(pa.concat_tables([table, table.slice(9, 30)]))
    if str(spark.session.sparkContext.master).startswith("local"):
        with pytest.raises(ConfigurationError, match="would write secrets to its disks as they"):
            release_with_spark(PLAN, KEY, again)
        return
    assert release_with_spark(PLAN, KEY, again) == release_each(PLAN, KEY, table)
    with pytest.raises(InputError, match=r"value of stream 'zone \d' is float64"):
        release_with_spark(PLAN, KEY, again.withColumn("value", again["value"] + 0.5))
    with pytest.raises(InputError, match="lies outside of"):
        release_with_spark(PLAN, KEY, again.withColumn("value", again["value"] + 1000))


@pytest.mark.slow
def test_spark_counts_the_whole_catalogue(spark: Spark, tmp_path: Path) -> None:
    counts_the_same(spark, cases(), tmp_path)


def _refuses(spark: Spark, folder: Path) -> None:
    """What executors refuse is one sentence, which names the row or the file."""
    case, own = of_mechanism("grr", GRR(1.0, 50)), folder / "refused"
    own.mkdir()
    foreign = Row(9, bytes(32), 0, case.rows[0].contents)
    other = Row(case.rows[1].sequence, case.counter.task_id, 0, case.rows[0].contents)
    for rows, error, sentence in (
        ([*case.rows, foreign], MismatchError, "row 9 is of task 000000000000; rows of task"),
        ([*case.rows, other], MismatchError, "row 6 is there twice, with different reports"),
        ([Row(3, case.counter.task_id, 0, b"\xff")], ReportError, "grr"),
    ):
        with pytest.raises(error, match=sentence):
            engines.aggregate(case.counter, rows, engine=spark)
    frame = spark.session.createDataFrame(row_table(case.rows, case.counter.size))
    none = lit(None)
    for strange, sentence in (
        (frame.drop("task"), "column task of the rows is missing; binary is expected"),
        (frame.withColumn("period", none.cast("double")), "column period of the rows is double"),
        (frame.withColumn("period", none.cast("long")), "period of a row is None; 0 or"),
        (frame.withColumn("sequence", none.cast("long")), "sequence of a row is None; 0 or"),
        (frame.withColumn("contents", none.cast("binary")), "contents of a row is None; bytes"),
    ):
        with pytest.raises(InputError, match=sentence):
            engines.aggregate(case.counter, strange, engine=spark)  # type: ignore[arg-type]
    path = written(own / "a.parquet", case, case.rows[-1:])
    data = bytearray(path.read_bytes())
    data[data.index(case.rows[-1].contents[-8:])] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet cannot be read: "):
        engines.aggregate(case.counter, Lake.open(own), engine=spark)


# ---- what dies -----------------------------------------------------------------------------------


def _killed_executor(cluster: Standalone) -> None:
    os.kill(cluster.executors()[0], signal.SIGKILL)


def _killed_worker(cluster: Standalone) -> None:
    """Kill a worker, which takes its executor along."""
    os.killpg(cluster.workers[0].pid, signal.SIGKILL)


def _large(folder: Path) -> tuple[Case, Path]:
    """Return a lake that takes seconds to count."""
    case = of_mechanism("olh", OLH(1.0, 64))
    large = b"".join(row.contents for row in case.rows) * 200
    rows = [Row(number, case.counter.task_id, 0, large) for number in range(160)]
    return case, written(folder / "large.parquet", case, rows)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [_killed_executor, _killed_worker])
def test_what_is_killed_while_it_counts_changes_nothing(
    tmp_path: Path, kill: Callable[[Standalone], None]
) -> None:
    case, path = _large(tmp_path)
    lake, killed = Lake.open(path), list[int]()
    once = case.expected.total()
    with standalone(tmp_path) as cluster, Spark.at(cluster.master, FRUGAL) as spark:

        def progress(done: int, total: int) -> None:
            if not killed and 0 < done < total:
                killed.append(done)
                kill(cluster)

        counted = engines.aggregate(lake.counter, lake, engine=spark, progress=progress).total()
    assert killed
    assert counted.n == 160 * 200 * once.n
    assert (counted.sums == 160 * 200 * once.sums).all()


# ---- what is missing -----------------------------------------------------------------------------


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for master, sentence in (
        ("spark://127.0.0.1:1", r"spark://127\.0\.0\.1:1 does not answer \(Connection refused\)"),
        ("spark://nobody", "master is 'spark://nobody'; spark://host:port is expected"),
    ):
        with pytest.raises((InputError, ConfigurationError), match=sentence), session_at(master):
            pass
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"17 or newer, and JAVA_HOME is .*no bin/java"):
        session_at().__enter__()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"no java is on the PATH; on Debian, openjdk-17"):
        session_at().__enter__()


def test_a_report_file_is_a_lake(tmp_path: Path) -> None:
    """Reports of a plain mechanism, one to a row, are taken together."""
    case = of_mechanism("grr", GRR(1.0, 50))
    contents = b"".join(row.contents for row in case.rows)
    column = pa.array([contents[at : at + 1] for at in range(len(contents))], pa.binary(1))
    about: dict[bytes | str, bytes | str] = {
        "sfumato": '{"mechanism": "grr", "epsilon": 1.0, "domain": 50}'
    }
    schema = pa.schema([pa.field("report", pa.binary(1), nullable=False)], about)
    pq.write_table(pa.table([column], schema=schema), tmp_path / "a.parquet", row_group_size=70)
    lake = Lake.open(tmp_path)
    assert lake.rows == 5
    for engine in (None, engines.Local(2)):
        assert engines.aggregate(lake.counter, lake, engine=engine) == case.expected
