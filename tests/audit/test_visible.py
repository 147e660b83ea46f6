from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit, calls_of
from sfumato.audit.features import joined
from sfumato.audit.visible import WHOLE, array_batch, object_batch
from sfumato.errors import InputError
from sfumato.mechanisms import OUE
from sfumato.randomness import seeded


@dataclass(frozen=True)
class Answer:
    city: str
    age: float


OUTPUTS: list[Any] = [
    0,
    False,
    0.0,
    "0",
    b"0",
    None,
    "",
    float("nan"),
    1 << 80,
    [],
    [0],
    [[0]],
    (0,),
    {"a": 0},
    {"b": 0},
    {0},
    frozenset({1}),
    Answer("Rome", 3.0),
    np.array([1.0, 2.0]),
    np.array([[1], [2]]),
    np.array([(1, 2)], dtype=[("x", "u1"), ("y", "u1")])[0],
]


def test_outputs_of_any_kind_are_told_apart() -> None:
    codes = object_batch(OUTPUTS).table[WHOLE].codes
    assert len(np.unique(codes)) == len(OUTPUTS)
    assert (object_batch(OUTPUTS).table[WHOLE].codes == codes).all()


def test_what_is_seen_of_an_output_does_not_depend_on_others() -> None:
    together = object_batch(OUTPUTS).table
    apart = joined([object_batch([output]).table for output in OUTPUTS])
    assert together.keys() == apart.keys()
    for name, column in together.items():
        assert (column.codes == apart[name].codes).all()
        if column.ordered is not None:
            assert (column.ordered == apart[name].ordered).all()


def test_reports_are_read_by_field_and_bit() -> None:
    mechanism = OUE(1.0, 5)
    reports = mechanism.randomize([3] * 100, seeded(1))
    table = array_batch(reports).table
    assert (table["bits, bit 3"].codes == (reports["bits"][:, 0] >> 3 & 1)).all()
    assert len(np.unique(table[WHOLE].codes)) == len(np.unique(reports))


@pytest.mark.parametrize("output", [object(), iter([]), lambda: 0, 1j, int])
def test_outputs_that_cannot_be_read(output: Any) -> None:
    with pytest.raises(InputError, match="numbers, text, bytes, lists, sets"):
        object_batch([output])


def test_outputs_without_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError, match="more than 32 lists in lists"):
        object_batch([endless])


LEAKS: dict[str, Any] = {
    "a type": lambda value, rng: 1 if value and rng.random() < 0.1 else 1.0,
    "a key": lambda value, rng: {"x": rng.random()} | ({"y": 1} if value else {}),
    "an order": lambda value, rng: [0, 1] if rng.random() < 0.9 * value else [1, 0],
    "a length": lambda value, rng: "x" * (5 + value * int(rng.integers(2))),
    "silence": lambda value, rng: None if rng.random() < 0.1 + 0.5 * value else 7,
    "a number among many": lambda value, rng: rng.normal(3 * value),
    "one byte of many": lambda value, rng: bytes([*rng.bytes(20), value]),
    "two of many at once": lambda value, rng: _parity(value, rng.integers(2, size=12)),
    "a member": lambda value, rng: {"a", "b"} if value and rng.random() < 0.5 else {"a"},
}


def _parity(value: int, bits: Any) -> list[int]:
    """Return bits of which two are equal, or not, and each alone is fair."""
    bits[7] = bits[2] ^ value
    return [int(bit) for bit in bits]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_seen_wherever_it_is(leak: str) -> None:
    assert audit(calls_of(LEAKS[leak], 1), (0, 1), 1.0, samples=6_000).refuted
