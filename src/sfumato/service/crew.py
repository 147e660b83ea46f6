"""The workers of a collector, as one of them sees them.

Each worker writes on its board how it is. One that is asked about all of them wakes the others, so
that they write anew, and adds up. One that has changed a task, a key or a token wakes them as well,
so that they know of it before the operator has the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from sfumato.service.board import Board
from sfumato.service.joined_metrics import Figures

__all__ = ["SILENT", "Crew"]

PULSE: Final = 0.5
"""The number of seconds between two signs of life."""
SILENT: Final = 3.0
"""The number of seconds without a sign of life after which a worker is down."""
PATIENCE: Final = 1.0
"""The longest time, in seconds, for which others are waited for."""
GLANCE: Final = 0.002
"""The number of seconds between two looks at whether they are done."""

_SAY, _LOOK = b"s", b"l"
"""What a worker is woken for: to write how it is, or to look at what others have changed first."""


class Crew:
    """All workers of a collector; without boards it is one process alone.

    Parameters
    ----------
    number
        The number of this worker.
    boards
        The boards of all workers, by their numbers.
    bells
        For each worker the two ends of the pipe that wakes it.

    """

    def __init__(
        self,
        number: int = 0,
        boards: Mapping[int, Board] | None = None,
        bells: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self._mine = (boards or {}).get(number)
        self._others = {name: board for name, board in (boards or {}).items() if name != number}
        self._bells = dict(bells or {})
        self._number = number
        before = _page(self._mine) if self._mine is not None else {}
        self._before = Figures.parse(before.get("figures", [])).counted()
        self._works: set[asyncio.Task[None]] = set()
        self.figures: Callable[[], Figures] = Figures
        """Returns the metrics of this worker alone."""
        self.troubles: Callable[[], list[str]] = list
        """Returns what is wrong with this worker."""
        self.look: Callable[[], Awaitable[None]] | None = None
        """Looks at what other workers have changed."""

    @property
    def is_first(self) -> bool:
        """Whether this worker says what has to be said once."""
        return self._number <= 1

    async def run(self) -> None:
        """Give signs of life, and answer the others, until this is cancelled."""
        if self._mine is None:
            return
        loop = asyncio.get_running_loop()
        loop.add_reader(self._bells[self._number][0], self._woken)
        try:
            for count in range(1 << 62):
                if count % 2 == 0:
                    self._write()
                self._mine.beat()
                await asyncio.sleep(PULSE)
        finally:
            loop.remove_reader(self._bells[self._number][0])

    # ---- what the others hear of this one ----------------------------------------------------

    def _write(self) -> None:
        """Write on the board how this worker is."""
        if self._mine is not None:
            page = {"figures": self._own().plain(), "troubles": self.troubles()}
            self._mine.write(json.dumps(page).encode())

    def _own(self) -> Figures:
        """Return the metrics of this worker and of those before it in its place."""
        return Figures.joined([self.figures(), self._before])

    def _woken(self) -> None:
        try:
            words = os.read(self._bells[self._number][0], 1 << 12)
        except BlockingIOError:
            return
        if _LOOK in words:
            work = asyncio.get_running_loop().create_task(self._looked())
            self._works.add(work)
            work.add_done_callback(self._works.discard)
        else:
            self._write()

    async def _looked(self) -> None:
        if self.look is not None:
            with suppress(Exception):  # it is said in the log where it happens
                await self.look()
        self._write()
        if self._mine is not None:
            self._mine.count_look()

    # ---- what this one hears of the others ---------------------------------------------------

    def down(self) -> list[int]:
        """Return the numbers of the workers that give no sign of life."""
        return [name for name, board in self._others.items() if _is_down(board)]

    def wake(self, word: bytes = _LOOK) -> None:
        """Have the others take over what has changed, without waiting for them."""
        for name in self._others:
            with suppress(OSError):  # a worker that is down does not read
                os.write(self._bells[name][1], word)

    async def tell(self) -> None:
        """Return when the others have taken over what this worker has changed."""
        await self._wake(_LOOK, lambda board: board.looks)

    async def ask(self) -> None:
        """Return when the others have written how they are."""
        await self._wake(_SAY, lambda board: board.edition)

    async def _wake(self, word: bytes, state: Callable[[Board], int]) -> None:
        """Wake the others; return when the state of each has changed, or when that takes long."""
        before = {name: state(board) for name, board in self._others.items()}
        self.wake(word)
        for _ in range(int(PATIENCE / GLANCE)):
            if not any(
                state(board) == before[name] and not _is_down(board)
                for name, board in self._others.items()
            ):
                break
            await asyncio.sleep(GLANCE)

    def together(self) -> Figures:
        """Return the metrics of all workers as those of one, as far as they have been written."""
        return Figures.joined([self._own(), *map(_figures, self._others.values())])

    def troubles_of_others(self) -> list[str]:
        """Return what is wrong with the other workers, one sentence each."""
        return [
            f"worker {name}: {trouble}"
            for name, board in self._others.items()
            if not _is_down(board)
            for trouble in _page(board).get("troubles", [])
        ]

    @property
    def ups(self) -> Iterator[tuple[str, Callable[[], float]]]:
        """The number of each worker, and a function that says whether it gives signs of life."""
        if self._mine is not None:
            yield str(self._number), lambda: 1.0
        for name, board in self._others.items():
            yield str(name), partial(_life, board)


def _life(board: Board) -> float:
    return float(not _is_down(board))


def _is_down(board: Board) -> bool:
    return not board.beats or board.silence > SILENT


def _page(board: Board) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(board.read() or b"{}")
    return page


def _figures(board: Board) -> Figures:
    """Return the metrics of a worker; of one that is down only what it has counted."""
    figures = Figures.parse(_page(board).get("figures", []))
    return figures.counted() if _is_down(board) else figures
