"""Everything in the catalogue as black boxes: mechanisms, noise, and the devices of streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sfumato.audit.auditing import Draw
from sfumato.audit.boxes import reports_of, sums_of, transcripts_of
from sfumato.checks.servers import every_server
from sfumato.checks.subjects import subject
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.core.stream import Stream
from sfumato.randomness import Source

__all__ = ["BlackBox", "boxes_named", "mechanism_box", "noise_box", "stream_boxes"]

SPREAD: Final = 4
"""The number of values that are compared, unless somebody names others."""
SERVERS: Final = 3
"""The number of servers that ask a device: the stream's own, and greedy ones."""


@dataclass(frozen=True)
class BlackBox:
    """Something to audit.

    Parameters
    ----------
    name, brief
        Its name in the catalogue, and its parameters in words.
    draw
        A function that draws outputs.
    values
        The values to compare, any two of which are neighbours.
    claim
        The epsilon that it promises.

    """

    name: str
    brief: str
    draw: Draw
    values: tuple[Any, ...]
    claim: float


def boxes_named(name: str, rng: Source) -> list[BlackBox]:
    """Return the examples of a mechanism, a noise or a stream as black boxes.

    Raises ConfigurationError if nothing in the catalogue has this name.

    Parameters
    ----------
    name
        The name in the catalogue.
    rng
        The source of all coins.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> [box.values for box in boxes_named("grr", seeded(1))]
    [(0, 1), (0, 1, 3, 4), ('red', 'green', 'blue'), (0, 2, 5, 7)]

    """
    own = subject(name)
    if own.family == "stream":
        return [box for example in own.examples for box in stream_boxes(name, example, rng)]
    make = mechanism_box if own.family == "mechanism" else noise_box
    return [make(example, rng) for example in own.examples]


def mechanism_box(
    mechanism: Mechanism, rng: Source, values: Sequence[Any] | None = None
) -> BlackBox:
    """Return a mechanism as a black box; by default a few of its values are compared.

    Parameters
    ----------
    mechanism, rng
        The mechanism, and the source of its coins.
    values
        The values to compare; InputError is raised if the mechanism does not take one.

    """
    if values is None:
        values = _spread(mechanism.inputs())
    mechanism.encode(list(values))
    brief = str(mechanism)
    return BlackBox(
        mechanism.name, brief, reports_of(mechanism, rng), tuple(values), mechanism.epsilon
    )


def noise_box(noise: Noise, rng: Source) -> BlackBox:
    """Return noise on a sum as a black box; two sums are compared that one event tells apart."""
    sums = (0, noise.sensitivity)
    return BlackBox(noise.name, str(noise), sums_of(noise, rng), sums, noise.epsilon)


def stream_boxes(name: str, stream: Stream, rng: Source) -> Iterator[BlackBox]:
    """Yield the transcripts of devices as black boxes, for each tier and a few servers.

    Parameters
    ----------
    name, stream
        A small stream, and its name in the catalogue.
    rng
        The source of the devices' coins.

    """
    for tier, offer in enumerate(stream.offers):
        periods = stream.horizon or (offer.window or 1) + 1
        values = _neighbours(stream, periods, offer.window)
        for number, asked in enumerate(every_server(stream, tier, periods, SERVERS)[:SERVERS]):
            brief = f"{stream.brief}, tier {tier}" if len(stream.offers) > 1 else str(stream.brief)
            server = f", greedy server {number}" if number else ""
            draw = transcripts_of(stream, tier, asked, rng)
            yield BlackBox(name, brief + server, draw, values, offer.epsilon)


def _neighbours(stream: Stream, periods: int, window: int | None) -> tuple[Any, ...]:
    """Return streams of values that differ from each other within one window, or anywhere."""
    held = _spread(stream.inputs())
    within = min(window or periods, periods)
    rest = [held[0]] * (periods - within)
    constant = [[value] * within for value in held[:SPREAD]]
    changing = [held[period % 2 * -1] for period in range(within)]
    streams = [*constant[: SPREAD - 1], changing] if within > 1 else constant
    return tuple(tuple(own + rest) for own in streams)


def _spread(values: Sequence[Any]) -> list[Any]:
    """Return a few values, from the first to the last."""
    indices = np.unique(np.linspace(0, len(values) - 1, SPREAD).round().astype(int))
    return [values[index] for index in indices.tolist()]
