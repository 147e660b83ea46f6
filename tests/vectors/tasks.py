"""Vectors of tasks: as they are written, compared, and published for devices."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.vectors.keeping import Files, dumped

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.errors import SfumatoError
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.task import Task

__all__ = ["START", "alone", "files", "published", "refusal", "slow_files", "texts"]

VERSION: Final = 1
START: Final = 1_000_000
EXAMPLES: Final = Path(__file__).parent.parent.parent / "docs" / "examples"
ENDPOINT: Final = "https://collector.example/v1/tasks/{task}/reports"
KEYS: Final = {name: X25519PrivateKey.from_private_bytes(bytes([name]) * 32) for name in (1, 2)}

SLOW: Final = ("example_listening", "example_planes")

_HORIZON: Final = 'title = "t"\nepsilon = 1\nperiods = 8\nperiod = "1 hour"\nchanges = 4\n'
_WINDOW: Final = (
    'kind = "window"\ntitle = "t"\nepsilon = 2\nwindow = 3\ndevices = 100\nperiods = 6\n'
    'period = "1 hour"\n'
)
_AB: Final = 'values = {kind = "category", items = ["a", "b"]}\n'

TEXTS: Final = {
    "binary": _HORIZON + 'values = {kind = "binary"}\n',
    "binary_with_a_label": _HORIZON + 'values = {kind = "binary", items = ["lit"]}\n',
    "category_by_number": _HORIZON + 'values = {kind = "category", items = 5}\n',
    "category_by_label": _HORIZON + 'values = {kind = "category", items = ["é", "b", 3, -4]}\n',
    "optional_category": _HORIZON + 'values = {kind = "category", items = 3, optional = true}\n',
    "set": _HORIZON + 'values = {kind = "set", items = 6}\n',
    "set_of_a_few": _HORIZON + 'values = {kind = "set", items = ["x", "y", "z"], most = 2}\n',
    "attributes": _HORIZON
    + 'values = {kind = "attributes", attributes = {z = ["p", "q"], a = 3}}\n',
    "moves": _HORIZON + 'values = {kind = "moves", items = 3}\n',
    "moves_of_one": _HORIZON + 'values = {kind = "moves", items = ["up"]}\n',
    "mix": _HORIZON + _AB + "mix = {snapshot = 0.5, 1 = 0.25, 2 = 0.25}\n",
    "planned": _HORIZON + _AB + 'mix = {snapshot = 0.5, 1 = 0.5}\nweights = "planned"\n',
    "queries": _HORIZON + _AB + "queries = {ranges = 3, prefix = 1}\ndecoder = 'smoothed'\n",
    "snapshots": _HORIZON + _AB + 'protocol = "snapshots"\n',
    "tree": _HORIZON + _AB + 'protocol = "tree"\nfan_out = 3\n',
    "hierarchy": _HORIZON + _AB + 'protocol = "hierarchy"\n',
    "hierarchy_of_concord": _HORIZON + _AB + 'protocol = "hierarchy"\nmechanism = "concord"\n',
    "shuffled": _HORIZON
    + _AB
    + 'protocol = "snapshots"\n'
    + "shuffle = {epsilon = 0.25, delta = 1e-6, min_batch = 20000, colluding = 0.1}\n",
    "window_of_a_category": _WINDOW + _AB,
    "window_of_a_number": _WINDOW + 'values = {kind = "number", low = -1, high = 2.5}\n',
    "window_that_clips": _WINDOW + 'values = {kind = "number", low = 0, high = 9, clip = true}\n',
    "window_with_parameters": _WINDOW
    + _AB
    + 'method = "lpd"\noracle = "oue"\nparameters = {share = 0.25, least = 2}\n',
    "window_with_tiers": _WINDOW
    + _AB
    + 'method = "lpu"\ntiers = [{window = 6, epsilon = 1, devices = 50}]\n',
}

BAD: Final = {
    "no_toml": "title = ",
    "no_title": "epsilon = 1\n",
    "a_field_that_is_none": _HORIZON + _AB + "colour = 3\n",
    "epsilon_of_nothing": _HORIZON.replace("epsilon = 1", "epsilon = 0") + _AB,
    "epsilon_as_text": _HORIZON.replace("epsilon = 1", 'epsilon = "1"') + _AB,
    "one_period": _HORIZON.replace("periods = 8", "periods = 1") + _AB,
    "a_period_without_a_unit": _HORIZON.replace('"1 hour"', "60") + _AB,
    "no_changes": _HORIZON.replace("changes = 4", "changes = 0") + _AB,
    "values_of_no_kind": _HORIZON + 'values = {kind = "colour"}\n',
    "an_item_twice": _HORIZON + 'values = {kind = "category", items = ["a", "a"]}\n',
    "one_item": _HORIZON + 'values = {kind = "category", items = 1}\n',
    "more_than_all_items": _HORIZON + 'values = {kind = "set", items = 3, most = 4}\n',
    "an_optional_set": _HORIZON + 'values = {kind = "set", items = 3, optional = true}\n',
    "no_attribute": _HORIZON + 'values = {kind = "attributes", attributes = {}}\n',
    "a_number_over_a_horizon": _HORIZON + 'values = {kind = "number", low = 0, high = 1}\n',
    "moves_by_weave": _HORIZON + 'protocol = "weave"\nvalues = {kind = "moves", items = 3}\n',
    "a_span_too_long": _HORIZON + _AB + "mix = {5 = 1.0}\n",
    "a_mix_of_snapshots": _HORIZON + _AB + 'protocol = "snapshots"\nmix = {1 = 1.0}\n',
    "weights_of_snapshots": _HORIZON + _AB + 'protocol = "snapshots"\nweights = "planned"\n',
    "weights_of_no_kind": _HORIZON + _AB + 'weights = "heavy"\n',
    "a_fan_out_of_weave": _HORIZON + _AB + "fan_out = 2\n",
    "queries_twice": _HORIZON + _AB + 'queries = ["online", "online"]\n',
    "a_delta_of_one": _HORIZON + _AB + "shuffle = {epsilon = 1, delta = 1, min_batch = 10}\n",
    "a_window_of_a_set": _WINDOW + 'values = {kind = "set", items = 3}\n',
    "a_window_of_nothing": _WINDOW.replace("window = 3", "window = 0") + _AB,
    "an_interval_backwards": _WINDOW + 'values = {kind = "number", low = 1, high = 0}\n',
    "a_tier_twice": _WINDOW + _AB + "tiers = [{window = 3, epsilon = 2, devices = 9}]\n",
    "a_tier_without_devices": _WINDOW + _AB + "tiers = [{window = 6, epsilon = 2}]\n",
    "parameters_as_a_list": _WINDOW + _AB + "parameters = [1]\n",
}


def texts() -> dict[str, str]:
    """Return all task files: the documented examples, and one of every kind."""
    documented = sorted(EXAMPLES.glob("*.toml"))
    return {f"example_{path.stem}": path.read_text() for path in documented} | TEXTS


def alone(task: Task) -> list[Task]:
    """Return a task for each of a task's windows, its own one first: what a device can join."""
    if task.stream != "tiers":
        return [task]
    own = (task.design["window"], task.epsilon, task.design["devices"])
    return [
        catalog.changed(task, stream="window", tiers=None, window=w, epsilon=e, devices=n)
        for w, e, n in (own, *task.design["tiers"])
    ]


