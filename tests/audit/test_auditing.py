from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.audit.broken_boxes import (
    PRINTED,
    SPARSE,
    AmplifiedResponse,
    OneBitShort,
    OnlineSubsets,
    RawOnceIn,
    TenthMore,
    UnaryCode,
)

from sfumato import catalog
from sfumato.audit import Audit, audit, calls_of, reports_of
from sfumato.audit.auditing import Draw
from sfumato.audit.catalogued import BlackBox, boxes_named, stream_boxes
from sfumato.checks import subjects
from sfumato.checks.servers import own_questions
from sfumato.core.stream import Stream
from sfumato.errors import ConfigurationError
from sfumato.mechanisms import GRR
from sfumato.mechanisms.sparse.subset.subset_stream import SubsetStream
from sfumato.randomness import seeded
from sfumato.streams import registry

VECTORS = ((1, 1, 0, 0), (0, 0, 1, 1), (0, 0, 0, 0))
DENSE, EMPTY = (1, -1, 1), (0, 0, 0)
FALSE_ALARMS = 1e-4
"""The probability that any audit of the catalogue refutes what is true."""

BROKEN: dict[str, tuple[Draw, Sequence[Any]]] = {
    "a tenth more": (reports_of(TenthMore(1.0, 2), seeded(1)), (0, 1)),
    "all of epsilon on each bit": (calls_of(UnaryCode(1.0), 1), (0, 3)),
    "one bit short": (calls_of(OneBitShort(0.5), 1), (0, 5)),
    "online as printed": (calls_of(PRINTED), VECTORS),
    "one dummy": (calls_of(AmplifiedResponse(dummies=1), 1), (DENSE, EMPTY)),
    "raw once in 200": (RawOnceIn(200), SPARSE),
}
RIGHT: dict[str, tuple[Draw, Sequence[Any]]] = {
    "as promised": (reports_of(GRR(1.0, 2), seeded(1)), (0, 1)),
    "half of epsilon on each bit": (calls_of(UnaryCode(0.5), 1), (0, 3)),
    "online as mended": (calls_of(OnlineSubsets(SubsetStream)), VECTORS),
    "as many dummies as entries": (calls_of(AmplifiedResponse(dummies=3), 1), (DENSE, EMPTY)),
    "never raw": (RawOnceIn(), SPARSE),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refuted(name: str) -> None:
    draw, values = BROKEN[name]
    result = audit(draw, values, 1.0, level=0.99)
    assert result.refuted
    assert result.epsilon_at_least >= 1
    assert result.samples <= 100_000
    assert result.evidence is not None
    assert result.evidence.first_count > result.evidence.second_count


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not(name: str) -> None:
    draw, values = RIGHT[name]
    result = audit(draw, values, 1.0, level=1 - 1e-7, samples=6_000)
    assert not result.refuted
    assert result.epsilon_at_least < 1


@pytest.mark.slow
def test_raw_once_in_two_thousand_is_refuted_within_a_million() -> None:
    assert audit(RawOnceIn(2000), SPARSE, 1.0, samples=1_000_000).refuted


def boxes(name: str) -> list[BlackBox]:
    return boxes_named(name, seeded(7))


def judged(box: BlackBox, samples: int, *, times: float = 1.0) -> Audit:
    level = 1 - FALSE_ALARMS / 500  # there are fewer
    return audit(box.draw, box.values, times * box.claim, level=level, samples=samples)


@pytest.mark.parametrize("name", [*catalog.names(), *catalog.NOISES, "weave"])
def test_the_catalogue_is_not_refuted(name: str) -> None:
    result = judged(boxes(name)[0], 4_000)
    assert not result.refuted


@pytest.mark.slow
@pytest.mark.parametrize("name", [*subjects.names()])
def test_the_whole_catalogue_is_not_refuted(name: str) -> None:
    samples = 8_000 if subjects.subject(name).family == "stream" else 200_000
    for box in boxes(name):
        result = judged(box, samples)
        assert not result.refuted, f"{box.brief}: {result}"


@pytest.mark.parametrize("name", ["grr", "oue", "exsub", "square_wave", "discrete_laplace"])
def test_the_catalogue_is_refuted_at_half_of_what_it_spends(name: str) -> None:
    assert judged(boxes(name)[0], 40_000, times=0.5).refuted


OURS = [name for name in catalog.names() if catalog.find(name).role != "rival"]
"""The mechanisms that spend all of their epsilon; some rivals do not."""


def spent(name: str) -> dict[str, float]:
    """Return by its brief how much of its claim each box without a greedy server spends.

    The curator of a stream with several questions in a window may ask for less than all of epsilon:
    LBD keeps a part for periods that never come.
    """
    own = subjects.subject(name)
    if own.family != "stream":
        return {box.brief: 1.0 for box in boxes(name)}
    shares = {}
    for example in own.examples:
        boxes_of_it = (
            box for box in stream_boxes(name, example, seeded(7)) if "greedy" not in box.brief
        )
        for tier, box in enumerate(boxes_of_it):
            shares[box.brief] = _share_asked(example, tier)
    return shares


def _share_asked(stream: Stream, tier: int) -> float:
    """Return what share of a tier's epsilon the questions of the first window add up to.

    The streams of values that are compared differ in these periods alone. Of questions that only
    some devices answer, each of them answers one, with all of epsilon.
    """
    if not stream.rounds:
        return 1.0
    offer = stream.offers[tier]
    first_window = own_questions(stream)[: offer.window or 1]
    asked = sum(ask.mechanism.epsilon for asks in first_window for ask in asks if ask.tier == tier)
    return min(1.0, asked / offer.epsilon)


def test_what_the_streams_own_questions_spend() -> None:
    lbd = "2 items, any 2 periods, 4000 devices: lbd"
    assert spent("window")[lbd] == pytest.approx(3 / 4, rel=1e-3)
    assert spent("window")[lbd.replace("lbd", "lpu")] == 1
    assert set(spent("grr").values()) == {1.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OURS, *catalog.NOISES, *registry.names()])
