"""Published tasks: the same after a trip, refused if they are none, one id for one spec."""

from __future__ import annotations

import json

import pytest

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import seeded
from sfumato.streams.registry import spec_of, stream_of
from sfumato.streams.weave.weave import Weave
from sfumato.wire.published import LARGEST, Published
from sfumato.wire.sealing import new_key

KINDS = [
    '{kind = "binary"}',
    '{kind = "category", items = ["a", "b", "c"]}',
    '{kind = "set", items = 6, most = 2}',
    '{kind = "attributes", attributes = {x = 2, y = ["p", "q", "r"]}}',
]


def spec(values: str) -> dict[str, object]:
    text = (
        f'title = "t"\nepsilon = 1\nperiods = 12\nperiod = "1 hour"\nchanges = 4\nvalues = {values}'
    )
    task = parse(text)
    return spec_of(task, catalog.stream(task), start=1_000)


def payload(plain: dict[str, object]) -> int:
    made = stream_of(plain)
    assert isinstance(made, Weave)
    return made.payload


@pytest.mark.parametrize("values", KINDS)
def test_a_spec_makes_the_very_protocol_it_was_made_of(values: str) -> None:
    plain = spec(values)
    again = json.loads(json.dumps(plain))
    made = stream_of(again)
    assert isinstance(made, Weave)
    assert made.resolved() == made
    chosen = stream_of(plain)
    assert made == chosen
    for thread, _ in made.threads():
        if thread.span and made.edges(thread):
            assert made.strand(thread).mechanism.size == chosen.strand(thread).mechanism.size
    assert made.device(seeded(1)).thread == chosen.device(seeded(1)).thread


def test_ids_follow_the_spec_and_hashes_follow_the_keys() -> None:
    key = new_key().public_key().public_bytes_raw()
    other = new_key().public_key().public_bytes_raw()
    plain = spec(KINDS[0])
    first = Published(plain, {1: key}, "http://a")
    assert Published.parse(first.encode()) == first
    renewed = Published(plain, {1: key, 2: other}, "http://b")
    assert renewed.task_id == first.task_id
    assert renewed.spec_hash != first.spec_hash
    assert (first.key_id, renewed.key_id) == (1, 2)
    changed = Published(plain | {"epsilon": 1.5}, {1: key}, "http://a")
    assert changed.task_id != first.task_id


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no JSON"),
        (b"[]", "no proper field 'spec'"),
        (b'{"spec": {}, "keys": {}, "endpoint": ""}', "no proper field 'keys'"),
        (b'{"spec": {}, "keys": [["a", "00"]], "endpoint": ""}', "pairs of a number and a key"),
        (b'{"spec": {}, "keys": [[1, "00"]], "endpoint": ""}', "not 32 bytes"),
        (b'{"spec": {}, "keys": [[1]], "endpoint": ""}', "pairs of a number and a key"),
        (b"[" * 100_000, "no JSON"),
        (b" " * (LARGEST + 1), "1,048,577 bytes"),
    ],
)
def test_what_is_no_published_task_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Published.parse(data)


def test_a_spoilt_spec_is_refused_in_a_sentence() -> None:
    plain = spec(KINDS[1])
    spoilt: list[dict[str, object]] = [
        {},
        {key: value for key, value in plain.items() if key != "mix"},
        plain | {"mix": [[0, 0.5]]},
        plain | {"mix": [["a", 1.0]]},
        plain | {"periods": 0},
        plain | {"epsilon": "1"},
        plain | {"sized": [[1, 2]]},
        plain | {"looks": [["subset_selection", 99, None]]},
        plain | {"values": {"kind": "poem"}},
        plain | {"values": 3},
    ]
    for given in spoilt:
        with pytest.raises(ConfigurationError):
            payload(given)
