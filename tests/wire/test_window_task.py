from __future__ import annotations

import pytest

from sfumato import catalog
from sfumato.errors import ConfigurationError
from sfumato.streams.published.topl import ToPL
from sfumato.streams.registry import spec_of, stream_of
from sfumato.streams.window import Tiers, Window
from sfumato.wire.task import Task

FILE = """
kind = "window"
title = "Where people are"
epsilon = 1.0
window = 24
devices = 5000
periods = 720
period = "1 hour"
values = {kind = "category", items = ["home", "work"]}
"""


def parsed(text: str) -> Task:
    return catalog.parse(text, "w.toml")


def test_a_file_is_a_window() -> None:
    protocol = catalog.stream(parsed(FILE))
    assert isinstance(protocol, Window)
    assert (protocol.window, protocol.epsilon, protocol.devices) == (24, 1.0, 5000)
    assert protocol.labels == ("home", "work")
    assert protocol.method == "auto"


def test_a_number_has_an_interval() -> None:
    text = FILE.replace(
        'values = {kind = "category", items = ["home", "work"]}',
        'values = {kind = "number", low = 0, high = 50, clip = true}',
    )
    protocol = catalog.stream(parsed(text))
    assert isinstance(protocol, Window)
    assert protocol.interval == (0.0, 50.0)
    assert protocol.clip


@pytest.mark.parametrize(
    "stream",
    [
        Window(2, 1.0, 40, interval=(-10.0, 40.0), unit="°C"),
        ToPL(epsilon=1.0, bound=8.0, unit="€"),
    ],
)
def test_a_unit_goes_with_the_values(stream: Window | ToPL) -> None:
    again = type(stream).of(stream.spec())
    assert again == stream
    assert again.quantity.text(21.54, 1) == f"21.5 {stream.unit}"
    assert "unit" not in stream.plain()


def test_tiers_are_windows_to_pick_from() -> None:
    task = parsed(FILE + "tiers = [{window = 48, epsilon = 0.5, devices = 2000}]\n")
    assert task.stream == "tiers"
    both = catalog.stream(task)
    assert isinstance(both, Tiers)
    assert [(t.window, t.epsilon, t.devices) for t in both.tiers] == [
        (24, 1.0, 5000),
        (48, 0.5, 2000),
    ]
    own = catalog.changed(task, stream="window", tiers=None)
    assert own.task_id == parsed(FILE).task_id != task.task_id


@pytest.mark.parametrize(
    ("was", "put", "sentence"),
    [
        ("window = 24", "window = 0", r"w.toml, line 5: window is 0; a whole number in 1..16384"),
        ("epsilon = 1.0", "epsilon = 0", r"w.toml, line 4: epsilon is 0; a number in 1e-06..20"),
        ("devices = 5000", "devices = 0", r"w.toml, line 6: devices is 0; a whole number in 1.."),
        ('["home", "work"]', '["home"]', r"line 9: values.items has 1 item\(s\); 2..16777216"),
        ('["home", "work"]', "1", r"line 9: values.items has 1 item\(s\); 2..16777216"),
        ('kind = "category", items = ["home", "work"]', 'kind = "number", low = 1, high = 1',
         "values.low is 1 and values.high is 1; two numbers, the first below the second"),
        ('kind = "category", items = ["home", "work"]',
         'kind = "number", low = 0, high = 1, unit = 3',
         'values.unit is 3; a text of 1 to 12 characters is expected, as in "°C"'),
        ('kind = "category", items = ["home", "work"]',
         'kind = "number", low = 0, high = 1, unit = ""',
         "values.unit is ''; a text of 1 to 12 characters is expected"),
        ('kind = "category"', 'kind = "category", unit = "kg"',
         "values.unit is no field|unit"),
        ('kind = "category", items = ["home", "work"]', 'kind = "binary"',
         "values.kind is 'binary' where kind is 'window'; category or number is expected"),
        ('kind = "category", items', 'kind = "category", optional = true, items',
         "values.optional is true where kind is 'window'; an item that says so is expected"),
        ("window = 24", 'window = 24\nmethod = "lpx"\n', "method is 'lpx'; auto, lbu, lsp"),
        ("window = 24", "window = 24\ntiers = 3\n", "tiers is 3; a list of tables is expected"),
        ("window = 24", "window = 24\ntiers = [{window = 3}]\n",
         r"tiers\[0\] has window; window, epsilon, devices are expected"),
        ("window = 24", "window = 24\ntiers = [{window = 0, epsilon = 1, devices = 9}]\n",
         r"tiers\[0\].window is 0; a whole number in 1..16384 is expected"),
        ("window = 24", "window = 24\ntiers = [{window = 3, epsilon = 99, devices = 9}]\n",
         r"tiers\[0\].epsilon is 99; a number in 1e-06..20 is expected"),
        ("window = 24", "window = 24\ntiers = [{window = 24, epsilon = 1, devices = 9}]\n",
         r"tiers\[0\] has window 24 and epsilon 1 once more; each pair may be there once"),
        ("window = 24", "window = 24\ntiers = [" + ", ".join(
            f"{{window = {w}, epsilon = 1, devices = 9}}" for w in range(2, 6)) + "]\n",
         "tiers has 4 beside the task's own window; up to 3 are expected"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_in_one_sentence(was: str, put: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        catalog.stream(parsed(FILE.replace(was, put)))


@pytest.mark.parametrize(
    ("values", "default", "expected"),
    [
        ('{kind = "category", items = ["home", "work"]}', None, "home"),
        ('{kind = "category", items = ["home", "work"]}', '"work"', "work"),
        ('{kind = "category", items = 4}', "3", 3),
        ('{kind = "number", low = -2, high = 6}', None, 2.0),
        ('{kind = "number", low = -2, high = 6}', "0", 0.0),
    ],
)
def test_a_device_without_a_value_answers_for_the_default(
    values: str, default: str | None, expected: object
) -> None:
    text = FILE.replace('{kind = "category", items = ["home", "work"]}', values)
    task = parsed(text if default is None else f"{text}default = {default}\n")
    assert ("default" in task.plain()) == (default is not None)
    stream = stream_of(spec_of(task, catalog.stream(task), start=0))
    assert isinstance(stream, Window)
    assert stream.default == expected


@pytest.mark.parametrize(
    ("values", "default", "sentence"),
    [
        ('{kind = "category", items = ["home", "work"]}', '"rod"', "default is 'rod'; one of val"),
        ('{kind = "category", items = 4}', "4", "default is 4; a whole number in 0..3 is exp"),
        ('{kind = "category", items = 4}', "true", "default is True; a whole number in 0..3"),
        ('{kind = "number", low = -2, high = 6}', "7", "default is 7; a number in -2..6 is exp"),
    ],
)
def test_a_default_that_no_device_can_hold(values: str, default: str, sentence: str) -> None:
    text = FILE.replace('{kind = "category", items = ["home", "work"]}', values)
    with pytest.raises(ConfigurationError, match=f"w.toml, line 10: {sentence}"):
        parsed(f"{text}default = {default}\n")
