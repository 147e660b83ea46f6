"""Checks of one-shot mechanisms: each a few lines, one claim each.

Privacy is decided exactly, over the integers the sampler uses. Statistical checks draw from fixed
seeds, raise a false alarm with probability below 1e-9 each, and are sized to reject what is wrong
by a tenth.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.shuffle import delta_above, delta_below
from sfumato.core.contrast import listed
from sfumato.core.exact import exp_below, log_above, log_below
from sfumato.core.law import worst_ratio
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.engines import aggregate
from sfumato.errors import InputError, ReportError
from sfumato.randomness import seeded

__all__ = [
    "ALARM",
    "BUDGET_WASTED",
    "MECHANISM_CHECKS",
    "CheckFailed",
    "Verdict",
    "check_mechanism",
    "chi_squared_tail",
    "demand",
]

ALARM: Final = 1e-9
BUDGET_WASTED: Final = 1e-6


class CheckFailed(AssertionError):
    """A mechanism does not do what it claims."""


def demand(claim: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise unless the claim holds."""
    if not claim:
        raise CheckFailed(otherwise)


# ---- privacy, exactly -----------------------------------------------------------------------


def exact_ratio(mechanism: Mechanism) -> Fraction:
    """Return the largest likelihood ratio of two inputs, by listing the whole law."""
    worst = Fraction(1)
    for public in mechanism.publics():
        laws = [mechanism.law(value, public) for value in mechanism.inputs()]
        for value, law in zip(mechanism.inputs(), laws, strict=True):
            total = sum(law.numerators)
            demand(
                total == law.denominator and min(law.numerators) >= 0,
                f"the law of {value!r} sums to {total}/{law.denominator}, not to 1",
            )
            demand(
                law.outputs.tobytes() == laws[0].outputs.tobytes(),
                f"the law of {value!r} lists other outputs than that of {mechanism.inputs()[0]!r}",
            )
        found = worst_ratio(laws)
        if found is None:
            raise CheckFailed(
                "some report is possible under one input and impossible under another"
            )
        worst = max(worst, found)
    return worst


def epsilon_is_spent_and_not_exceeded(mechanism: Mechanism) -> None:
    """The worst likelihood ratio is at most e^epsilon and at least e^(epsilon (1 - 1e-6))."""
    ratio = exact_ratio(mechanism)
    demand(
        ratio <= exp_below(mechanism.epsilon),
        f"the law leaks epsilon {log_above(ratio):.9g}, more than {mechanism.epsilon:g}",
    )
    demand(
        ratio == mechanism.worst_ratio,
        f"worst_ratio says epsilon {log_above(mechanism.worst_ratio):.9g}, "
        f"the law says {log_above(ratio):.9g}",
    )
    used = log_below(ratio) / mechanism.epsilon
    demand(
        used >= 1 - BUDGET_WASTED or bool(mechanism.underspends),
        f"only {used:.6%} of epsilon is used, and the class does not say why (underspends)",
    )


def shuffled_reports_hide_as_stated(mechanism: Mechanism) -> None:
    """What accountants of the shuffle model are told covers every pair of inputs."""
    if type(mechanism).contrasts is Mechanism.contrasts:
        return  # they are told the whole law
    for whole in listed(mechanism, triples=0):
        for known in mechanism.contrasts():
            for n, share in ((5, 0.4), (200, 0.1)):
                epsilon = share * log_below(mechanism.worst_ratio)
                delta = delta_above(whole.bounding, n, epsilon)
                demand(
                    bool(known.assumption)
                    or delta_above(known.bounding, n, epsilon) >= delta * (1 - 1e-3),
                    f"the reports of {n} people tell more than the contrasts say",
                )
                demand(
                    bool(known.attained_if)
                    or delta_below(known.attained, n, epsilon) <= delta * (1 + 1e-3),
                    f"the reports of {n} people tell less than the contrasts say",
                )


