"""Tiers: several windows for one question; every owner picks one before any data.

A task may offer up to four pairs (w, epsilon). Owners who want more protection pick a stricter one.
Each tier is a separate stream, with its own ledger on the device and its own tallies on the server;
releases are combined by their variances.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance
from sfumato.core.fleet import Population
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.outlook import Outlook, Sent
from sfumato.core.quantity import Quantity
from sfumato.core.stream import Ask, Curator
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.randomness import Source
from sfumato.streams.asked import AskedStream
from sfumato.streams.window import task_fields
from sfumato.streams.window.curators import WindowEstimate
from sfumato.streams.window.task_fields import MOST_TIERS
from sfumato.streams.window.window import Window
from sfumato.streams.window.window_device import WindowDevice, WindowLedger
from sfumato.streams.window.window_fleet import WindowFleet
from sfumato.streams.window.window_methods import method_of
from sfumato.streams.window.window_outlook import WindowOutlook, predicted
from sfumato.wire import fields

__all__ = ["TieredDevice", "TieredEstimate", "Tiers", "combined"]


@dataclass(frozen=True, eq=False, repr=False)
class TieredEstimate(WindowEstimate):
    """The release of a period, with the estimate of each tier."""

    tiers: tuple[WindowEstimate, ...] = ()


@dataclass(frozen=True)
class Tiers(AskedStream):
    """One question that is asked under several windows.

    Each tier's estimate is about all devices, so the choice of a tier must not depend on the
    values; if it does, use the releases of the single tiers.

    Parameters
    ----------
    tiers
        The windows on offer, all about the same items or the same interval. The number of devices
        of each is the number expected to pick it.

    Examples
    --------
    >>> strict = Window(window=48, epsilon=0.5, devices=40_000, domain=4, method="lpu")
    >>> usual = Window(window=24, epsilon=1.0, devices=60_000, domain=4, method="lpu")
    >>> tiers = Tiers((strict, usual))
    >>> tiers.devices, [tier.population for tier in tiers.tiers]
    (100000, [100000, 100000])

    """

    tiers: tuple[Window, ...]

    outlook_class: ClassVar[type[Outlook]] = WindowOutlook
    name: ClassVar[str] = "tiers"
    needed: ClassVar[Mapping[str, str]] = {
        **task_fields.NEEDED,
        "tiers": "a list of tables, the other windows that an owner may pick,",
    }
    optional: ClassVar[tuple[str, ...]] = task_fields.OPTIONAL

    def __post_init__(self) -> None:
        """Check that the tiers fit together, and let each estimate be about all devices."""
        if not 1 <= len(self.tiers) <= MOST_TIERS:
            raise ConfigurationError(f"tiers has {len(self.tiers)}; 1..{MOST_TIERS} are possible.")
        values = [(tier.domain, tier.interval, tier.clip, tier.default) for tier in self.tiers]
        windows = [(tier.window, tier.epsilon) for tier in self.tiers]
        for index, tier in enumerate(self.tiers):
            if values[index] != values[0]:
                raise ConfigurationError(
                    f"tiers[{index}] asks about something else than tiers[0]; one question is "
                    "expected."
                )
            if windows[index] in windows[:index]:
                raise ConfigurationError(
                    f"tiers[{index}] has window {tier.window} and epsilon {tier.epsilon:g} once "
                    "more; each pair may be there once."
                )
        everybody = tuple(replace(tier, population=self.devices) for tier in self.tiers)
        object.__setattr__(self, "tiers", everybody)

    @property
    def devices(self) -> int:
        """The expected number of devices."""
        return sum(tier.devices for tier in self.tiers)

    @property
    def payload(self) -> int:
        """The number of bytes of the longest report of any tier."""
        return max(tier.payload for tier in self.tiers)

    @cached_property
    def rounds(self) -> int:
        """The largest number of questions in a period, over all tiers together."""
        return sum(tier.rounds for tier in self.tiers)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the released values."""
        return self.tiers[0].labels

    @property
    def quantity(self) -> Quantity:
        """The quantity of the released values."""
        return self.tiers[0].quantity

    @property
    def wholes(self) -> tuple[slice, ...]:
        """The groups of entries of which each device holds exactly one: all items, for shares."""
        return self.tiers[0].wholes

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device of the weakest tier; each tier has its own guarantee."""
        return max(self.tiers, key=lambda tier: tier.epsilon / tier.window).guarantee

    @property
    def offers(self) -> tuple[Guarantee, ...]:
        """What is promised to the devices of each tier."""
        return tuple(tier.guarantee for tier in self.tiers)

    @property
    def counts_on(self) -> int:
        """The expected number of devices."""
        return self.devices

    def expecting(self, devices: int) -> Tiers:
        """Return the same stream for another number of devices, in the same proportions."""
        scale = devices / self.devices
        sizes = [max(1, round(tier.devices * scale)) for tier in self.tiers]
        pairs = zip(self.tiers, sizes, strict=True)
        return Tiers(tuple(tier.expecting(size) for tier, size in pairs))

    def by(self, method: str) -> Tiers:
        """Return the same tiers with another method."""
        return Tiers(tuple(tier.by(method) for tier in self.tiers))

    @property
    def sent(self) -> Sent:
        """What a device sends in a period, averaged over the tiers by their devices."""
        sent = np.array([tier.sent for tier in self.tiers])
        messages, payload, _ = np.average(sent, axis=0, weights=[t.devices for t in self.tiers])
        return Sent(float(messages), float(payload), float(sent[:, 2].max()))

    def planned_variance(self, devices: int) -> float | None:
        """Return the variance of an estimate from one period's answers of all tiers."""
        tiers = self.expecting(devices).tiers
        expected = predicted(tiers, method_of(tiers[0].method))
        return None if expected is None else expected.reported

    def facts(self) -> dict[str, Any]:
        """Return the choices made: the method, and the number of tiers."""
        return {"method": self.tiers[0].facts()["method"], "tiers": len(self.tiers)}

    @property
    def picks(self) -> tuple[float, ...]:
        """The share of the devices that is expected in each tier."""
        return tuple(tier.devices / self.devices for tier in self.tiers)

    def plain(self) -> dict[str, Any]:
        """Return the fields of a published task beyond the task itself: none."""
        return {}

    def spec(self) -> dict[str, Any]:
        """Return plain data that are enough to make this stream again."""
        rest = [[int(t.window), float(t.epsilon), int(t.devices)] for t in self.tiers[1:]]
        return self.tiers[0].spec() | {"stream": self.name, "tiers": rest}

    @property
    def brief(self) -> str:
        """The tiers in a few words."""
        return "; ".join(f"{tier.brief}, epsilon {tier.epsilon:g}" for tier in self.tiers)

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a task: its own window first, then those of its tiers."""
        own = (spec["window"], spec["epsilon"], spec["devices"])
        names = ("window", "epsilon", "devices")
        each = (own, *(tuple(tier) for tier in spec.get("tiers", ())))
        return cls(tuple(Window.of({**spec, **dict(zip(names, one, strict=True))}) for one in each))

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a task with several windows."""
        design = task_fields.checked(task)
        return {**design, "tiers": task_fields.tiers(task)}

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a stranger's task; each window must be allowed on its own."""
        rows = spec.get("tiers", ())
        if not isinstance(rows, (list, tuple)) or len(rows) >= MOST_TIERS:
            raise ConfigurationError(
                f"tiers is {fields.shown(rows)}; a list of up to {MOST_TIERS - 1} is expected."
            )
        Window.admit(spec)
        return cls.of(spec)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances, for shares and for a mean."""
        usual = Window(2, 1.0, 4_000, domain=2, method="lpu")
        yield cls((usual, replace(usual, window=1, epsilon=0.5)))
        number = Window(2, 0.5, 4_000, interval=(0.0, 1.0), method="lpd")
        yield cls((number, replace(number, window=1, epsilon=0.25, devices=2_000)))

    # ---- what is estimated -----------------------------------------------------------------

    @property
    def crowd(self) -> tuple[int, ...]:
        """The number of devices that are expected to pick each tier."""
        return tuple(tier.devices for tier in self.tiers)

    def truth(
        self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None
    ) -> Floats | None:
        """Return the shares or the mean of all devices, if all tiers estimate them unbiased."""
        truths = [tier.truth(held, counts, ask) for tier in self.tiers]
        return None if any(truth is None for truth in truths) else truths[0]

    # ---- the device's half -----------------------------------------------------------------

    def inputs(self) -> Sequence[Any]:
        """Return values that a device can hold."""
        return self.tiers[0].inputs()

    def check(self, value: Any) -> None:
        """Raise InputError unless a value is one that the task knows."""
        self.tiers[0].check(value)

    @property
    def default(self) -> Any:
        """The value that a device answers for before its first one."""
        return self.tiers[0].default

    def asked(self, configuration: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism that a question describes, which is the same for all tiers."""
        return self.tiers[0].asked(configuration)

    def device(self, coins: Source, tier: int = 0) -> TieredDevice:
        """Return a new device of the tier that its owner picked before any data."""
        del coins
        self.offer(tier)
        picked = self.tiers[tier]
        ledger = WindowLedger(picked.window, picked.epsilon)
        return TieredDevice(picked, ledger, together=self, tier=tier)

    def restore(self, state: Any) -> TieredDevice:
        """Return the device that continues from a saved state, in its tier."""
        tier = state.get("tier") if isinstance(state, Mapping) else None
        if type(tier) is not int or not 0 <= tier < len(self.tiers):
            raise MismatchError("the saved state has no tier of this task; one is expected.")
        rest = {name: part for name, part in state.items() if name != "tier"}
        return TieredDevice.restore(self.tiers[tier], rest, together=self, tier=tier)

    # ---- the server's half -----------------------------------------------------------------

    def fleet(self, population: Population, rng: Source) -> WindowFleet:
        """Return simulated devices, with each tier's share of them."""
        return WindowFleet(self.tiers, population, rng)

    def curator(self) -> TieredCurator:
        """Return a curator of all tiers."""
        return TieredCurator(self)


