"""Sources that follow all branches have the law of sources that draw, for every mechanism."""

from __future__ import annotations

import inspect
import operator
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fitting import ALARM, p_value

from sfumato import catalog, mechanisms
from sfumato.checks import branching, path_checks, paths
from sfumato.checks.branching import Branching, path_law
from sfumato.checks.path_checks import every_path_follows_the_law
from sfumato.checks.paths import Unlisted
from sfumato.core import Mechanism
from sfumato.mechanisms.central import NoisyMax, SmoothQuantile
from sfumato.randomness import ONE, Coins, Source, Wheel, seeded

THIRDS = np.array([ONE // 3, ONE // 5], dtype=np.uint64)
LANES = np.array([[0b0101, 0b0001]], dtype=np.uint64)
WHEEL = Wheel(lambda: [1, 0, 3])

DRAWS: dict[str, Callable[[Source], Any]] = {
    "bernoulli": lambda rng: rng.bernoulli(ONE // 3, 3),
    "bernoulli_each": lambda rng: rng.bernoulli_each(THIRDS),
    "bits": lambda rng: rng.bits(3),
    "bit_lanes": lambda rng: rng.bit_lanes(2, 2),
    "bernoulli_lanes": lambda rng: rng.bernoulli_lanes(ONE // 3, 2, 2),
    "rational": lambda rng: rng.rational(np.array([1, 2]), 5, 2),
    "bernoulli_exp": lambda rng: rng.bernoulli_exp(Fraction(1, 2), 1),
    "coins": lambda rng: _numbers(rng.coins()),
    "below": lambda rng: rng.below(3, 3),
    "below_each": lambda rng: rng.below_each(np.array([2, 3]), 2, 3),
    "permutation": lambda rng: rng.permutation(3),
    "subsets": lambda rng: np.sort(rng.subsets(4, 2, 2), axis=1),
    "subset_columns": lambda rng: np.sort(rng.subset_columns(4, 2, 2), axis=0),
    "subset_lanes": lambda rng: rng.subset_lanes(4, 2, 2),
    "outside": lambda rng: rng.outside(LANES, 4),
    "spin": lambda rng: rng.spin(WHEEL, 2),
}


def _numbers(coins: Coins) -> Any:
    """Draw numbers that are used, compared, and compared before they are used."""
    one, two, three = coins.below(3), coins.below(6), coins.below(4)
    known = three >= 1, three > 2, operator.index(three)
    return np.array([operator.index(one), two < 2, *known, 2 * coins.below(1)])


RAW = {"take", "words", "simulator"}
SAME = {"bound"}  # the same source for another value: nothing is drawn
NOISE = {"geometric", "discrete_laplace", "discrete_gaussian"}


def test_every_draw_of_a_source_is_followed_or_refused() -> None:
    public = {name for name, _ in inspect.getmembers(Source, inspect.isfunction) if name[0] != "_"}
    assert public == set(DRAWS) | RAW | NOISE | SAME


@pytest.mark.statistics
@pytest.mark.parametrize("name", DRAWS)
def test_what_branches_has_the_law_of_what_is_drawn(name: str) -> None:
    """Types and shapes included: what a sampler is handed must not tell the two apart."""
    draw, n = DRAWS[name], 6_000
    listed = path_law(lambda rng: tuple(draw(rng).ravel().tolist()))
    assert listed.left < Fraction(1, 10**9)
    rng = seeded(1)
    seen = Counter(tuple(draw(rng).ravel().tolist()) for _ in range(n))
    assert set(seen) <= set(listed.chances)
    counts = np.array([seen[outcome] for outcome in listed.chances])
    assert p_value(counts, [float(chance) for chance in listed.chances.values()]) > ALARM
    branched, drawn = draw(Branching(paths.Path())), draw(seeded(1))
    assert (branched.shape, branched.dtype) == (drawn.shape, drawn.dtype)


@pytest.mark.parametrize("take", [lambda r: r.take(8), lambda r: r.words(1, 8), Source.simulator])
def test_raw_bytes_are_refused(take: Callable[[Source], Any]) -> None:
    with pytest.raises(Unlisted, match=r"it takes \d+ raw bytes; draw coins by bernoulli"):
        path_law(take)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.below(1 << 40, 1),
        lambda rng: rng.permutation(20),
        lambda rng: rng.subset_lanes(60, 30, 1),
        lambda rng: rng.bits(60),
        lambda rng: rng.discrete_laplace(1, 1),
        lambda rng: rng.discrete_gaussian(4, 1),
    ],
)
def test_what_is_too_much_to_follow_is_not_taken_for_right(draw: Callable[[Source], Any]) -> None:
    with pytest.raises(Unlisted):
        path_law(lambda rng: draw(rng).tobytes())


def test_chances_are_exact_to_the_last_bit() -> None:
    listed = path_law(lambda rng: bool(rng.bernoulli(1, 1)[0]))
    assert listed.chances == {False: Fraction(ONE - 1, ONE), True: Fraction(1, ONE)}
    assert listed.paths == 2
    assert not listed.left


def test_no_mechanism_takes_raw_words() -> None:
    """Those with many paths are not listed, so that the text has to tell."""
    for file in Path(mechanisms.__path__[0]).rglob("*.py"):
        assert not re.search(r"\.(words|take)\(", file.read_text()), f"{file.name} takes raw words"


@pytest.mark.statistics
@pytest.mark.parametrize("name", catalog.names())
def test_of_every_mechanism_some_example_is_followed_in_a_batch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: set[int] = set()
    follow = path_checks._follow  # noqa: SLF001

    def recorded(mechanism: Mechanism, batch: list[Any], laws: list[Any]) -> int:
        sizes.add(len(batch))
        return follow(mechanism, batch, laws) if len(batch) == 1 else 0

    monkeypatch.setattr(path_checks, "_follow", recorded)
    for example in catalog.find(name).examples():
        every_path_follows_the_law(example)
        if 2 in sizes:
            break
    assert {1, 2} <= sizes


# ---- choices with noise ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["laplace", "geometric"])
@pytest.mark.parametrize("scores", [[0, 0], [2, 0, 1]])
def test_noisy_max_chooses_by_its_law(kind: Any, scores: list[int]) -> None:
    mechanism = NoisyMax(0.7, 2, kind)
    listed = path_law(lambda rng: mechanism.select(np.array(scores), rng), unit=mechanism.rate)
    law = mechanism.law(scores, Fraction(1, branching.STEP), reach=20)
    assert listed.left < Fraction(1, 10**6)
    for winner, chance in listed.chances.items():
        assert abs(chance - law[winner]) <= listed.left


def test_a_smooth_quantile_has_the_noise_of_its_law() -> None:
    quantile, values = SmoothQuantile(1.0, 1e-6, 0.5), np.array([3, 5, 9])
    centre, law = quantile.law(values, 10)
    listed = path_law(lambda rng: quantile.release(values, 10, rng), unit=law.rate)
    zero = Fraction(branching.STEP - 1, branching.STEP + 1)
    assert listed.chances == {
        centre + z: zero / branching.STEP ** abs(z)
        for z in range(-branching.REACH, branching.REACH + 1)
    }
