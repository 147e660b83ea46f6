"""Columns in, tables out: pandas, polars, pyarrow, numpy and plain lists at the edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, MissingExtra

__all__ = ["column", "table"]


def column(values: Any, *, what: str = "values") -> NDArray[Any]:
    """Return one column of anything tabular as a one-dimensional array without missing entries.

    Examples
    --------
    >>> column([3, 1, 2])
    array([3, 1, 2])
    >>> column(7)
    array([7])

    """
    array = values if isinstance(values, np.ndarray) else _array(values, what)
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
        _refuse_missing(array, what)
    return array


def table(columns: Mapping[str, Any], backend: str = "pandas") -> Any:
    """Return the columns as a frame of the named library: pandas, polars or pyarrow."""
    try:
        import narwhals as nw  # noqa: PLC0415 - optional, and only frames need it
    except ImportError as error:
        need = "narwhals"
        raise MissingExtra(need, "frames") from error
    if backend not in {"pandas", "polars", "pyarrow"}:
        raise InputError(f"backend is {backend!r}; pandas, polars or pyarrow is expected.")
    try:
        return nw.from_dict(dict(columns), backend=cast("Any", backend)).to_native()
    except ImportError as error:
        raise MissingExtra(backend, "frames") from error


def _array(values: Any, what: str) -> NDArray[Any]:
    if isinstance(values, (str, bytes, int, float, bool)) or values is None:
        return np.array([values], dtype=object if isinstance(values, (str, bytes)) else None)
    if isinstance(values, (Sequence, range)):
        listed = list(values)
        # numpy would turn [1, "a"] into strings and lose which was which
        mixed = any(isinstance(value, (str, bytes)) or value is None for value in listed)
        if mixed:
            holder = np.empty(len(listed), dtype=object)
            holder[:] = listed
            return holder
        try:
            return np.asarray(listed)
        except (ValueError, OverflowError) as error:
            raise InputError(f"{what} is not one column: {error}.") from error
    return _from_frame(values, what)


def _from_frame(values: Any, what: str) -> NDArray[Any]:
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        names = list(getattr(values, "column_names", None) or values.columns)
        if len(names) != 1:
            raise InputError(
                f"{what} is a table with columns {', '.join(map(str, names))}; pick one of them."
            )
        values = values[names[0]]
    if not hasattr(values, "to_numpy"):
        raise InputError(
            f"{what} is a {type(values).__name__}; a list, array, series or column is expected."
        )
    missing = getattr(values, "null_count", None)  # a number in pyarrow, a method in polars
    if missing is None:
        missing = values.isna().sum()
    count = missing() if callable(missing) else missing
    if count:
        raise InputError(f"{what} has {int(count)} missing entries; drop or fill them first.")
    if type(values).__module__.split(".")[0] == "pyarrow":
        if str(values.type) in {"string", "large_string"}:
            return np.array(values.to_pylist(), dtype=object)
        chunked = hasattr(values, "chunks")
        return np.asarray(values.to_numpy() if chunked else values.to_numpy(zero_copy_only=False))
    return np.asarray(values.to_numpy())


def _refuse_not_finite(array: NDArray[Any], what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            f"{what}[{bad[0]}] is {array[bad[0]]}; every value must be a finite number."
        )


def _refuse_missing(array: NDArray[Any], what: str) -> None:
    for index, value in enumerate(array):
        absent = value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124
        if absent or type(value).__name__ in {"NAType", "NaTType"}:
            raise InputError(f"{what}[{index}] is missing ({value}); drop or fill it first.")
