"""The posterior of curves in two rounds; the second uses when the curves move in the first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.posterior.competition import Competition
from sfumato.streams.posterior.information import Information
from sfumato.streams.posterior.mixture import Mixture
from sfumato.streams.posterior.shapes import first_shapes, learnt_shapes

__all__ = ["posterior"]


def posterior(seen: Information, settle: Callable[[Floats], Floats] | None = None) -> Mixture:
    """Return the posterior of some curves, given all observations.

    The first round tries the shapes that need no knowledge of the curves. From its result the noise
    of the entries is updated, and shapes are added that move when these curves do; they are
    weighted by evidence like the others.

    Parameters
    ----------
    seen
        The observations.
    settle
        A function that returns the noise of each entry, given the curves of the first round; by
        default the noise stays the same.

    Examples
    --------
    >>> from sfumato.streams.posterior.information import Sightings
    >>> looks, level = np.arange(1, 9), np.repeat([0.2, 0.6], 4)[:, None]
    >>> noise = np.full(8, 0.0001)
    >>> seen = Sightings(0 * looks, looks, level, noise, noise[:, None])
    >>> curves = posterior(Information.of(np.ones(8), seen))
    >>> mean, variance = curves.combined(np.array([[0, 0, 0, -1, 1, 0, 0, 0]]))
    >>> mean[0, 0].round(1), bool(variance[0, 0] < 0.0003)
    (np.float64(0.4), True)

    """
    competition = Competition(seen)
    for shape in first_shapes(seen.periods):
        competition.enter(shape)
    curves, _ = competition.mixture().combined(np.eye(seen.periods))
    if settle is not None:
        competition.settle(settle(curves))
    for shape in learnt_shapes(curves):
        competition.enter(shape)
    return competition.mixture()
