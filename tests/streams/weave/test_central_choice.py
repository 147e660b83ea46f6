"""Streams for a promise about shuffled reports: least error, and never above the local limit."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato import catalog
from sfumato.accounting.shuffle import holds, sized
from sfumato.mechanisms import Concord
from sfumato.streams.amplification import requirement, shuffled
from sfumato.streams.flat import Flat
from sfumato.streams.registry import stream_of
from sfumato.streams.weave import Weave


def _task(**changed: Any) -> dict[str, Any]:
    shuffle = {"url": "http://a.example", "epsilon": 0.25, "delta": 1e-6, "min_batch": 10_000}
    task = {
        "title": "x",
        "epsilon": 8.0,
        "periods": 16,
        "period": "1 hour",
        "changes": 4,
        "values": {"kind": "binary"},
        "shuffle": shuffle | changed.pop("shuffle", {}),
    }
    return dict(catalog.task(task | changed).plain())


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"epsilon": 1.5},
        {"shuffle": {"epsilon": 1.0}},
        {"values": {"kind": "category", "items": 12}},
        {"protocol": "snapshots"},
        {"mix": {"snapshot": 0.5, "1": 0.5}},
        {"values": {"kind": "set", "items": 24}, "changes": 6},
    ],
    ids=str,
)
def test_a_stream_is_never_worse_than_with_sizes_for_its_epsilon(changed: dict[str, Any]) -> None:
    task = _task(**changed)
    required = requirement(task)
    assert required is not None
    chosen = Weave.chosen(task)
    assert chosen.epsilon <= task["epsilon"]
    assert holds(chosen.message(), required.epsilon, required.delta, required.crowd)
    alone = {name: to for name, to in task.items() if name != "shuffle"}
    lower = shuffled(Weave.chosen(alone), required).epsilon
    usual = shuffled(Weave.chosen({**alone, "epsilon": lower}), required)
    assert chosen.expected_variance() <= 1.003 * usual.expected_variance()


def test_what_is_published_is_what_was_chosen() -> None:
    for changed in ({}, {"values": {"kind": "moves", "items": 4}}):
        task = _task(**changed)
        kind = Flat if changed else Weave
        chosen = kind.chosen(task)
        again = stream_of({**task, **chosen.plain()})
        assert again.plain() == chosen.plain()
        assert again.message().worst_ratio == chosen.message().worst_ratio  # type: ignore[attr-defined]


def test_moves_are_sent_in_the_size_that_is_best_for_the_promise() -> None:
    task = _task(
        values={"kind": "moves", "items": 8},
        periods=32,
        changes=8,
        shuffle={"epsilon": 0.05},
    )
    required = requirement(task)
    assert required is not None
    chosen = Flat.chosen(task)
    best = sized(Concord(8.0, 256, 8), required)
    assert chosen.message().mse == pytest.approx(best.mse, rel=1e-6)
    assert best.mse == pytest.approx(4461.4, rel=1e-5)
    usual = shuffled(Flat.of({**task, "epsilon": 8.0}), required)
    assert usual.message().mse > 1.3 * best.mse
