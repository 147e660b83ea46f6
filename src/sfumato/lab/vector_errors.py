"""Errors of mechanisms for sparse vectors: exact ones, and simulated ones where nothing is exact.

Everybody holds s non-zeros at random places with random signs, as in the papers. The estimate of an
entry is then normal with the mean of everybody's variances, so that the total variation error (the
sum of all absolute errors) and the maximum absolute error have exact expectations. Estimates that
are projected afterwards are simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, pi, sqrt, tanh
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import catalog
from sfumato.accounting.shuffle import amplify
from sfumato.core.absolute_errors import largest, largest_of
from sfumato.core.projections import capped_simplex, simplex
from sfumato.core.tally import Tally
from sfumato.lab.experiment import SIMULATED, Cell, Measured, Setting
from sfumato.mechanisms.sparse.rivals.future_rand import FutureRand
from sfumato.mechanisms.sparse.rivals.succinct import Succinct
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism, tells_presence
from sfumato.mechanisms.sparse.subset.signed_subset import Concord
from sfumato.mechanisms.sparse.ternary import encoded_dtype
from sfumato.randomness import seeded

__all__ = [
    "available",
    "drawn_vectors",
    "exact_errors",
    "shuffled_epsilon",
    "simulated_errors",
    "vectors",
]

Floats = NDArray[np.float64]

ONE_IN: Final = 10
"""One exact cell in so many is simulated, too."""
REPEATS: Final = 4
"""How often it is."""
ENTRIES: Final = 1_280_000
"""How many entries of all people at most; errors of more people are smaller by a root."""
SUPPORTS: Final = 5
"""How many reports support an entry at least, before its error counts as normal."""


def available(*names: str) -> tuple[str, ...]:
    """Return those of some mechanisms that the catalogue has."""
    return tuple(name for name in names if name in catalog.names())


def vectors(cell: Cell, **more: Any) -> SparseMechanism:
    """Return the mechanism of a cell, for vectors with exactly s non-zeros."""
    sizes = {"dimension": cell["dimension"], "sparsity": cell["sparsity"], "exact_sparsity": True}
    chosen = {name: cell[name] for name in ("paper", "goal", "amplified") if name in cell}
    known = {parameter.name for parameter in catalog.parameters(str(cell["mechanism"]))}
    clipped = {"devices": cell["devices"], "debiased": False}  # SUCCINCT, as papers compare with it
    options = sizes | chosen | clipped | more
    taken = {name: value for name, value in options.items() if name in known}
    built = catalog.build(str(cell["mechanism"]), epsilon=cell["epsilon"], **taken)
    if not isinstance(built, SparseMechanism):
        raise TypeError(built.name)
    return built


def shuffled_epsilon(mechanism: SparseMechanism, cell: Cell, delta: float) -> Mapping[str, float]:
    """Return the central epsilon of a cell's reports by its bound, where that says anything."""
    bounds = amplify(mechanism, int(cell["devices"]), delta, [str(cell["bound"])])
    known = [bound.epsilon for bound in bounds if bound.epsilon is not None]
    return {"epsilon": min(known)} if known else {}


def _scale(mechanism: SparseMechanism, cell: Cell) -> float:
    """Return how many times as large as unbiased ones estimates are, and with them their noise.

    SUCCINCT's plain estimates are smaller. FutureRand's are larger with the ``divisor`` "coins":
    the contrast of free coins, times the probability that their flips are kept, as if kept ones
    told as much as free ones, and replaced ones nothing.
    """
    if isinstance(mechanism, Succinct) and not mechanism.debiased:
        return mechanism.shrinkage
    if isinstance(mechanism, FutureRand) and cell.get("divisor") == "coins":
        divisor = mechanism.kept_share * tanh(mechanism.coin_epsilon / 2)
        return mechanism.probabilities.contrast / divisor
    return 1.0


