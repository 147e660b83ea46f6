"""Devices of every stream go on from each kept state with the bytes that are kept."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.vectors import machines
from tests.vectors.keeping import like, load

from sfumato.catalog import from_configuration
from sfumato.core.stream import Ask, Place, StreamDevice, Timestep
from sfumato.core.tally import Tallies
from sfumato.device.keys import Chain
from sfumato.errors import MismatchError
from sfumato.streams.registry import stream_of
from sfumato.wire.questions import Question

SPOILT: tuple[Any, ...] = (-1, "x", {}, [[]])
STANDING = list(machines.HORIZONS)
ASKED = [*machines.ASKING, "topl_white", "topl_plain"]


@pytest.mark.parametrize("name", STANDING)
def test_a_device_goes_on_from_every_state_to_the_byte(name: str) -> None:
    kept = load(f"machines/{name}.json")
    protocol: Any = stream_of(kept["spec"])
    assert protocol.payload == kept["payload"]
    assert [list(track) for track in protocol.tracks] == kept["tracks"]
    for device in kept["devices"]:
        join, chain = machines.chain_of(bytes.fromhex(device["key"]))
        assert protocol.device(join).save() == device["joined"]
        lived = device["periods"]
        values = [one["value"] for one in lived]
        for period, state in enumerate(machines.states(device)):
            machine = protocol.restore(state)
            assert machine.message_bytes == device["message_bytes"]
            rest = machines.lived(machine, chain.after(period), values[period:])
            assert list(rest) == lived[period:]


@pytest.mark.parametrize("name", STANDING)
def test_what_a_device_says_is_valid_and_counted_in_its_place(name: str) -> None:
    kept = load(f"machines/{name}.json")
    protocol = stream_of(kept["spec"])
    said = [one["message"] for device in kept["devices"] for one in device["periods"]]
    messages = [message for message in said if message is not None]
    places, tracks = {(span, part) for span, _, part, _ in messages}, kept["tracks"]
    assert places <= set(map(tuple, tracks))
    assert len(places) >= len(tracks) - (name == "tree")  # whose longest span hardly anybody draws
    for span, period, part, payload in messages:
        form = protocol.form(Place(span, period, part))
        assert form is not None
        raw = np.frombuffer(bytes.fromhex(payload), np.uint8)[None, :]
        assert form.valid(form.read(raw)).all()
        assert form.tally(form.read(raw)).n == 1


@pytest.mark.parametrize("name", STANDING)
def test_a_state_that_was_spoilt_is_refused(name: str) -> None:
    kept = load(f"machines/{name}.json")
    protocol: Any = stream_of(kept["spec"])
    for device in kept["devices"]:
        for state in machines.states(device):
            for field in state:
                for bad in SPOILT:
                    with pytest.raises(MismatchError, match="the saved state"):
                        protocol.restore(state | {field: bad})
                rest = {key: part for key, part in state.items() if key != field}
                with pytest.raises(MismatchError, match="the saved state has"):
                    protocol.restore(rest)


@pytest.mark.parametrize("name", ASKED)
def test_devices_answer_kept_questions_to_the_byte(name: str) -> None:
    kept = load(f"machines/{name}.json")
    protocol: Any = stream_of(kept["spec"])
    assert protocol.payload == kept["payload"]
    crowd = machines.Asking(name, protocol)
    for number, key in enumerate(kept["keys"]):
        machine = crowd.machines[number]
        _, chain = machines.chain_of(bytes.fromhex(key))
        for period, lived in enumerate(kept["periods"], 1):
            keys = chain.after(period - 1)
            machine.observe(lived["values"][number], keys.coins("period"))
            for one in lived["rounds"]:
                machine = protocol.restore(json.loads(json.dumps(machine.save())))
                assert _answer(machine, one, keys) == one["answers"][number], (period, one)
                assert machines.saved(machine) == one["states"][number]


def _question(one: Any) -> Question:
    asked = Question.parse(json.dumps(one["question"]).encode())
    assert asked is not None
    return asked


def _answer(machine: StreamDevice, one: Any, keys: Chain) -> str | None:
    asked = _question(one)
    assert asked.tier == one["tier"]
    given = dict(asked.mechanism)
    if isinstance(given.get("domain"), list):
        given["domain"] = tuple(given["domain"])
    ask = Ask(from_configuration(given), asked.probability, asked.tier, asked.round)
    said = machines.answer(machine, asked, ask, keys)
    return None if said is None else said.hex()


@pytest.mark.parametrize("name", ASKED)
def test_a_curator_that_is_fed_the_kept_tallies_asks_and_releases_the_same(name: str) -> None:
    kept = load(f"machines/{name}.json")
    curator = stream_of(kept["spec"]).curator()
    for period, lived in enumerate(kept["periods"], 1):
        step = Timestep(curator, period)
        for one in lived["rounds"]:
            ask = step.question
            assert isinstance(ask, Ask)
            assert like(json.loads(Question.of(period, ask).encode()), one["question"])
            tally = machines.whole(one["tally"])
            assert step.brought(Tallies({step.place: tally})) == tally
            step.answer(tally)
        done = step.done
        found = [done.values, done.covariance.variances()]
        assert like([machines.known(row) for row in found], lived["released"])


def test_questions_are_answered_in_every_kept_stream() -> None:
    silent = []
    for name in ASKED:
        rounds = [
            one for lived in load(f"machines/{name}.json")["periods"] for one in lived["rounds"]
        ]
        assert any(one["tally"][0] for one in rounds), name
        silent += [name] * all(one["answers"] == [None] for one in rounds)
    assert len(silent) <= 1  # of most, the device that is shown answers, too
