"""JSON schemas of the service's dataclasses, with their docstrings' texts on each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from sfumato import docstrings

__all__ = ["COUNT", "TEXT", "array", "schema_of", "table"]

TEXT: Final = {"type": "string"}
COUNT: Final = {"type": "integer", "minimum": 0}
_KINDS: Final[Mapping[Any, dict[str, Any]]] = {
    bool: {"type": "boolean"},
    int: COUNT,
    float: {"type": "number"},
    str: TEXT,
}


def schema_of(cls: Any, *, complete: bool = True, **details: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass as an object.

    Parameters
    ----------
    cls
        The dataclass.
    complete
        Whether every field is always present; if not, fields with a default may be missing.
    details
        Further parts of the schema of a field, beside its type or instead of it.

    Examples
    --------
    >>> from sfumato.core.quantity import Quantity
    >>> sorted(schema_of(Quantity)["properties"]["kind"]["enum"])
    ['amount', 'mean', 'move', 'share']

    """
    words, hints = docstrings.read(cls).parameters, get_type_hints(cls)
    properties = {}
    for field in fields(cls):
        usual = {} if complete or field.default in (MISSING, None) else {"default": field.default}
        about = {"description": words[field.name]} if field.name in words else {}
        kind = _kind(hints[field.name]) | details.get(field.name, {})
        properties[field.name] = kind | usual | about
    needed = [field.name for field in fields(cls) if complete or field.default is MISSING]
    return {"type": "object", "properties": properties, "required": needed}


def table(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose fields are all always present."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def _kind(hint: Any) -> dict[str, Any]:
    """Return the schema of a type; for one that JSON does not have, that of any object."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if NoneType in inner:
        kind = _kind(next(each for each in inner if each is not NoneType))
        return kind | {"type": [kind["type"], "null"]}
    if origin in (list, tuple):
        return array(_kind(inner[0]))
    return dict(_KINDS.get(hint, {"type": "object"}))
