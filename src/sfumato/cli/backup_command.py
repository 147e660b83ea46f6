"""`sfumato backup` and `sfumato restore`: copies of a collector's store."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from sfumato import files
from sfumato.cli.command import Result, Target

__all__ = ["backup", "restore"]


@dataclass(frozen=True)
class BackupOptions:
    """The store to copy."""

    target: Annotated[Path, typer.Argument(), Target((".db",))]
    """The file to write."""
    store: Path = Path("collector.db")
    """The store of a collector, which may be running."""
    force: bool = False


def backup(asked: BackupOptions) -> Result:
    """Copy the store of a collector, also while it runs.

    The copy is one moment of the store, checked, and as small as can be. It opens reports unless
    the collector's private keys are wrapped by a secret (see `sfumato serve`).

    Example:  sfumato backup tonight.db --store collector.db
    """
    from sfumato.service.backups import back_up

    size = back_up(asked.store, asked.target, force=asked.force)
    return Result(
        {"file": str(asked.target), "bytes": size},
        [f"Written: {asked.target}, {files.size_in_words(size)}."],
    )


@dataclass(frozen=True)
class RestoreOptions:
    """The copy to put in place."""

    backup: Annotated[Path, typer.Argument()]
    """A copy that `sfumato backup` has written."""
    store: Path = Path("collector.db")
    """The store of a collector, which must not be running."""
    force: bool = False
    """Replace a store that is there."""


def restore(asked: RestoreOptions) -> Result:
    """Put a copy of a store in its place, and say which periods may lack reports.

    Exactly the reports that were acknowledged since the copy was made are missing. Devices go on:
    those that know a newer key fetch the task again. A task with a shuffler needs a new key first
    (`POST /v1/tasks/ID/keys`).

    Example:  sfumato restore tonight.db --store collector.db
    """
    from sfumato.service import backups

    short = backups.restore(asked.backup, asked.store, time.time(), force=asked.force)
    return Result(
        {"store": str(asked.store), "short": [asdict(task) for task in short]},
        [f"Restored: {asked.store}.", *(f"{task}." for task in short)],
        next_command=f"sfumato serve --store {asked.store}",
    )
