"""Vectors of one device of every stream: what it saves and says, period by period.

All coins follow from fixed keys, as those of a device do. Streams over a horizon have a device for
each kind of thread; streams that ask have a few devices, the questions that a curator asked them,
what they added up to and what was released.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from tests.vectors.keeping import Files, dumped
from tests.vectors.tasks import published

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.core.stream import Ask, Stream, StreamDevice, Timestep
from sfumato.core.tally import Tally
from sfumato.device.keys import Chain
from sfumato.device.part import coins_for
from sfumato.streams.published.topl import ToPL
from sfumato.streams.registry import spec_of, stream_of
from sfumato.streams.window.window_methods import METHODS
from sfumato.wire.questions import Question

__all__ = [
    "Asking",
    "answer",
    "chain_of",
    "files",
    "key_of",
    "known",
    "lived",
    "saved",
    "states",
    "whole",
]

VERSION: Final = 1
PERIODS: Final = 6
SEARCHED: Final = 64
"""Among so many devices the first of each kind of thread is kept."""
CROWD: Final = 30
SHOWN: Final = 1
"""How many devices answer questions, and of how many all is kept."""

_TASK: Final = 'title = "t"\nepsilon = 1\nperiods = 8\nperiod = "1 hour"\nchanges = {}\n'
_MIXED: Final = "mix = {snapshot = 0.4, 1 = 0.3, 2 = 0.3}\n"
_CHAFF: Final = (
    "chaff = {messages = 2}\n"
    'shuffle = {url = "http://a.example", epsilon = 0.1, delta = 1e-6, min_batch = 9000}\n'
)
_ABC: Final = 'values = {kind = "category", items = ["a", "b", "c"]}\n'
_WANDERING: Final = ["a", None, "zebra", "b", None, "c", "b", "a"]

HORIZONS: Final[Mapping[str, tuple[str, list[Any]]]] = {
    "binary": (
        _TASK.format(2) + _MIXED + 'values = {kind = "binary"}\n',
        [0, 1, None, "on", 1, 0, 1, None],
    ),
    "category": (_TASK.format(4) + _MIXED + _ABC, _WANDERING),
    "category_without_snapshots": (
        _TASK.format(4) + "mix = {1 = 0.5, 2 = 0.5}\n" + _ABC,
        [None, *_WANDERING[:7]],
    ),
    "category_by_exsub": (_TASK.format(4) + _MIXED + 'mechanism = "exsub"\n' + _ABC, _WANDERING),
    "optional_category": (
        _TASK.format(5) + _MIXED + _ABC.replace("]}", "], optional = true}"),
        [None, "a", None, "zebra", "b", None, "c", "c"],
    ),
    "set": (
        _TASK.format(5) + _MIXED + 'values = {kind = "set", items = ["x", "y", "z"], most = 2}\n',
        [["x"], None, ["x", "y"], ["q"], [], ["z", "y"], ["x", "y", "z"], "x"],
    ),
    "attributes": (
        _TASK.format(6)
        + _MIXED
        + 'values = {kind = "attributes", attributes = {z = ["p", "q"], a = 3}}\n',
        [
            {"z": "p", "a": 1},
            None,
            {"z": "q"},
            {"z": "q", "a": 2},
            {"z": "q", "a": 9},
            None,
            {"z": "p", "a": 0},
            {"z": "q", "a": 1},
        ],
    ),
    "hierarchy": (_TASK.format(4) + 'protocol = "hierarchy"\n' + _ABC, _WANDERING),
    "tree": (_TASK.format(4) + 'protocol = "tree"\n' + _ABC, _WANDERING),
    "snapshots": (_TASK.format(4) + 'protocol = "snapshots"\n' + _ABC, _WANDERING),
    "flat": (
        _TASK.format(5) + 'values = {kind = "moves", items = ["bread", "milk"]}\n',
        [[1, 0], None, [2, 0], [0, -1], [1, 1], "up", [0, 0], [-1, -1]],
    ),
    "category_with_chaff": (
        _TASK.format(4).replace("epsilon = 1", "epsilon = 8") + _MIXED + _CHAFF + _ABC,
        _WANDERING,
    ),
    "flat_with_chaff": (
        _TASK.format(5).replace("epsilon = 1", "epsilon = 8")
        + _CHAFF
        + 'values = {kind = "moves", items = ["bread", "milk"]}\n',
        [[1, 0], None, [2, 0], [0, -1], [1, 1], "up", [0, 0], [-1, -1]],
    ),
}
"""Streams that send without being asked: a task, and what a device sees."""

_WINDOW: Final = (
    'kind = "window"\ntitle = "t"\nepsilon = 4\nwindow = 3\ndevices = 30\nperiods = 8\n'
    'period = "1 hour"\n'
)
KEPT: Final = [name for name in METHODS if not name.startswith("lb-")]
"""Methods that differ in more than how a window is divided."""
_PLACES: Final = 'values = {kind = "category", items = ["home", "work", "road"]}\n'
_DEGREES: Final = 'values = {kind = "number", low = -10, high = 40, clip = true}\n'

ASKING: Final[Mapping[str, str]] = {
    **{f"window_{name}": f'{_WINDOW}{_PLACES}method = "{name}"\n' for name in KEPT},
    "window_of_numbers": _WINDOW + _DEGREES,
    "window_of_numbers_lpd": _WINDOW + _DEGREES + 'method = "lpd"\n',
    "tiers": _WINDOW
    + _PLACES
    + 'method = "lpu"\ntiers = [{window = 6, epsilon = 2, devices = 15}]\n',
}
"""Streams that ask anew in each period."""


def key_of(name: str, number: int = 0) -> bytes:
    """Return the key that all coins of a device follow from."""
    return hashlib.sha256(f"{name} {number}".encode()).digest()


def chain_of(key: bytes) -> tuple[Any, Chain]:
    """Return the coins that a device joins with, and the keys of its periods."""
    _, join, chain = Chain.start(key)
    return join, chain


# ---- without being asked ---------------------------------------------------------------------


def lived(machine: Any, chain: Chain, values: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield what changes in the state of a device, and what it says, in each of its periods."""
    before = machine.save()
    for value in values:
        coins, chain = chain.next()
        said = machine.observe(value, coins)
        message = None if said is None else [*said.place, said.payload.hex()]
        state = machine.save()
        changed = {name: part for name, part in state.items() if part != before[name]}
        before = state
        kept = {"value": value, "changed": changed, "message": message}
        if machine.beside:  # dummies, of streams with chaff
            kept["beside"] = [[*each.place, each.payload.hex()] for each in machine.beside]
        yield kept


