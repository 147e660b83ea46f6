"""What a device costs: ``python -m benchmarks.device`` says it in processor time and in ratios.

One period of one device is: join a task, observe a value, flush one sealed report. Beside it stands
what no device can do without: sealing one report, and one transaction of an in-memory journal.
Processor time of one process with one thread, the median of some hundred devices, each anew.

Importing is measured in fresh processes, in turns, the quickest of each; the foundation is what
any such device imports: numpy, the ciphers and SQLite.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final

from benchmarks.limits import Verdict
from sfumato import catalog
from sfumato.device import Delivery, Device, Limits
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.sealing import new_key, seal

__all__ = ["Costs", "main", "measure"]

MOST_MILLISECONDS: Final = 3.0
MOST_IMPORT: Final = 1.7
HOUR: Final = 3600

FOUNDATION: Final = (
    "import numpy, cryptography, sqlite3\n"
    "from cryptography.hazmat.primitives.asymmetric import x25519\n"
    "from cryptography.hazmat.primitives import ciphers, hpke"
)


@dataclass(frozen=True)
class Costs:
    """Milliseconds of processor time, and how many times its foundation the import takes."""

    period: float
    next_period: float
    seal: float
    import_ratio: float | None

    def verdicts(self) -> list[Verdict]:
        """Return whether what is claimed holds."""
        found = [Verdict("join, observe, flush: ms", MOST_MILLISECONDS, self.period)]
        if self.import_ratio is not None:
            found.append(Verdict("import, x its foundation:", MOST_IMPORT, self.import_ratio))
        return found


class Taken:
    """A collector that takes everything."""

    def fetch(self, url: str) -> bytes:
        """Return nothing: tasks are given."""
        raise AssertionError(url)

    def send(self, url: str, batch: bytes) -> Delivery:
        """Take a batch."""
        del url, batch
        return Delivery()


def task() -> Published:
    """Return a task of 24 hours with 16 places, sealed, where every device sends each hour."""
    asked = catalog.task(
        {
            "title": "Places",
            "epsilon": 1.0,
            "periods": 24,
            "period": "1 hour",
            "changes": 5,
            "values": {"kind": "category", "items": [f"place {i}" for i in range(16)]},
            "mix": {"1": 1.0},
        }
    )
    keys = {1: new_key().public_key().public_bytes_raw()}
    return Published(spec_of(asked, catalog.stream(asked), 0), keys, "http://nowhere")


def measure(devices: int, rounds: int) -> Costs:
    """Measure so many devices, and the import in so many fresh processes."""
    published = task().encode()
    parsed = Published.parse(published)
    key: Any = parsed.public_key
    first, following, seals = [], [], []
    sent: list[int] = []
    for _ in range(devices):
        now = [0.0]
        device = Device.open(":memory:", Limits(1.0), Taken(), lambda now=now: now[0])  # type: ignore[misc]

        def live(device: Device = device, now: list[float] = now) -> None:
            device.join(published)
            device.observe("place 3")
            now[0] += HOUR
            sent.append(device.flush().sent)

        def go_on(device: Device = device, now: list[float] = now) -> None:
            device.observe("place 4")
            now[0] += HOUR
            sent.append(device.flush().sent)

        first.append(_milliseconds(live))
        following.append(_milliseconds(go_on))
        seals.append(_milliseconds(lambda: seal(bytes(16), key, parsed.context, bytes(16), 1)))
        device.close()
    if set(sent) != {1}:
        raise RuntimeError(f"a period has {set(sent)} reports; one is measured.")
    return Costs(
        statistics.median(first),
        statistics.median(following),
        statistics.median(seals),
        _import_ratio(rounds) if rounds else None,
    )


def _milliseconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return 1e3 * (process_time() - start)


def _import_ratio(rounds: int) -> float:
    """Return the quickest import of the SDK over the quickest of its foundation."""
    lines = [FOUNDATION, "import sfumato.device"]
    with TemporaryDirectory() as compiled:  # all of it, as when installed: the first round does it
        times = [[_fresh(line, compiled) for line in lines] for _ in range(rounds + 1)][1:]
    foundation, ours = (min(column) for column in zip(*times, strict=True))
    return float(ours / foundation)


def _fresh(code: str, compiled: str) -> float:
    timed = f"import time\nstart = time.process_time()\n{code}\nprint(time.process_time() - start)"
    command = [sys.executable, "-c", timed]
    places = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=places)  # noqa: S603
    return float(done.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a limit does not hold."""
    parser = ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7, help="of imports; 0 for none")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    costs = measure(given.devices, given.rounds)
    if given.json:
        print(json.dumps(asdict(costs), indent=2))
    else:
        print(f"join, observe, flush one sealed report: {costs.period:.2f} ms")
        print(f"observe, flush in each period after:    {costs.next_period:.2f} ms")
        print(f"of which sealing:                       {costs.seal:.2f} ms")
        if costs.import_ratio is not None:
            print(f"import sfumato.device: {costs.import_ratio:.2f} x numpy, ciphers, SQLite")
        print(f"Limits: {'; '.join(map(str, costs.verdicts()))}.")
    return 0 if all(verdict.holds for verdict in costs.verdicts()) else 1


if __name__ == "__main__":
    sys.exit(main())