def published(text: str) -> list[Published]:
    """Return what devices are told of a task, one for each of its tiers."""
    each = alone(parse(text))
    public = {name: key.public_key().public_bytes_raw() for name, key in KEYS.items()}
    specs = (spec_of(one, catalog.stream(one), START, grace=60, endpoint=ENDPOINT) for one in each)
    return [Published.of(spec, public) for spec in specs]


def described(text: str) -> dict[str, Any]:
    """Return all that follows from a task file."""
    task = parse(text)
    told = published(text)
    return {
        "toml": text,
        "canonical": task.canonical().decode(),
        "task_id": task.task_id,
        "published": [one.encode().decode() for one in told],
        "published_ids": [one.task_id.hex() for one in told],
        "spec_hashes": [one.spec_hash.hex() for one in told],
    }


def refusal(text: str) -> str:
    """Return the sentence that a task file is refused with."""
    try:
        parse(text)
    except SfumatoError as error:
        return str(error)
    raise AssertionError(text)


def slow_files() -> Files:
    """Return the vectors of tasks whose mix takes long to choose."""
    return _described(SLOW)


def _described(names: Iterable[str]) -> Files:
    what, all_ = "a task and what is published of it", texts()
    return {f"tasks/{name}.json": dumped(VERSION, what, described(all_[name])) for name in names}


def files() -> Files:
    """Return the vectors of tasks, but for those that take long."""
    bad = [{"name": name, "toml": text, "refused": refusal(text)} for name, text in BAD.items()]
    what = "texts that are no tasks, and the sentences that say so"
    quick = _described(name for name in texts() if name not in SLOW)
    return {**quick, "tasks/bad_tasks.json": dumped(VERSION, what, {"cases": bad})}
