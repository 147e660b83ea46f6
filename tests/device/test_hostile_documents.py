"""An app and its other tasks go on, whatever documents a server answers with."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable

import pytest
from tests.device.collecting import HOUR
from tests.device.hostile_scenes import (
    DOCUMENTS,
    LONGEST_JOIN,
    LONGEST_OBSERVE,
    QUESTION,
    RECEIPT,
    Scene,
    observe_all,
)
from tests.device.mutations import mutated, written

from sfumato.errors import SfumatoError

# ---- many at once ----------------------------------------------------------------------------


def _said(rng: random.Random, task: bytes) -> Callable[[str, bytes | None], bytes]:
    """Return a server that answers with good documents that were changed."""

    def say(path: str, batch: bytes | None) -> bytes:
        if batch is not None:
            return written(mutated(RECEIPT, rng), rng)
        if path.endswith("/question"):
            return written(mutated(QUESTION, rng), rng)
        keys = json.loads(task)
        keys["keys"] = [[2, rng.randbytes(32).hex()]]
        return written(keys if rng.random() < 0.5 else mutated(keys, rng), rng)

    return say


def _one_more(scene: Scene, period: int, rng: random.Random) -> bool:
    """Join a hostile task, live through a period with it, and demand all that is promised."""
    start = int(scene.now) - rng.choice((0, 5, 300)) * HOUR
    document = rng.choice(DOCUMENTS)
    document = {**document, "spec": {**document["spec"], "start": max(0, start)}}
    if rng.random() < 0.8:
        document = mutated(document, rng)
    data = written(document, rng)
    task = ""
    begun = time.process_time()
    with contextlib.suppress(SfumatoError):
        task = scene.device.join(data)
    assert time.process_time() - begun < LONGEST_JOIN, data[:2000]
    object.__setattr__(scene.device.transport, "hostile", _said(rng, data))
    if task:
        assert observe_all(scene.device, task) < LONGEST_OBSERVE, data[:2000]
    scene.now = period * HOUR + 1.0
    began = time.process_time()
    flushed = scene.device.flush(force=True, limit=5.0)
    assert time.process_time() - began < 5.0, data[:2000]
    assert set(flushed.problems) <= {task}
    assert scene.arrived[-1] == period == len(scene.collector.seen)
    if task:
        assert observe_all(scene.device, task) < LONGEST_OBSERVE, data[:2000]
        scene.device.flush(force=True)
        scene.device.log()
        scene.device.leave(task)
    return bool(task)


def _many(seed: int, count: int) -> int:
    """Go through so many documents, a hundred for each device; return how many were joined."""
    rng = random.Random(seed)  # noqa: S311 -- hostile documents, not coins
    joined = 0
    for _ in range(0, count, 100):
        scene = Scene(periods=100)
        joined += sum(_one_more(scene, period, rng) for period in range(1, 101))
    return joined


def test_hostile_documents_stop_nobody() -> None:
    joined = _many(seed=1, count=500)
    assert 100 < joined < 450  # some can be joined, and some cannot


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_more_hostile_documents_stop_nobody(seed: int) -> None:
    assert _many(seed, count=4_000)
