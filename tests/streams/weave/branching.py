"""Exact laws of whole devices: every coin is tossed both ways, in rational numbers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.checks import paths
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Message
from sfumato.mechanisms.sparse.subset import SignedSubset
from sfumato.mechanisms.sparse.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import ONE, Source
from sfumato.streams.weave import device as device_module
from sfumato.streams.weave.device import WeaveDevice
from sfumato.streams.weave.protocol import SHARE_UNITS, Weave
from sfumato.streams.weave.threads import Thread

Sent = tuple[tuple[int, int, int, bytes] | None, ...]
"""What was heard of a device in each period, silence included."""
Law = dict[Sent, Fraction]
Stream = Callable[[Sent], Any]
Device = type[WeaveDevice]


class Path(paths.Path):
    """Coins one by one, whole numbers among them that are known only as far as asked."""

    def below(self, k: int) -> Drawn:
        return Drawn(self, k)

    def coins(self) -> Path:
        """Return itself: it draws whole numbers."""
        return self

    def bound(self, code: Iterable[int]) -> Path:
        """Return itself: of one device, one value's coins are drawn in each period."""
        del code
        return self


class Drawn:
    """A uniform integer below k that is only known as far as somebody asked."""

    def __init__(self, path: Path, k: int) -> None:
        self.path, self.low, self.high = path, 0, k

    def __lt__(self, bound: int) -> bool:
        cut = min(max(bound, self.low), self.high)
        left = [self.high - cut, cut - self.low]
        below = bool(self.path.weigh(left)) if all(left) else bool(left[1])
        self.low, self.high = (self.low, cut) if below else (cut, self.high)
        return below

    def __index__(self) -> int:
        self.low += self.path.weigh([1] * (self.high - self.low))
        self.high = self.low + 1
        return self.low

    def __rmul__(self, factor: int) -> int:
        return factor * self.__index__()


def outcomes(run: Callable[[Path], Any]) -> Iterator[tuple[Any, Fraction]]:
    """Yield the outcome of every path with its chance."""
    return paths.outcomes(run, Path)


# ---- the seams at which a device draws ------------------------------------------------------


def _secret(mechanism: SignedSubset, path: Path) -> tuple[int, int]:
    """Draw how many non-zeros a subset agrees with and opposes, by counting all subsets."""
    s, m, d = mechanism.sparsity, mechanism.size, mechanism.padded_dimension
    pairs = [
        (agree, oppose)
        for agree, oppose in product(range(s + 1), repeat=2)
        if agree + oppose <= s and 0 <= m - agree - oppose <= d - s
    ]
    weights = [
        comb(s, a) * comb(s - a, o) * comb(d - s, m - a - o) * 2 ** (m - a - o)
        * (ONE if mechanism._accepts(a, o) else mechanism.refused_weight)  # noqa: SLF001
        for a, o in pairs
    ]  # fmt: skip
    return pairs[path.weigh(weights)]


def _begin(mechanism: SignedSubset, path: Path) -> SubsetStream | DenseStream:
    agree, oppose = _secret(mechanism, path)
    if mechanism.form.dense:
        return DenseStream(agree, mechanism.sparsity)
    chosen = mechanism.size - agree - oppose
    return SubsetStream(agree, oppose, mechanism.sparsity, chosen, mechanism.zeros)


def branch_everywhere(patch: pytest.MonkeyPatch) -> None:
    """Let devices draw from paths: coins one by one, secrets and oracles by their exact laws.

    That samplers follow these laws is what the contracts of mechanisms show.
    """
    drawn = Mechanism.randomize

    def randomize(self: Mechanism, values: Any, rng: Any) -> NDArray[Any]:
        if not hasattr(rng, "weigh"):
            return drawn(self, values, rng)
        law = self.law(np.asarray(values)[0])
        place = rng.weigh(law.numerators)
        return law.outputs[place : place + 1]

    patch.setattr(Mechanism, "randomize", randomize)
    patch.setattr(device_module, "begin", _begin)


