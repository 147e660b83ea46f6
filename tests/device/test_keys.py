"""Keys that can be taken once: the same everywhere, and gone afterwards."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.device.keys import DEPTH, Chain, Root
from sfumato.errors import BudgetError, MismatchError
from sfumato.wire.questions import Question
from sfumato.wire.reports import report_id

VECTORS = Path(__file__).parent.parent / "vectors" / "keys"
SECRET = bytes(range(32))


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_the_order_of_tasks_changes_no_key(tasks: list[bytes]) -> None:
    def taken(order: list[bytes]) -> dict[bytes, bytes]:
        root, keys = Root.fresh(SECRET), {}
        for task in order:
            keys[task], root = root.take(task)
            root = Root.decode(root.encode())
        return keys

    there, back = taken(tasks), taken(tasks[::-1])
    assert there == back
    assert len(set(there.values())) == len(tasks)


def test_a_key_is_taken_once_and_nothing_that_is_left_leads_to_it() -> None:
    key, rest = Root.fresh(SECRET).take(b"task")
    with pytest.raises(BudgetError, match="taken before"):
        rest.take(b"task")
    assert len(rest.nodes) == DEPTH
    assert SECRET not in rest.encode()
    assert key not in rest.encode()
    # The subtrees that are left do not hold the leaf.
    paths = {(depth, path) for depth, path, _ in rest.nodes}
    assert len(paths) == DEPTH


def test_other_secrets_give_other_keys() -> None:
    assert Root.fresh(SECRET).take(b"a")[0] != Root.fresh(bytes(32)).take(b"a")[0]


def test_a_torn_root_is_refused() -> None:
    with pytest.raises(MismatchError, match="the root has 5 bytes"):
        Root.decode(bytes(5))


def test_chains_step_forward_with_new_coins() -> None:
    _, _, chain = Chain.start(SECRET)
    coins = []
    for _ in range(4):
        source, chain = chain.next()
        coins.append(bytes(source.take(16)))
    assert len(set(coins)) == 4


@pytest.mark.parametrize("file", sorted(VECTORS.glob("*.json")), ids=lambda file: file.stem)
def test_vectors(file: Path) -> None:
    """What a device in another language must derive from the same secret."""
    expected = json.loads(file.read_text())
    task_id = bytes.fromhex(expected["task_id"])
    task_key, _ = Root.fresh(bytes.fromhex(expected["device_secret"])).take(task_id)
    ids, join, chain = Chain.start(task_key)
    first, later = chain.next()
    question = "ask " + hashlib.sha256(Question(**expected["question"]).digest).hexdigest()
    derived = {
        "task_key": task_key,
        "ids_key": ids,
        "id_of_period_1": report_id(ids, task_id, 1),
        "join_coins": join.take(32),
        "key_of_period_1": chain.key,
        "key_of_period_2": later.key,
        "period_coins": first.take(32),
        "period_coins_of_value": first.bound(expected["value"]).take(32),
        "question_coins": chain.coins(question).take(32),
        "question_coins_of_value": chain.coins(question).bound(expected["value"]).take(32),
    }
    assert {name: bytes(made).hex() for name, made in derived.items()} == expected["derived"]
