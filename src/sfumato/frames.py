"""Columns and tables of pandas, polars, pyarrow, numpy and plain lists."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence, Sized
from types import NoneType
from typing import Any

import numpy as np

from sfumato import extras
from sfumato.arrays import Array
from sfumato.errors import InputError, MissingExtra

__all__ = ["absent", "check_column", "column", "objects", "picked", "table"]


def column(values: Any, *, what: str = "values") -> Array:
    """Return one column of any tabular data as a flat array; missing entries are refused.

    Examples
    --------
    >>> column([3, 1, 2])
    array([3, 1, 2])
    >>> column(7)
    array([7])

    """
    array = _unmasked(values, what) if isinstance(values, np.ndarray) else _array(values, what)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise InputError(
            f"{what} has shape {array.shape}; one column, a flat list of values, is expected."
        )
    if not array.size:
        raise InputError(f"{what} is empty; at least one value is expected.")
    if array.dtype.kind in "fc":
        _refuse_not_finite(array, what)
    elif array.dtype.kind == "O":
        _refuse_missing([absent(value) for value in array], what)
    return array


def picked(frame: Any, names: Sequence[str]) -> dict[str, Array]:
    """Return some columns of a table as arrays of one length; cells may be missing.

    Examples
    --------
    >>> picked({"pet": ["cat", None], "age": [3, 4]}, ["pet"])
    {'pet': array(['cat', None], dtype=object)}

    """
    if hasattr(frame, "collect"):
        raise InputError(f"the table is a {type(frame).__name__}; collect it first.")
    named = frame if isinstance(frame, Mapping) else getattr(frame, "column_names", None)
    there: list[Any] = list(getattr(frame, "columns", ()) if named is None else named)
    if not there:
        raise InputError(
            f"data has type {type(frame).__name__}; a table with columns {', '.join(names)} is "
            "expected."
        )
    for name in names:
        check_column(name, there, "the table")
    cells = {name: _cells(frame[name]) for name in names}
    lengths = {array.size for array in cells.values()}
    if len(lengths) > 1:
        raise InputError(f"the columns have {sorted(lengths)} rows; one length is expected.")
    return cells


def check_column(name: Any, names: Sequence[Any], table: str) -> None:
    """Raise InputError unless exactly one of a table's columns has the name.

    ``names`` are the names of all columns; ``table`` is what the message calls the table.
    """
    if names.count(name) != 1:
        many = "more than one" if name in names else "no"
        known = ", ".join(map(str, names))
        raise InputError(f"{table} has {many} column {name!r}; it has {known}.")


def _cells(values: Any) -> Array:
    """Return a column unchanged, with None or NaN where a cell is missing."""
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    # pyarrow has to_pylist; pandas and polars have to_list.
    for verb in ("to_pylist", "to_list"):
        if hasattr(values, verb):
            return objects(getattr(values, verb)())
    return objects(list(values))


def table(columns: Mapping[str, Any], backend: str = "pandas") -> Any:
    """Return the columns as a table of the named library: pandas, polars or pyarrow."""
    nw = extras.module("narwhals")
    if backend not in {"pandas", "polars", "pyarrow"}:
        raise InputError(f"backend is {backend!r}; pandas, polars or pyarrow is expected.")
    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ImportError as error:
        raise extras.missing(backend) or MissingExtra(backend) from error


def _array(values: Any, what: str) -> Array:
    if values is None or isinstance(values, (int, float, np.generic)):
        return np.array([values])
    if isinstance(values, (str, bytes)):
        return objects([values])
    if isinstance(values, Sequence):
        return _from_list(list(values), what)
    return _from_frame(values, what)


def _from_list(values: list[Any], what: str) -> Array:
    # numpy would turn [1, "a"] into strings and [1, True] into numbers
    kinds = {type(value) for value in values}
    if any(issubclass(kind, (str, bytes, NoneType)) for kind in kinds):
        return objects(values)
    if bool in kinds and len(kinds) > 1:
        return objects(values)
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        index = next(index for index, value in enumerate(values) if isinstance(value, Sized))
        raise InputError(
            f"{what}[{index}] is {reprlib.repr(values[index])}; "
            "one column, a flat list of values, is expected."
        ) from error


def objects(values: list[Any]) -> Array:
    """Return a list as an array of the same objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _unmasked(values: Array, what: str) -> Array:
    _refuse_missing(np.atleast_1d(getattr(values, "mask", False)), what)
    return np.asarray(values)


def _from_frame(values: Any, what: str) -> Array:
    if hasattr(values, "collect"):
        raise InputError(f"{what} is a {type(values).__name__}; collect it first.")
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        names = list(getattr(values, "column_names", None) or values.columns)
        if len(names) != 1:
            shown = ", ".join(map(str, names)) or "none"
            raise InputError(f"{what} is a table with columns {shown}; one column is expected.")
        values = values[names[0]]
    if not hasattr(values, "to_numpy"):
        raise InputError(
            f"{what} has type {type(values).__name__}; a list, array, series or column is expected."
        )
    # polars and pyarrow call it is_null, pandas isna
    _refuse_missing(values.is_null() if hasattr(values, "is_null") else values.isna(), what)
    if type(values).__module__.split(".")[0] == "pyarrow":
        if str(values.type) in {"string", "large_string"}:
            return np.array(values.to_pylist(), dtype=object)
        chunked = hasattr(values, "chunks")
        return np.asarray(values.to_numpy() if chunked else values.to_numpy(zero_copy_only=False))
    return np.asarray(values.to_numpy())


def _refuse_missing(missing: Any, what: str) -> None:
    absent = np.flatnonzero(np.asarray(missing))
    if absent.size == 1:
        raise InputError(f"{what}[{absent[0]}] is missing; drop or fill it first.")
    if absent.size:
        raise InputError(
            f"{what}[{absent[0]}] and {absent.size - 1} more are missing; drop or fill them first."
        )


def _refuse_not_finite(array: Array, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            f"{what}[{bad[0]}] is {array[bad[0]]}; every value must be a finite number."
        )


def absent(value: Any) -> bool:
    """Return whether a cell is a missing value of some library."""
    return (
        value is None
        or (isinstance(value, float) and value != value)  # noqa: PLR0124
        or type(value).__name__ in {"NAType", "NaTType"}
    )
