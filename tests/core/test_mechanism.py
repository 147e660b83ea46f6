"""What the contract does for every mechanism: epsilon, batches, checks of input and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import GRR, OLH, OUE, Tally, seeded
from sfumato.errors import ConfigurationError, MismatchError, ReportError
from sfumato.mechanisms.frequency import FrequencyOracle

ALL = [GRR, OUE, OLH]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("epsilon", "says"),
    [
        (0, "epsilon is 0; it must lie in 1e-06..20."),
        (-1.0, "epsilon is -1.0; it must lie in 1e-06..20."),
        (9e-7, "epsilon is 9e-07; it must lie in 1e-06..20."),
        (20.1, "epsilon is 20.1; it must lie in 1e-06..20."),
        (float("nan"), "epsilon is nan; a positive number is expected."),
        (float("inf"), "epsilon is inf; a positive number is expected."),
        (True, "epsilon is True; a positive number is expected."),
        ("1", "epsilon is '1'; a positive number is expected."),
        (None, "epsilon is None; a positive number is expected."),
    ],
)
def test_an_epsilon_that_cannot_be_kept_is_refused(
    kind: type[FrequencyOracle], epsilon: Any, says: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        kind(epsilon, 4)
    assert str(caught.value) == says


def test_epsilon_is_kept_as_a_plain_float() -> None:
    given: Any
    for given in (1, np.float32(1), np.int64(1)):
        assert type(GRR(given, 4).epsilon) is float
        assert GRR(given, 4) == GRR(1.0, 4)


@pytest.mark.parametrize("kind", ALL)
def test_a_mechanism_is_its_configuration(kind: type[FrequencyOracle]) -> None:
    mechanism = kind(0.5, ("a", "b"))
    assert mechanism.configuration()["mechanism"] == kind.name
    assert mechanism == kind(0.5, ("a", "b"))
    assert len({mechanism, kind(0.5, ("a", "b")), kind(0.5, ("a", "c"))}) == 2
    assert mechanism.guarantee.epsilon == 0.5
    with pytest.raises(AttributeError):
        mechanism.epsilon = 5.0  # type: ignore[misc]


@pytest.mark.parametrize("mechanism", [GRR(1.0, 7), OUE(1.0, 70), OLH(1.0, 50)], ids=str)
def test_a_single_value_is_a_batch_of_one(mechanism: FrequencyOracle) -> None:
    reports = mechanism.randomize(3, seeded(1))
    assert reports.shape == (1,)
    assert reports.tobytes() == mechanism.randomize([3], seeded(1)).tobytes()


@pytest.mark.parametrize("mechanism", [GRR(3.0, 7), OUE(3.0, 300), OLH(3.0, 50)], ids=str)
def test_batches_longer_than_a_chunk_are_whole(mechanism: FrequencyOracle) -> None:
    n = 2 * mechanism.chunk + 3
    reports = mechanism.randomize(np.full(n, 5), seeded(2))
    tally = mechanism.tally(reports)
    assert tally.n == n
    assert int(tally.sums.argmax()) == 5
    assert tally == mechanism.tally(reports[:100]) + mechanism.tally(reports[100:])
    assert mechanism.decode(reports.tobytes()).tobytes() == reports.tobytes()


def test_a_bad_report_is_named_by_its_place_among_all() -> None:
    mechanism = GRR(1.0, 200)
    reports = mechanism.randomize(np.zeros(2 * mechanism.chunk, dtype=int), seeded(3))
    reports["item"][mechanism.chunk + 77] = 200
    for judge in (mechanism.tally, mechanism.checked, lambda r: mechanism.decode(r.tobytes())):
        with pytest.raises(ReportError) as caught:
            judge(reports)
        assert f"reports[{mechanism.chunk + 77}] = (200,) cannot come from grr" in str(caught.value)


@pytest.mark.parametrize("mechanism", [GRR(1.0, 300), OUE(1.0, 12), OLH(1.0, 12)], ids=str)
def test_bytes_that_are_no_reports_are_refused(mechanism: FrequencyOracle) -> None:
    size = mechanism.report_bytes
    for data in (b"", b"\0" * (size + 1), b"\0" * (3 * size - 1)):
        with pytest.raises(ReportError) as caught:
            mechanism.decode(data)
        assert str(caught.value) == (
            f"{len(data)} bytes are not a whole number of {mechanism.name} reports of {size} bytes."
        )
    with pytest.raises(ReportError, match=r"reports\[1\] = .* cannot come from"):
        mechanism.decode(bytes(size) + b"\xff" * size)


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        ([], "reports have dtype list; "),
        (None, "reports have dtype NoneType; "),
        (np.zeros(0), "reports have dtype float64; "),
        (np.zeros(3, np.uint8), "reports have dtype uint8; "),
        (GRR(1.0, 300).randomize([1], seeded(0)), r"reports have dtype \[\('item', '<u2'\)\]; "),
        (np.zeros((2, 2), GRR(1.0, 4).report_dtype), r"reports have shape \(2, 2\); a flat array"),
    ],
)
def test_what_is_no_array_of_reports_is_refused(reports: Any, says: str) -> None:
    with pytest.raises(ReportError, match=says):
        GRR(1.0, 4).tally(reports)


def test_no_reports_are_a_tally_of_nothing_and_no_estimate() -> None:
    mechanism = GRR(1.0, 4)
    nothing = mechanism.tally(np.zeros(0, mechanism.report_dtype))
    assert nothing == Tally.zero(4)
    with pytest.raises(MismatchError, match="the tally has n = 0 reports; an estimate needs"):
        mechanism.estimate(nothing)


def test_a_tally_of_something_else_has_no_estimate() -> None:
    with pytest.raises(MismatchError, match=r"the tally has shape \(3,\); grr needs \(4,\)."):
        GRR(1.0, 4).estimate(Tally.zero(3))
    for sums in ([-1, 2, 0, 0], [3, 0, 0, 0]):
        with pytest.raises(MismatchError, match=r"the tally has counts outside of 0..n = 2; it is"):
            GRR(1.0, 4).estimate(Tally(2, np.array(sums)))


@pytest.mark.parametrize("mechanism", [GRR(1.0, 5), OUE(1.0, 3), OLH(1.0, 3)], ids=str)
def test_the_likelihood_of_a_report_is_what_the_law_says(mechanism: FrequencyOracle) -> None:
    reports = mechanism.randomize([0, 1, 2] * 5, seeded(4))
    for value in mechanism.inputs():
        for report, log in zip(reports, mechanism.log_likelihood(reports, value), strict=True):
            chances = [
                law.numerators[law.outputs.tolist().index(report.tolist())] / law.denominator
                for public in mechanism.publics()
                if report.tolist() in (law := mechanism.law(value, public)).outputs.tolist()
            ]
            assert chances == pytest.approx([np.exp(log)])


def test_a_report_that_cannot_be_has_no_likelihood() -> None:
    foreign = np.full(1, 250, dtype=np.uint8).view(GRR(1.0, 5).report_dtype)
    assert GRR(1.0, 5).log_likelihood(foreign, 0).tolist() == [-np.inf]
