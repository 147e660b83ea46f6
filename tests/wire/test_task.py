from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from sfumato import catalog
from sfumato.catalog import changed as altered
from sfumato.catalog import parse, read
from sfumato.errors import ConfigurationError, InputError, SfumatoError
from sfumato.streams import horizon
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Attributes, Binary, Category, Items, values_of
from sfumato.streams.weave import Weave
from sfumato.streams.weave.mix import WORKLOADS
from sfumato.wire import task

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

GOOD = """\
# A comment, and a title with signs of TOML: [values] = { }
title = "Who is [home] = 1"
epsilon = 1
periods = 24
period = "1 hour"
changes = 4
queries = [
  "online",
  "ranges",
]
protocol = "weave"
mechanism = "auto"
decoder = "online"

[values]
kind = "category"
items = [
  "home",
  "work",
]
"""

HEAD = GOOD[: GOOD.index("[values]\n")]


def changed(before: str, after: str) -> str:
    assert GOOD.count(before) == 1
    return GOOD.replace(before, after)


def test_a_task_is_read_from_its_file() -> None:
    found = parse(GOOD)
    assert found.title == "Who is [home] = 1"
    assert (found.epsilon, found.periods, found.period_seconds) == (1, 24, 3600)
    assert (found.stream, found.design["changes"]) == ("weave", 4)
    assert found.design["queries"] == [["online", 0.5], ["ranges", 0.5]]
    assert found.values.items == ("home", "work")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_every_example_is_a_task_with_a_protocol(path: Path) -> None:
    found = read(path)
    if found.stream in ("window", "tiers"):
        assert catalog.stream(found).guarantee.window
        return
    made = catalog.stream(altered(found, periods=min(found.periods, 24), mix=None))
    assert isinstance(made, (Flat, Weave))
    assert made.epsilon == found.epsilon
    assert (made if isinstance(made, Flat) else made.values).width == found.values.width


@pytest.mark.parametrize("items", [["ACME"], ["ACME", "BETA"], 3])
def test_moves_are_asked_for_as_they_are(items: object) -> None:
    text = HEAD.replace('protocol = "weave"\n', "")
    made = catalog.stream(parse(f'{text}values = {{kind = "moves", items = {items}}}\n'))
    assert isinstance(made, Flat)
    assert made.labels == (tuple(items) if isinstance(items, list) else (0, 1, 2))


def test_the_names_in_a_task_file_are_those_of_the_streams() -> None:
    assert set(horizon.QUERIES) == set(WORKLOADS)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ('{kind = "binary"}', Binary()),
        ('{kind = "binary", items = ["home"]}', Binary("home")),
        ('{kind = "category", items = 5}', Category(5)),
        ('{kind = "set", items = ["a", "b", 3], most = 2}', Items(("a", "b", 3), 2)),
        ('{kind = "category", items = 3, optional = true}', Category(3, optional=True)),
        ('{kind = "set", items = 4}', Items(4)),
        (
            '{kind = "attributes", attributes = {place = ["in", "out"], app = 3}}',
            Attributes({"place": ("in", "out"), "app": 3}),
        ),
    ],
)
def test_every_kind_of_value(table: str, values: object) -> None:
    text = HEAD + f"values = {table}\n"
    assert values_of(parse(text).values) == values


@pytest.mark.parametrize(
    ("protocol", "spans"),
    [
        ("snapshots", {0}),
        ("hierarchy", {1, 2, 4, 8, 16}),
        ("tree", {1, 2, 4, 8, 16}),
    ],
)
def test_every_protocol_by_its_name(protocol: str, spans: set[int]) -> None:
    made = catalog.stream(parse(changed('"weave"', f'"{protocol}"')))
    assert isinstance(made, Weave)
    assert set(made.spans) <= spans
    assert made.aligned == (protocol in horizon.LEVELLED)
    assert made.mechanism == ("exsub-printed" if protocol == "hierarchy" else "auto")


def test_the_tree_is_better_than_the_papers_hierarchy_and_weave_than_both() -> None:
    made = [
        catalog.stream(parse(changed('"weave"', f'"{name}"')))
        for name in ("weave", "tree", "hierarchy")
    ]
    errors = [one.expected_variance("online") for one in made if isinstance(one, Weave)]
    assert len(errors) == 3
    assert errors == sorted(errors)


