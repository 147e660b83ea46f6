"""Many people, batch by batch, in a process of their own that tells how much memory it took.

``python -m benchmarks.stream N CONFIGURATION`` prints one JSON object. Inputs are generated,
randomized and counted one batch at a time, so memory does not depend on N.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np

from benchmarks.families import family_of
from sfumato import catalog, secure
from sfumato.core.mechanism import Mechanism
from sfumato.engines import local

__all__ = ["BATCH", "Streamed", "peak", "stream"]

BATCH: Final = 1 << 16


@dataclass(frozen=True)
class Streamed:
    """How many people were handled, in what processor time, and the process' memory in bytes."""

    n: int
    seconds: float
    imports: int
    peak: int

    @property
    def per_second(self) -> float:
        """People per second, from making up their values to the estimate."""
        return self.n / self.seconds

    @property
    def memory(self) -> int:
        """Peak memory beyond what the imports had taken."""
        return self.peak - self.imports


def stream(mechanism: Mechanism, n: int) -> Streamed:
    """Stream n people through a mechanism in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.stream", str(n)]
    command.append(json.dumps(mechanism.configuration()))
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)  # noqa: S603 - our own module
    return Streamed(**json.loads(done.stdout))


def peak() -> int:
    """Return the largest resident memory this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux: getrusage would count the parent's memory before the exec, too
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _batches(mechanism: Mechanism, n: int) -> Iterator[Any]:
    family, draw, rng = family_of(mechanism.name), np.random.default_rng(1), secure()
    for start in range(0, n, BATCH):
        yield mechanism.randomize(family.inputs(mechanism, min(BATCH, n - start), draw), rng)


def _main() -> None:
    n, mechanism = int(sys.argv[1]), catalog.from_configuration(json.loads(sys.argv[2]))
    imports, start = peak(), process_time()
    mechanism.estimate(local.tally(mechanism, _batches(mechanism, n)))
    print(json.dumps(asdict(Streamed(n, process_time() - start, imports, peak()))))


if __name__ == "__main__":
    _main()
