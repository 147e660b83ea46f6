from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

from sfumato import catalog

GRR = ["law", "grr", "--epsilon", "1"]


def test_it_prints_configuration_guarantee_and_table() -> None:
    result = run(*GRR, "--domain", "red,green,blue")
    assert result.exit_code == 0
    assert "red, green, blue" in result.stdout
    assert "Each report is protected with epsilon 1" in result.stdout
    assert result.stdout.count("0.576117") == 4  # p, and once for each value


def test_json_has_the_facts_as_numbers() -> None:
    facts = answer("law", "olh", "--domain", "128", "--epsilon", "1", "--hash-range", "3")
    assert facts["mechanism"] == "olh"
    assert (facts["epsilon"], facts["domain"], facts["hash_range"]) == (1.0, 128, 3)
    assert facts["p"] == pytest.approx(math.e / (math.e + 2))
    assert facts["q"] == pytest.approx(1 / 3)
    assert facts["epsilon_exact_upper"] <= 1
    assert facts["budget_used"] == pytest.approx(1)
    assert facts["variance"] > 0
    assert facts["influence"] > 1
    assert isinstance(facts["report_bytes"], int)


@pytest.mark.parametrize("name", catalog.names())
def test_every_mechanism_has_facts(name: str) -> None:
    example = next(iter(catalog.find(name).examples()))
    from sfumato.cli.parameters import as_options  # noqa: PLC0415

    words = ["law", name, *as_options(example).split()]
    assert run(*words).exit_code == 0
    facts = answer(*words)
    for key in example.configuration() | example.facts():
        assert key in facts


SPARSE = ["--dimension", "128", "--sparsity", "8", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("exsub", {"p_reverse", "mse_value", "subset_size", "mse_frequency"}),
        ("concord", {"p_reverse", "mse_value", "subset_size", "mse_frequency", "threshold"}),
        ("privset", {"subset_size", "mse_frequency"}),
        ("collision", {"hash_range", "mse_mean"}),
        ("coco", {"hash_range", "p_opposite", "mse_mean", "mse_frequency"}),
    ],
)
def test_sparse_mechanisms_say_their_sizes_and_errors(name: str, keys: set[str]) -> None:
    facts = answer("law", name, *SPARSE)
    assert keys | {"p_true", "p_false", "influence", "padded_dimension"} <= set(facts)
    assert facts["padded_dimension"] == 136
    shown = run("law", name, *SPARSE).stdout
    assert "chosen by the mechanism" in shown
    assert "all entries" in shown
    assert not any(key in shown for key in ("mse_", "padded_dimension"))


def test_what_reports_do_not_tell_is_said_in_words() -> None:
    assert answer("law", "concord", *SPARSE)["mse_frequency"] is None
    assert "not told by these reports" in run("law", "concord", *SPARSE).stdout


def test_small_laws_are_listed_and_sum_to_one() -> None:
    law = answer(*GRR, "--domain", "4")["law"]
    assert law["reports"] == ["00", "01", "02", "03"]
    assert all(sum(row) == pytest.approx(1) for row in law["probabilities"].values())


def test_large_laws_are_not() -> None:
    assert "law" not in answer("law", "oue", "--epsilon", "1", "--domain", "128")


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("5", 5),
        ("red,green", ["red", "green"]),
        ("3,1,2", [3, 1, 2]),
        ("01,1", ["01", "1"]),
        ('["a,b", "c"]', ["a,b", "c"]),
    ],
)
def test_domains_can_be_written_in_several_ways(text: str, domain: object) -> None:
    assert answer(*GRR, "--domain", text)["domain"] == domain


def test_labels_can_come_from_a_file(tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("red\ngreen\n")
    assert answer(*GRR, "--domain", f"@{labels}")["domain"] == ["red", "green"]


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e9", "much", ""])
def test_an_epsilon_that_cannot_be(epsilon: str) -> None:
    assert "epsilon is" in refused("law", "grr", "--epsilon", epsilon, "--domain", "3")


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "domain",
    ["0", "1", "-3", "red", "red,red", "1e3", "[1, 2", "[[1], 2]", pytest.param(DEEP, id="deep")],
)
def test_a_domain_that_cannot_be(domain: str) -> None:
    assert "domain" in refused(*GRR, "--domain", domain)


def test_a_domain_is_never_read_off_the_data() -> None:
    assert "would reveal which values occur" in refused(*GRR, "--domain", "auto")


def test_a_parameter_of_another_mechanism() -> None:
    message = refused(*GRR, "--domain", "3", "--hash-range", "2")
    assert message == "grr has no parameter 'hash_range'; it takes epsilon, domain."


def test_a_parameter_that_is_left_out() -> None:
    assert "grr needs domain" in refused(*GRR)


@pytest.mark.parametrize("name", ["exsub", "concord", "privset"])
def test_short_reports_of_long_vectors_have_facts_and_no_table(name: str) -> None:
    """Reports fit into a byte, and there are far too many vectors to list."""
    sizes = ("--epsilon", "1", "--dimension", "101", "--sparsity", "11", "--subset-size", "1")
    facts = answer("law", name, *sizes)
    assert facts["report_bytes"] == 1
    assert facts["epsilon_exact_upper"] <= 1
    assert 0 < facts["p_false"] < facts["p_true"]
    assert "law" not in facts
    assert run("law", name, *sizes).exit_code == 0
