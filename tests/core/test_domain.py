"""Items are named by number or by label; anything else is refused with one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.core import Domain
from sfumato.errors import ConfigurationError, InputError

PETS = Domain(("cat", "dog", 3))


def test_numbers_are_their_own_codes() -> None:
    for dtype in (np.uint8, np.int16, np.uint64, object):
        codes = Domain(5).encode(np.array([4, 0, 3], dtype=dtype))
        assert codes.dtype == np.int64
        assert codes.tolist() == [4, 0, 3]


def test_labels_have_codes_in_their_order() -> None:
    assert PETS.encode(["dog", 3, "cat", np.int64(3)]).tolist() == [1, 2, 0, 2]
    assert PETS.encode(np.array(["dog", "cat"])).tolist() == [1, 0]
    assert PETS.encode("dog").tolist() == [1]
    assert PETS.labels == ("cat", "dog", 3)
    assert Domain(3).labels == range(3)


@pytest.mark.parametrize(
    ("items", "plain"),
    [
        (4, 4),
        (np.int64(4), 4),
        (["a", "b"], ("a", "b")),
        (range(2, 4), (2, 3)),
        (np.array(["a", "b"]), ("a", "b")),
        (np.array([5, 7]), (5, 7)),
        ((np.str_("a"), np.int8(2)), ("a", 2)),
    ],
)
def test_a_domain_is_kept_as_plain_data(items: Any, plain: Any) -> None:
    domain = Domain.of(items)
    assert domain == Domain(plain)
    assert type(domain.items) is type(plain)
    assert all(type(label) in {int, str} for label in domain.labels)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (1, "domain has 1 item(s); 2..16777216 are possible."),
        (-3, "domain has -3 item(s); 2..16777216 are possible."),
        ((1 << 24) + 1, "domain has 16777217 item(s); 2..16777216 are possible."),
        (["a"], "domain has 1 item(s); 2..16777216 are possible."),
        (True, "domain is True; a number of items or a list of labels is expected."),
        (2.0, "domain is 2.0; a number of items or a list of labels is expected."),
        ("ab", "domain is 'ab'; a number of items or a list of labels is expected."),
        (None, "domain is None; a number of items or a list of labels is expected."),
        (["a", 1.5], "domain holds 1.5; labels are strings or whole numbers."),
        (["a", True], "domain holds True; labels are strings or whole numbers."),
        (["a", None], "domain holds None; labels are strings or whole numbers."),
        (["a", "b", "a"], "domain names 'a' more than once; every label must be there once."),
    ],
)
def test_a_domain_in_which_nothing_could_be_hidden_is_refused(items: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Domain.of(items)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("domain", "values", "says"),
    [
        (Domain(3), [0, 3], "values[1] is 3; the domain has the items 0..2."),
        (Domain(3), [0, 1, -1], "values[2] is -1; the domain has the items 0..2."),
        (Domain(3), [10**30], f"values[0] is {10**30}; the domain has the items 0..2."),
        (Domain(3), np.array([1 << 63], np.uint64), f"values[0] is {1 << 63}; the domain has"),
        (Domain(3), [1, 2.5], "values[1] is 2.5; whole numbers 0..2 are expected."),
        (Domain(3), [1.0, 2.0], "values[0] is 1.0; whole numbers 0..2 are expected."),
        (Domain(3), [1, "1"], "values[1] is '1'; whole numbers 0..2 are expected."),
        (Domain(3), [1, True], "values[1] is True; whole numbers 0..2 are expected."),
        (Domain(3), [False, True], "values[0] is False; whole numbers 0..2 are expected."),
        (Domain(3), np.array(["2024-01-01"], "M8[D]"), "values[0] is datetime.date(2024, 1, 1); "),
        (PETS, ["cat", "bird"], "values[1] is 'bird'; the domain has the items 'cat', 'dog', 3."),
        (PETS, ["cat", 2], "values[1] is 2; the domain has the items 'cat', 'dog', 3."),
        (PETS, [3.0], "values[0] is 3.0; the domain has the items 'cat', 'dog', 3."),
        (PETS, ["cat", ["dog"]], "values[1] is ['dog']; the domain has the items 'cat', 'dog', 3."),
        (Domain((1, 2)), [True], "values[0] is True; the domain has the items 1, 2."),
        (Domain(("a", "b")), ["x" * 9999], "values[0] is 'xxxxxxxxxxxx...xxxxxxxxxxxxx'; the do"),
        (
            Domain(tuple("abcdefghij")),
            ["z"],
            "values[0] is 'z'; the domain has the items 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', ..",
        ),
    ],
)
def test_a_value_outside_of_the_domain_is_named_with_its_place(
    domain: Domain, values: Any, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        domain.encode(values)
    assert str(caught.value).startswith(says)


def test_many_labels_of_which_one_is_double_are_refused_at_once() -> None:
    labels = [*range(200_000), 199_999]
    with pytest.raises(ConfigurationError, match="domain names 199999 more than once"):
        Domain.of(labels)
