"""What a device does for a task, by the kind of its stream; loaded when a task is joined.

A *standing* part sends at times that follow from the task alone. One that is *asked* answers, by
its own coin and as far as its window allows, what a collector asks in each period.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from sfumato.accounting.windows import whole_units
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Place
from sfumato.device.door import admitted
from sfumato.device.keys import Chain
from sfumato.errors import InputError, MismatchError
from sfumato.randomness import Source
from sfumato.streams.flat import Flat, FlatDevice
from sfumato.streams.weave.device import Message, WeaveDevice
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import Thread
from sfumato.wire.published import Published
from sfumato.wire.questions import Question

__all__ = ["Asked", "Message", "Part", "Standing", "part_of"]

MOST: Final = 1 << 40
"""Above every count of periods and rounds."""
FEW_PERIODS: Final = 16
FEW_ITEMS: Final = 256
"""What `observe` may go through at once, in a few milliseconds; anything more waits for `flush`."""


@dataclass(frozen=True)
class Standing:
    """A part in a stream over a horizon."""

    protocol: Weave | Flat

    is_asked: ClassVar[Literal[False]] = False

    @property
    def epsilon(self) -> float:
        """The epsilon that a device pays for the task."""
        return self.protocol.epsilon

    @property
    def promise(self) -> str:
        """What that epsilon covers, in words."""
        return "for everything it will ever send"

    @staticmethod
    def bounds_copies(state: Mapping[str, Any]) -> bool:
        """Return whether a copy with other values shows no more than twice the epsilon.

        It does if each value is blurred on its own, as in a snapshot. The reports of a thread of
        differences, or of moves, share counts that were drawn when the task was joined.
        """
        return "thread" in state and Thread(*state["thread"]).is_snapshot

    def begin(self, coins: Source) -> tuple[dict[str, Any], int]:
        """Return a new state, drawn before any data, and the bytes of its messages."""
        machine = self.protocol.device(coins)
        return machine.save(), machine.message_bytes

    def check(self, value: Any) -> None:
        """Raise InputError if the task knows no such value."""
        if isinstance(self.protocol, Flat):
            self.protocol.moves(value)
        else:
            self.protocol.values.encode(value)

    def check_state(self, state: Any) -> None:
        """Raise MismatchError if no device of this task can have saved such a state."""
        self.resume(state)

    def resume(self, state: dict[str, Any]) -> WeaveDevice | FlatDevice:
        """Return the machine that goes on from a state."""
        if isinstance(self.protocol, Flat):
            return FlatDevice.restore(self.protocol, state)
        return WeaveDevice.restore(self.protocol, state)

    @property
    def lasts(self) -> bool:
        """Whether a value stays until the next one; a move is of one period."""
        return not isinstance(self.protocol, Flat)

    def is_light(self, behind: int) -> bool:
        """Return whether so many periods can be lived through while an app waits."""
        items = self.protocol if isinstance(self.protocol, Flat) else self.protocol.values
        return behind <= FEW_PERIODS and items.width <= FEW_ITEMS

    def step(self, machine: WeaveDevice | FlatDevice, value: Any, coins: Source) -> Message | None:
        """Live through one period, without news if there is no value; return what is due."""
        return machine.observe(value, coins)


@dataclass(frozen=True)
class Asked:
    """A part in a stream without an end.

    Its state has the last period that has ended, the value that was held then, the last round that
    was looked at, and a ledger of what the present window has spent. The ledger has a clock of its
    own (``tick``), which never runs ahead of what this device has lived through.
    """

    protocol: Any  # a Window: its module is loaded for those who need it

    is_asked: ClassVar[Literal[True]] = True

    @property
    def epsilon(self) -> float:
        """The epsilon that a device pays for the task."""
        return float(self.protocol.epsilon)

    @property
    def promise(self) -> str:
        """What that epsilon covers, in words."""
        return f"for what it sends in any {self.protocol.window} consecutive periods"

    @staticmethod
    def bounds_copies(state: Mapping[str, Any]) -> bool:
        """Return whether a copy with other values shows no more than twice the epsilon."""
        del state
        return True  # each answer is blurred on its own

    def begin(self, coins: Source) -> tuple[dict[str, Any], int]:
        """Return a new state, and the bytes of the longest answer."""
        ledger = self.protocol.device(coins).save()
        state = {"period": 0, "tick": 0, "held": None, "round": -1, "ledger": ledger}
        return state, self.protocol.payload

    def check(self, value: Any) -> None:
        """Raise InputError if the task knows no such value."""
        self._usual.encode([value])

    def check_state(self, state: Any) -> None:
        """Raise MismatchError if no device of this task can have saved such a state."""
        from sfumato.streams.window.device import WindowDevice  # noqa: PLC0415 -- see above

        least = {"period": 0, "tick": 0, "round": -1}
        named = isinstance(state, dict) and set(state) == {*least, "held", "ledger"}
        if not named or any(
            type(state[name]) is not int or not low <= state[name] < MOST
            for name, low in least.items()
        ):
            # It is not quoted: it has a value in it, and errors are logged.
            raise MismatchError(
                "the saved state is none of this task; period, tick, round, held and ledger are "
                "expected."
            )
        WindowDevice.restore(self.protocol, state["ledger"])

    @cached_property
    def _usual(self) -> Mechanism:
        """A mechanism that it may be asked with."""
        found: Mechanism = self.protocol.mechanism(whole_units(self.protocol.epsilon))
        return found

    @cached_property
    def _rounds(self) -> int:
        return int(self.protocol.rounds)

    @staticmethod
    def moved(state: dict[str, Any], period: int, held: Any, ticks: int) -> dict[str, Any]:
        """Return the state after a period has ended with a value held, and some ticks more."""
        tick = state["tick"] + ticks
        return state | {"period": period, "tick": tick, "held": held, "round": -1}

    def expects(self, state: Mapping[str, Any]) -> bool:
        """Return whether there may be a question that was not looked at."""
        return bool(state["period"] and state["round"] + 1 < self._rounds)

    def answer(
        self, state: dict[str, Any], question: Question, chain: Chain
    ) -> tuple[dict[str, Any], Message | None]:
        """Return the state after a question, and the answer if there is one.

        A question of another period, of a round that was looked at, or of one that the task does
        not have, changes nothing. Raises if it is asked in a way that the task does not allow.
        """
        new = state["round"] < question.round < self._rounds
        if question.period != state["period"] or not new:
            return state, None
        ask = self._ask(question)
        from sfumato.streams.window.device import WindowDevice  # noqa: PLC0415 -- see above

        looked = state | {"round": question.round}
        machine = WindowDevice.restore(self.protocol, state["ledger"])
        # Other questions get other coins: a copy of this device that is asked another one in the
        # same place pays for it, but never gives away its coins.
        coins = chain.coins("ask " + hashlib.sha256(question.digest).hexdigest())
        report = machine.answer(state["tick"], ask, self._known(state["held"]), coins)
        looked["ledger"] = machine.save()
        if report is None:
            return looked, None
        place = Place.answer(question.period, question.round)
        return looked, Message(*place, report.tobytes())

    def _known(self, held: Any) -> Any:
        """Return what it answers for: the public default, if it holds nothing that the task knows.

        Whoever answers is decided before, so that no value may stop an answer.
        """
        try:
            self.check(held)
        except InputError:
            return self.protocol.default
        return held

    def _ask(self, question: Question) -> Any:
        from sfumato.catalog import from_configuration  # noqa: PLC0415 -- for who is asked
        from sfumato.core.stream import Ask  # noqa: PLC0415

        given = dict(question.mechanism)
        usual = self._usual.configuration()
        for name in ("domain", "low", "high", "clip"):  # before anything is built of them
            if _listed(given.get(name)) != _listed(usual.get(name)):
                raise MismatchError(f"the question has another {name} than its task.")
        if given.get("mechanism") not in self.protocol.oracles:
            raise MismatchError(
                f"the question is asked with {str(given.get('mechanism'))[:40]!r}; this task "
                f"allows {', '.join(self.protocol.oracles)}."
            )
        if isinstance(given.get("domain"), list):
            given["domain"] = self.protocol.domain
        return Ask(from_configuration(given), question.probability)


def _listed(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given


Part = Standing | Asked


def part_of(published: Published) -> Part:
    """Return the part that a task asks for; raise if it makes no sense or costs too much."""
    protocol = admitted(published.spec)
    if isinstance(protocol, (Weave, Flat)):
        return Standing(protocol)
    return Asked(protocol)
