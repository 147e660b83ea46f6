"""Sparse vectors of -1, 0 and 1: reading them, and the one form that samplers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools
from sfumato.core.exact import is_whole_number
from sfumato.errors import InputError
from sfumato.mechanisms.sparse.listed_entries import check_lists, in_order

__all__ = ["encode", "encoded_dtype"]


@lru_cache(maxsize=256)
def encoded_dtype(dimension: int, sparsity: int) -> np.dtype[Any]:
    """Return the dtype of one padded vector: the sorted positions of its non-zeros, and signs."""
    kind = np.min_scalar_type(2 * (dimension + sparsity))
    return np.dtype([("position", kind, (sparsity,)), ("sign", "i1", (sparsity,))])


def encode(values: Any, dimension: int, sparsity: int) -> Array:
    """Return vectors with exactly ``sparsity`` non-zeros each, in order of position.

    Values are rows of -1, 0 and 1 (or of true and false); mappings from entry to sign; sets of
    entries, all of them positive; or, fastest, an array with the fields ``position`` and ``sign``,
    each with a few columns (an entry with sign 0 is left out, and without signs all are positive).

    A vector with fewer non-zeros gets positive entries beyond its end (the stubs). Of a vector with
    more, the first ones are kept; the device does not reveal whether entries were dropped.
    """
    names = getattr(getattr(values, "dtype", None), "names", None)
    if names is not None and "position" in names:
        positions, signs = _listed(values, dimension)
    elif (named := _named(values)) is not None:
        positions, signs = _from_mappings(named, dimension)
    else:
        positions, signs = _nonzeros(_dense(values, dimension), dimension)
    encoded = np.empty(len(positions), dtype=encoded_dtype(dimension, sparsity))
    columns = min(sparsity, positions.shape[1])
    held = positions[:, :columns] < dimension
    if columns == sparsity and bool(held.all()):
        encoded["position"], encoded["sign"] = positions[:, :columns], signs[:, :columns]
        return encoded
    counts = held.sum(axis=1)
    encoded["position"] = dimension + np.arange(sparsity) - counts[:, None]
    encoded["sign"] = 1
    np.copyto(
        encoded["position"][:, :columns], positions[:, :columns], where=held, casting="unsafe"
    )
    np.copyto(encoded["sign"][:, :columns], signs[:, :columns], where=held)
    return encoded


def _nonzeros(dense: NDArray[np.int8], dimension: int) -> tuple[Array, NDArray[np.int8]]:
    """Return the sorted non-zeros of each row, padded with positions beyond the end."""
    rows, columns = np.nonzero(dense)
    counts = np.bincount(rows, minlength=len(dense))
    ranks = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(counts.max(initial=0))
    positions = np.full((len(dense), width), dimension, dtype=np.int64)
    signs = np.ones((len(dense), width), dtype=np.int8)
    positions[rows, ranks] = columns
    signs[rows, ranks] = dense[rows, columns]
    return positions, signs


def _listed(values: Array, dimension: int) -> tuple[Array, Array]:
    """Return listed non-zeros, sorted and padded with positions beyond the end."""
    positions = values["position"]
    signed = "sign" in (values.dtype.names or ())
    signs = values["sign"] if signed else np.ones_like(positions, dtype=np.int8)
    check_lists(positions, signs, "sign", "iu", "whole numbers")
    if int(signs.max()) > 1 or int(signs.min()) < -1:
        _refuse(values, (signs < -1) | (signs > 1), "sign", "-1, 0 or 1 is expected")
    if int(positions.max()) >= dimension or int(positions.min()) < 0:
        last = f"0..{dimension - 1} are there"
        _refuse(values, (positions < 0) | (positions >= dimension), "position", last)
    signs = signs.astype(np.int8, copy=False)
    if bool((signs != 0).all()) and bool((positions[:, 1:] > positions[:, :-1]).all()):
        return positions, signs
    return in_order(positions, signs, dimension, "values")


def _refuse(values: Array, wrong: Bools, field: str, right: str) -> None:
    row, column = np.argwhere(wrong)[0]
    raise InputError(f"values[{row}] has {field} {values[field][row, column]}; {right}.")


def _named(values: Any) -> Sequence[Any] | None:
    """Return mappings or sets of entries as a sequence of people; None for any other form."""
    if isinstance(values, (Mapping, AbstractSet)):
        return [values]
    if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        values = values.tolist()
    if (
        isinstance(values, (list, tuple))
        and values
        and isinstance(values[0], (Mapping, AbstractSet))
    ):
        return values
    return None


def _dense(values: Any, dimension: int) -> NDArray[np.int8]:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(
            "values are not vectors of one length; name the entries of each in a set or a mapping "
            "if there are few."
        ) from error
    if array.dtype.kind not in "iub":
        raise InputError(f"values have dtype {array.dtype}; vectors of -1, 0 and 1 are expected.")
    if array.ndim == 1 and array.size == dimension:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != dimension or not len(array):
        raise InputError(
            f"values have shape {array.shape}; at least one vector of {dimension} entries is "
            "expected."
        )
    if array.dtype.kind != "b" and (int(array.max()) > 1 or int(array.min()) < -1):
        row, column = np.argwhere((array < -1) | (array > 1))[0]
        raise InputError(
            f"values[{row}][{column}] is {array[row, column]}; an entry is -1, 0 or 1."
        )
    return array.astype(np.int8)


def _from_mappings(
    values: Sequence[Mapping[int, int] | AbstractSet[int]], dimension: int
) -> tuple[Array, NDArray[np.int8]]:
    """Return named non-zeros, sorted and padded with positions beyond the end."""
    people = []
    for row, named in enumerate(values):
        if not isinstance(named, (Mapping, AbstractSet)):
            raise InputError(
                f"values[{row}] is {named!r}; a mapping from entry to sign or a set, too."
            )
        entries = named if isinstance(named, Mapping) else dict.fromkeys(named, 1)
        for key, sign in entries.items():
            if not is_whole_number(key) or not 0 <= key < dimension:
                raise InputError(f"values[{row}] has entry {key!r}; 0..{dimension - 1} are there.")
            if sign not in (-1, 0, 1):
                raise InputError(f"values[{row}][{key}] is {sign!r}; an entry is -1, 0 or 1.")
        people.append(sorted((key, sign) for key, sign in entries.items() if sign))
    width = max(map(len, people))
    positions = np.full((len(people), width), dimension, dtype=np.int64)
    signs = np.ones((len(people), width), dtype=np.int8)
    for row, held in enumerate(people):
        if held:
            positions[row, : len(held)], signs[row, : len(held)] = zip(*held, strict=True)
    return positions, signs


def refuse_stubs(encoded: Array, dimension: int, sparsity: int) -> None:
    """Raise InputError if a vector has fewer non-zeros than exactly declared."""
    short = np.flatnonzero((encoded["position"] >= dimension).any(axis=1))
    if short.size:
        held = int((encoded["position"][short[0]] < dimension).sum())
        raise InputError(
            f"values[{short[0]}] has {held} non-zero entries; exactly {sparsity} were declared."
        )
