"""PeGaSus: similar periods form a group, and a group is smoothed.

Chen, Machanavajjhala, Hay, Miklau, "PeGaSus: Data-Adaptive Differentially Private Stream
Processing" (2017), with local answers in place of central noise: in every period a fifth of its
part goes to the grouper and the rest to the publication. The grouper's answers are already private,
so no noise is added to its decisions; instead, the deviation that noise alone would cause is
subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi, sqrt
from typing import ClassVar, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.field_checks import check_one_of
from sfumato.streams.window.curators import POSITIVE, SHARE, Step, WindowCurator, WindowEstimate
from sfumato.streams.window.readings import Reading

__all__ = ["PeGaSus"]


SMOOTHERS: Final = ("median", "mean", "james-stein")
LONGEST: Final = 4096
"""The largest number of periods in a group, because streams are endless and memory is not."""


@dataclass(eq=False, repr=False, kw_only=True)
class PeGaSus(WindowCurator):
    """A curator that perturbs, groups and smooths.

    Parameters
    ----------
    grouping
        The share of each period for the grouper.
    threshold
        The deviation that a group may have, in units of a grouper's answer's standard deviation.
    smoother
        The smoother of a group: ``median``, ``mean`` or ``james-stein``.

    """

    grouping: float = field(default=0.2, metadata=SHARE)
    threshold: float = field(default=5 / sqrt(2), metadata=POSITIVE)
    smoother: str = "median"

    rounds: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Divide each period between the grouper and the publication."""
        super().__post_init__()
        check_one_of("smoother", self.smoother, SMOOTHERS)
        self.group = self.division.parts(self.grouping / self.window, "the grouper")
        self.perturb = self.division.parts((1 - self.grouping) / self.window, "a period")
        self._grouped: list[Floats] = []
        self._answers: list[Reading] = []
        self._open = False

    def release(self, period: int) -> Step:
        """Ask for the publication and for the grouper; release the group's smoothed value."""
        del period
        fresh = yield from self.asked(self.perturb)
        look = yield from self.asked(self.group)
        if fresh is None or look is None:
            return self.repeat()
        if self._open and len(self._grouped) < LONGEST and self._alike(look):
            self._grouped.append(look.values)
            self._answers.append(fresh)
        else:
            # After a group that was closed by a different period, that period stands alone.
            self._open = not self._open
            self._grouped, self._answers = [look.values], [fresh]
        return self._smoothed()

    def _alike(self, look: Reading) -> bool:
        """Return whether the group with one more period deviates little more than noise does."""
        values = np.array([*self._grouped, look.values])
        count = len(values)
        deviation = float(np.abs(values - values.mean(axis=0)).sum(axis=0).mean())
        noise = sqrt(self.division.error(self.group, look))
        expected = count * noise * sqrt(2 * (1 - 1 / count) / pi)
        return deviation - expected < self.threshold * noise

    def _smoothed(self) -> WindowEstimate:
        values = np.array([each.values for each in self._answers])
        noise = np.array([each.variance for each in self._answers])
        count = len(values)
        variance = noise.mean(axis=0) / count
        if self.smoother == "median":
            level = np.median(values, axis=0)
            variance = variance * (pi / 2 if count > 2 else 1.0)
        else:
            level = values.mean(axis=0)
            if self.smoother == "james-stein":
                level = level + (values[-1] - level) / count
                others = 1 / count - 1 / count**2
                weights = (count - 1) * others**2 + (others + 1 / count) ** 2
                variance = noise.mean(axis=0) * weights
        return self.estimate(level, variance, published=True)
