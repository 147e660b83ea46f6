"""Hostile documents: good ones with something changed, drawn from a seed."""

from __future__ import annotations

import copy
import json
import random
from typing import Any


def _deep(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


HOSTILE: tuple[Any, ...] = (
    *(0, 1, 2, 3, -1, 100, 1 << 14, 32_768, 65_536, 1 << 24, 1 << 31, 1 << 32, 1 << 63, 1 << 64),
    *(10**19, 10**40, 10**5000, 0.5, -0.5, 1e-6, 1e-300, 1e308, float("nan"), float("inf")),
    *(True, False, None, "", "a", "\ud800", "a\udfffb", "\x00", "\u202e", "x" * 5_000, "1"),
    *([], {}, [[]], [None], {"": None}, {"\ud800": 1}, _deep(12), _deep(40), _deep(200)),
    *(list(range(300)), ["x"] * 300, [[1, 1.0]] * 300, {"kind": "binary"}, {"kind": "window"}),
    *("window", "horizon", "flat", "weave", "number", "moves", "set", "exsub", "exsub-printed"),
)


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return every place in a document: its container and its key."""
    found: list[tuple[Any, Any]] = []
    level = [document]
    while level:
        node = level.pop()
        keys = node if isinstance(node, dict) else range(len(node))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], (dict, list)):
                level.append(node[key])
    return found


def mutated(document: Any, rng: random.Random) -> Any:
    """Return a document with one to three changes."""
    made = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        spots = places(made)
        if not spots:
            return made
        node, key = rng.choice(spots)
        turn = rng.random()
        if turn < 0.1:
            del node[key]
        elif turn < 0.2:  # something else of the same document
            other, name = rng.choice(spots)
            node[key] = copy.deepcopy(other[name])
        elif turn < 0.35 and isinstance(node[key], (int, float)):
            node[key] = node[key] * rng.choice((-1, 2, 0.5, 10, 1_000, 10**6))
        elif turn < 0.4 and isinstance(node[key], list) and node[key]:
            node[key] = node[key] * rng.choice((2, 50, 2_000))
        else:
            node[key] = copy.deepcopy(rng.choice(HOSTILE))
    return made


def written(document: Any, rng: random.Random) -> bytes:
    """Return a document as bytes; now and then not even JSON."""
    turn = rng.random()
    if turn < 0.02:
        return rng.choice((rng.randbytes(200), b"[" * 100_000, b'{"a":' * 100_000, b""))
    try:
        said = json.dumps(document).encode()
    except (ValueError, RecursionError):  # a whole number of more digits than Python writes
        said = b'{"spec": 1' + b"0" * 5_000 + b"}"
    if turn < 0.04:
        return said[: rng.randrange(len(said))]
    return said
