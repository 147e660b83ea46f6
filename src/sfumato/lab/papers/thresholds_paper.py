"""002: thresholds chosen by a curator or learnt on devices, and pictures of one stream."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Final

import numpy as np

from sfumato.datasets.amount_streams import KnownStream
from sfumato.lab.experiment import Cell, Drawing, Experiment, Measured, Results, Setting, Statement
from sfumato.lab.papers.tops_paper import (
    DATA,
    EPSILONS,
    HOLDOUT,
    KINDS,
    LIMIT,
    STANDS,
    amount_cells,
    known_amounts,
    metrics_of,
    repeats,
)
from sfumato.lab.published_accuracy import measured
from sfumato.lab.statements import below, falls
from sfumato.randomness import seeded
from sfumato.streams.published import plan
from sfumato.streams.published.topl import ToPL

__all__ = ["EXPERIMENTS"]

# ---- thresholds --------------------------------------------------------------------------------

PERCENTILES: Final = ("p85", "p90", "p95", "p99.5", "p99.9", "nm-e")


def _chosen(stream: KnownStream, method: str, epsilon: float, seed: int) -> int:
    """Return the threshold that a method chooses from the first values."""
    release = plan(method, epsilon=epsilon, bound=stream.bound, holdout=HOLDOUT, limit=LIMIT)
    return release.threshold.choose(stream.values[:HOLDOUT], stream.bound, seeded(seed))


def _percentile(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return the errors of ToPS's tree with a true percentile as threshold, or with NM-E's."""
    stream, epsilon, name = (
        known_amounts(cell, setting),
        float(cell["epsilon"]),
        str(cell["threshold"]),
    )
    if name == "nm-e":
        cut = _chosen(stream, "tops", 0.05, setting.coins(cell))
    else:
        cut = int(np.quantile(stream.values, float(name[1:]) / 100))
    release = plan("tops", epsilon=epsilon, bound=stream.bound, limit=LIMIT, threshold=cut)
    return metrics_of(measured(stream, epsilon, "tops", release, repeats(setting), 0, LIMIT))


def _no_best(results: Results) -> tuple[bool, str]:
    best = set()
    for epsilon in results.choices("epsilon"):
        errors = results.series("MSE", "threshold", epsilon=epsilon)
        fixed = {name: error for name, error in errors.items() if name != "nm-e"}
        best.add(min(fixed, key=fixed.__getitem__))
    return len(best) > 1, ", ".join(sorted(best))


FIGURE_6 = Experiment(
    name="002/figure-6",
    title="True percentiles as thresholds, on DNS",
    data=DATA,
    cells=lambda setting: amount_cells(
        setting, stream="DNS", threshold=PERCENTILES, epsilon=(0.005, 0.02, 0.1, 0.5)
    ),
    measure=_percentile,
    drawing=Drawing("epsilon", "epsilon", KINDS, "threshold", "stream", log_x=True),
    statements=(
        Statement("no percentile is best for every epsilon", "", _no_best),
        falls("errors fall with epsilon", "MSE", "epsilon", least=0.75),
    ),
    seconds=0.4,
)


