"""Three methods that never look at the data: the same for every period.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sfumato.streams.window.curators import Step, WindowCurator

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBU", "LPU", "LSP"]


class LBU(WindowCurator):
    """Budget, uniformly: everybody answers in every period, with epsilon / w."""

    name: ClassVar[str] = "lbu"
    summary: ClassVar[str] = "everybody in every period, with a w-th of the budget"
    divides: ClassVar[str] = "budget"

    def __init__(self, protocol: Window) -> None:
        super().__init__(protocol)
        self.each = self.part(1 / self.window, "each period")

    def step(self, period: int) -> Step:
        """Ask everybody for a w-th of the budget."""
        del period
        mechanism = self.oracle(self.each)
        tally = yield self.ask_all(mechanism)
        return self.publish(self.read(mechanism, tally))


class LSP(WindowCurator):
    """Sampling: everybody answers with the whole epsilon, once in w periods."""

    name: ClassVar[str] = "lsp"
    summary: ClassVar[str] = "everybody with the whole budget, in every w-th period"
    divides: ClassVar[str] = "budget"

    def step(self, period: int) -> Step:
        """Ask everybody in periods 1, w + 1, 2w + 1, ...; repeat the release in between."""
        if (period - 1) % self.window:
            return self.repeat()
        mechanism = self.oracle()
        tally = yield self.ask(mechanism, self.devices)
        return self.publish(self.read(mechanism, tally))


class LPU(WindowCurator):
    """Population, uniformly: a w-th of the devices answers in each period, with all of epsilon.

    After the first window a device is free exactly every w periods and everybody who is free
    answers, so the cohorts are the paper's w groups, drawn by the devices' own coins.
    """

    name: ClassVar[str] = "lpu"
    summary: ClassVar[str] = "a w-th of the devices in each period, with the whole budget"
    divides: ClassVar[str] = "population"

    def __init__(self, protocol: Window) -> None:
        super().__init__(protocol)
        self.needs_devices(self.window)

    def step(self, period: int) -> Step:
        """Ask a w-th of the devices."""
        del period
        mechanism = self.oracle()
        tally = yield self.ask(mechanism, self.devices / self.window)
        return self.publish(self.read(mechanism, tally))
