"""Sparse vectors of -1, 0 and 1: what people bring, and the one form the samplers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

__all__ = ["encode", "encoded_dtype"]


def encoded_dtype(sparsity: int) -> np.dtype[Any]:
    """Return the form of one padded vector: where its non-zeros are, in order, and their signs."""
    return np.dtype([("position", "<i8", (sparsity,)), ("sign", "i1", (sparsity,))])


def encode(values: Any, dimension: int, sparsity: int) -> NDArray[Any]:
    """Return vectors with exactly ``sparsity`` non-zeros each, in order of position.

    A vector with fewer gets positive entries behind its end (the stubs); of one with more, the
    first ones are kept: a rule that looks at nothing but the order, and whose use never leaves
    the device.
    """
    dense = _dense(values, dimension)
    encoded = np.empty(len(dense), dtype=encoded_dtype(sparsity))
    # The rank of each non-zero in its row says into which column it goes.
    rows, positions = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense)))
    ranks = np.arange(rows.size) - starts[rows]
    kept = ranks < sparsity
    counts = np.minimum(np.bincount(rows, minlength=len(dense)), sparsity)
    stubs = dimension + np.arange(sparsity) - counts[:, None]
    encoded["position"] = stubs
    encoded["sign"] = 1
    encoded["position"][rows[kept], ranks[kept]] = positions[kept]
    encoded["sign"][rows[kept], ranks[kept]] = dense[rows[kept], positions[kept]]
    return encoded


def _dense(values: Any, dimension: int) -> NDArray[np.int8]:
    if isinstance(values, Sequence) and values and isinstance(values[0], Mapping):
        return _from_mappings(values, dimension)
    if isinstance(values, Mapping):
        return _from_mappings([values], dimension)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"values are not vectors of one length: {error}.") from error
    if array.dtype.kind not in "iu":
        raise InputError(f"values have dtype {array.dtype}; vectors of -1, 0 and 1 are expected.")
    if array.ndim == 1 and array.size == dimension:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != dimension or not len(array):
        raise InputError(
            f"values have shape {array.shape}; at least one vector of {dimension} entries is "
            "expected."
        )
    bad = np.argwhere((array < -1) | (array > 1))
    if bad.size:
        row, column = bad[0]
        raise InputError(
            f"values[{row}][{column}] is {array[row, column]}; an entry is -1, 0 or 1."
        )
    return array.astype(np.int8)


def _from_mappings(values: Sequence[Mapping[int, int]], dimension: int) -> NDArray[np.int8]:
    dense = np.zeros((len(values), dimension), dtype=np.int8)
    for row, entries in enumerate(values):
        if not isinstance(entries, Mapping):
            raise InputError(f"values[{row}] is {entries!r}; a mapping from entry to sign, too.")
        for key, sign in entries.items():
            whole = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
            if not whole or not 0 <= key < dimension:
                raise InputError(f"values[{row}] has entry {key!r}; 0..{dimension - 1} are there.")
            if sign not in (-1, 0, 1):
                raise InputError(f"values[{row}][{key}] is {sign!r}; an entry is -1, 0 or 1.")
            dense[row, key] = sign
    return dense


def refuse_stubs(encoded: NDArray[Any], dimension: int, sparsity: int) -> None:
    """Raise if a vector has fewer non-zeros than were declared exactly."""
    short = np.flatnonzero((encoded["position"] >= dimension).any(axis=1))
    if short.size:
        held = int((encoded["position"][short[0]] < dimension).sum())
        raise InputError(
            f"values[{short[0]}] has {held} non-zero entries; exactly {sparsity} were declared."
        )
