"""The adapted methods: decisions worked out by hand, and the right shares of the window."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt
from typing import Any

import numpy as np
import pytest

from sfumato.core.stream import Ask, Timestep
from sfumato.core.tally import Tally
from sfumato.datasets.endless import DrawnBits
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.simulation import simulate
from sfumato.streams.window import Window, WindowCurator, WindowEstimate

N = 100_000
PAIRS = ("dsat", "rescuedp", "pegasus", "fast")


def made(method: str, window: int = 20, **parameters: Any) -> Any:
    given = tuple(parameters.items())
    return Window(window, 1.0, N, domain=2, method=method, parameters=given).curator()


def told(ask: Ask, share: float, n: int) -> Tally:
    """A tally of so many answers whose estimate of the second item is this share."""
    oracle = ask.mechanism
    assert isinstance(oracle, FrequencyOracle)
    p, q = oracle.p, oracle.q
    ones = round((q + share * (p - q)) * n)
    return Tally(n, np.array([n - ones, ones]))


def drive(
    curator: WindowCurator, shares: Sequence[float | tuple[float, float]], first: int = 1
) -> list[tuple[list[Ask], WindowEstimate]]:
    """Answer each question with the period's share, or the first and the second with their own."""
    found = []
    for period, share in enumerate(shares, start=first):
        step = Timestep(curator, period)
        asked: list[Ask] = []
        while isinstance(step.question, Ask):
            asked.append(step.question)
            one = share[step.round] if isinstance(share, tuple) else share
            n = max(1, round(step.question.probability * curator.protocol.devices))
            step.answer(told(step.question, one, n))
        assert isinstance(step.done, WindowEstimate)
        found.append((asked, step.done))
    return found


# ---- DSAT_w ----------------------------------------------------------------------------------


