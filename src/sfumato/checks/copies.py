"""Check that a device and a copy with other values reveal at most twice its epsilon.

A restored backup, or a clone, draws the same coins for the same period and question. Coins that are
bound to a value are drawn once for each encoded value: two devices with the same value send the
same report twice, and two with different values send two independent reports. Whether both hold the
same value can be seen, so only pairs of streams that agree in this are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Final

from sfumato.checks.branching import Branching
from sfumato.checks.crowds import engine_of
from sfumato.checks.paths import Path, paths
from sfumato.checks.servers import every_server
from sfumato.checks.transcripts import Act, Asks, Devices, NumberedValue, State, state_of
from sfumato.checks.verdict import demand
from sfumato.core.exact import exp_below, log_above
from sfumato.core.stream import Message, Stream
from sfumato.randomness import Source

__all__ = ["copies_cost_no_more_than_twice"]

MOST_CHOICES: Final = 100_000
SERVERS: Final = 3
"""The number of servers that ask both copies."""
VALUES: Final = {True: 2, False: 3}
"""The number of different values of copies whose values change, and of those that stay."""

Code = tuple[int, ...] | None
Tapes = dict[Code, list[tuple[tuple[int, ...], int]]]
"""The draws made with the coins of each encoded value, and with unbound coins (None)."""
Told = tuple[tuple[Code, tuple[tuple[tuple[int, ...], int], ...]], ...]
"""The same draws in a form that can be a key."""
Both = tuple[Message | None, Message | None, bool]
"""The messages of both copies, and whether they drew with coins of the same values."""
Pair = tuple[State, State]


@dataclass(frozen=True)
class Life:
    """A device's message, its new state, the values it drew coins for, and their outcomes."""

    said: Message | None
    become: State
    codes: frozenset[Code]
    told: Told


class _Recalled(Path):
    """A path that repeats recorded draws, and follows another path after them."""

    def __init__(self, path: Path, tape: list[tuple[tuple[int, ...], int]]) -> None:
        self._path, self._tape, self._drawn = path, tape, 0

    def weigh(self, weights: Sequence[int]) -> int:
        """Return the outcome that was recorded for this draw, or a new one."""
        weights = tuple(weights)
        if self._drawn == len(self._tape):
            self._tape.append((weights, self._path.weigh(weights)))
        before, index = self._tape[self._drawn]
        demand(before == weights, "two copies draw differently with the same coins")
        self._drawn += 1
        return index


class _BoundCoins(Branching):
    """The coins of one period or question, with separate coins for each encoded value."""

    def __init__(self, path: Path, tapes: Tapes, codes: set[Code], code: Code = None) -> None:
        super().__init__(_Recalled(path, tapes.setdefault(code, [])))
        self._way, self._tapes, self._codes = path, tapes, codes

    def bound(self, code: Iterable[int]) -> Source:
        """Return the coins that belong to one encoded value."""
        value = tuple(code)
        self._codes.add(value)
        return _BoundCoins(self._way, self._tapes, self._codes, value)


