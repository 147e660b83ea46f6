"""Every sampler draws the same from a seed as before: saved states and vectors rely on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.randomness import Source, Wheel, seeded

DRAWS: dict[str, Callable[[Source], Any]] = {
    "bernoulli": lambda rng: rng.bernoulli(123456789012345678, 999),
    "bernoulli_each": lambda rng: rng.bernoulli_each(
        np.arange(99, dtype=np.uint64) << np.uint64(57)
    ),
    "bernoulli_exp": lambda rng: rng.bernoulli_exp(Fraction(4, 3), 99),
    "bernoulli_lanes": lambda rng: rng.bernoulli_lanes(123456789012345678, 130, 99),
    "below": lambda rng: np.concatenate([rng.below(k, 99) for k in (6, 8, 10**12)]),
    "below_each": lambda rng: rng.below_each(np.arange(100, 5000, 7), 100, 5000),
    "bit_lanes": lambda rng: rng.bit_lanes(70, 30),
    "bits": lambda rng: rng.bits(99),
    "coins": lambda rng: np.array([coins.below(99) for coins in [rng.coins()] * 9]),
    "discrete_gaussian": lambda rng: rng.discrete_gaussian(Fraction(22, 7), 99),
    "discrete_laplace": lambda rng: rng.discrete_laplace(Fraction(1, 3), 99),
    "geometric": lambda rng: rng.geometric(Fraction(1, 10**12), 99),
    "outside": lambda rng: rng.outside(rng.subset_lanes(99, 7, 9), 99),
    "permutation": lambda rng: rng.permutation(99),
    "rational": lambda rng: rng.rational(3, 7, 99),
    "spin": lambda rng: rng.spin(Wheel(lambda: [1, 0, 3]), 99),
    "subset_columns": lambda rng: rng.subset_columns(99, 7, 9),
    "subset_lanes": lambda rng: rng.subset_lanes(300, 150, 9),
    "subsets": lambda rng: rng.subsets(9, 4, 9),
}
DIGESTS = {
    "bernoulli": "eac24ff1cd39814a",
    "bernoulli_each": "a298f86adada26d1",
    "bernoulli_exp": "0dfe34797ec3579f",
    "bernoulli_lanes": "3de7be7058dcd4bd",
    "below": "c35a64533be7c011",
    "below_each": "70d06c0d51be1581",
    "bit_lanes": "14fa6c65d91be041",
    "bits": "47ff4d9ffb67ea5a",
    "coins": "f48bc83aa61e5f20",
    "discrete_gaussian": "46234e51060ebc59",
    "discrete_laplace": "06973d3eab804047",
    "geometric": "acf8d41701f23cdd",
    "outside": "20e4ef4b5e5dfe13",
    "permutation": "963f18b75e812ca5",
    "rational": "4ead955c5e647ee2",
    "spin": "ad6ec3a0717fcaed",
    "subset_columns": "59a0c065910b37a9",
    "subset_lanes": "fa0a754cd18d6701",
    "subsets": "f10e88c93f0fc8ed",
}


@pytest.mark.parametrize("sampler", DRAWS)
def test_a_seed_draws_what_it_has_always_drawn(sampler: str) -> None:
    drawn = DRAWS[sampler](seeded(1)).astype("<u8")
    assert hashlib.sha256(drawn.tobytes()).hexdigest()[:16] == DIGESTS[sampler]
