"""Checks of messages: each is read at its place, and everything else is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import numpy as np

from sfumato.arrays import Array
from sfumato.checks.crowds import engine_of
from sfumato.checks.disclosure import disclosure, periods_listed, shown_values
from sfumato.checks.releases import bytes_of, lived_by
from sfumato.checks.servers import every_server
from sfumato.checks.transcripts import Devices
from sfumato.checks.verdict import demand
from sfumato.core.stream import Ask, Form, Place, Stream, replay
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ReportError
from sfumato.streams import registry
from sfumato.streams.judging import Judge
from sfumato.wire.reports import Layout

__all__ = ["plain_data_make_the_same_stream", "what_is_sent_is_read_and_nothing_else"]

MOST_PLACES: Final = 60
"""The largest number of places and questions of a stream that are checked."""


def what_is_sent_is_read_and_nothing_else(stream: Stream) -> None:
    """Every message fits its form and is counted; what no device sends is refused."""
    for tier, _ in enumerate(stream.offers):
        heard = sorted(disclosure(stream, tier).heard.items(), key=repr)
        step = -(-len(heard) // MOST_PLACES)
        for (place, ask), payloads in heard[::step]:
            demand((place.span, place.part) in set(stream.tracks), f"{place} is on no track")
            form = stream.form(place, ask)
            demand(form is not None, f"a device sends to {place}, where nothing is read")
            assert form is not None  # noqa: S101 -- demanded
            _sent(stream, form, place, payloads)
            _altered(form, place, payloads)
            _judged(stream, place, ask, payloads)


def _sent(stream: Stream, form: Form, place: Place, payloads: set[bytes]) -> None:
    """Raise CheckFailed unless each payload is valid and its tally survives encoding."""
    size = form.dtype.itemsize
    for payload in payloads:
        demand(len(payload) == size, f"{place} gets {len(payload)} bytes; {size} are read")
        demand(size <= stream.payload, f"{place} gets {size} bytes; {stream.payload} are told")
        sent = np.frombuffer(payload, dtype=form.dtype)
        demand(bool(form.valid(sent).all()), f"{place} refuses {payload.hex()}, which is sent")
        tally = form.tally(sent)
        demand(tally.n == 1, f"one message is counted as {tally.n}")
        demand(Tally.decode(tally.encode()) == tally, f"the tally of {place} is changed by bytes")
        both = Tallies({place: tally})
        demand(
            dict(Tallies.decode(both.encode())) == dict(both),
            f"the tallies of {place} are changed by bytes",
        )


def _altered(form: Form, place: Place, payloads: set[bytes]) -> None:
    """Raise CheckFailed unless altered payloads are refused; of one byte, all others."""
    size = form.dtype.itemsize
    others = [bytes([number]) for number in range(256)] if size == 1 else list(_flipped(payloads))
    judged = form.valid(np.frombuffer(b"".join(others), dtype=form.dtype))
    for other, valid in zip(others, judged.tolist(), strict=True):
        if size == 1:
            demand(
                valid == (other in payloads),
                f"{place} {'takes' if valid else 'refuses'} {other.hex()}, against the law",
            )
        try:
            counted = form.tally(np.frombuffer(other, dtype=form.dtype)).n == 1
        except ReportError:
            counted = False
        demand(counted == valid, f"{place} judges {other.hex()} in two ways")


def _flipped(payloads: set[bytes]) -> Iterator[bytes]:
    """Yield payloads with one bit changed."""
    for payload in sorted(payloads)[:4]:
        for bit in range(8 * len(payload)):
            changed = bytearray(payload)
            changed[bit >> 3] ^= 1 << (bit & 7)
            yield bytes(changed)


def _judged(stream: Stream, place: Place, ask: Ask | None, payloads: set[bytes]) -> None:
    """Raise CheckFailed unless a collector accepts what is sent, and nothing that was altered."""
    layout = Layout(stream.payload)
    judge = Judge(stream, layout, {} if ask is None else {place: ask})
    payload = min(payloads)

    def taken(period: int, span: int, part: int, content: bytes) -> bool:
        row: Array = np.frombuffer(layout.content(span, part, content), dtype=layout.content_dtype)
        return bool(judge.valid(np.array([period]), row)[0])

    where = (place.period, place.span, place.part)
    demand(taken(*where, payload), f"a collector refuses what is sent to {place}")
    room = stream.payload - len(payload)
    if room:
        demand(taken(*where, payload + bytes(room)), f"a collector refuses padding at {place}")
        longer = payload + bytes(room - 1) + b"\1"
        demand(not taken(*where, longer), f"a collector takes bytes behind a payload at {place}")
    demand(not taken(1 << 20, *where[1:], payload), "a collector takes a period that never comes")
    demand(not taken(place.period, 999, 999, payload), "a collector takes what is on no track")


def plain_data_make_the_same_stream(stream: Stream) -> None:
    """A stream that is written as plain data and read again is the same stream.

    Its devices send the same with the same probabilities, and its curator releases the same.
    """
    spec = json.loads(json.dumps(stream.spec()))
    again = registry.stream_of(spec)
    demand(isinstance(stream, type(again)), f"its plain data make a {type(again).__name__}")
    demand(json.loads(json.dumps(again.spec())) == spec, "its plain data make other plain data")
    demand(again.offers == stream.offers, "its plain data make a stream with other promises")
    for tier, offer in enumerate(stream.offers):
        shown = shown_values(stream, offer.window)
        for server in every_server(stream, tier, periods_listed(stream, tier), 1):
            engines = engine_of(stream, tier), Devices(again, tier)
            laws = [dict(devices.laws(server, shown)) for devices in engines]
            demand(laws[0] == laws[1], "its plain data make devices that follow another law")
    lived = lived_by(stream, 4)
    released = [replay(one.curator(), lived.recorded) for one in (stream, again)]
    for one, two in zip(*released, strict=True):
        demand(bytes_of(one) == bytes_of(two), "its plain data make a curator that differs")
