from __future__ import annotations

import pytest

from sfumato.wire.lines import line_of

TEXT = '''\
# [values]
title = """
kind = "no field"
[values]
"""
a.b = 1
"quoted key" = 2
queries = {online = 1}



[values]  # a header
kind = "set"
items = [
  "a", # kind = 3
  "b",
]

[values.attributes]
place = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("a", "b"), 6),
        (("a",), 6),
        (("quoted key",), 7),
        (("values",), 12),
        (("values", "kind"), 13),
        (("values", "items"), 14),
        (("values", "attributes"), 19),
        (("values", "attributes", "place"), 20),
        (("values", "most"), 12),
        (("absent",), None),
        ((), None),
    ],
)
def test_the_line_of_a_field(path: tuple[str, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line


def test_a_field_inside_of_an_inline_table_has_the_line_of_the_table() -> None:
    text = 'title = "a"\nqueries = {online = 1, ranges = 0}\n'
    assert line_of(text, ("queries", "ranges")) == 2
    assert line_of("queries = {ranges = 0}\n", ("queries", "ranges")) == 1
