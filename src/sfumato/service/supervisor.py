"""The process that listens for several workers, and starts them anew when they end.

It accepts connections and hands each to the worker that has the fewest, so that work is shared
evenly also when clients keep their connections. It opens no store and reads no request. For tasks
with a cap it keeps the counts of clients, in which all workers count.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.service.assembly import ServicePlan
from sfumato.service.board import Board
from sfumato.service.client_counts import ClientCounts
from sfumato.service.shared_counts import answered_line
from sfumato.web.logs import log

__all__ = ["Supervisor"]

LOOK: Final = 1.0
"""The number of seconds between two looks at the workers."""
STUCK: Final = 15
"""After so many looks without a sign of life a worker is killed: it may hold up the others."""
QUIET: Final = 3
"""After so many looks a worker gets no more connections, as long as another one takes them."""
SHORT: Final = 10.0
"""A worker that has lived for fewer seconds is not started anew at once."""
LONGEST_PAUSE: Final = 30.0
STOPPING: Final = 30.0
"""The longest time, in seconds, that workers have to stop."""
AT_ONCE: Final = 64
"""The largest number of connections that are accepted in a row."""


@dataclass
class _Worker:
    """One worker: its process, and what is known of it."""

    number: int
    board: Board = field(default_factory=Board)
    bell: tuple[int, int] = field(default_factory=os.pipe)
    process: subprocess.Popen[bytes] | None = None
    door: socket.socket | None = None
    handed: int = 0
    """The number of connections that it was given."""
    began: float = 0.0
    due: float = 0.0
    """When it is started again, by a clock that only goes forward."""
    pauses: int = 0
    beats: int = 0
    silent: int = 0
    """The number of looks since its last sign of life."""

    @property
    def open(self) -> int:
        """The number of its connections."""
        return self.handed - self.board.ended

    @property
    def takes(self) -> bool:
        """Whether it can be given connections."""
        return self.door is not None and self.board.beats > 0

    @property
    def failure(self) -> str:
        """Why it could not begin, in a sentence; empty if it has not said so."""
        page: dict[str, str] = json.loads(self.board.read() or b"{}")
        return page.get("failed", "")


class Supervisor:
    """Listens, and keeps workers running until a signal comes.

    Parameters
    ----------
    plan
        What each worker has to know.
    sock
        The listening socket.
    count
        The number of workers.
    held
        The descriptors that each worker keeps open, such as that of the claim on the store's file:
        it stays claimed until the last worker has ended.

    """

    def __init__(
        self, plan: ServicePlan, sock: socket.socket, count: int, held: Sequence[int] = ()
    ) -> None:
        self._plan = plan
        self._sock = sock
        self._held = tuple(held)
        self._counts = ClientCounts(count * plan.most_ids)
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._selector = selectors.DefaultSelector()
        self._listening = False
        self._is_stopping = False
        self._is_ready = False
        for worker in self._workers:
            for end in worker.bell:
                os.set_blocking(end, False)

    def run(self, ready: Callable[[], None]) -> None:
        """Run until a signal comes; ``ready`` is called when all workers take requests.

        Raises InputError if a worker cannot begin.
        """
        self._sock.settimeout(0)
        wakes, waker = socket.socketpair()
        for end in (wakes, waker):
            end.settimeout(0)
        self._selector.register(wakes, selectors.EVENT_READ, wakes)
        before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        handlers = {
            number: signal.signal(number, self._signalled)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
        }
        try:
            for worker in self._workers:
                self._start(worker)
            self._serve(ready)
        finally:
            self._stop()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            self._selector.close()
            for end in (wakes, waker):
                end.close()

    def _signalled(self, number: int, _: Any) -> None:
        if number != signal.SIGCHLD:
            self._is_stopping = True

    def _serve(self, ready: Callable[[], None]) -> None:
        next_look = 0.0
        while not self._is_stopping:
            for key, _ in self._selector.select(LOOK if self._is_ready else LOOK / 50):
                if key.fileobj is self._sock:
                    self._accept()
                else:
                    with suppress(BlockingIOError):
                        key.data.recv(1 << 12)
            if self._reap() or time.monotonic() >= next_look:
                next_look = time.monotonic() + LOOK
                self._look(time.monotonic())
            self._listen(any(worker.takes for worker in self._workers))
            if not self._is_ready and all(worker.takes for worker in self._workers):
                self._is_ready = True
                ready()

    # ---- connections -------------------------------------------------------------------------

    def _listen(self, wanted: bool) -> None:  # noqa: FBT001 -- it is what is wanted
        """Accept connections, or leave them to wait until a worker is there."""
        if wanted and not self._listening:
            self._selector.register(self._sock, selectors.EVENT_READ)
        elif self._listening and not wanted:
            self._selector.unregister(self._sock)
        self._listening = wanted

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # too many open files, or the client has gone
                log().warning("no connection", problem=str(error.strerror)[:200])
                return
            with connection:
                self._hand(connection)

    def _hand(self, connection: socket.socket) -> None:
        """Give a connection to the worker that has the fewest; close it if nobody takes it."""
        for worker in sorted(self._workers, key=lambda each: (each.silent >= QUIET, each.open)):
            if worker.door is None or not worker.takes:
                continue
            try:
                socket.send_fds(worker.door, [b"c"], [connection.fileno()])
            except OSError:  # it has ended, or does not read
                continue
            worker.handed += 1
            return

    # ---- workers -----------------------------------------------------------------------------

    def _start(self, worker: _Worker) -> None:
        worker.board.start()
        door, theirs = socket.socketpair()
        door.settimeout(0)
        theirs.settimeout(0)
        line = answered_line(self._counts)
        boards = {each.number: each.board.descriptor for each in self._workers}
        bells = {each.number: each.bell for each in self._workers}
        words = {
            "number": worker.number,
            "door": theirs.fileno(),
            "counts": line.fileno(),
            "boards": boards,
            "bells": bells,
            "plan": asdict(self._plan),
        }
        passed = (
            theirs.fileno(),
            line.fileno(),
            *boards.values(),
            *(end for ends in bells.values() for end in ends),
            *self._held,
        )
        with theirs, line:
            worker.process = subprocess.Popen(  # noqa: S603 -- our own module
                [sys.executable, "-P", "-m", "sfumato.service.worker_process", str(worker.number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=passed,
            )
        assert worker.process.stdin is not None  # noqa: S101 -- it is a pipe
        with suppress(BrokenPipeError), worker.process.stdin as stream:
            stream.write(json.dumps(words).encode())
        worker.door, worker.handed = door, 0
        worker.beats = worker.silent = 0
        worker.began = time.monotonic()

    def _reap(self) -> bool:
        """Note which workers have ended; return whether one has."""
        before = [worker.process for worker in self._workers]
        for worker in self._workers:
            if worker.process is None or worker.process.poll() is None:
                continue
            if not self._is_ready:
                failure = worker.failure or "its log says why"
                raise InputError(f"worker {worker.number} could not begin: {failure}")
            code = worker.process.returncode
            how = signal.Signals(-code).name if code < 0 else f"code {code}"
            log().error("worker ended", number=worker.number, process=worker.process.pid, how=how)
            self._forget(worker)
            now = time.monotonic()
            worker.pauses = worker.pauses + 1 if now - worker.began < SHORT else 0
            pause = min(2.0 ** (worker.pauses - 2), LONGEST_PAUSE) if worker.pauses > 1 else 0.0
            worker.due = now + pause
        return before != [worker.process for worker in self._workers]

    @staticmethod
    def _forget(worker: _Worker) -> None:
        worker.process = None
        worker.board.start()
        if worker.door is not None:
            worker.door.close()
            worker.door = None

    def _look(self, now: float) -> None:
        """Start workers that have ended; kill those that give no sign of life."""
        for worker in self._workers:
            if worker.process is None:
                if worker.due <= now:
                    self._start(worker)
                    log().info(
                        "worker started",
                        number=worker.number,
                        process=worker.process.pid if worker.process else 0,
                    )
                continue
            beats = worker.board.beats
            worker.silent = 0 if beats != worker.beats else worker.silent + bool(beats)
            worker.beats = beats
            if worker.silent >= STUCK:
                log().error("worker does not answer", number=worker.number)
                worker.process.kill()

    def _stop(self) -> None:
        """Let workers finish what they have begun; those that take too long are killed."""
        self._listen(wanted=False)
        self._sock.close()
        running = [each.process for each in self._workers if each.process is not None]
        for process in running:
            process.terminate()
        end = time.monotonic() + STOPPING
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()
        for worker in self._workers:
            self._forget(worker)
