"""`sfumato aggregate`: counts packed reports, on this machine or on a cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato import files
from sfumato.cli import console, store_counting
from sfumato.cli.command import Count, Parts, Result, Target
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.engines import CountedReports, Engine, Lake
    from sfumato.engines.log_following import EpochFollower

__all__ = ["aggregate"]


@dataclass(frozen=True)
class AggregateOptions:
    """The reports to count, and where."""

    source: Annotated[str, typer.Argument()]
    """A file of `sfumato export` or `sfumato randomize`, a folder of such files or, of tasks with
    counts = "engine", the store of their collector: a file or postgresql://user@host/database."""
    engine: Literal["local", "spark"] = "local"
    """local counts with processes of this machine, spark on a cluster."""
    master: str | None = None
    """Of Spark: local[N], spark://host:port, yarn or k8s://address; all cores of this machine if
    left out."""
    jobs: Count = 1
    """How many processes count on this machine."""
    output: Annotated[Path, Target((".tallies",))] | None = None
    """Write the tallies to a file, which `sfumato estimate` and `sfumato query` read."""
    follow: bool = False
    """Of a store: go on, and count what comes, until it is stopped."""
    task: str | None = None
    """Of a store: the id of a task; all that an engine counts, if left out."""
    key_secret_file: Path | None = None
    """Of a store: a file with the secret that wraps private keys; otherwise SFUMATO_KEY_SECRET."""
    checkpoint: Path | None = None
    """Of a store that Spark follows: the folder in which it keeps how far it is, which no count
    depends on; a temporary one if left out."""
    force: bool = False
    as_json: bool = False


def aggregate(asked: AggregateOptions) -> Result | None:
    """Count reports from exports, each row once, also where files repeat it.

    All engines agree to the last bit. Memory does not grow with the number of reports. What counts
    may die and is replaced: what it was counting is counted again, and nothing twice.

    Example:  sfumato aggregate exports/ -j 2 -o week.tallies
    """
    if asked.master is not None and asked.engine != "spark":
        raise InputError("--master is for --engine spark; --jobs says how many processes count.")
    if asked.jobs > 1 and asked.engine == "spark":
        raise InputError("--jobs is for --engine local; --master local[N] says how many cores.")
    if not asked.source.strip():
        raise InputError(f"SOURCE is {asked.source!r}; a file, a folder or a store is expected.")
    if asked.engine == "spark":  # py4j writes tracebacks to loggers that nobody has set up
        logging.getLogger().addHandler(logging.NullHandler())
    if store_counting.is_store(asked.source):
        return _store_counted(asked)
    for name in ("follow", "task", "key_secret_file", "checkpoint"):
        if getattr(asked, name):
            raise InputError(
                f"--{name.replace('_', '-')} is for the store of a collector, which {asked.source} "
                "is not; files are counted as they are."
            )
    return _files_counted(asked)


# ---- files ---------------------------------------------------------------------------------------


def _files_counted(asked: AggregateOptions) -> Result:
    from sfumato.engines import CountedReports, Lake
    from sfumato.engines import aggregate as counted

    lake, began = Lake.open(asked.source), time.monotonic()
    with _engine(asked) as engine, console.bar("Counting", lake.rows) as update:
        tallies = counted(
            lake.counter,
            lake,
            engine=engine,
            progress=lambda done, total: update(completed=done, total=total),
        )
    reports = CountedReports(lake.counter, tallies)
    if asked.output is not None:
        with files.complete_or_absent(asked.output, force=asked.force) as file:
            file.write(reports.encode())
    seconds = time.monotonic() - began
    record = _record(asked, lake, reports) | {"seconds": round(seconds, 3)}
    return Result(record, _text(asked, lake, reports, seconds), next_command=_next(asked, reports))


@contextmanager
def _engine(asked: AggregateOptions) -> Iterator[Engine]:
    if asked.engine == "local":
        from sfumato.engines import Local

        yield Local(asked.jobs)
        return
    from sfumato.engines.spark import Spark

    with console.waiting("Starting Spark"):
        begun = Spark.at(asked.master or "local[*]")
        engine = begun.__enter__()
    try:
        yield engine
    finally:
        begun.__exit__(None, None, None)


def _record(asked: AggregateOptions, lake: Lake, reports: CountedReports) -> dict[str, Any]:
    return {
        "source": asked.source,
        "engine": asked.engine,
        "task": lake.counter.task_id.hex(),
        "files": len(lake.files),
        "rows": lake.rows,
        "reports": reports.n,
        "closed": reports.closed,
        "tallies": [
            {**place._asdict(), "n": tally.n} for place, tally in sorted(reports.tallies.items())
        ],
        "file": None if asked.output is None else str(asked.output),
    }


def _text(asked: AggregateOptions, lake: Lake, reports: CountedReports, seconds: float) -> Parts:
    rows = f"{lake.rows:,} rows of {len(lake.files):,} files" if len(lake.files) > 1 else "one file"
    yield f"{reports.n:,} reports in {rows} were counted in {seconds:.1f} s."
    if reports.closed:
        yield f"They are of {len(reports.tallies):,} places in periods up to {reports.closed}."
    if asked.output is not None:
        yield f"Written: {asked.output}"


def _next(asked: AggregateOptions, reports: CountedReports) -> str:
    if asked.output is None:
        return ""
    verb = "query" if reports.closed else "estimate"
    return f"sfumato {verb} {asked.output}"


def _store_counted(asked: AggregateOptions) -> Result | None:
    if asked.output is not None:
        raise InputError("--output is for files; what is counted of a store becomes its own.")
    if asked.checkpoint is not None and asked.engine != "spark":
        raise InputError("--checkpoint is for --engine spark; the store knows how far it is.")
    with _follower(asked) as follower:
        if not asked.follow:
            return store_counting.caught_up(follower, asked.task)
        with suppress(KeyboardInterrupt):  # which is how it ends, as a server does
            store_counting.follow(follower, asked.task, as_json=asked.as_json)
    return None


def _follower(asked: AggregateOptions) -> AbstractContextManager[EpochFollower]:
    secret = asked.key_secret_file
    if asked.engine == "local":
        return store_counting.local_follower(asked.source, secret, asked.jobs)
    master = asked.master or "local[*]"
    return store_counting.spark_follower(asked.source, secret, master, asked.checkpoint)