def _threshold(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return the errors of ToPS's tree at epsilon 0.05 with a threshold of another epsilon."""
    stream, name = known_amounts(cell, setting), str(cell["threshold"])
    if name == "zero":
        row = measured(stream, 0.05, "zero", None, repeats(setting), HOLDOUT, LIMIT)
        return metrics_of(row)
    method = {"nm-e": "tops", "s-pak": "pak", "s-p": "smooth_quantile"}[name]
    cut = _chosen(stream, method, float(cell["epsilon"]), setting.coins(cell))
    bound = max(stream.bound, cut)
    release = plan("tops", epsilon=0.05, bound=bound, limit=LIMIT, threshold=cut)
    return metrics_of(measured(stream, 0.05, "tops", release, repeats(setting), 0, LIMIT))


FIGURE_7 = Experiment(
    name="002/figure-7",
    title="Private thresholds: noisy max and smooth quantiles",
    data=DATA,
    cells=lambda setting: amount_cells(
        setting, threshold=("nm-e", "s-pak", "s-p", "zero"), epsilon=EPSILONS
    ),
    measure=_threshold,
    drawing=Drawing(
        "epsilon", "epsilon of the threshold", KINDS, "threshold", "stream", log_x=True
    ),
    statements=(
        below("NM-E is below S-PAK", "MSE", "threshold", "nm-e", "s-pak", least=0.9),
        below("NM-E is below S-P", "MSE", "threshold", "nm-e", "s-p", least=0.9),
        below(
            "answering zero is better than S-PAK", "MSE", "threshold", "zero", "s-pak", least=0.5
        ),
    ),
    seconds=0.4,
)


# ---- ToPL, and pictures of one stream ----------------------------------------------------------


def _local(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return the expected squared error of ranges, with a threshold learnt on devices."""
    stream, variant = known_amounts(cell, setting), str(cell["variant"])
    lengths = np.minimum(np.sort(np.random.default_rng(1).integers(1, 300_000, 200)), LIMIT)
    values = stream.values
    if variant == "zero":
        return {"MSE": Measured(float((lengths * values.mean()) @ (lengths * values.mean())) / 200)}
    protocol = ToPL(float(cell["epsilon"]), float(stream.bound), limit=LIMIT, variant=variant)  # type: ignore[arg-type]
    errors = []
    for run in range(repeats(setting)):
        rng = seeded(setting.coins({**cell, "run": run}))
        learner = protocol.learner
        tally = learner.tally(learner.randomize(values[:HOLDOUT].astype(np.float64), rng))
        cut = protocol.threshold(tally)
        noise = ToPL(1.0, float(stream.bound)).summer(cut).worst_variance
        lost = float((values - np.minimum(values, cut)).mean())
        errors.append(float(np.mean(lengths * noise + (lengths * lost) ** 2)))
    return {"MSE": Measured(float(np.mean(errors)), float(np.std(errors)) / len(errors) ** 0.5)}


def _pruned(results: Results) -> tuple[bool, str]:
    most = max(
        log10(ratio)
        for stream in ("Kosarak", "POS")
        for ratio in results.ratios("MSE", "variant", "plain", "white", stream=stream).values()
    )
    return 2.5 <= most <= 3.5, f"{most:.1f} orders of magnitude"


FIGURE_8 = Experiment(
    name="002/figure-8",
    title="Thresholds learnt on devices: the plain square wave, and pruned (white)",
    data=DATA,
    cells=lambda setting: amount_cells(
        setting, variant=("white", "plain", "zero"), epsilon=(0.2, 0.6, 1.0, 2.0)
    ),
    measure=_local,
    drawing=Drawing("epsilon", "epsilon of the threshold", KINDS, "variant", "stream", log_x=True),
    statements=(
        Statement("on Kosarak and POS pruning gains up to 3 orders", "3", _pruned, note=STANDS),
        below(
            "pruning is below the plain square wave", "MSE", "variant", "white", "plain", least=0.7
        ),
        below("pruning is below answering zero", "MSE", "variant", "white", "zero", least=0.7),
    ),
    seconds=1.0,
)
INTERVALS: Final = 120


def _seen(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return how far the means of 120 intervals are off, relative to the stream's mean."""
    stream, method, epsilon = (
        known_amounts(cell, setting),
        str(cell["method"]),
        float(cell["epsilon"]),
    )
    whole = float(stream.values.mean())
    if method == "topl":
        count = stream.values.size // INTERVALS
        protocol = ToPL(epsilon, float(stream.bound), limit=LIMIT)
        rng = seeded(setting.coins(cell))
        held = stream.values[:HOLDOUT].astype(np.float64)
        cut = protocol.threshold(protocol.learner.tally(protocol.learner.randomize(held, rng)))
        lost = float((stream.values - np.minimum(stream.values, cut)).mean())
        noise = protocol.summer(cut).worst_variance / count
        return {"error": Measured((2 / np.pi * noise) ** 0.5 / whole + lost / whole)}
    ends = np.linspace(HOLDOUT, stream.values.size, INTERVALS + 1).astype(np.int64)
    release = plan(method, epsilon=epsilon, bound=stream.bound, holdout=HOLDOUT, limit=LIMIT)
    ranges = ends[:-1] + 1, ends[1:]
    row = measured(stream, epsilon, method, release, 1, HOLDOUT, LIMIT, ranges=ranges)
    return {"error": Measured(row.mmae / whole)}


SEEN: Final = {"error": "mean error of 120 intervals, as a share of the mean"}


CLOSE: Final = 0.2
"""How far intervals are off at most, as a share of the mean, to be close to the truth."""


def _close(method: str, epsilon: float) -> Statement:
    def check(results: Results) -> tuple[bool, str]:
        error = results.value("error", method=method, epsilon=epsilon)
        return error < CLOSE, f"{error:.1%} of the mean"

    words = f"{'ToPS' if method == 'tops' else 'ToPL'} at epsilon {epsilon:g} is close to the truth"
    return Statement(words, "", check)


def _noisier(results: Results) -> tuple[bool, str]:
    tops = results.value("error", method="tops", epsilon=0.01)
    pak = {
        epsilon: results.value("error", method="pak", epsilon=epsilon) for epsilon in (0.05, 0.1)
    }
    words = ", ".join(f"{error:.2g} at {epsilon:g}" for epsilon, error in pak.items())
    return tops < min(pak.values()), f"{words}, ToPS {tops:.2g}"


FIGURE_2 = Experiment(
    name="002/figure-2",
    title="The DNS stream as ToPS and PAK show it",
    data=DATA,
    cells=lambda setting: [
        *amount_cells(
            setting, stream="DNS", length=0, method=("tops", "tuned"), epsilon=(0.01, 0.05, 0.1)
        ),
        *amount_cells(setting, stream="DNS", length=0, method="pak", epsilon=(0.01, 0.05, 0.1)),
    ],
    measure=_seen,
    drawing=Drawing("epsilon", "epsilon", SEEN, "method", log_x=True),
    statements=(
        _close("tops", 0.01),
        Statement("PAK is noisier than that even with larger epsilon", "", _noisier),
    ),
    seconds=0.4,
)
FIGURE_9 = Experiment(
    name="002/figure-9",
    title="The DNS stream as ToPL shows it",
    data=DATA,
    cells=lambda setting: amount_cells(
        setting, stream="DNS", length=0, method="topl", epsilon=(0.5, 1.0, 2.0)
    ),
    measure=_seen,
    drawing=Drawing("epsilon", "epsilon", SEEN, "method", log_x=True),
    statements=(_close("topl", 1.0),),
    seconds=1.0,
)

EXPERIMENTS: Final = (FIGURE_2, FIGURE_6, FIGURE_7, FIGURE_8, FIGURE_9)
