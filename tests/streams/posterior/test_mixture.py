"""The posterior of curves is plain Gaussian algebra, done once for all sizes and entries."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.streams.posterior.competition import Competition
from sfumato.streams.posterior.information import Information, Sightings
from sfumato.streams.posterior.mixture import DOUBT, Component, LikelyShape, Mixture, Spectrum
from sfumato.streams.posterior.shapes import first_shapes, learnt_shapes

T = 6
VAGUE = 1e9
"""The variance of a constant of which nothing is known."""

START = np.array([0, 0, 1, 2, 0, 3, 5, 4, 0])
END = np.array([1, 2, 3, 4, 4, 5, 6, 6, 6])


def seen(seed: int = 1, growth: np.ndarray | None = None) -> tuple[Information, np.ndarray]:
    """Return observations of two entries, the second twice as noisy; and each edge's row."""
    draw = np.random.default_rng(seed)
    growth = np.ones(T) if growth is None else growth
    known = draw.uniform(0.5, 2.0, END.size)
    rows = np.zeros((END.size, T + 1))
    rows[np.arange(END.size), START] -= np.concatenate([[0.0], growth])[START]
    rows[np.arange(END.size), END] += growth[END - 1]
    value = draw.normal(1.0, 1.0, (END.size, 2))
    noise = known[:, None] * np.array([1.0, 2.0])
    made = Information.of(growth, Sightings(START, END, value, known, noise))
    return made, np.column_stack([rows[:, 1:], known, value])


def dense(
    edges: np.ndarray, entry: int, scale: float, size: float, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return mean, covariance and log evidence of a curve, by the textbook's linear model.

    Its unknowns are the constant, of variance VAGUE, and the root's coordinates.
    """
    known, value = scale * edges[:, T], edges[:, T + 1 + entry]
    turned = np.column_stack([np.ones(T), root])
    design = edges[:, :T] @ turned
    prior = np.array([VAGUE, *[size] * root.shape[1]])
    precision = np.diag(1 / prior) + design.T @ (design / known[:, None])
    mean = np.linalg.solve(precision, design.T @ (value / known))
    squares = (value**2 / known).sum() - mean @ precision @ mean
    volume = np.log(known).sum() + np.log(prior).sum() + np.linalg.slogdet(precision)[1]
    spread = turned @ np.linalg.inv(precision) @ turned.T
    return turned @ mean, spread, float(-(squares + volume) / 2)


def moving(information: Information) -> Mixture:
    """Return the mixture of all first shapes that move."""
    competition = Competition(information)
    for shape in first_shapes(T)[1:]:
        competition.enter(shape)
    return competition.mixture()


QUESTIONS = np.array([[0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [0, -1, 0, 0, 0, 1.0]])


@pytest.mark.parametrize("growth", [np.ones(T), np.linspace(1, 2, T)], ids=["steady", "growing"])
def test_each_shape_and_size_agrees_with_dense_gaussian_algebra(growth: np.ndarray) -> None:
    information, edges = seen(growth=growth)
    shapes = [*first_shapes(T), *learnt_shapes(np.random.default_rng(2).normal(size=(T, 2)))]
    gaps = []
    for shape in shapes:
        root = shape()
        spectrum, basis = Spectrum.of(root, information)
        for size in (0.01, 1.0, 30.0):
            alone = Mixture((LikelyShape(spectrum, basis, (size,)),), np.ones((1, 2)))
            mean, variance = alone.combined(QUESTIONS)
            for entry, scale in enumerate((1.0, 2.0)):
                right, spread, evidence = dense(edges, entry, scale, size, root)
                assert np.allclose(mean[:, entry], QUESTIONS @ right, atol=1e-6)
                joint = np.einsum("qt,ts,qs->q", QUESTIONS, spread, QUESTIONS)
                assert np.allclose(variance[:, entry], DOUBT * joint, rtol=1e-6)
                assert np.allclose(alone.covariance(entry)[1], DOUBT * spread, atol=1e-6)
                gaps.append((entry, spectrum.component(size).evidence[entry] - evidence))
    for entry in (0, 1):  # the same constant for all shapes and sizes
        assert np.ptp([gap for place, gap in gaps if place == entry]) < 1e-5


def test_a_static_curve_is_the_weighted_mean() -> None:
    looks = np.arange(1, T + 1)
    value = np.array([[0.2], [0.4], [0.3], [0.1], [0.5], [0.9]])
    known = np.array([1.0, 2.0, 1.0, 4.0, 1.0, 8.0])
    sightings = Sightings(0 * looks, looks, value, known, known[:, None])
    information = Information.of(np.ones(T), sightings)
    static = LikelyShape(*Spectrum.of(first_shapes(T)[0](), information), (1.0,))
    mean, variance = Mixture((static,), np.ones((1, 1))).combined(np.eye(T))
    assert np.allclose(mean, np.average(value[:, 0], weights=1 / known))
    assert np.allclose(variance, DOUBT / (1 / known).sum())


def test_answers_are_mixtures_and_sums_have_the_joint_covariance() -> None:
    information, _ = seen(3)
    mixture = moving(information)
    assert np.allclose(mixture.believed.sum(axis=0), 1)
    mean, variance = mixture.combined(QUESTIONS)
    curves, _ = mixture.combined(np.eye(T))
    assert np.allclose(mean, QUESTIONS @ curves)
    for entry in (0, 1):
        curve, joint = mixture.covariance(entry)
        assert np.allclose(curve, curves[:, entry])
        assert np.allclose(variance[:, entry], np.diag(QUESTIONS @ joint @ QUESTIONS.T))
    assert (mixture.believed.max(axis=0) < 1).all()  # else there is nothing to mix


def test_one_entrys_covariance_costs_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = moving(seen(3)[0])
    component, widths = Spectrum.component, set()

    def noted(spectrum: Spectrum, size: float) -> Component:
        widths.add(spectrum.pull.shape[1])
        return component(spectrum, size)

    monkeypatch.setattr(Spectrum, "component", noted)
    mixture.covariance(1)
    assert widths == {1}


def test_entries_in_another_order_have_the_same_answers_in_that_order() -> None:
    information, _ = seen(4)
    swapped = Information(information.matrix, information.pull[:, ::-1], information.noise[::-1])
    answers = [moving(each).combined(np.eye(T))[0] for each in (information, swapped)]
    assert np.allclose(answers[0], answers[1][:, ::-1])