@dataclass
class TieredDevice(WindowDevice):
    """A device of one tier, which only answers that tier's questions.

    Parameters
    ----------
    together
        All tiers of the task.
    tier
        The index of the tier that its owner has picked.

    """

    together: Tiers = field(kw_only=True)
    tier: int = field(kw_only=True)

    @property
    def stream(self) -> Tiers:
        """The stream of the device."""
        return self.together

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, including the tier."""
        return super().save() | {"tier": self.tier}


class TieredCurator(Curator):
    """One curator for each tier, in turn; their releases are combined by variance."""

    def __init__(self, protocol: Tiers) -> None:
        self.protocol = protocol
        self.curators = tuple(tier.curator() for tier in protocol.tiers)
        for index, curator in enumerate(self.curators):
            curator.tier = index

    def timestep(self, period: int) -> Generator[Ask, Tally, TieredEstimate]:
        """Ask the questions of each tier in turn; return the combined release."""
        estimates: list[WindowEstimate] = []
        for curator in self.curators:
            estimate = yield from curator.timestep(period)
            estimates += [estimate]
        return combined(estimates)


def combined(releases: Sequence[WindowEstimate]) -> TieredEstimate:
    """Return the combined estimate of all tiers, weighted by their precision."""
    values, variance = _weighed([(release.values, release.variance) for release in releases])
    unbiased = [
        (release.raw, release.raw_variance)
        for release in releases
        if release.raw is not None and release.raw_variance is not None
    ]
    raw, raw_variance = _weighed(unbiased) if unbiased else (None, None)
    return TieredEstimate(
        values,
        Covariance(variance, joint=False),
        releases[0].labels,
        sum(release.n for release in releases),
        max(releases, key=lambda release: release.guarantee.epsilon).guarantee,
        releases[0].period,
        published=any(release.published for release in releases),
        raw=raw,
        raw_variance=raw_variance,
        tiers=tuple(releases),
    )


def _weighed(
    parts: Sequence[tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    values = np.array([part[0] for part in parts])
    variances = np.maximum(np.array([part[1] for part in parts]), np.finfo(float).tiny)
    weights = 1 / variances  # zero for a tier that has not released anything yet
    total = weights.sum(axis=0)
    known = total > 0
    shares = np.where(known, weights / np.where(known, total, 1.0), 1 / len(parts))
    with np.errstate(divide="ignore"):
        return (shares * values).sum(axis=0), np.where(known, 1 / total, np.inf)
