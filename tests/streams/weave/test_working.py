"""Learnt weights: from earlier periods only, near to the best there are, and hardly biased."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import catalog
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.kinds import Attributes, Binary, Category, Values
from sfumato.streams.registry import spec_of, stream_of
from sfumato.streams.weave import Weave, online
from sfumato.streams.weave.observations import observations
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave_fleet import collect
from sfumato.streams.weave.working import PRIOR

LEARNT = [
    Weave(Binary(), 12, 3, 4.0, (1, 3, 0), (0.4, 0.3, 0.3), weights="learnt"),
    Weave(Category(3), 10, 5, 3.0, (1, 2, 0), (0.4, 0.3, 0.3), weights="learnt"),
    Weave(Attributes({"x": 3, "y": 2}), 8, 4, 4.0, (1, 0), (0.5, 0.5), weights="learnt"),
]


def still(values: Values, periods: int, devices: int) -> NDArray[Any]:
    """Return streams of devices that all hold the same, for good."""
    parts = (len(values.categories),) if isinstance(values, Attributes) else ()
    return np.zeros((devices, periods, *parts), dtype=np.int16)


def tallies_of(protocol: Weave, seed: int, devices: int = 2_000) -> Tallies[Any]:
    return collect(protocol, still(protocol.values, protocol.periods, devices), seeded(seed))


def defined(protocol: Weave, tallies: Tallies[Any], block: int) -> list[float]:
    """Return the working variance of each edge by its definition, from all earlier periods anew."""
    entries = protocol.values.blocks[block]
    look = protocol.snapshots[block]
    working = []
    keys = sorted((p, span, part) for span, p, part in tallies if span or part == block)
    for period, span, part in keys:
        before = [
            tallies[span, p, part] for p, g, b in keys if (g, b) == (span, part) and p < period
        ]
        if span == SNAPSHOT:
            n = sum(tally.n for tally in before)
            mean = sum(tally.n * look.read(tally) for tally in before) / n if n else 0.0
            shown = float(look.variance_at_share(np.clip(mean, 0, 1)).mean()) if n else 0.0
            working.append((PRIOR * look.variance + n * shown) / (PRIOR + n))
            continue
        total, degrees = PRIOR, PRIOR
        for p, tally in [(p, tallies[g, p, b]) for p, g, b in keys if g == span and p < period]:
            strand = protocol.strand(Thread(span, p % span))
            plus, minus = tally.sums[:, entries] / tally.n
            moment = (plus + minus) / strand.contrast**2
            square = ((plus - minus) / strand.contrast) ** 2
            total += tally.n * float((moment - square).mean()) / strand.variance
            degrees += tally.n - 1
        working.append(protocol.strand(Thread(span, period % span)).variance * total / degrees)
    return working


@pytest.mark.parametrize("protocol", LEARNT, ids=lambda p: p.values.kind)
def test_working_variances_follow_their_definition(protocol: Weave) -> None:
    tallies = tallies_of(protocol, 1)
    for block in range(len(protocol.values.blocks)):
        seen = observations(protocol, tallies, block)
        np.testing.assert_allclose(seen.working, defined(protocol, tallies, block), rtol=1e-9)
        plan = observations(replace(protocol, weights="planned"), tallies, block)
        first = seen.end == seen.end.min()
        assert (seen.working[first] == plan.working[first]).all()
        assert (seen.working[seen.end > 4] < plan.working[seen.end > 4]).all()  # nobody moves
        assert (seen.noise == plan.noise).all()


@pytest.mark.parametrize("protocol", LEARNT, ids=lambda p: p.values.kind)
def test_no_later_report_changes_what_an_edge_counts_on(protocol: Weave) -> None:
    first, other = tallies_of(protocol, 1), tallies_of(protocol, 2)
    cut = protocol.periods // 2
    past = {key: tally for key, tally in first.items() if key[1] <= cut}
    mixed = Tallies(past | {key: tally for key, tally in other.items() if key[1] > cut})
    one, two = observations(protocol, first), observations(protocol, mixed)
    until = one.end <= cut + 1  # the weights of a period rest on earlier ones
    assert one.working[until].tobytes() == two.working[until].tobytes()
    assert one.working[~until].tobytes() != two.working[~until].tobytes()


def test_a_task_says_how_its_reports_are_weighed() -> None:
    text = (
        'title = "t"\nepsilon = 4\nperiods = 16\nperiod = "1 hour"\nchanges = 2\n'
        'values = {kind = "binary"}\n'
    )
    today, planned = catalog.parse(text), catalog.parse(text + 'weights = "planned"\n')
    assert "weights" not in today.plain()
    assert planned.plain()["weights"] == "planned"
    for task, weights in ((today, "learnt"), (planned, "planned")):
        spec = spec_of(task, catalog.stream(task), 0)
        stream: Any = stream_of(spec)
        assert spec["weights"] == stream.weights == weights
    before = {name: value for name, value in spec.items() if name != "weights"}
    assert stream_of(before) == stream  # what was published before there was a choice


def test_devices_do_not_depend_on_weights() -> None:
    for protocol in LEARNT:
        assert replace(protocol, weights="planned").fingerprint == protocol.fingerprint


@pytest.mark.parametrize("weights", ["heavy", None, ["learnt"]])
def test_weights_that_are_none_are_refused(weights: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"weights is .*; learnt or planned is expected"):
        replace(LEARNT[0], weights=weights)


def test_the_papers_levels_never_learn() -> None:
    with pytest.raises(ConfigurationError, match="where threads are aligned"):
        replace(Weave.papers(Binary(), 8, 2, 1.0), weights="learnt")


@pytest.mark.statistics
def test_a_mix_for_busy_devices_does_not_spoil_what_quiet_ones_send() -> None:
    planned = Weave(Binary(), 24, 3, 6.0, (1, 2, 0), (0.3, 0.3, 0.4))
    errors = {}
    for protocol in (planned, replace(planned, weights="learnt")):
        curves = [online(protocol, tallies_of(planned, seed)).values for seed in range(8)]
        errors[protocol.weights] = float(np.mean(np.square(curves)))
    assert errors["learnt"] < 0.5 * errors["planned"]


def bias(values: Values, runs: int) -> tuple[float, float]:
    """Return the bias of learnt weights over all periods and its standard error, in RMSEs.

    By what they say beyond planned ones of the same reports: these are exactly unbiased.
    """
    planned = Weave(values, 25, 5, 4.0, (1, 2, 0), (0.25, 0.25, 0.5))
    learnt = replace(planned, weights="learnt")
    streams = np.zeros((1_000, 25), dtype=np.int8)
    streams[:300, 6:] = 1
    streams[300:500, :10] = 1
    truth = values.encode_streams(streams).mean(axis=0)[:, 0]
    beyond, squares = np.empty(runs), np.empty(runs)
    for run in range(runs):
        tallies = collect(planned, streams, seeded(run))
        one, other = (online(protocol, tallies).values[:, 0] for protocol in (learnt, planned))
        beyond[run], squares[run] = np.nanmean(one - other), np.nanmean((one - truth) ** 2)
    size = float(squares.mean()) ** 0.5
    return float(beyond.mean()) / size, float(beyond.std(ddof=1)) / runs**0.5 / size


@pytest.mark.statistics
@pytest.mark.parametrize("values", [Binary(), Category(4)], ids=lambda values: values.kind)
def test_learnt_weights_are_hardly_biased(values: Values) -> None:
    off, error = bias(values, 40)
    assert abs(off) < 0.06 + 5 * error
    assert error < 0.03


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("values", [Binary(), Category(4)], ids=lambda values: values.kind)
def test_the_bias_of_learnt_weights_is_small_beyond_doubt(values: Values) -> None:
    """Below 0.06 of one period's RMSE with a thousand devices, twenty snapshots a period."""
    off, error = bias(values, 800)
    assert abs(off) + 5 * error < 0.06
