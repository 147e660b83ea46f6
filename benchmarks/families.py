"""What each family of mechanisms is measured on; a new family is one more entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sfumato import ExSub, catalog
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = ["Family", "family_of", "instances"]


@dataclass(frozen=True)
class Family:
    """Mechanisms that take the same kind of input.

    Parameters
    ----------
    parameters
        What to build one with besides epsilon, at a domain size; may ignore the size.
    inputs
        Plausible values of n people.
    symbols
        How many different symbols the bincount they are compared with tells apart.
    sent
        How many symbols one person sends, all of which it counts.

    """

    parameters: Callable[[int], Mapping[str, Any]]
    inputs: Callable[[Any, int, np.random.Generator], Any]
    symbols: Callable[[Any], int]
    sent: Callable[[Any], int] = lambda _: 1


def _sparse(mechanism: Any, n: int, draw: np.random.Generator) -> Any:
    """Vectors of exactly so many non-zeros, each with a fair sign if it may have one."""
    dimension, sparsity = mechanism.dimension, mechanism.sparsity
    vectors = np.empty(n, dtype=[("position", "u4", (sparsity,)), ("sign", "i1", (sparsity,))])
    first = draw.integers(dimension, size=(n, 1))
    places = (first + np.arange(sparsity) * (dimension // sparsity)) % dimension
    vectors["position"] = np.sort(places, axis=1)
    vectors["sign"] = draw.choice(mechanism.entries[1:], size=places.shape)
    return vectors


# By a field that all mechanisms of the family have.
FAMILIES: Final[Mapping[str, Family]] = {
    "domain": Family(
        parameters=lambda size: {"domain": size},
        inputs=lambda mechanism, n, draw: draw.integers(mechanism.domain, size=n),
        symbols=lambda mechanism: mechanism.domain,
    ),
    "sparsity": Family(
        parameters=lambda size: {
            "dimension": size - min(8, size // 2),
            "sparsity": min(8, size // 2),
        },
        inputs=_sparse,
        symbols=lambda mechanism: len(mechanism.entries[1:]) * mechanism.dimension,
        sent=lambda mechanism: getattr(mechanism, "size", 1),  # some send one entry
    ),
    "low": Family(
        parameters=lambda _: {"low": -1.0, "high": 1.0},
        inputs=lambda mechanism, n, draw: draw.uniform(mechanism.low, mechanism.high, n),
        symbols=lambda mechanism: len(mechanism.inputs()),
    ),
}


def family_of(name: str) -> Family:
    """Return the family of a mechanism; raise ConfigurationError if it has none."""
    for parameter in catalog.parameters(name):
        if parameter.name in FAMILIES:
            return FAMILIES[parameter.name]
    msg = f"{name} is of a family that benchmarks/families.py does not know."
    raise ConfigurationError(msg)


def instances(name: str, epsilon: float, sizes: Iterable[int]) -> list[Mechanism]:
    """Return the mechanism at each size, once if it does not depend on it.

    Concord, which by default sends every entry, is there a second time with ExSub's subsets.
    """
    built = []
    for size in sizes:
        given = {"epsilon": epsilon, **family_of(name).parameters(size)}
        built.append(catalog.build(name, **given))
        if name == "concord":
            built.append(catalog.build(name, **given, subset_size=ExSub(**given).size))
    return list(dict.fromkeys(built))