def test_all_of_it_is_refuted_at_three_quarters_of_what_is_spent(name: str) -> None:
    shares = spent(name)
    for box in boxes(name):
        if box.brief in shares:
            times = 0.75 * shares[box.brief]
            assert judged(box, 400_000, times=times).refuted, box.brief


@pytest.mark.statistics
def test_fewer_than_500_things_are_audited() -> None:
    assert sum(len(boxes(name)) for name in subjects.names()) < 500


def test_it_stops_as_soon_as_it_is_sure() -> None:
    assert audit(calls_of(lambda value: value), (0, 1), 1.0).samples < 1_000
    drawn: list[int] = []
    result = audit(*RIGHT["as promised"], 1.0, samples=10_001, progress=drawn.append)
    assert sum(drawn) == result.samples == 10_000


def test_the_same_seed_gives_the_same_result() -> None:
    first, second = (audit(calls_of(UnaryCode(1.0), 4), (0, 1), 1.0) for _ in range(2))
    assert first == second
    assert first != audit(calls_of(UnaryCode(1.0), 5), (0, 1), 1.0)


def test_a_delta_is_allowed_for() -> None:
    """Gaussian noise of scale 1 on 0 and 1 has (1, 0.1269)."""

    def noisy(value: float, rng: np.random.Generator) -> float:
        return rng.normal(value)

    small, right = (audit(calls_of(noisy, 1), (0.0, 1.0), 1.0, delta=d) for d in (0.09, 0.13))
    assert small.refuted
    assert "delta 0.09 is not kept" in str(small)
    assert not right.refuted


def test_it_speaks_in_sentences() -> None:
    sure = audit(*BROKEN["one bit short"], 1.0)
    assert str(sure).startswith("Refuted: epsilon 1 is not kept, after ")
    assert "for 0, and 0 times for 5, that output[5] is 0." in str(sure)
    unsure = audit(*RIGHT["as promised"], 1.0, samples=4_000)
    assert "nothing in 4,000 samples contradicts epsilon 1, which is no proof of it" in str(unsure)
    assert "With 99% confidence, epsilon is at least 0." in str(unsure)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"values": (1,)}, "there are 1 values; two or more are expected."),
        ({"claim": -1.0}, "claim is -1.0; an epsilon from 0 to 40 is expected."),
        ({"claim": float("nan")}, "claim is nan; an epsilon from 0 to 40 is expected."),
        ({"delta": 1.0}, "delta is 1.0; a number from 0 to below 1 is expected."),
        ({"level": 1.0}, "level is 1.0; a number between 0 and 1 is expected."),
        ({"samples": 10}, "samples is 10; 2,000 or more are expected for 2 values."),
    ],
)
def test_what_cannot_be_audited(change: dict[str, Any], sentence: str) -> None:
    asked: dict[str, Any] = {"values": (0, 1), "claim": 1.0} | change
    with pytest.raises(ConfigurationError) as refusal:
        audit(calls_of(UnaryCode(0.5)), **asked)
    assert str(refusal.value) == sentence