# ---- laws of transcripts --------------------------------------------------------------------


def threads_of(protocol: Weave) -> Iterator[tuple[Thread, Fraction]]:
    """Yield every thread with the exact chance that a device draws it."""
    bounds = [0, *protocol._bounds.tolist(), SHARE_UNITS]  # noqa: SLF001
    blocks = len(protocol.values.blocks)
    for thread, _ in protocol.threads():
        place = protocol.spans.index(thread.span)
        share = Fraction(bounds[place + 1] - bounds[place], SHARE_UNITS)
        ways = len(protocol.offsets(thread.span)) * (blocks if thread.is_snapshot else 1)
        yield thread, share / ways


def heard(message: Message | None) -> tuple[int, int, int, bytes] | None:
    return None if message is None else (*message.place, message.payload)


def state_of(device: WeaveDevice) -> str:
    return json.dumps(device.save())


class Devices:
    """All devices of a protocol at once: the exact law of what is heard of one of them."""

    def __init__(self, protocol: Weave, kind: Device = WeaveDevice) -> None:
        self.protocol, self.kind = protocol, kind
        self._steps: dict[tuple[str, str], list[tuple[Any, WeaveDevice, Fraction]]] = {}

    def begin(self) -> list[tuple[WeaveDevice, Fraction]]:
        """Every device before it sees any data."""
        started: list[tuple[WeaveDevice, Fraction]] = []
        for thread, share in threads_of(self.protocol):
            for made, chance in outcomes(
                lambda path, thread=thread: self.kind.on(  # type: ignore[misc]
                    self.protocol, thread, cast("Source", path)
                )
            ):
                started.append((made, share * chance))
        return started

    def step(self, device: WeaveDevice, value: Any) -> list[tuple[Any, WeaveDevice, Fraction]]:
        """Everything that can be heard of a device in a period, and what becomes of it."""
        place = (state_of(device), repr(value))
        if place not in self._steps:
            merged: dict[tuple[Any, str], tuple[WeaveDevice, Fraction]] = {}

            def run(path: Path) -> tuple[Any, WeaveDevice]:
                again = copy.copy(device)
                again.stream = copy.copy(device.stream)
                return heard(again.observe(value, cast("Source", path))), again

            for (message, after), chance in outcomes(run):
                key = (message, state_of(after))
                before = merged[key][1] if key in merged else Fraction(0)
                merged[key] = (after, before + chance)
            self._steps[place] = [(key[0], *rest) for key, rest in merged.items()]
        return self._steps[place]

    def law(self, stream: Stream) -> Law:
        """The exact law of a transcript, for a stream that may look at what was sent before."""
        now: dict[tuple[Sent, str], tuple[WeaveDevice, Fraction]] = {
            ((), f"{place}"): pair for place, pair in enumerate(self.begin())
        }
        for _ in range(self.protocol.periods):
            after: dict[tuple[Sent, str], tuple[WeaveDevice, Fraction]] = {}
            for (sent, _), (device, chance) in now.items():
                for message, moved, part in self.step(device, stream(sent)):
                    key = ((*sent, message), state_of(moved))
                    before = after[key][1] if key in after else Fraction(0)
                    after[key] = (moved, before + chance * part)
            now = after
        total: Law = {}
        for (sent, _), (_, chance) in now.items():
            total[sent] = total.get(sent, Fraction(0)) + chance
        assert sum(total.values()) == 1
        return total


def fixed(values: Sequence[Any]) -> Stream:
    return lambda sent: values[len(sent)]


def worst(laws: Sequence[Law]) -> Fraction | None:
    """Return the largest ratio of two laws at one transcript; None if it has no bound."""
    ratio = Fraction(1)
    for sent in {sent for law in laws for sent in law}:
        chances = [law.get(sent, Fraction(0)) for law in laws]
        if not min(chances):
            return None
        ratio = max(ratio, max(chances) / min(chances))
    return ratio