def test_a_mix_is_taken_as_it_is() -> None:
    text = changed('protocol = "weave"', "mix = {snapshot = 0.75, 4 = 0.25}")
    made = catalog.stream(parse(text))
    assert isinstance(made, Weave)
    assert (made.spans, made.shares) == ((0, 4), (0.75, 0.25))


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("1 second", 1), ("15 minutes", 900), ("2 hours", 7200), ("1day", 86_400), ("1 week", 604800)],
)
def test_lengths_of_a_period(said: str, seconds: int) -> None:
    assert parse(changed('"1 hour"', f'"{said}"')).period_seconds == seconds


# ---- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "line", "sentence"),
    [
        ("epsilon = 1", "epsilon = -1", 3, "epsilon is -1; a number in 1e-06..20 is expected."),
        ("epsilon = 1", "epsilon = 21", 3, "epsilon is 21; a number in"),
        ("epsilon = 1", "epsilon = nan", 3, "epsilon is nan; a number in"),
        ("epsilon = 1", 'epsilon = "1"', 3, "epsilon is '1'; a number in"),
        ("epsilon = 1", "epsilon = true", 3, "epsilon is True; a number in"),
        ("epsilon = 1", "epsilom = 1", 3, "epsilom is no field of a task; did you mean 'epsilon'?"),
        ("epsilon = 1", "epsilon = 1\ncolour = 2", 4, "a task of the stream 'weave' has title,"),
        ("epsilon = 1", "", None, "epsilon is missing; a positive number, the privacy of"),
        ('title = "Who is [home] = 1"', "title = 7", 2, "title is 7; printable text in one line"),
        ('title = "Who is [home] = 1"', 'title = " "', 2, "title is ' '; printable text"),
        ('title = "Who is [home] = 1"', 'title = "a\\u001bb"', 2, "printable text in one line"),
        ('title = "Who is [home] = 1"', f'title = "{"a" * 201}"', 2, "title has 201 characters"),
        ("periods = 24", "periods = 1", 4, "periods is 1; a whole number in 2..16384 is expected."),
        ("periods = 24", "periods = 24.0", 4, "periods is 24.0; a whole number in 2..16384"),
        ("periods = 24", "periods = true", 4, "periods is True; a whole number"),
        ('"1 hour"', '"1 month"', 5, "period is '1 month'; a whole number of seconds, minutes,"),
        ('"1 hour"', "3600", 5, "period is 3600; a whole number of seconds, minutes,"),
        ('"1 hour"', '"0 hours"', 5, "period is '0 hours'; a whole number of seconds,"),
        ("changes = 4", "changes = 0", 6, "changes is 0; a whole number in 1..48 is expected."),
        ("changes = 4", "changes = 49", 6, "changes is 49; a whole number in 1..48 is expected."),
        ('"ranges"', '"range"', 7, "queries is 'range'; online, history, prefix or ranges"),
        ('"ranges"', '"range"', 7, "(did you mean 'ranges'?)"),
        ('"ranges"', '"online"', 7, "each may be there once."),
        ('  "online",\n  "ranges",\n', "", 7, "queries is []; one of online, history,"),
        ('"weave"', '"wave"', 11, "protocol is 'wave'; weave, snapshots, tree, hierarchy or flat"),
        ('"weave"', '"flat"', 11, "protocol is 'flat' for values of kind 'category'; flat is for"),
        ('"weave"', '"weave"\nfan_out = 2', 12, "fan_out is 2 where protocol is 'weave'; only"),
        ('"weave"', '"tree"\nfan_out = 1', 12, "fan_out is 1; a whole number in 2..24"),
        ('"weave"', '"tree"\nmix = {1 = 1.0}', 12, "mix is given where protocol is 'tree'"),
        ('"weave"', '"weave"\nmix = {16 = 1.0}', 12, "mix has the span 16; spans of 1..12"),
        ('"weave"', '"weave"\nmix = {1 = 0.5}', 12, "mix sums to 0.5; shares that sum to 1"),
        ('"weave"', '"weave"\nmix = {1 = -1}', 12, "mix.1 is -1; a share above 0"),
        ('"weave"', '"weave"\nmix = {one = 1}', 12, "mix.one is no span; snapshot or a number"),
        ('"weave"', '"weave"\nmix = 3', 12, "mix is 3; a table of spans"),
        ('"weave"', '"weave"\nkind = "window"', 6, "changes is no field of a task; a task of the"),
        ('"weave"', '"weave"\nkind = "windows"', 12, "kind is 'windows'; horizon or window is"),
        ('"weave"', '"weave"\nstream = "wave"', 12, "stream is 'wave'; there are flat, tiers,"),
        ('"weave"', '"weave"\nstream = "weave"\nkind = "horizon"', 13, "the stream alone is"),
        ('"auto"', '"concrod"', 12, "mechanism is 'concrod'; auto, concord, exsub or"),
        ('decoder = "online"', 'decoder = ["online"]', 13, "decoder is ['online']; online,"),
        ('kind = "category"', 'kind = "categories"', 16, "values.kind is 'categories'; binary (on"),
        ('kind = "category"', "", 15, "values.kind is missing; binary (on or off), category"),
        ('kind = "category"', 'kind = "binary"', 17, "values.items is ['home', 'work']; one label"),
        ('kind = "category"', 'kind = "attributes"', 17, "values.items is no field of a task; val"),
        ('kind = "category"', 'kind = "category"\nmost = 2', 17, "values.most is no field of"),
        (
            'kind = "category"',
            'kind = "category"\noptional = 1',
            17,
            "values.optional is 1; true or false is expected",
        ),
        (
            'kind = "category"',
            'kind = "set"\nmost = 3',
            17,
            "values.most is 3; a whole number in 1",
        ),
        ('"work"', '"home"', 17, "values.items names 'home' more than once"),
        ('  "work",\n', "", 17, "values.items has 1 item(s); 2"),
        ('"work"', "1.5", 17, "values.items holds 1.5; labels are whole numbers or printable text"),
        ('"work"', '""', 17, "values.items holds ''; labels are"),
    ],
)
def test_a_mistake_gets_one_sentence_with_its_line(
    before: str, after: str, line: int | None, sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(sentence)) as caught:
        parse(changed(before, after), "home.toml")
    said = str(caught.value)
    assert said.startswith(f"home.toml, line {line}: " if line else "home.toml: ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("kind", "periods", "known"),
    [
        ("moves", 24, "online, filtered or posterior"),
        ("moves", 3000, "online or filtered"),
        ("category", 24, "online, smoothed, filtered or posterior"),
        ("category", 3000, "online, smoothed or filtered"),
    ],
)
def test_a_decoder_that_the_stream_has_not_is_refused_at_once(
    kind: str, periods: int, known: str
) -> None:
    text = HEAD.replace('protocol = "weave"\n', "").replace("periods = 24", f"periods = {periods}")
    text += f'values = {{kind = "{kind}", items = 2}}\n'
    for decoder in horizon.DECODERS:
        task = text.replace('decoder = "online"', f'decoder = "{decoder}"')
        if decoder in re.split(", | or ", known):
            assert parse(task).plain()["decoder"] == decoder
            continue
        with pytest.raises(ConfigurationError, match=f"decoder is '{decoder}' for .*; {known} is"):
            parse(task)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("values = 3", "values is 3; a table with a kind is expected."),
        ('values = {kind = "category"}', "values.items is missing; category values have them."),
        ('values = {kind = "category", items = true}', "values.items is True; a number of items"),
        ('values = {kind = "category", items = 9000000}', "values has 9,000,000 items; up to"),
        ('values = {kind = "category", items = 1e9}', "values.items is 1000000000.0; a number of"),
        ('values = {kind = "attributes"}', "values.attributes is missing; attributes values have"),
        ('values = {kind = "attributes", attributes = {}}', "values.attributes is {}; a table"),
        (
            'values = {kind = "attributes", attributes = {place = 1}}',
            "values.attributes.place has 1 item(s)",
        ),
        (
            'values = {kind = "attributes", attributes = {a = 2, b = 2, c = 2, d = 2, e = 2}}',
            "changes is 4; a whole number in 5..240 is expected.",
        ),
        ("queries.online = 0\nvalues = {}", "values.kind is missing"),
    ],
)
def test_a_mistake_in_the_values(values: str, sentence: str) -> None:
    text = HEAD + values + "\n"
    if "queries" in values:
        text = text.replace(GOOD[GOOD.index("queries") : GOOD.index("protocol")], "")
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        parse(text)


