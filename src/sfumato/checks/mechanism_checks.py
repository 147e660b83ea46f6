"""The checks of one-shot mechanisms, each with one claim.

Privacy is decided exactly, over the integers the sampler uses. Statistical checks use fixed seeds,
raise a false alarm with probability below 1e-9 each, and are large enough to reject an epsilon that
is wrong by a tenth.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Final

from sfumato.checks.estimates import estimates_are_unbiased_and_cover, simulated_tallies_agree
from sfumato.checks.independence import nobody_shares_coins
from sfumato.checks.path_checks import every_path_follows_the_law
from sfumato.checks.privacy import (
    epsilon_is_spent_and_not_exceeded,
    exact_ratio,
    reports_are_integers,
)
from sfumato.checks.sampler import (
    one_report_is_as_private_as_many,
    people_do_not_touch_each_other,
    same_seed_same_reports,
    sampler_follows_its_law,
)
from sfumato.checks.server import (
    engines_agree,
    garbage_is_refused,
    tally_adds_up,
    wire_round_trip,
)
from sfumato.checks.shuffle_checks import others_cover_as_stated, shuffled_reports_hide_as_stated
from sfumato.checks.sizes import large_sizes_follow_the_law
from sfumato.checks.sources import every_source_is_treated_alike
from sfumato.checks.verdict import Verdict, demand, findings_of
from sfumato.core.exact import log_above, log_below
from sfumato.core.mechanism import Mechanism

__all__ = ["MECHANISM_CHECKS", "check_mechanism"]


def configuration_round_trip(mechanism: Mechanism) -> None:
    """The configuration is plain data and rebuilds an equal mechanism."""
    plain = json.loads(json.dumps(mechanism.configuration()))
    demand(plain.pop("mechanism") == mechanism.name, "the configuration does not say its name")
    demand(set(plain) == {field.name for field in fields(mechanism)}, "fields are missing")
    demand(type(mechanism)(**plain) == mechanism, "the rebuilt mechanism differs")


MECHANISM_CHECKS: Final[tuple[Callable[[Mechanism], None], ...]] = (
    epsilon_is_spent_and_not_exceeded,
    shuffled_reports_hide_as_stated,
    others_cover_as_stated,
    reports_are_integers,
    every_path_follows_the_law,
    sampler_follows_its_law,
    one_report_is_as_private_as_many,
    large_sizes_follow_the_law,
    same_seed_same_reports,
    every_source_is_treated_alike,
    people_do_not_touch_each_other,
    nobody_shares_coins,
    tally_adds_up,
    engines_agree,
    wire_round_trip,
    garbage_is_refused,
    estimates_are_unbiased_and_cover,
    simulated_tallies_agree,
    configuration_round_trip,
)


def check_mechanism(
    mechanism: Mechanism, progress: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Run every check on one small instance; return the verdict with all failures."""
    findings = findings_of(MECHANISM_CHECKS, mechanism, progress)
    try:
        ratio = exact_ratio(mechanism)
        upper, used = log_above(ratio), log_below(ratio) / mechanism.epsilon
    except Exception:  # noqa: BLE001 - no law, or not one: the failures say what is wrong
        upper, used = math.inf, math.inf
    return Verdict(mechanism, mechanism.epsilon, upper, used, *findings)
