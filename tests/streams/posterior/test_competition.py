"""What a competition drops, to save memory, changes no answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.streams.posterior.competition import NEGLIGIBLE, Competition
from sfumato.streams.posterior.information import Information, Sightings
from sfumato.streams.posterior.mixture import LikelyShape, Mixture, Spectrum
from sfumato.streams.posterior.rounds import posterior
from sfumato.streams.posterior.shapes import Shape, first_shapes, learnt_shapes, sizes

T = 48
LIVES: dict[str, Callable[[Floats], Floats]] = {
    "level": lambda t: 0 * t + 0.3,
    "slope": lambda t: 0.2 + 0.6 * t,
    "jumps": lambda t: 0.2 + 0.3 * (t > 0.3) - 0.2 * (t > 0.7),
    "waves": lambda t: 0.4 + 0.3 * np.sin(9 * t),
}


def looked(life: str, noise: float, seed: int) -> Information:
    """Return snapshots of a curve and of one at half its height, in each period."""
    ends, draw = np.arange(1, T + 1), np.random.default_rng(seed)
    truth = LIVES[life](ends / T)[:, None] * np.array([1.0, 0.5])
    value = truth + draw.normal(0, noise**0.5, truth.shape)
    known = np.full(T, noise)
    variances = np.full(truth.shape, noise)
    return Information.of(np.ones(T), Sightings(0 * ends, ends, value, known, variances))


def all_kept(seen: Information, shapes: list[Shape], noise: Floats) -> Mixture:
    """Return the mixture as it is defined: all shapes side by side, and nothing dropped before."""
    settled = Information(seen.matrix, seen.pull, noise)
    tried = []
    for shape in shapes:
        root = shape()
        some = sizes(T, seen.unit) if root.shape[1] else np.ones(1)
        tried += [(*Spectrum.of(root, settled), size) for size in some]
    evidence = np.array([spectrum.component(size).evidence for spectrum, _, size in tried])
    believed = np.exp(evidence - evidence.max(axis=0))
    believed /= believed.sum(axis=0)
    believed[believed < NEGLIGIBLE] = 0.0
    believed /= believed.sum(axis=0)
    parts = [LikelyShape(spectrum, basis, (size,)) for spectrum, basis, size in tried]
    return Mixture(tuple(parts), believed)


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("change", [1.0, 0.01, 100.0])
def test_answers_are_those_of_all_shapes_side_by_side(life: str, change: float) -> None:
    """Even if the noise is settled a hundred times higher, so that others are believed."""
    seen = looked(life, 0.001, 7)
    curves: list[Floats] = []

    def settle(first: Floats) -> Floats:
        curves.append(first)
        return seen.noise * change

    mixture = posterior(seen, settle)
    shapes = [*first_shapes(T), *learnt_shapes(curves[0])]
    expected = all_kept(seen, shapes, seen.noise * change)
    questions = np.vstack([np.eye(T), np.ones(T), np.eye(T)[9] - np.eye(T)[30]])
    for ours, theirs in zip(mixture.combined(questions), expected.combined(questions), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def test_hopeless_shapes_are_dropped_and_come_back_when_the_noise_changes() -> None:
    competition = Competition(looked("jumps", 1e-6, 3))
    for shape in first_shapes(T):
        competition.enter(shape)

    def there() -> list[bool]:
        return [entrant.basis is not None for entrant in competition._entrants]  # noqa: SLF001

    assert not there()[0]  # it does move
    assert sum(there()) < len(first_shapes(T)) / 2
    competition.settle(np.full(2, 1e9))
    competition.mixture()
    assert there()[0]  # for all that anybody can say
