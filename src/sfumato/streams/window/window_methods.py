"""The methods by name; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import ConfigurationError
from sfumato.streams.window.adaptive_methods import Absorption, AdaptiveCurator, Halving
from sfumato.streams.window.curators import WindowCurator
from sfumato.streams.window.divisions import Budget, Cohorts, Division
from sfumato.streams.window.dsat import DSAT
from sfumato.streams.window.fast import FAST
from sfumato.streams.window.filtered import Filtered
from sfumato.streams.window.pegasus import PeGaSus
from sfumato.streams.window.pooled_method import Pooled
from sfumato.streams.window.rescue_dp import RescueDP
from sfumato.streams.window.uniform import Sampling, Uniform

if TYPE_CHECKING:
    from sfumato.streams.window.window import Window

__all__ = ["BEST", "METHODS", "Method", "method_of"]


@dataclass(frozen=True)
class Method:
    """A named method: a class of curators, their division, and the values of fixed fields.

    Parameters
    ----------
    name
        The name in task files.
    summary
        One line that helps people choose a method.
    kind
        The class of its curators.
    division
        The division of a window into parts.
    fixed
        The fields of the class that are not parameters of this method, with their values.

    Examples
    --------
    >>> METHODS["lpd"].parameters, METHODS["lbd"].parameters
    ({'share': 0.5, 'least': 1}, {'share': 0.5})

    """

    name: str
    summary: str
    kind: type[WindowCurator]
    division: type[Division]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def divides(self) -> str:
        """What it divides over a window: ``budget`` or ``population``."""
        return self.division.name

    @property
    def rounds(self) -> int:
        """The largest number of questions in a period."""
        return self.kind.rounds

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the method with their defaults."""
        own = [each for each in fields(self.kind) if each.kw_only and each.name not in self.fixed]
        return {each.name: each.default for each in own}

    def __call__(
        self, protocol: Window, parameters: Iterable[tuple[str, Any]] = ()
    ) -> WindowCurator:
        """Return a new curator; raise ConfigurationError for an unknown parameter."""
        known, chosen = self.parameters, dict(parameters)
        for name in chosen:
            if name not in known:
                takes = ", ".join(known) or "nothing beyond the task"
                raise ConfigurationError(
                    f"{self.name} has no parameter {name!r}; it takes {takes}."
                )
        arguments = {**chosen, **self.fixed}
        return self.kind(protocol, self.division(protocol, self.name), **arguments)


_EVERY: Final = (
    Method("lbu", "everybody in every period, with a w-th of the budget", Uniform, Budget),
    Method("lsp", "everybody with the whole budget, in every w-th period", Sampling, Budget),
    Method("lpu", "a w-th of the devices in a period, with the whole budget", Uniform, Cohorts),
    Method(
        "lbd",
        "publishes on change, with half of the budget left",
        AdaptiveCurator,
        Budget,
        {"rule": Halving, "least": 1},
    ),
    Method(
        "lba",
        "publishes on change, with the budget of quiet periods",
        AdaptiveCurator,
        Budget,
        {"rule": Absorption, "least": 1},
    ),
    Method(
        "lpd",
        "publishes on change, by half of the devices left",
        AdaptiveCurator,
        Cohorts,
        {"rule": Halving},
    ),
    Method(
        "lpa",
        "publishes on change, by the devices of quiet periods",
        AdaptiveCurator,
        Cohorts,
        {"rule": Absorption},
    ),
    Method(
        "pooled",
        "a w-th, filtered by what all items learn together (ours)",
        Pooled,
        Cohorts,
    ),
    Method("filtered", "a w-th of the devices in a period, filtered (ours)", Filtered, Cohorts),
    Method("lb-dsat", "publishes beyond a threshold that adapts", DSAT, Budget),
    Method("lp-dsat", "publishes beyond a threshold that adapts", DSAT, Cohorts),
    Method("lb-rescuedp", "looks when a controller says so, and filters", RescueDP, Budget),
    Method("lp-rescuedp", "looks when a controller says so, and filters", RescueDP, Cohorts),
    Method("lb-pegasus", "groups of like periods, smoothed", PeGaSus, Budget),
    Method("lp-pegasus", "groups of like periods, smoothed", PeGaSus, Cohorts),
    Method("lb-fast", "few looks, a controller and a filter", FAST, Budget),
    Method("lp-fast", "few looks, a controller and a filter", FAST, Cohorts),
)
METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _EVERY}

BEST: Final = "filtered"
"""The method that ``auto`` stands for; published tasks with ``auto`` rely on it, so it stays."""


def method_of(name: str) -> Method:
    """Return a method by name; raise ConfigurationError if there is none."""
    chosen = BEST if name == "auto" else name
    if chosen not in METHODS:
        raise ConfigurationError(f"method is {name!r}; auto, {', '.join(METHODS)} are there.")
    return METHODS[chosen]
