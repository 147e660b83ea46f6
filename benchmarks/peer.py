"""One mechanism of another package, timed inside that package's environment.

``python -m benchmarks.peer PACKAGE MECHANISM SIZE EPSILON N`` prints its times as JSON. The
packages randomize and count one person at a time; that is how they are called here.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any, Final

from benchmarks.clock import best

__all__: list[str] = []

Halves = tuple[Callable[[int], Any], Callable[[Sequence[Any]], Any]]
"""What a device makes of its item 0..size-1, and a server of all reports."""


def _pure_ldp(mechanism: str, size: int, epsilon: float) -> Halves:
    package, prefix, option = {
        "grr": ("direct_encoding", "DE", None),
        "oue": ("unary_encoding", "UE", "use_oue"),
        "olh": ("local_hashing", "LH", "use_olh"),
    }[mechanism]
    module = import_module(f"pure_ldp.frequency_oracles.{package}")
    options: dict[str, Any] = {option: True} if option else {}
    options["index_mapper"] = lambda item: item
    client = getattr(module, f"{prefix}Client")(epsilon, size, **options)

    def count(reports: Sequence[Any]) -> Any:
        server = getattr(module, f"{prefix}Server")(epsilon, size, **options)
        server.aggregate_all(reports)
        return server.estimate_all(range(size), suppress_warnings=True)

    return client.privatise, count


def _multi_freq_ldpy(mechanism: str, size: int, epsilon: float) -> Halves:
    name = {"grr": "GRR", "oue": "UE", "olh": "LH"}[mechanism]
    module = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
    client = getattr(module, f"{name}_Client")
    server = getattr(module, f"{name}_Aggregator_MI")
    known = (epsilon,) if mechanism == "oue" else (size, epsilon)
    return lambda item: client(item, size, epsilon), lambda reports: server(reports, *known)


ADAPTERS: Final[Mapping[str, Callable[[str, int, float], Halves]]] = {
    "pure-ldp": _pure_ldp,
    "multi-freq-ldpy": _multi_freq_ldpy,
}


def _main() -> None:
    package, mechanism, *numbers = sys.argv[1:]
    size, epsilon, n = int(numbers[0]), float(numbers[1]), int(numbers[2])
    client, server = ADAPTERS[package](mechanism, size, epsilon)
    held = [random.randrange(size) for _ in range(n)]  # noqa: S311 - simulated people
    server([client(item) for item in held[:100]])  # compiles what is compiled on its first call
    times = best(n, lambda: [client(item) for item in held], server)
    print(json.dumps(asdict(times)))


if __name__ == "__main__":
    _main()