class _Copies:
    """A device and its copy: everything that can be heard of both.

    One of them draws first. The other one shares the coins that are unbound or bound to a value
    that both hold, so only these draws are kept apart.
    """

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self._lives: dict[tuple[State, Act, Told], dict[Life, Fraction]] = {}

    def law(
        self, begun: State, acts: Sequence[tuple[Act, Act]]
    ) -> dict[tuple[Both, ...], Fraction]:
        """Return the law of all messages of two copies of a device that start in the same state."""
        now: dict[tuple[tuple[Both, ...], Pair], Fraction] = {((), (begun, begun)): Fraction(1)}
        for one, two in acts:
            after: dict[tuple[tuple[Both, ...], Pair], Fraction] = {}
            for (heard, pair), chance in now.items():
                for both, moved, part in self._step(pair, one, two):
                    key = ((*heard, both), moved)
                    after[key] = after.get(key, Fraction(0)) + chance * part
            now = after
        law: dict[tuple[Both, ...], Fraction] = {}
        for (heard, _), chance in now.items():
            law[heard] = law.get(heard, Fraction(0)) + chance
        return law

    def _step(self, pair: Pair, one: Act, two: Act) -> Iterator[tuple[Both, Pair, Fraction]]:
        """Yield what both can say, their new states, and the probability."""
        met = {code for life in self._live(pair[1], two, ()) for code, _ in life.told}
        firsts: dict[Life, Fraction] = {}
        for first, chance in self._live(pair[0], one, ()).items():
            shared = tuple(tape for tape in first.told if tape[0] in met)
            short = replace(first, told=shared)
            firsts[short] = firsts.get(short, Fraction(0)) + chance
        for first, chance in firsts.items():
            for second, part in self._live(pair[1], two, first.told).items():
                both = (first.said, second.said, first.codes == second.codes)
                yield both, (first.become, second.become), chance * part

    def _live(self, state: State, act: Act, told: Told) -> dict[Life, Fraction]:
        """Return the law of one device's next act, given some of its draws."""
        key = (state, act, told)
        if key not in self._lives:

            def live(path: Path) -> Life:
                tapes: Tapes = {code: list(tape) for code, tape in told}
                codes: set[Code] = set()
                device = self.devices.restored(state)
                message = self.devices.said(device, act, _BoundCoins(path, tapes, codes))
                kept = tuple((code, tuple(tape)) for code, tape in tapes.items() if tape)
                return Life(message, state_of(device), frozenset(codes), kept)

            law: dict[Life, Fraction] = {}
            for life, path in paths(live, Path, MOST_CHOICES):
                chance = Fraction(path.numerator, path.denominator)
                law[life] = law.get(life, Fraction(0)) + chance
            self._lives[key] = law
        return self._lives[key]


def copies_cost_no_more_than_twice(stream: Stream) -> None:
    """A device that bounds copies, and a copy with other values, reveal twice epsilon at most."""
    for tier, offer in enumerate(stream.offers):
        devices = engine_of(stream, tier)
        begun = [s for s in devices.begin.states if devices.restored(s).bounds_copies]
        copies = _Copies(devices)
        periods = stream.horizon or min(offer.window or 1, 2)
        servers = every_server(stream, tier, periods, SERVERS)[:SERVERS]
        limit = exp_below(2 * offer.epsilon)
        for state, server in product(begun[:1] + begun[1:][-1:], servers):
            ratio = _ratio(copies, state, server)
            demand(ratio is not None, "two copies rule out what both of them hold")
            ratio = ratio or Fraction(1)
            demand(
                ratio <= limit,
                f"two copies leak epsilon {log_above(ratio):.9g}, more than twice "
                f"{offer.epsilon:g}",
            )


def _ratio(copies: _Copies, begun: State, server: Sequence[Asks]) -> Fraction | None:
    """Return the largest likelihood ratio of pairs of streams that are equal in the same periods.

    Over a horizon each copy holds one value; in a window both may change after the first period.
    """
    stream = copies.devices.stream
    change = stream.horizon is None
    pairs = list(product(range(min(VALUES[change], len(stream.inputs()))), repeat=2))
    changes = product(pairs, repeat=2) if change else zip(pairs, pairs, strict=True)
    alike: dict[frozenset[tuple[bool, ...]], list[dict[tuple[Both, ...], Fraction]]] = {}
    for first, second in changes:
        acts: list[tuple[Act, Act]] = []
        for period, asks in enumerate(server):
            held = second if period else first
            acts.append((NumberedValue(held[0]), NumberedValue(held[1])))
            acts += [(ask, ask) for ask in asks]
        law = copies.law(begun, acts)
        shown = frozenset(tuple(same for *_, same in heard) for heard in law)
        alike.setdefault(shown, []).append(law)
    worst = Fraction(1)
    for laws in alike.values():
        for heard in {heard for law in laws for heard in law}:
            chances = [law.get(heard, Fraction(0)) for law in laws]
            if not min(chances):
                return None
            worst = max(worst, max(chances) / min(chances))
    return worst
