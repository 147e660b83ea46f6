"""A stream that this library has never heard of: joined, served and answered like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
from tests.fitting import python
from tests.service.asking import SECONDS, START, Scene

from sfumato import catalog
from sfumato.core.domain import Label
from sfumato.core.fleet import Fleet, Population
from sfumato.core.guarantee import Guarantee
from sfumato.core.stream import (
    Ask,
    Curator,
    Due,
    Form,
    Message,
    Place,
    Steps,
    Stream,
    StreamDevice,
)
from sfumato.errors import BudgetError, ConfigurationError, InputError, MismatchError
from sfumato.mechanisms import GRR
from sfumato.randomness import Source
from sfumato.streams import registry

DEVICES = 12


@dataclass(frozen=True)
class Lamps(Stream):
    """Whether a lamp is on, said in every period with an even part of epsilon."""

    periods: int
    epsilon: float
    per_period: bool = False
    """Whether epsilon is for each period, instead of for all of them."""

    @property
    def mechanism(self) -> GRR:
        return GRR(self.epsilon if self.per_period else self.epsilon / self.periods, 2)

    @property
    def guarantee(self) -> Guarantee:
        window = 1 if self.per_period else None
        return Guarantee("local", "what a device sends", self.epsilon, window=window)

    @property
    def labels(self) -> tuple[Label, ...]:
        return (0, 1)

    @property
    def payload(self) -> int:
        return self.mechanism.report_bytes

    @property
    def tracks(self) -> Sequence[tuple[int, int]]:
        return ((0, 0),)

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        del ask
        known = (place.span, place.part) == (0, 0) and 1 <= place.period <= self.periods
        return Form.of(self.mechanism) if known else None

    def plain(self) -> dict[str, Any]:
        return {"per_period": self.per_period}

    def spec(self) -> dict[str, Any]:
        return {
            "stream": "lamps",
            "periods": self.periods,
            "epsilon": self.epsilon,
            "per_period": self.per_period,
        }

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        return cls(spec["periods"], spec["epsilon"], spec.get("per_period", False))

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        if spec["periods"] > 100:
            raise ConfigurationError(f"periods is {spec['periods']}; lamps burn for up to 100.")
        return cls.of(spec)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(2, 1.0)

    def inputs(self) -> Sequence[Any]:
        return (0, 1)

    def check(self, value: Any) -> None:
        if value not in (0, 1):
            raise InputError(f"value is {value!r}; 0 or 1 is expected.")

    def device(self, coins: Source, tier: int = 0) -> StreamDevice:
        del coins
        self.offer(tier)
        return Lamp(self)

    def restore(self, state: Any) -> StreamDevice:
        if not isinstance(state, dict) or set(state) != {"period", "value"}:
            raise MismatchError("the saved state has no period and value.")
        return Lamp(self, **state)

    def fleet(self, population: Population, rng: Source) -> Fleet:
        raise NotImplementedError  # only simulations ask for it

    def curator(self) -> Curator:
        return Counting(self)


@dataclass
class Lamp(StreamDevice):
    """One lamp."""

    stream: Lamps
    period: int = 0
    value: int = 0

    @property
    def message_bytes(self) -> int:
        return self.stream.payload

    def observe(self, value: Any, coins: Source) -> Message:
        self.period += 1
        if value in (0, 1):
            self.value = int(value)
        report = self.stream.mechanism.randomize([self.value], coins.bound([self.value]))
        return Message(Place(0, self.period), report.tobytes())

    def save(self) -> dict[str, Any]:
        return {"period": self.period, "value": self.value}


@dataclass
class Counting(Curator):
    """Releases the share of lamps that are on."""

    stream: Lamps

    def timestep(self, period: int) -> Steps:
        tallies = yield Due(period)
        return self.stream.mechanism.estimate(tallies[Place(0, period)])


@pytest.fixture(autouse=True)
def lamps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.STREAMS, "lamps", f"{Lamps.__module__}:Lamps")
    monkeypatch.setattr(Lamps, "optional", ("per_period",))


def asked(**given: Any) -> Any:
    table = {
        "stream": "lamps",
        "title": "Lamps",
        "epsilon": 8.0,
        "periods": 4,
        "period": f"{SECONDS} seconds",
        "values": {"kind": "binary"},
    }
    return catalog.task(table | given)


def test_it_is_joined_served_and_answered(tmp_path: Path) -> None:
    scene = Scene(tmp_path, asked(), sealed=False)
    fleet = scene.fleet(DEVICES)
    assert fleet[0][0].left == 8.0
    assert "epsilon 8 for everything it will ever send" in fleet[0][0].log()[0]
    for number, (device, _) in enumerate(fleet):
        device.observe(number % 2, strict=True)
        with pytest.raises(InputError, match="0 or 1 is expected"):
            device.observe(2, strict=True)
    for period in (1, 2):
        scene.now = START + period * SECONDS + 0.5
        assert [device.flush(force=True).sent for device, _ in fleet] == [1] * DEVICES
    scene.now += SECONDS
    scene.collector.close_due()
    assert [release.n for release in scene.running.releases] == [DEVICES, 2 * DEVICES]
    answers = scene.running.history().mean(2)
    assert (answers.low < 0.5).all()
    assert (answers.high > 0.5).all()
    scene.close()


def test_its_own_bound_and_its_own_promise_count_at_the_door(tmp_path: Path) -> None:
    scene = Scene(tmp_path, asked(periods=101), sealed=False)
    with pytest.raises(ConfigurationError, match="lamps burn for up to 100"):
        scene.device()
    scene.close()
    (tmp_path / "other").mkdir()
    scene = Scene(tmp_path / "other", asked(per_period=True), sealed=False)
    device, _ = scene.device()
    device.leave()
    device.limits = type(device.limits)(99.0, unsealed=True)
    with pytest.raises(BudgetError, match="for a window of time only"):
        device.join(scene.running.published)
    scene.close()


def test_a_promise_that_may_fail_is_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, asked(), sealed=False)
    device, _ = scene.device()
    device.leave()
    promise = replace(Lamps(2, 1.0).guarantee, delta=1e-9)
    monkeypatch.setattr(Lamps, "guarantee", property(lambda _: promise))
    with pytest.raises(BudgetError, match=r"a delta of 1e-09; .* a delta of 0 is expected"):
        device.join(scene.running.published)
    scene.close()


def test_a_device_loads_no_stream_but_those_of_its_tasks() -> None:
    loaded = python(
        "import sys\nimport sfumato.device.part\nfrom sfumato.streams.registry import find\n"
        "find('window')\nprint(*sys.modules)"
    ).split()
    assert "sfumato.streams.window.window" in loaded
    for other in ("weave", "flat", "values"):
        assert f"sfumato.streams.{other}" not in loaded
