from __future__ import annotations

import pytest

from sfumato.lab.experiment import Cell, Erratum, Experiment, Measured, Results, Statement
from sfumato.lab.judgements import agrees, counted, judged
from sfumato.lab.paper_numbers import PrintedNumber


@pytest.mark.parametrize(
    ("digits", "ours", "error", "spread", "same"),
    [
        ("100", 104.0, 0.0, 0.0, True),
        ("100", 107.0, 0.0, 0.0, False),
        ("100", 90.0, 0.0, 0.0, False),
        ("100", 107.0, 2.0, 0.0, True),
        ("100", 107.0, 0.0, 0.02, True),
        ("4.0e+3", 4255.0, 0.0, 0.0, True),  # 5% beyond what rounding can do
        ("4.0e+3", 4452.0, 0.0, 0.0067, False),
        ("0.0000", 0.0, 0.0, 0.0, True),
        ("0.0000", 1.0, 0.0, 0.0, False),
        ("1.5", float("inf"), 0.0, 0.0, False),
        ("-0.2", -0.24, 0.0, 0.0, True),  # a power of ten
        ("-0.2", -0.26, 0.0, 0.0, False),
    ],
)
def test_a_number_agrees_up_to_noise_and_digits(
    digits: str, ours: float, error: float, spread: float, *, same: bool
) -> None:
    assert agrees(PrintedNumber({}, "TVE", digits), Measured(ours, error), spread) is same


def _experiment(errata: tuple[Erratum, ...], *statements: Statement) -> Experiment:
    return Experiment(
        "000/table-2",
        "",
        lambda _: [],
        lambda _cell, _setting: {},
        "",
        errata=errata,
        statements=statements,
    )


def _results(tve: float, devices: int) -> Results:
    cell: Cell = {"mechanism": "exsub", "epsilon": 1.0, "devices": devices}
    return Results(((cell, {"TVE": Measured(tve), "MAE": Measured(0.094)}),))


MORE = Erratum("more people", {"devices": 50})


@pytest.mark.parametrize(
    ("caption", "corrected", "verdict"),
    [
        (3.64, 9.0, "reproduced"),
        (9.0, 3.64, "explained by an erratum"),
        (9.0, 9.0, "differs"),
    ],
)
def test_an_erratum_explains_only_what_it_predicts(
    caption: float, corrected: float, verdict: str
) -> None:
    judgements = [*judged(_experiment((MORE,)), _results(caption, 10), _results(corrected, 50))]
    (own,) = (each for each in judgements if each.subject == "TVE at exsub, epsilon 1")
    assert own.verdict == verdict
    assert (own.why == MORE.why) is (verdict == "explained by an erratum")
    assert len(judgements) == 40  # none is left out
    assert counted(judgements)["not measured"] == 38


def test_statements_are_judged() -> None:
    wrong = Statement("all is well", "9%", lambda _: (False, "3%"))
    known = Statement("all is well", "9%", lambda _: (False, "3%"), "it is not")
    right = Statement("some is well", "", lambda _: (True, "so it is"))
    both = judged(_experiment((), wrong, known, right), _results(1.0, 10), Results(()))
    verdicts = [each.verdict for each in both][-3:]
    assert verdicts == ["differs", "explained by an erratum", "reproduced"]


@pytest.mark.parametrize(("off", "verdict"), [(3.0, "reproduced"), (6.0, "differs")])
def test_a_simulation_that_disagrees_with_our_exact_number_is_seen(
    off: float, verdict: str
) -> None:
    measured = {"TVE": Measured(10.0), "TVE, simulated": Measured(10.0 + off * 0.5, 0.5)}
    judgements = [*judged(_experiment(()), Results((({}, measured),)), Results(()))]
    assert judgements[-1].verdict == verdict