def test_dsat_lowers_its_threshold_until_it_publishes_and_is_capped() -> None:
    curator = made("lp-dsat", publications=2, window=10)
    unit = curator.threshold
    assert unit == pytest.approx(curator.division.error(N // 4))
    # No publication yet: 0/1 - 2/10 = -0.2 is 0.15 beyond the slack of 0.05, three times.
    deviation = sqrt(unit / 2)
    steps = drive(curator, [deviation])
    assert curator.threshold == 0
    assert len(steps[0][0]) == 2  # looked and published
    # 1/2 - 0.2 = 0.3: five slacks beyond, so the threshold rises by 0.5 x 5 units.
    later = drive(curator, [deviation], first=2)[0]
    assert curator.threshold == pytest.approx(2.5 * unit)
    assert len(later[0]) == 1
    assert not later[1].published


@pytest.mark.parametrize("method", ["lb-dsat", "lp-dsat"])
def test_dsat_publishes_at_most_so_often_and_asks_nothing_when_it_cannot(method: str) -> None:
    curator = made(method, publications=2, window=5)
    wild = [float(period % 2) for period in range(1, 21)]
    published = [release.published for _, release in drive(curator, wild)]
    assert max(sum(published[start : start + 5]) for start in range(16)) == 2
    curator = made(method, publications=2, window=5)
    for asked, release in drive(curator, wild):
        assert len(asked) in (0, 1, 2)
        assert release.published == (len(asked) == 2)


# ---- RescueDP --------------------------------------------------------------------------------


def test_rescuedp_spends_a_share_of_what_is_left() -> None:
    curator = made("lp-rescuedp", most_of_whole=0.9)
    first, _ = drive(curator, [0.3], first=1)[0]
    share = 0.2 * log(2)
    assert first[0].probability == pytest.approx(int(share * N) / N)
    # From nothing to 0.3 is far more than noise: the next look is in the next period.
    assert curator.controller.due == 2
    second, _ = drive(curator, [0.3], first=2)[0]
    left = N - int(share * N)
    assert second[0].probability == pytest.approx(int(share * left) / left)


def test_rescuedp_waits_while_nothing_moves() -> None:
    curator = made("lb-rescuedp")
    steps = drive(curator, [0.3] * 30)
    looks = [period for period, (asked, _) in enumerate(steps, start=1) if asked]
    assert looks[0] == 1
    gaps = np.diff(looks)
    assert gaps.max() > 5
    for asked, release in steps:
        assert release.published == bool(asked)
        assert release.values[1] == pytest.approx(0.3, abs=1e-3)
    # In between the filter grows less sure.
    between = [release.variance[1] for asked, release in steps[looks[-1] :] if not asked]
    assert (np.diff(between) > 0).all()


# ---- PeGaSus ---------------------------------------------------------------------------------


def test_pegasus_groups_what_is_alike_and_lets_a_stranger_stand_alone() -> None:
    curator = made("lp-pegasus")
    steps = drive(curator, [(0.2, 0.3), (0.4, 0.3), (0.3, 0.3), (0.5, 0.6), (0.1, 0.6), (0.3, 0.6)])
    seen = [release.values[1] for _, release in steps]
    # Medians of {.2}, {.2, .4}, {.2, .4, .3}; then a stranger alone, and a new group.
    assert seen == pytest.approx([0.2, 0.3, 0.3, 0.5, 0.1, 0.2], abs=2e-3)
    assert all(len(asked) == 2 for asked, _ in steps)


def test_pegasus_takes_off_what_noise_does_to_a_deviation() -> None:
    curator = made("lp-pegasus", threshold=1.0)
    drive(curator, [0.3])
    group = curator.group
    noise = sqrt(curator.division.error(group, None))
    # Two answers that are x apart deviate by x in all; noise alone by 2 s sqrt(1 / pi).
    limit = noise * (1 + 2 * sqrt((1 - 1 / 2) * 2 / pi))
    for apart, alike in ((0.97 * limit, True), (1.03 * limit, False)):
        curator = made("lp-pegasus", threshold=1.0)
        _, (_, release) = drive(curator, [(0.1, 0.5), (0.3, 0.5 + apart)])
        assert release.values[1] == pytest.approx(0.2 if alike else 0.3, abs=2e-3)


def test_pegasus_smoothers() -> None:
    answers = [(0.1, 0.3), (0.1, 0.3), (0.4, 0.3)]
    expected = {"median": 0.1, "mean": 0.2, "james-stein": 0.2 + 0.2 / 3}
    for smoother, value in expected.items():
        steps = drive(made("lp-pegasus", smoother=smoother), answers)
        assert steps[-1][1].values[1] == pytest.approx(value, abs=2e-3)
    with pytest.raises(ConfigurationError, match="smoother is 'mode'; median, mean"):
        made("lp-pegasus", smoother="mode")


# ---- FAST ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lb-fast", "lp-fast"])
def test_fast_looks_a_few_times_in_any_window(method: str) -> None:
    steps = drive(made(method), [0.1 + 0.8 * (period % 2) for period in range(80)])
    looked = [bool(asked) for asked, _ in steps]
    assert looked[:3] == [True] * 3
    assert max(sum(looked[start : start + 20]) for start in range(61)) == 3  # 15% of 20
    asked = steps[0][0][0]
    if method == "lb-fast":
        assert asked.mechanism.epsilon == pytest.approx(1 / 3, abs=1e-6)
    else:
        assert asked.probability == pytest.approx((N // 3) / N)


def test_fast_waits_longer_while_it_predicts_well() -> None:
    curator = made("lp-fast", window=200, looks=0.5)
    steps = drive(curator, [0.3] * 100)
    looks = [period for period, (asked, _) in enumerate(steps, start=1) if asked]
    assert looks[:5] == [1, 2, 3, 4, 5]
    # Errors are 0: the interval grows by 5 (1 - 1/e) each time.
    grown = 1 + 5 * (1 - np.exp(-1)) * np.arange(1, 5)
    assert np.diff(looks)[4:8].tolist() == grown.astype(int).tolist()


# ---- all ---------------------------------------------------------------------------------------


@pytest.mark.statistics
@pytest.mark.parametrize("method", PAIRS)
def test_dividing_devices_is_better_than_dividing_budget(method: str) -> None:
    stream = DrawnBits("sin", N, 150)
    errors = {}
    for prefix in ("lb", "lp"):
        protocol = Window(20, 1.0, N, domain=2, method=f"{prefix}-{method}")
        errors[prefix] = simulate(protocol, stream, seed=7).mse()
    assert errors["lp"] < errors["lb"]


@pytest.mark.parametrize(
    ("method", "parameter", "value", "sentence"),
    [
        ("lp-dsat", "share", 1.0, "share is 1.0; a number between 0 and 1"),
        ("lb-dsat", "publications", 21, "publications is 21; a window of 20"),
        ("lb-rescuedp", "scale", 0, "scale is 0; a positive number"),
        ("lp-pegasus", "grouping", 1.5, "grouping is 1.5"),
        ("lp-fast", "target", -1, "target is -1"),
    ],
)
def test_bad_parameters_get_one_sentence(
    method: str, parameter: str, value: Any, sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        made(method, **{parameter: value})


def test_too_few_devices_or_too_little_budget() -> None:
    with pytest.raises(ConfigurationError, match=r"devices is 10 .*; lp-dsat needs 40 at least"):
        Window(20, 1.0, 10, domain=2, method="lp-dsat").curator()
    with pytest.raises(ConfigurationError, match=r"the grouper would get .*, and 1e-06 is"):
        Window(1000, 1e-4, 10, domain=2, method="lb-pegasus").curator()