def states(device: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the whole states of a kept device, from the one it joined with on."""
    whole = [device["joined"]]
    for one in device["periods"]:
        whole.append(whole[-1] | one["changed"])
    return whole


def _standing(name: str) -> dict[str, Any]:
    text, values = HORIZONS[name]
    (told,) = published(text)
    protocol = stream_of(told.spec)
    devices: dict[Any, dict[str, Any]] = {}
    for number in range(SEARCHED):
        key = key_of(name, number)
        join, chain = chain_of(key)
        machine = protocol.device(join)
        joined = machine.save()
        span, _, part = joined.get("thread", (1, 0, 0))
        if (span, part) in devices:
            continue
        devices[span, part] = {
            "key": key.hex(),
            "message_bytes": machine.message_bytes,
            "joined": joined,
            "periods": list(lived(machine, chain, values)),
        }
    return {
        "spec": told.spec,
        "payload": protocol.payload,
        "tracks": [list(track) for track in protocol.tracks],
        "devices": [devices[place] for place in sorted(devices)],
    }


# ---- asked -----------------------------------------------------------------------------------


def answer(machine: StreamDevice, asked: Question, ask: Ask, chain: Chain) -> bytes | None:
    """Return what a device answers; None if it keeps silent."""
    said = machine.answer(ask, coins_for(asked, chain))
    return None if said is None else said.payload


class Asking:
    """A crowd of devices, each with its keys, and how they answer."""

    def __init__(self, name: str, protocol: Stream, crowd: int = CROWD) -> None:
        self.machines: list[StreamDevice] = []
        self.chains: list[Chain] = []
        for number in range(crowd):
            join, chain = chain_of(key_of(name, number))
            tiers = len(protocol.offers)
            self.machines.append(protocol.device(join, (tiers - 1 - number) % tiers))
            self.chains.append(chain)

    def saved(self) -> list[Any]:
        """Return what the devices that are shown have saved, but for time and tier."""
        return [saved(machine) for machine in self.machines[:SHOWN]]

    def see(self, values: list[Any]) -> None:
        """Let devices live through a period with these values."""
        for machine, chain, value in zip(self.machines, self.chains, values, strict=True):
            machine.observe(value, chain.coins("period"))

    def step(self) -> None:
        """Go on to the keys of the next period."""
        self.chains = [chain.after(1) for chain in self.chains]

    def answers(self, asked: Question, ask: Ask) -> list[bytes | None]:
        """Return what each device answers."""
        return [
            answer(machine, asked, ask, chain)
            for machine, chain in zip(self.machines, self.chains, strict=True)
        ]


def saved(machine: StreamDevice) -> Any:
    """Return the ledger of a window's device; of one of amounts its value."""
    state = machine.save()
    return state.get("ledger", {"value": state["held"]})


def _values(plain: Mapping[str, Any], period: int) -> list[Any]:
    """Return what each device of a crowd holds in a period."""
    if plain.get("stream") == "topl":
        seen: list[Any] = [float((7 * i + 11 * period) % 90) for i in range(CROWD)]
        seen[0] = {2: None, 5: -3.0}.get(period, seen[0])
        return seen
    if plain["values"]["kind"] == "number":
        return [float((5 * i + 3 * period) % 60 - 15) for i in range(CROWD)]
    items = plain["values"]["items"]
    return [items[(i * i + (period > 4)) % len(items)] for i in range(CROWD)]


def _asked(name: str, plain: dict[str, Any]) -> dict[str, Any]:
    protocol = stream_of(plain)
    curator, crowd = protocol.curator(), Asking(name, protocol)
    periods = []
    for period in range(1, PERIODS + 1):
        values = _values(plain, period)
        crowd.see(values)
        step, rounds = Timestep(curator, period), []
        while isinstance(step.question, Ask):
            ask = step.question
            asked = Question.of(period, ask)
            said = crowd.answers(asked, ask)
            tally = _tally(ask, said)
            rounds.append(
                {
                    "question": json.loads(asked.encode()),
                    "tier": ask.tier,
                    "answers": [None if a is None else a.hex() for a in said[:SHOWN]],
                    "states": crowd.saved(),
                    "tally": sparse(tally),
                }
            )
            step.answer(tally)
        estimate = step.done
        released = [known(estimate.values), known(estimate.covariance.variances())]
        periods.append({"values": values[:SHOWN], "rounds": rounds, "released": released})
        crowd.step()
    keys = [key_of(name, number).hex() for number in range(SHOWN)]
    return {"spec": plain, "payload": protocol.payload, "keys": keys, "periods": periods}


def sparse(tally: Tally) -> list[Any]:
    """Return a tally as plain data: how many reports, the shape, and each sum that is not 0."""
    flat = tally.sums.ravel()
    there = [[int(place), int(flat[place])] for place in np.flatnonzero(flat)]
    return [tally.n, list(tally.sums.shape), there]


def whole(plain: list[Any]) -> Tally:
    """Return the tally of plain data."""
    n, shape, there = plain
    sums = np.zeros(shape, dtype=np.int64)
    for place, number in there:
        sums.flat[place] = number
    return Tally(n, sums)


def _tally(ask: Ask, said: list[bytes | None]) -> Tally:
    reports = b"".join(one for one in said if one is not None)
    if not reports:
        return Tally.zero(ask.mechanism.tally_shape)
    return ask.mechanism.tally(np.frombuffer(reports, dtype=ask.mechanism.report_dtype))


def known(numbers: Any) -> list[float | None]:
    """Return numbers as JSON can have them."""
    return [float(number) if np.isfinite(number) else None for number in numbers]


def _asking() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, text in ASKING.items():
        task = parse(text)
        plain = spec_of(task, catalog.stream(task), 0)
        yield name, plain
    for variant in ("white", "plain"):
        topl = ToPL(epsilon=2.0, bound=100.0, learning=2, limit=64, variant=variant)
        yield f"topl_{variant}", topl.plain()


def files() -> Files:
    """Return the vectors of devices, stream by stream."""
    standing = "devices of a stream, one of each kind of thread, period by period"
    asked = "devices that are asked, the questions, what they added up to and what was released"
    made = {f"machines/{n}.json": dumped(VERSION, standing, _standing(n)) for n in HORIZONS}
    for name, plain in _asking():
        made[f"machines/{name}.json"] = dumped(VERSION, asked, _asked(name, plain))
    return made