def test_a_weight_that_is_none() -> None:
    text = changed('[\n  "online",\n  "ranges",\n]', "{online = 1, ranges = 0}")
    with pytest.raises(ConfigurationError, match=r"line 7: queries.ranges is 0; a positive weight"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("title = \nperiods = 3", "home.toml, line 1: Invalid value; TOML is expected."),
        ("title = 'a'\ntitle = 'b'", "home.toml, line 2: Cannot overwrite a value"),
        ("title = '''a", "home.toml, line 1: "),
        ("[values\n", "home.toml, line 1: "),
        ("", "home.toml: title is missing; a few words"),
    ],
)
def test_a_file_that_is_no_toml(text: str, sentence: str) -> None:
    with pytest.raises(SfumatoError, match=re.escape(sentence)):
        parse(text, "home.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_bytes(b"title = 'a'\nepsilon = \xff")
    with pytest.raises(InputError, match=r"task.toml, line 2: byte 0xff is no text; a file in"):
        read(path)
    path.write_bytes(b"#" * (task.LARGEST_FILE + 1))
    with pytest.raises(InputError, match=r"has 4,194,305 bytes; a task file has 4,194,304 at most"):
        read(path)
    with pytest.raises(InputError, match="is not a regular file"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.toml")


def test_a_mark_of_byte_order_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read(path) == parse(GOOD)


# ---- the canonical form ----------------------------------------------------------------------


def test_the_canonical_form_is_pinned() -> None:
    found = parse(GOOD)
    assert found.canonical() == (
        b'{"changes":4,"decoder":"online","epsilon":1,"format":2,'
        b'"mechanism":"auto","period_seconds":3600,"periods":24,"protocol":"weave",'
        b'"queries":[["online",0.5],["ranges",0.5]],"stream":"weave","title":"Who is [home] = 1",'
        b'"values":{"items":["home","work"],"kind":"category"}}'
    )
    assert found.task_id == hashlib.sha256(found.canonical()).hexdigest()


def test_layout_comments_and_order_do_not_change_the_id() -> None:
    shuffled = HEAD.replace("epsilon = 1\n", "")
    shuffled = 'values = {items = ["home", "work"], kind = "category"}\n' + shuffled
    shuffled = shuffled.replace('mechanism = "auto"', "epsilon = 1.0").replace(
        '"1 hour"', '"60 minutes"'
    )
    assert shuffled != GOOD
    assert parse(shuffled).task_id == parse(GOOD).task_id


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("epsilon = 1", "epsilon = 1.0000000000000002"),
        ("changes = 4", "changes = 5"),
        ('"work"', '"wörk"'),
        ('"auto"', '"concord"'),
        ('"1 hour"', '"2 hours"'),
        ("Who", "What"),
        ('"weave"', '"weave"\nmix = {snapshot = 1.0}'),
    ],
)
def test_every_field_changes_the_id(before: str, after: str) -> None:
    assert parse(changed(before, after)).task_id != parse(GOOD).task_id


def test_the_order_of_attributes_is_part_of_the_task() -> None:
    ids = {
        parse(HEAD + f'values = {{kind = "attributes", attributes = {{{order}}}}}\n').task_id
        for order in ("a = 2, b = 3", "b = 3, a = 2")
    }
    assert len(ids) == 2


def test_a_task_made_in_code_is_judged_too() -> None:
    found = parse(GOOD)
    assert json.loads(found.canonical()) == json.loads(json.dumps(found.plain()))
    with pytest.raises(ConfigurationError, match="changes is 1000"):
        altered(found, changes=1000)
    with pytest.raises(ConfigurationError, match="colour is no field of a task"):
        altered(found, colour="red")
    with pytest.raises(ConfigurationError, match="periods is 0; a whole number"):
        altered(found, periods=0)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_what_a_stream_has_checked_is_taken_again_as_it_is(path: Path) -> None:
    found = read(path)
    assert altered(found) == found
    assert altered(found).task_id == found.task_id
    assert hash(altered(found)) == hash(found)
