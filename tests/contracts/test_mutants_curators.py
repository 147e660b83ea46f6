"""Wrong curators of streams over a horizon: each is caught by the check made for it."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.contracts.wrong import COVER, EMPTY, FINAL, REPLAY, Wrong, caught, with_curator

from sfumato.core.curator import Due
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.stream import Curator, Steps
from sfumato.core.tally import Tallies
from sfumato.randomness import seeded
from sfumato.streams.flat.flat import Flat
from sfumato.streams.kinds import Binary
from sfumato.streams.weave.weave import Weave

WEAVE = Weave(Binary(), 3, 1, 1.0, (1, 0), (0.5, 0.5), "exsub")
FLAT = Flat(1, periods=3, changes=1, epsilon=1.0)
WRONG = Wrong()

COUNTED = count()


class Wrapped(Curator):
    """Makes something else of what another curator releases."""

    def __init__(self, right: Any) -> None:
        self.right = right

    def timestep(self, period: int) -> Steps:
        estimate = yield from self.right.timestep(period)
        return self.made(estimate)

    def made(self, estimate: Estimate) -> Estimate:
        raise NotImplementedError


def _plain(estimate: Estimate, values: Any, variances: Any) -> Estimate:
    return Estimate(values, Covariance(variances), estimate.labels, estimate.n, estimate.guarantee)


@WRONG.caught_by(REPLAY, FINAL)
class WithACoin(Wrapped):
    """Draws a coin of its own for each release."""

    def made(self, estimate: Estimate) -> Estimate:
        noise = seeded(next(COUNTED)).simulator().normal()
        return _plain(estimate, estimate.values + noise, estimate.covariance.variances())


@WRONG.caught_by(COVER)
class TooSure(Wrapped):
    """Claims half of the variance."""

    factor = 0.5

    def made(self, estimate: Estimate) -> Estimate:
        return _plain(estimate, estimate.values, self.factor * estimate.covariance.variances())


@WRONG.caught_by(COVER)
class TooUnsure(TooSure):
    """Claims twice the variance."""

    factor = 2.0


@WRONG.caught_by(COVER)
class Biased(Wrapped):
    """Shrinks what it releases."""

    def made(self, estimate: Estimate) -> Estimate:
        return _plain(estimate, 0.8 * estimate.values, estimate.covariance.variances())


@WRONG.caught_by(EMPTY)
class SureOfNothing(Wrapped):
    """Claims to know what nobody has reported."""

    def made(self, estimate: Estimate) -> Estimate:
        variances = np.nan_to_num(estimate.covariance.variances(), posinf=0.25)
        return _plain(estimate, np.nan_to_num(estimate.values, nan=0.5), variances)


@WRONG.caught_by(EMPTY)
class NeedsAReport(Wrapped):
    """Divides by the number of reports."""

    def made(self, estimate: Estimate) -> Estimate:
        return _plain(estimate, estimate.values, estimate.covariance.variances() / (1 / estimate.n))


@WRONG.caught_by(EMPTY)
class GivesUp(Curator):
    """Releases nothing any more after a period without reports."""

    def __init__(self, right: Any) -> None:
        self.right, self.over = right, False

    def timestep(self, period: int) -> Steps:
        estimate = yield from self.right.timestep(period)
        self.over |= not np.isfinite(estimate.covariance.variances()).any()
        lost = np.full(len(estimate.values), np.inf)
        variances = lost if self.over else estimate.covariance.variances()
        return _plain(estimate, estimate.values, variances)


@WRONG.caught_by(FINAL)
class SecondThoughts(Curator):
    """Releases an estimate that it goes on working on."""

    def __init__(self, right: Any) -> None:
        self.right, self.before = right, list[Estimate]()

    def timestep(self, period: int) -> Steps:
        estimate = yield from self.right.timestep(period)
        mine = _plain(estimate, estimate.values.copy(), estimate.covariance.variances())
        for earlier in self.before:
            object.__setattr__(earlier, "values", (earlier.values + mine.values) / 2)
        self.before.append(mine)
        return mine


@WRONG.caught_by(REPLAY)
class Remembers(Curator):
    """Releases the sum of all it has ever been told, by any curator."""

    heard: ClassVar[list[Tallies[Any]]] = []

    def __init__(self, right: Any) -> None:
        self.right = right

    def timestep(self, period: int) -> Steps:
        tallies = yield Due(period)
        self.heard.append(tallies)
        steps = self.right.timestep(period)
        next(steps)
        try:
            steps.send(tallies)
        except StopIteration as done:
            estimate = done.value
        values = estimate.values + len(self.heard)
        return _plain(estimate, values, estimate.covariance.variances())


@pytest.mark.parametrize("stream", [WEAVE, FLAT], ids=["weave", "flat"])
@WRONG.each
def test_wrong_curators_are_caught(stream: Any, wrong: Any, by: str) -> None:
    caught(with_curator(stream, wrong), by)
