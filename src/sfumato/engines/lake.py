"""A lake: a file of packed rows, or a folder of such files, all of one task."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from sfumato.engines.counting import RowCounter
from sfumato.engines.row_files import RowFile
from sfumato.engines.rows import Row, Seen
from sfumato.errors import InputError, MismatchError

__all__ = ["Lake", "RowRun"]

ENDING: Final = "*.parquet"
MOST_ROWS: Final = 64
"""The number of rows from which on a run of row groups has no further one."""


@dataclass(frozen=True)
class RowRun:
    """Some row groups of a file, and which of their rows are counted.

    Parameters
    ----------
    file
        The file.
    taken
        For each row group, the positions of the rows that are counted, because no row before has
        their numbers.
    size
        The number of rows of these row groups.

    """

    file: RowFile
    taken: Mapping[int, Collection[int]]
    size: int

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are counted."""
        return self.file.read(self.taken)


@dataclass(frozen=True)
class Lake:
    """Files of packed rows of one task, in which each row counts once, by its number.

    The number of a row is unique within its task, so that a file that is there twice, or a row that
    is in several files, changes nothing. Rows without numbers are numbered by their position; files
    that have such rows cannot be told from copies, so only one of them can be a lake.

    Parameters
    ----------
    files
        The files, in the order of their names.
    counter
        What counts their rows.

    """

    files: tuple[RowFile, ...]
    counter: RowCounter

    @classmethod
    def open(cls, path: str | Path) -> Lake:
        """Read the descriptions of a file or of all files of a folder, however deep.

        Raises InputError for a file that has no packed rows, and MismatchError for one that has
        rows of another task; each names the file.
        """
        path = Path(path)
        paths = sorted(path.rglob(ENDING)) if path.is_dir() else [path]
        if not paths:
            raise InputError(
                f"{path} has no files {ENDING}; those of `sfumato export` are expected."
            )
        files = tuple(map(RowFile.open, paths))
        counter = files[0].counter
        for file in files[1:]:
            try:
                counter = counter.joined(file.counter)
            except MismatchError as error:
                first = f"{file.path} does not go with {paths[0]}"
                raise MismatchError(f"{first}: {error}") from None
        if len(files) > 1 and not all(file.numbered for file in files):
            unnumbered = next(file.path for file in files if not file.numbered)
            raise InputError(
                f"{unnumbered} has rows without numbers, which cannot be told from copies of rows "
                "in other files; give it alone, or export its task again."
            )
        return cls(tuple(replace(file, counter=counter) for file in files), counter)

    @cached_property
    def rows(self) -> int:
        """The number of rows, copies included."""
        return sum(file.rows for file in self.files)

    def __iter__(self) -> Iterator[Row]:
        """Yield all rows, copies included."""
        for file in self.files:
            yield from file.read()

    def runs(self, parts: int) -> Iterator[RowRun]:
        """Yield all row groups; each row is taken in one of them only. Contents are not read.

        Parameters
        ----------
        parts
            How many runs there should be at least, if there are so many row groups.

        """
        seen, enough = Seen(), min(MOST_ROWS, self.rows // parts)
        for file in self.files:
            taken: dict[int, list[int]] = {}
            size = 0
            for group, numbers in enumerate(file.numbers()):
                taken[group] = [i for i, number in enumerate(numbers) if seen.add(number)]
                size += len(numbers)
                if size >= enough:
                    yield RowRun(file, taken, size)
                    taken, size = {}, 0
            if taken:
                yield RowRun(file, taken, size)