def reports_are_integers(mechanism: Mechanism) -> None:
    """No field of a report is a floating-point number (Mironov 2012)."""
    dtype = mechanism.report_dtype
    parts = [dtype[name] for name in dtype.names] if dtype.names else [dtype]
    for part in parts:
        demand(
            part.base.kind in "iub",
            f"reports hold {part.base}; only integers may leave a device",
        )


# ---- the sampler ----------------------------------------------------------------------------


def _fit(mechanism: Mechanism, law_of: Mechanism, value: Any, reports: NDArray[Any]) -> float:
    """Return the p-value of Pearson's test that the reports follow law_of's law of the value."""
    publics = law_of.publics()
    expected: dict[bytes, float] = {}
    for public in publics:
        law = law_of.law(value, public)
        for output, chance in zip(law.outputs, law.probabilities, strict=True):
            expected[output.tobytes()] = len(reports) * chance / len(publics)
    raw = np.ascontiguousarray(reports).view(f"V{mechanism.report_bytes}")
    kinds, counts = np.unique(raw, return_counts=True)
    seen = {kind.tobytes(): int(count) for kind, count in zip(kinds, counts, strict=True)}
    if set(seen) - set(expected):
        return 0.0
    # Rare outputs share one cell, so that the statistic is close to chi-squared.
    cells: list[tuple[float, float]] = []
    rare_seen = rare_expected = 0.0
    for output, mean in sorted(expected.items(), key=lambda pair: pair[1]):
        if mean < 20:
            rare_seen += seen.get(output, 0)
            rare_expected += mean
        else:
            cells.append((seen.get(output, 0), mean))
    if rare_expected:
        cells.append((rare_seen, max(rare_expected, 1e-300)))
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    return chi_squared_tail(statistic, max(len(cells) - 1, 1))


def chi_squared_tail(statistic: float, freedom: int) -> float:
    """Return P[chi-squared > statistic] by Wilson and Hilferty's cube root, good to far tails."""
    spread = 2 / (9 * freedom)
    return NormalDist().cdf(-((statistic / freedom) ** (1 / 3) - 1 + spread) / math.sqrt(spread))


def sampler_follows_its_law(mechanism: Mechanism) -> None:
    """Reports fit the stated law, and fit neither the law at 0.9 nor at 1.1 epsilon.

    A few inputs are drawn many times, so that a tenth of epsilon is seen; every other input, and
    values between them where there are any, often enough to see one that is treated differently.
    """
    draws = 400_000
    rejected = dict.fromkeys((0.9, 1.1), False)
    few = _few(mechanism.inputs())
    for index, value in enumerate(few):
        reports = mechanism.randomize([value] * draws, seeded(index))
        _must_fit(mechanism, value, reports)
        for factor in rejected:
            wrong = replace(mechanism, epsilon=mechanism.epsilon * factor)
            if wrong.report_dtype == mechanism.report_dtype:
                rejected[factor] |= _fit(mechanism, wrong, value, reports) < ALARM
            else:
                rejected[factor] = True
    for factor, caught in rejected.items():
        demand(caught, f"{draws} reports cannot be told from {factor} epsilon")
    for index, value in enumerate([*mechanism.inputs(), *mechanism.probes()]):
        _must_fit(mechanism, value, mechanism.randomize([value] * 4_000, seeded(100 + index)))


def one_report_is_as_private_as_many(mechanism: Mechanism) -> None:
    """A batch of one, which is what a device draws, follows the law too, whatever came before."""
    values = _few(mechanism.inputs())
    rng = seeded(12)
    drawn: list[list[NDArray[Any]]] = [[] for _ in values]
    for _ in range(500):
        for reports, value in zip(drawn, values, strict=True):
            reports.append(mechanism.randomize([value], rng))
    for reports, value in zip(drawn, values, strict=True):
        _must_fit(mechanism, value, np.concatenate(reports))


