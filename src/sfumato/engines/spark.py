"""The Spark engine: rows are counted where executors are, and tallies come back.

Executors get the task as it was published, and count with the same judge as everybody else. What
they refuse comes back as a sentence, not as a failed task that would be tried again. Rows of a lake
are read by the executors themselves, from files that all machines see under one path; rows of any
other source of Spark are handed over as batches of Arrow.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from sfumato.core.stream import Place
from sfumato.core.tally import Tallies
from sfumato.engines.counting import RowCounter
from sfumato.engines.lake import Lake
from sfumato.engines.local import Progress, quiet
from sfumato.engines.row_files import row_table
from sfumato.engines.rows import Row
from sfumato.engines.spark_session import explained, session_at
from sfumato.engines.spark_tasks import count_rows, count_runs, raise_refused, sum_once
from sfumato.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Spark", "counted", "summed"]

TOGETHER: Final = 4
"""How many tasks each core gets, so that a slow or lost one costs little."""
PAUSE: Final = 0.2
"""The number of seconds between two looks at how far a job is."""
RUNS: Final = "path string, columns array<string>, groups array<int>, taken array<array<int>>"
"""The columns of runs of row groups that are to be counted."""
WHOLE: Final = ("long", "integer", "short", "byte")
"""Spark's names of the kinds of whole numbers."""
KINDS: Final = {"sequence": WHOLE, "task": ("binary",), "period": WHOLE, "contents": ("binary",)}
"""The columns of rows, and of which kinds their cells may be."""
COUNTED: Final = "sequence long, tallies binary, refused string"
"""The columns of counted rows: the number, the tallies, and why there are none."""
SUMMED: Final = "tallies binary, refused string"
"""The columns of sums."""

_jobs = count(1)


@dataclass(frozen=True)
class Spark:
    """Counts on a cluster, or on the cores of this machine.

    Parameters
    ----------
    session
        The session of Spark.

    """

    session: SparkSession

    @classmethod
    @contextmanager
    def at(
        cls, master: str = "local[*]", settings: Mapping[str, str] | None = None
    ) -> Iterator[Spark]:
        """Begin a session at a master such as ``local[2]`` or ``spark://host:7077``; stop it.

        Parameters
        ----------
        master
            The master of the cluster.
        settings
            Further settings of the session.

        """
        with session_at(master, settings) as session:
            yield cls(session)

    def aggregate(
        self,
        counter: RowCounter,
        rows: Lake | DataFrame | Iterable[Row],
        progress: Progress = quiet,
    ) -> Tallies[Place]:
        """Return the tallies of all rows, each of which counts once by its number.

        Rows of a data frame have the columns of exported files: ``sequence``, ``task``, ``period``
        and ``contents``.
        """
        parallel = TOGETHER * self.session.sparkContext.defaultParallelism
        if isinstance(rows, Lake):
            total, sums = rows.rows, self._of_lake(counter, rows, parallel)
        else:
            total, sums = 0, summed(counted(counter, self._frame(counter, rows)), parallel)
        return counter.settled(Tallies.sum(self._collected(sums, progress, total)))

    def _of_lake(self, counter: RowCounter, lake: Lake, parallel: int) -> DataFrame:
        runs = [
            (
                str(each.file.path.absolute()),
                [*each.file.columns],
                [*each.taken],
                [*map(list, each.taken.values())],
            )
            for each in lake.runs(parallel)
        ]
        frame = self.session.createDataFrame(runs, RUNS)
        spread = frame.repartition(max(1, min(parallel, len(runs))))
        return spread.mapInArrow(partial(count_runs, counter.encode()), SUMMED)

    def _frame(self, counter: RowCounter, rows: Any) -> DataFrame:
        if hasattr(rows, "mapInArrow"):
            frame: DataFrame = rows
            _demand_columns(frame)
            return frame
        return self.session.createDataFrame(row_table(rows, counter.size))

    def _collected(self, sums: DataFrame, progress: Progress, total: int) -> Iterator[Tallies[Any]]:
        """Yield the sums of a job that runs, and tell how far it is."""
        context, name = self.session.sparkContext, f"sfumato {next(_jobs)}"

        def collect() -> pa.Table:
            context.setJobGroup(name, "counting reports", interruptOnCancel=True)
            return sums.toArrow()

        with ThreadPoolExecutor(1) as waiting, explained(str(context.master)):
            job = waiting.submit(collect)
            try:
                while not job.done():
                    time.sleep(PAUSE)
                    if total:
                        progress(int(self._share(name) * total), total)
            except BaseException:
                context.cancelJobGroup(name)
                raise
            table = job.result()
        if total:
            progress(total, total)
        for tallies, refused in zip(*(each.to_pylist() for each in table.columns), strict=True):
            raise_refused(refused)
            yield Tallies.decode(tallies)

    def _share(self, name: str) -> float:
        """Return which share of a job's tasks is done."""
        tracker = self.session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0


def _demand_columns(frame: DataFrame) -> None:
    """Raise InputError unless a data frame has all columns of rows."""
    there = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    for name, kinds in KINDS.items():
        if there.get(name) not in kinds:
            what = f"is {there[name]}" if name in there else "is missing"
            raise InputError(f"column {name} of the rows {what}; {kinds[0]} is expected.")


def counted(counter: RowCounter, frame: DataFrame) -> DataFrame:
    """Return the tallies of each row of a data frame, with the number of the row."""
    return frame.select(*KINDS).mapInArrow(partial(count_rows, counter.encode()), COUNTED)


def summed(frame: DataFrame, parallel: int) -> DataFrame:
    """Return sums of counted rows, in which each number counts once."""
    return frame.repartition(parallel, "sequence").mapInArrow(sum_once, SUMMED)
