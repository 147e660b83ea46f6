"""Subsets in bytes: written, judged, counted and read back."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from sfumato.mechanisms.sparse import lanes
from sfumato.mechanisms.sparse.subset.subset_form import SubsetForm, _network, _sort_columns

FORMS = [
    SubsetForm(3, 5, 5),  # dense
    SubsetForm(3, 4, 2),  # entries
    SubsetForm(9, 10, 2),  # symbols
    SubsetForm(4, 6, 2, signed=False),
    SubsetForm(17, 18, 2, signed=False),  # items
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_is_written_is_read_valid_and_counted(form: SubsetForm) -> None:
    signs = np.zeros((1, form.dimension), dtype=np.int8)
    signs[0, :2] = [1, -1 if form.signed else 1]
    if form.dense:
        signs[0] = [1, -1, -1]
    report = form.of_signs(signs[0])
    assert form.signs(report).tolist() == signs.tolist()
    assert form.valid(report).all()
    counts = form.counts(report)
    plus, minus = (counts, 0) if not form.signed else counts
    assert (plus - minus).tolist() == signs[0].tolist()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_subset_that_is_too_large_or_too_small_is_refused(form: SubsetForm) -> None:
    few, many = [0] * form.dimension, [1] * form.dimension
    if form.dense:
        return
    if not form.listed:
        assert not form.valid(form.of_signs(many))[0]
    least = form.size - (form.padded - form.dimension)
    assert form.valid(form.of_signs(few))[0] == (least <= 0)


@pytest.mark.parametrize("size", range(1, 11))
def test_the_network_sorts_everything_of_zeros_and_ones(size: int) -> None:
    """By the zero-one principle it then sorts all there is."""
    columns = np.array(list(product((0, 1), repeat=size)), dtype=np.uint8).T
    expected = np.sort(columns, axis=0)
    columns = np.ascontiguousarray(columns)
    _sort_columns(columns)
    assert (columns == expected).all()


def test_a_comparison_less_does_not_sort() -> None:
    comparisons = list(_network(5))
    for left_out in range(len(comparisons)):
        wrong = False
        for order in permutations(range(5)):
            row = list(order)
            for low, high in comparisons[:left_out] + comparisons[left_out + 1 :]:
                row[low], row[high] = min(row[low], row[high]), max(row[low], row[high])
            wrong |= row != sorted(row)
        assert wrong


def test_long_columns_are_sorted_too() -> None:
    form = SubsetForm(100_000, 100_010, 200)
    symbols = np.random.default_rng(1).permuted(np.tile(np.arange(200) * 10, (3, 1)), axis=1).T
    reports = np.zeros(3, dtype=form.dtype)
    form.write_symbols(symbols, reports)
    assert (reports["symbols"] == np.arange(200) * 10).all()


# ---- stretches of a stream --------------------------------------------------------------------


@pytest.mark.parametrize("form", [SubsetForm(5, 7, 7), SubsetForm(5, 7, 5)], ids=str)
def test_every_vector_is_written_in_its_bits_and_read(form: SubsetForm) -> None:
    kinds = (-1, 1) if form.dense else (-1, 0, 1)
    for signs in product(kinds, repeat=5):
        report = form.of_signs(signs)
        assert form.signs(report).tolist() == [list(signs)]
        assert report.dtype.itemsize == (1 if form.dense else 2)


# ---- bits in lanes ------------------------------------------------------------------------------


def test_lanes_are_rows_of_bits() -> None:
    draw = np.random.default_rng(2)
    for size in (1, 63, 64, 65, 130):
        bits = draw.integers(2, size=(7, size)).astype(bool)
        words = np.zeros(((size + 63) // 64, 7), dtype=np.uint64)
        for item in range(size):
            lanes.put(words, np.full(7, item), bits[:, item])
            assert (lanes.read(words, np.full(7, item)) == bits[:, item]).all()
        lanes.put(words, np.full(7, 64 * len(words)), np.ones(7, dtype=bool))  # behind the end
        assert (lanes.rows(words, size) == np.packbits(bits, axis=1, bitorder="little")).all()
        both = lanes.interleaved(words, ~words)
        pairs = np.stack([bits, ~bits], axis=2).reshape(7, 2 * size)
        assert (lanes.rows(both, 2 * size) == np.packbits(pairs, axis=1, bitorder="little")).all()