def _must_fit(mechanism: Mechanism, value: Any, reports: NDArray[Any]) -> None:
    p_value = _fit(mechanism, mechanism, value, reports)
    demand(p_value > ALARM, f"reports of {value!r} do not follow the law (p = {p_value:.1e})")


def _few(inputs: Any) -> list[Any]:
    return [inputs[0], inputs[len(inputs) // 2], inputs[-1]] if len(inputs) > 3 else list(inputs)


def _people(mechanism: Mechanism, n: int) -> NDArray[Any]:
    """Simulated people: every input is there, later ones are rarer."""
    inputs = np.asarray(mechanism.inputs())
    chance = 1 / np.arange(1, len(inputs) + 1)
    chosen = seeded(n).simulator().choice(len(inputs), size=n, p=chance / chance.sum())
    return np.asarray(inputs[chosen])


def same_seed_same_reports(mechanism: Mechanism) -> None:
    """All coins come from the argument: one seed gives one outcome, two seeds two."""
    people = _people(mechanism, 500)
    before = (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    first, again = (mechanism.randomize(people, seeded(3)) for _ in range(2))
    after = (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    demand(before == after, "global random state was used")
    demand(first.tobytes() == again.tobytes(), "one seed gave two different outcomes")
    other = mechanism.randomize(people, seeded(4))
    demand(first.tobytes() != other.tobytes(), "two seeds gave one outcome: no coins are used")


def people_do_not_touch_each_other(mechanism: Mechanism) -> None:
    """Changing one person's value changes that person's report and nobody else's.

    This holds coin for coin, so neither another's raw value nor a data-dependent number of coins
    can reach a report. What only some coins bring to light needs many seeds.
    """
    people = _people(mechanism, 64)
    for seed in range(24):
        rng = seeded(seed)
        before, next_coins = mechanism.randomize(people, rng), rng.take(8)
        for changed, value in product((0, 31, 63), _few(mechanism.inputs())):
            altered = people.copy()
            altered[changed] = value
            rng = seeded(seed)
            after = mechanism.randomize(altered, rng)
            same = np.arange(64) != changed
            demand(
                before[same].tobytes() == after[same].tobytes() and rng.take(8) == next_coins,
                f"person {changed} holding {value!r} changed somebody else's report or coins",
            )


# ---- the server -----------------------------------------------------------------------------


def tally_adds_up(mechanism: Mechanism) -> None:
    """Tallying is a homomorphism: any split in any order has the same sum."""
    reports = mechanism.randomize(_people(mechanism, 999), seeded(6))
    whole = mechanism.tally(reports)
    demand(whole.n == len(reports), f"the tally of {len(reports)} reports says n = {whole.n}")
    for cut in (0, 1, 500):
        parts = mechanism.tally(reports[cut:]) + mechanism.tally(reports[:cut])
        demand(parts == whole, f"two parts cut at {cut} do not add up to the whole")
    demand(mechanism.tally(reports[::-1].copy()) == whole, "the order of reports matters")


def engines_agree(mechanism: Mechanism) -> None:
    """The engine's tally of batches is the tally of everything."""
    reports = mechanism.randomize(_people(mechanism, 300), seeded(7))
    batches = (reports[start : start + 64] for start in range(0, 300, 64))
    demand(aggregate(mechanism, batches) == mechanism.tally(reports), "batches do not add up")


def wire_round_trip(mechanism: Mechanism) -> None:
    """Bytes out, bytes in: the same reports, and every one of them valid."""
    reports = mechanism.randomize(_people(mechanism, 300), seeded(8))
    demand(reports.dtype == mechanism.report_dtype, f"reports have dtype {reports.dtype}")
    demand(bool(mechanism.valid(reports).all()), "the mechanism refuses its own reports")
    decoded = mechanism.decode(reports.tobytes())
    demand(decoded.tobytes() == reports.tobytes(), "decoding changed the reports")


def garbage_is_refused(mechanism: Mechanism) -> None:
    """Only reports that the law lists are valid, and broken bytes or values raise one error."""
    size = mechanism.report_bytes
    good = mechanism.randomize(_people(mechanism, 3), seeded(9)).tobytes()
    for data in (b"", good[:-1], good + b"\0")[: 3 if size > 1 else 1]:
        _must_raise(ReportError, partial(mechanism.decode, data), f"{len(data)} bytes")
    possible = {
        output.tobytes()
        for public in mechanism.publics()
        for output in mechanism.law(mechanism.inputs()[0], public).outputs
    }
    noise = bytes(seeded(10).take(2000 * size)) + b"\xff" * size + bytes(size)
    shaped = np.frombuffer(noise, dtype=mechanism.report_dtype)
    for report, judged in zip(shaped, mechanism.valid(shaped), strict=True):
        demand(
            bool(judged) == (report.tobytes() in possible),
            f"report {report} is {'accepted' if judged else 'refused'}, against the law",
        )
    _must_raise(ReportError, partial(mechanism.tally, np.zeros(3)), "an array of floats")
    rng = seeded(11)
    for bad in ([], [None], [math.nan], [math.inf], ["no such value"], [[0, 1]], [10**9], object()):
        _must_raise(InputError, partial(mechanism.randomize, bad, rng), f"the value {bad!r}")


def _must_raise(kind: type[Exception], call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except kind:
        return
    except Exception as error:
        raise CheckFailed(
            f"{what} raised {type(error).__name__} instead of {kind.__name__}"
        ) from error
    raise CheckFailed(f"{what} was accepted")


def estimates_are_unbiased_and_cover(mechanism: Mechanism) -> None:
    """Over many collections errors average to zero, vary as stated, and intervals cover."""
    n, rounds = 400, 600
    people = _people(mechanism, n)
    truth = mechanism.truth(people)
    estimates, sums = [], []
    covered, reached = 0, 0.0
    weights = 1 + seeded(13).simulator().normal(size=truth.size) / 2
    for start in range(rounds):
        tally = mechanism.tally(mechanism.randomize(people, seeded(1000 + start)))
        estimate = mechanism.estimate(tally)
        low, high = estimate.interval(0.95)
        covered += int(((low <= truth) & (truth <= high)).sum())
        reached += float(((high - low) / (2 * 1.96 * estimate.standard_errors)).sum())
        error = estimate.values - truth
        estimates.append(error / estimate.standard_errors)
        if estimate.covariance.joint:
            sums.append(float(weights @ error) / math.sqrt(float(estimate.variance_of(weights))))
    z = np.array(estimates)
    limit = -NormalDist().inv_cdf(ALARM / (2 * truth.size))
    drift = np.abs(z.mean(axis=0)) * math.sqrt(rounds)
    # A standardized error has unit variance; 1.15 leaves room for the estimated standard error.
    demand(bool((drift < 1.15 * limit).all()), f"estimates are biased by {drift.max():.1f} sigma")
    spread = (z**2).mean(axis=0)
    reach = limit * math.sqrt(2.6 / rounds)
    demand(
        bool(((spread > 1 - reach) & (spread < 1 + reach)).all()),
        f"the true variance is {spread.min():.2f} to {spread.max():.2f} times the stated one",
    )
    together = float(np.mean(np.square(sums))) if sums else 1.0
    demand(
        abs(together - 1) < reach,
        f"the true variance of a weighted sum is {together:.2f} times the stated one",
    )
    share = covered / (rounds * truth.size)
    demand(share > 0.92, f"95% intervals cover {share:.1%}")
    wide = reached / (rounds * truth.size)
    demand(wide < 1.5, f"95% intervals are {wide:.2f} times as wide as the noise")


def simulated_tallies_agree(mechanism: Mechanism) -> None:
    """sample_tally has the mean and the spread of real tallies."""
    n, rounds = 300, 400
    people = _people(mechanism, n)
    same = [(people == value).reshape(n, -1).all(axis=1) for value in mechanism.inputs()]
    histogram = np.array([int(rows.sum()) for rows in same])
    drawn, real = np.empty((2, rounds, *mechanism.tally_shape))
    for index in range(rounds):
        sample = mechanism.sample_tally(histogram, seeded(20_000 + index))
        demand(isinstance(sample, Tally) and sample.n == n, f"a sample of {n} says n = {sample.n}")
        drawn[index] = sample.sums
        real[index] = mechanism.tally(mechanism.randomize(people, seeded(40_000 + index))).sums
    limit = -NormalDist().inv_cdf(ALARM / (4 * drawn[0].size))
    variance = (drawn.var(axis=0, ddof=1) + real.var(axis=0, ddof=1)) / 2
    apart = np.abs(drawn.mean(axis=0) - real.mean(axis=0))
    demand(
        bool((apart <= 1.1 * limit * np.sqrt(2 * variance / rounds)).all()),
        "simulated and real tallies differ in the mean",
    )
    ratio = (drawn.var(axis=0, ddof=1) + 1e-12) / (real.var(axis=0, ddof=1) + 1e-12)
    reach = 1.2 * limit * math.sqrt(4 / rounds)
    demand(bool((np.abs(np.log(ratio)) < reach).all()), "they differ in the spread")


def configuration_round_trip(mechanism: Mechanism) -> None:
    """The configuration is plain data and rebuilds an equal mechanism."""
    plain = json.loads(json.dumps(mechanism.configuration()))
    demand(plain.pop("mechanism") == mechanism.name, "the configuration does not say its name")
    demand(set(plain) == {field.name for field in fields(mechanism)}, "fields are missing")
    demand(type(mechanism)(**plain) == mechanism, "the rebuilt mechanism differs")


MECHANISM_CHECKS: Final[tuple[Callable[[Mechanism], None], ...]] = (
    epsilon_is_spent_and_not_exceeded,
    shuffled_reports_hide_as_stated,
    reports_are_integers,
    sampler_follows_its_law,
    one_report_is_as_private_as_many,
    same_seed_same_reports,
    people_do_not_touch_each_other,
    tally_adds_up,
    engines_agree,
    wire_round_trip,
    garbage_is_refused,
    estimates_are_unbiased_and_cover,
    simulated_tallies_agree,
    configuration_round_trip,
)


@dataclass(frozen=True)
class Verdict:
    """What the checks found about one mechanism, one kind of noise or one protocol.

    ``failures`` has the name of each failed check and what it found.
    """

    mechanism: Any
    epsilon_claimed: float
    epsilon_exact_upper: float
    budget_used: float
    failures: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.failures


def failures_of(
    checks: Sequence[Callable[[Any], None]], subject: Any, progress: Callable[[str], None]
) -> tuple[tuple[str, str], ...]:
    """Run checks on one subject; return the name of each that failed and what it found."""
    failures = []
    for check in checks:
        progress(check.__name__)
        try:
            check(subject)
        except CheckFailed as finding:
            failures.append((check.__name__, str(finding)))
        except Exception as error:  # noqa: BLE001 - a crash is a finding too
            failures.append((check.__name__, f"{type(error).__name__}: {error}"))
    return tuple(failures)


def check_mechanism(
    mechanism: Mechanism, progress: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Run every check on one small instance and collect what fails."""
    failures = failures_of(MECHANISM_CHECKS, mechanism, progress)
    try:
        ratio = exact_ratio(mechanism)
        upper, used = log_above(ratio), log_below(ratio) / mechanism.epsilon
    except Exception:  # noqa: BLE001 - no law, or not one: the failures say what is wrong
        upper, used = math.inf, math.inf
    return Verdict(mechanism, mechanism.epsilon, upper, used, failures)
