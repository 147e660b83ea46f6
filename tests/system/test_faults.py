"""Whatever goes wrong, what was acknowledged counts exactly once, and nothing counts after a close.

Every plan is drawn from a seed, which is printed with it: SFUMATO_SEED runs it again.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.system.faults.bench import run
from tests.system.faults.inside import WRONG
from tests.system.faults.plan import Fault, Plan
from tests.system.faults.sites import SITES, FileSite

MANY = 320
"""The number of faults in a long run, of which a third or more are kills."""


def _holds(folder: Path, where: str, plan: Plan) -> str:
    print(plan)  # noqa: T201 -- so that it can be drawn again
    outcome = run(folder, SITES[where], plan)
    assert not outcome.problems
    assert outcome.acknowledged > 2 * len(plan.faults)
    assert min(outcome.closed) > 2
    assert outcome.mishaps > len(plan.faults)
    return f"{where}: {len(plan.faults)} faults, {plan.kills} kills; {outcome}"


@pytest.mark.parametrize("where", SITES)
def test_what_was_acknowledged_counts_once_whatever_goes_wrong(tmp_path: Path, where: str) -> None:
    seed = int(os.environ.get("SFUMATO_SEED", "1"))
    _holds(tmp_path, where, Plan.drawn(seed, SITES[where].faults, 7))


@pytest.mark.slow
@pytest.mark.parametrize("where", SITES)
def test_the_same_through_hundreds_of_faults(
    tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("SFUMATO_SEED", str(time.time_ns() % 1_000_000)))
    count = int(os.environ.get("SFUMATO_FAULTS", str(MANY)))
    summary = _holds(tmp_path, where, Plan.drawn(seed, SITES[where].faults, count))
    with capsys.disabled():
        print(f"\nseed {seed}, {summary}")  # noqa: T201 -- the figures themselves


NOTICED = {
    "acknowledges before commit": ("reports that were acknowledged", ["kill a collector"]),
    "forgets ids": ("reports twice", ["crash while counting"]),
    "counts after close": ("after period", ["stop devices and go on"] * 4),
    "changes releases": ("released", ["kill a collector"]),
    "draws anew": ("twice", ["kill devices", "storm"]),
}
"""What is said of each wrong one, and what has to go wrong for it."""


@pytest.mark.parametrize(
    "wrong", [*list(WRONG)[:3], *(pytest.param(w, marks=pytest.mark.slow) for w in list(WRONG)[3:])]
)
def test_each_wrong_one_is_noticed(tmp_path: Path, wrong: str) -> None:
    expected, faults = NOTICED[wrong]
    said: list[str] = []
    for seed in range(1, 4):  # on a busy machine nothing may be under way when something goes wrong
        plan = Plan(
            seed, [Fault(what, 2.0 + 0.3 * k, 1.0, k, 1.0) for k, what in enumerate(faults, 1)]
        )
        (tmp_path / str(seed)).mkdir()
        said = run(tmp_path / str(seed), FileSite, plan, wrong=wrong).problems
        if any(expected in problem for problem in said):
            return
    raise AssertionError(said)
