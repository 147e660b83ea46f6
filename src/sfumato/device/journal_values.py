"""Observed values in the form that a journal stores: only what JSON can express."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.wire.reading import read_json

__all__ = ["plain_value"]


def plain_value(value: Any) -> Any:
    """Return a value as the journal will return it; raise InputError if it cannot be stored."""
    try:
        text = json.dumps(_listed(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            f"value has type {type(value).__name__} and cannot be kept; text, finite numbers, and "
            "lists and tables of them are expected."
        ) from None
    return read_json(text, "value")


def _listed(value: Any) -> Any:
    """Return a value with sets, arrays and numpy numbers converted to lists and numbers."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    elif isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _listed(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(part) for part in value]
    return value
