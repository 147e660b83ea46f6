"""The exact law of a stream that is sent entry by entry, over all of its coins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import comb
from typing import cast

from sfumato.mechanisms.sparse.subset.signed_subset import SignedSubset
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import ONE, Coins

Sent = tuple[int, ...]
Stream = Callable[[Sent], int]
Law = dict[Sent, Fraction]


class Path:
    """Coins that follow a script and remember where it could have gone on otherwise."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.sizes: list[int] = []

    def below(self, k: int) -> int:
        if len(self.sizes) == len(self.script):
            self.script.append(0)
        self.sizes.append(k)
        return self.script[len(self.sizes) - 1]


def paths(run: Callable[[Coins], Sent]) -> Iterator[tuple[Sent, Fraction]]:
    """Yield the outcome of every random path with its probability."""
    script: list[int] = []
    while True:
        path = Path(script)
        outcome = run(cast("Coins", path))
        chance = Fraction(1)
        for size in path.sizes:
            chance /= size
        yield outcome, chance
        script = path.script[: len(path.sizes)]
        while script and script[-1] == path.sizes[len(script) - 1] - 1:
            script.pop()
        if not script:
            return
        script[-1] += 1


def secrets_of(mechanism: SignedSubset) -> Iterator[tuple[int, int, Fraction]]:
    """Yield the secret counts (agree, oppose) with their exact probabilities."""
    s, m, d = mechanism.sparsity, mechanism.size, mechanism.padded_dimension
    weights: dict[tuple[int, int], int] = {}
    for agree, oppose in product(range(s + 1), repeat=2):
        rest = m - agree - oppose
        if agree + oppose > s or not 0 <= rest <= d - s:
            continue
        ways = comb(s, agree) * comb(s - agree, oppose) * comb(d - s, rest) * 2**rest
        accepted = mechanism._accepts(agree, oppose)  # noqa: SLF001
        weights[agree, oppose] = ways * (ONE if accepted else mechanism.refused_weight)
    for (agree, oppose), weight in weights.items():
        yield agree, oppose, Fraction(weight, sum(weights.values()))


def online_law(
    mechanism: SignedSubset,
    stream: Stream,
    make: Callable[..., SubsetStream | DenseStream] = SubsetStream,
    entries: int | None = None,
) -> Law:
    """Return the exact law of everything sent for a stream that may look at what was sent."""
    total: Law = {}
    for agree, oppose, chance in secrets_of(mechanism):
        state = [agree, oppose, mechanism.sparsity, mechanism.size - agree - oppose]
        state = [*state, mechanism.zeros]
        if isinstance(make, type) and issubclass(make, DenseStream):
            state = [agree, mechanism.sparsity]

        def run(coins: Coins, state: list[int] = state) -> Sent:
            device = make(*state)
            sent: Sent = ()
            for _ in range(entries or mechanism.dimension):
                sent += (device.observe(stream(sent), coins),)
            return sent

        for sent, weight in paths(run):
            total[sent] = total.get(sent, Fraction(0)) + chance * weight
    return total


def fixed(vector: Sent) -> Stream:
    return lambda sent: vector[len(sent)]


def definition(mechanism: SignedSubset, vector: Sent) -> Law:
    law = mechanism.law(vector)
    plain: Law = {}
    for signs, numerator in zip(
        mechanism.form.signs(law.outputs).tolist(), law.numerators, strict=True
    ):
        plain[tuple(signs)] = Fraction(numerator, law.denominator)
    return plain


def worst(laws: list[Law]) -> Fraction | None:
    """Return the largest ratio of two laws; None if it has no bound."""
    ratio = Fraction(1)
    for sent in {sent for law in laws for sent in law}:
        chances = [law.get(sent, Fraction(0)) for law in laws]
        if max(chances) and not min(chances):
            return None
        if max(chances):
            ratio = max(ratio, max(chances) / min(chances))
    return ratio
