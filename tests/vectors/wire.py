"""Vectors of what crosses a boundary in bytes: questions, reports, batches, tallies, tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from tests.vectors.keeping import Files, dumped

from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import SfumatoError
from sfumato.wire.canonical import canonical
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch, Layout, report_id

__all__ = ["READ", "batch_of", "files", "question_of", "refusal", "tallies_of", "tally_of"]

VERSION: Final = 1
SECRET: Final = bytes(range(32))
TASK: Final = bytes(range(32, 64))

QUESTIONS: Final[tuple[dict[str, Any], ...]] = (
    {
        "period": 1,
        "round": 0,
        "mechanism": {"mechanism": "grr", "epsilon": 1.0, "domain": 4},
        "probability": 0.05,
    },
    {
        "period": 7,
        "round": 1,
        "mechanism": {"mechanism": "oue", "epsilon": 0.5, "domain": ["é", "b", 3]},
        "probability": 1.0,
    },
    {
        "period": 4_294_967_295,
        "round": 65_535,
        "mechanism": {
            "mechanism": "hybrid",
            "epsilon": 1e-05,
            "low": -1.5,
            "high": 1e21,
            "clip": True,
        },
        "probability": 0.0,
    },
)

BATCHES: Final[tuple[dict[str, Any], ...]] = (
    {"payload": 1, "overhead": 0, "key_id": 0, "reports": [[1, 1, 0, "02"]]},
    {
        "payload": 3,
        "overhead": 0,
        "key_id": 7,
        "reports": [[1, 0, 0, "0102"], [2, 4, 1, "a0b0c0"], [4_294_967_295, 65_535, 65_535, ""]],
    },
)

TALLIES: Final[tuple[dict[str, Any], ...]] = (
    {"n": 3, "sums": [1, 2]},
    {"n": 0, "sums": [[0, 0, 0], [0, 0, 0]]},
    {"n": 9_223_372_036_854_775_807, "sums": [[[-9_223_372_036_854_775_808]]]},
)

PLACES: Final[tuple[list[Any], ...]] = (
    [],
    [[[0, 7, 0], {"n": 1, "sums": [1]}]],
    [
        [[0, 1, 0], {"n": 2, "sums": [1, 1]}],
        [[0, 1, 1], {"n": 1, "sums": [0]}],
        [[4, 2, 0], {"n": 5, "sums": [[3, -1], [2, 0]]}],
    ],
)

CANONICAL: Final[tuple[Any, ...]] = (
    {"b": [1.0, 0.25], "a": "é"},
    {"z": None, "y": True, "x": False, "w": {}, "v": []},
    [1e16, 1e21, 1e-6, 1e-7, 0.1, -0.0, 12345678901234567890, 5e-324, 1.7976931348623157e308],
    'tab\tquote"back\\slash\u0001\u2028',
)


def question_of(plain: Mapping[str, Any]) -> Question:
    """Return the question of a case."""
    return Question(**plain)


def batch_of(plain: Mapping[str, Any]) -> tuple[Batch, Layout]:
    """Return the batch of a case, with ids as a device has them, and how it is laid out."""
    layout = Layout(plain["payload"], plain["overhead"])
    rows = [
        report_id(SECRET, TASK, period)
        + period.to_bytes(4, "little")
        + layout.content(span, block, bytes.fromhex(payload))
        for period, span, block, payload in plain["reports"]
    ]
    reports = np.frombuffer(b"".join(rows), dtype=layout.report_dtype)
    return Batch(TASK, plain["key_id"], reports), layout


def tally_of(plain: Mapping[str, Any]) -> Tally:
    """Return the tally of a case."""
    return Tally(plain["n"], np.array(plain["sums"], dtype=np.int64))


def tallies_of(plain: list[Any]) -> Tallies[Place]:
    """Return the tallies of a case by their places."""
    return Tallies({Place(*place): tally_of(tally) for place, tally in plain})


READ: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "question": Question.parse,
    "task": Published.parse,
    "batch": lambda body: Batch.decode(body, Layout(3)),
    "tally": Tally.decode,
    "tallies": Tallies.decode,
}
"""What reads bytes that come from outside."""


def refusal(what: str, data: bytes) -> str:
    """Return the sentence that bytes are refused with."""
    try:
        READ[what](data)
    except SfumatoError as error:
        return str(error)
    raise AssertionError(data)


def _bad() -> dict[str, list[tuple[str, bytes]]]:
    """Return bytes that are refused, by what they pretend to be."""
    good = question_of(QUESTIONS[0]).encode()
    batch = batch_of(BATCHES[1])[0].encode()
    tally = tally_of(TALLIES[0]).encode()
    tallies = tallies_of(PLACES[2]).encode()
    task = {"spec": {"title": "t"}, "keys": [], "endpoint": "http://here"}
    return {
        "question": [
            ("no_json", b"{"),
            ("nothing", b""),
            ("a_version_that_is_none", good.replace(b'"version": 1', b'"version": 2')),
            ("a_key_twice", b'{"version": 1, "version": 1, "question": null}'),
            ("no_table", b'{"version": 1, "question": 3}'),
            ("a_period_as_text", good.replace(b'"period": 1', b'"period": "1"')),
            ("a_round_below_0", good.replace(b'"round": 0', b'"round": -1')),
            ("a_probability_above_1", good.replace(b"0.05", b"1.05")),
            ("a_probability_that_is_none", good.replace(b"0.05", b"NaN")),
            ("no_mechanism", good.replace(b'"mechanism": {', b'"other": {')),
        ],
        "task": [
            ("no_json", b"["),
            ("a_list", b"[]"),
            ("no_spec", json.dumps(task | {"spec": 3}).encode()),
            ("no_endpoint", json.dumps(task | {"endpoint": None}).encode()),
            ("an_endpoint_with_a_line", json.dumps(task | {"endpoint": "http://\n"}).encode()),
            ("a_key_that_is_no_pair", json.dumps(task | {"keys": [[1]]}).encode()),
            ("a_key_of_number_0", json.dumps(task | {"keys": [[0, "ab" * 32]]}).encode()),
            ("a_short_key", json.dumps(task | {"keys": [[1, "ab"]]}).encode()),
            ("a_key_of_no_use", json.dumps(task | {"keys": [[1, "00" * 32]]}).encode()),
        ],
        "batch": [
            ("nothing", b""),
            ("another_beginning", b"SFR2" + batch[4:]),
            ("no_reports", batch[:40] + bytes(4)),
            ("too_many_reports", batch[:40] + (65_537).to_bytes(4, "little") + batch[44:]),
            ("cut_short", batch[:-1]),
            ("a_byte_more", batch + b"\0"),
            ("a_report_less", batch[:40] + (2).to_bytes(4, "little") + batch[44:]),
        ],
        "tally": [
            ("nothing", b""),
            ("another_version", b"\x09" + tally[1:]),
            ("no_sides", tally[:1] + b"\0" + tally[2:]),
            ("cut_short", tally[:-1]),
            ("a_byte_more", tally + b"\0"),
        ],
        "tallies": [
            ("nothing", b""),
            ("another_beginning", b"XXXX" + tallies[4:]),
            ("a_place_less", tallies[:4] + (4).to_bytes(4, "little") + tallies[8:]),
            ("a_place_more", tallies[:4] + (2).to_bytes(4, "little") + tallies[8:]),
            ("out_of_order", _twice(tallies_of(PLACES[1]).encode())),
            ("cut_short", tallies[:-1]),
        ],
    }


def _twice(one: bytes) -> bytes:
    """Return tallies that have one place twice."""
    return one[:4] + (2).to_bytes(4, "little") + one[8:] + one[8:]


def files() -> Files:
    """Return the vectors of the wire."""
    questions = [
        {
            "question": plain,
            "bytes": question_of(plain).encode().decode(),
            "digest": question_of(plain).digest.decode(),
        }
        for plain in QUESTIONS
    ]
    nothing = {"question": None, "bytes": Question.none().decode(), "digest": None}
    batches = [
        {
            **plain,
            "device_secret": SECRET.hex(),
            "task_id": TASK.hex(),
            "bytes": batch_of(plain)[0].encode().hex(),
        }
        for plain in BATCHES
    ]
    names = [
        {"period": p, "number": k, "id": report_id(SECRET, TASK, p, k).hex()}
        for p, k in ((1, 0), (1, 1), (2, 0), (4_294_967_295, 65_535))
    ]
    tally = [{**plain, "bytes": tally_of(plain).encode().hex()} for plain in TALLIES]
    tallies = [{"tallies": p, "bytes": tallies_of(p).encode().hex()} for p in PLACES]
    forms = [{"data": data, "bytes": canonical(data).decode()} for data in CANONICAL]
    ids = {"device_secret": SECRET.hex(), "task_id": TASK.hex(), "cases": names}
    good: dict[str, tuple[str, dict[str, Any]]] = {
        "questions": ("questions as devices get them", {"cases": [*questions, nothing]}),
        "batches": ("batches of reports that are not sealed", {"cases": batches}),
        "report_ids": ("the ids of a device's reports", ids),
        "tallies": ("tallies alone, and by their places", {"alone": tally, "cases": tallies}),
        "canonical": ("plain data in the one form that is hashed", {"cases": forms}),
    }
    made = {f"wire/{name}.json": dumped(VERSION, *file) for name, file in good.items()}
    for what, bad in _bad().items():
        listed = [
            {"name": name, "bytes": data.hex(), "refused": refusal(what, data)}
            for name, data in bad
        ]
        told = {"reads": what, "cases": listed}
        said = f"bytes that are no {what}, and the sentences that say so"
        made[f"wire/bad_{what}.json"] = dumped(VERSION, said, told)
    return made