def exact_errors(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return the expected TVE and MAE of the entries' means; in one cell of ten, simulated too."""
    mechanism = vectors(cell)
    if "skew" in cell:
        return _uneven_errors(mechanism, cell)
    devices, entries = int(cell["devices"]), mechanism.dimension
    part, spread = _scale(mechanism, cell), largest(entries)[1]
    noise = part * mechanism.expected_noise(devices)
    tve, mae = part * mechanism.expected_tve(devices), part * mechanism.expected_mae(devices)
    metrics = {"TVE": Measured(tve), "MAE": Measured(mae)}
    if Setting(seed=0).coins(cell) % ONE_IN == 0 and "divisor" not in cell:
        people = min(devices, max(ENTRIES // entries, _people_for_normal_sums(mechanism)))
        errors = np.abs(_runs(mechanism, {**cell, "devices": people}, setting, REPEATS))
        errors *= sqrt(people / devices)
        seen = errors.sum(axis=1).mean(), errors.max(axis=1).mean()
        doubts = tve * sqrt((pi / 2 - 1) / (entries * REPEATS)), noise * spread / sqrt(REPEATS)
        for name, value, doubt in zip(("TVE", "MAE"), seen, doubts, strict=True):
            metrics[name + SIMULATED] = Measured(float(value), doubt)
    return metrics


def _people_for_normal_sums(mechanism: SparseMechanism) -> int:
    """Return how many people it takes until some reports support each entry that nobody holds."""
    return ceil(SUPPORTS / getattr(mechanism.probabilities, "p_false", 1.0))


def _uneven_errors(mechanism: SparseMechanism, cell: Cell) -> Mapping[str, Measured]:
    """Return TVE and MAE if how often entries are held falls with their rank, by a power of it."""
    weights = np.arange(1.0, mechanism.dimension + 1) ** -float(cell["skew"])
    low, high = 0.0, 1e9
    for _ in range(100):  # s different entries, one after the other, with these weights
        middle = (low + high) / 2
        few = -np.expm1(-middle * weights).sum() < mechanism.sparsity
        low, high = (middle, high) if few else (low, middle)
    held = -np.expm1(-low * weights)
    absent, present = mechanism.probabilities.value_variances()
    variances = ((1 - held) * absent + held * present) / int(cell["devices"])
    noise = _scale(mechanism, cell) * np.sqrt(variances)
    return {
        "TVE": Measured(sqrt(2 / pi) * float(noise.sum())),
        "MAE": Measured(largest_of(noise)),
    }


def drawn_vectors(cell: Cell, rng: np.random.Generator) -> NDArray[Any]:
    """Return everybody's vector: s non-zeros at random places, with random signs."""
    devices, entries, held = (int(cell[name]) for name in ("devices", "dimension", "sparsity"))
    drawn = np.empty(devices, dtype=encoded_dtype(entries, held))
    if held * held < entries:  # draw again where a place came twice
        positions = rng.integers(0, entries, (devices, held))
        while (twice := _repeated(positions)).any():
            positions[twice] = rng.integers(0, entries, (int(twice.sum()), held))
    else:
        keys = rng.random((devices, entries), dtype=np.float32)
        positions = np.argpartition(keys, held - 1, axis=1)[:, :held]
    drawn["position"] = np.sort(positions, axis=1)
    drawn["sign"] = rng.integers(0, 2, (devices, held)) * 2 - 1
    return drawn


def _repeated(positions: NDArray[Any]) -> NDArray[np.bool_]:
    ordered = np.sort(positions, axis=1)
    return np.asarray((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))


def _runs(mechanism: SparseMechanism, cell: Cell, setting: Setting, repeats: int) -> Floats:
    """Return the errors of all entries in some simulated runs."""
    rows = []
    for run in range(repeats):
        rng = seeded(setting.coins({**cell, "run": run}))
        values = drawn_vectors(cell, rng.simulator())
        tally = mechanism.tally(mechanism.randomize(values, rng))
        rows.append(mechanism.estimate(tally).values - mechanism.truth(values))
    return np.array(rows)


def projected_symbols(mechanism: SparseMechanism, tally: Tally, projection: str) -> Floats:
    """Return the possible shares of symbols that are nearest to the estimated ones."""
    shares, held = mechanism.symbols(tally).values, mechanism.sparsity
    if projection == "capped":
        return capped_simplex(shares, held)
    return simplex(shares / held) * held


def simulated_errors(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return TVE and MAE of projected estimates, of the cell's ``target``: value or symbols.

    The ``projection`` is a ``capped`` simplex of the symbols' shares, or the ``plain`` one of those
    shares divided by s. Mechanisms that do not tell whether an entry is there have their means cut
    to [-1, 1] instead, drawn from the normal law of sums. So has Concord, whose best sizes hardly
    tell it: its projected means would all be zero, whatever they are.
    """
    mechanism = vectors(cell)
    by_symbols = tells_presence(mechanism.probabilities) and not isinstance(mechanism, Concord)
    repeats = (1 if int(cell["devices"]) > 50_000 else 2) if setting.quick else 20
    errors = []
    for run in range(repeats):
        rng = seeded(setting.coins({**cell, "run": run}))
        values = drawn_vectors(cell, rng.simulator())
        if by_symbols:
            tally = mechanism.tally(mechanism.randomize(values, rng))
            off = _projected(mechanism, tally, cell, values)
        else:
            off = _clipped(mechanism, cell, values, rng.simulator())
        errors.append(np.abs(off))
    totals = np.array([error.sum() for error in errors])
    highest = np.array([error.max() for error in errors])
    entries = errors[0].size
    return {
        "TVE": Measured(float(totals.mean()), float(totals.mean()) / sqrt(entries * repeats)),
        "MAE": Measured(float(highest.mean()), float(highest.mean()) * 0.15 / sqrt(repeats)),
    }


def _projected(
    mechanism: SparseMechanism, tally: Tally, cell: Cell, values: NDArray[Any]
) -> Floats:
    entries = mechanism.dimension
    signs, positions = values["sign"], values["position"].astype(np.int64)
    flat = (positions + entries * (signs < 0)).ravel()
    truth = np.bincount(flat, minlength=2 * entries) / len(values)
    off = projected_symbols(mechanism, tally, str(cell["projection"])) - truth
    return off if cell["target"] == "symbols" else off[:entries] - off[entries:]


def _clipped(
    mechanism: SparseMechanism, cell: Cell, values: NDArray[Any], rng: np.random.Generator
) -> Floats:
    """Return the errors of means that are cut to [-1, 1], drawn from the normal law of sums."""
    truth = mechanism.truth(values)
    spread = _scale(mechanism, cell) * mechanism.expected_noise(len(values))
    drawn = truth + spread * rng.normal(size=truth.size)
    return np.asarray(np.clip(drawn, -1.0, 1.0) - truth)
