from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.accounting.shuffle import Levels, Requirement, amplify, best, holds
from sfumato.catalog import parse, stream
from sfumato.errors import ConfigurationError
from sfumato.streams.amplification import promised, shuffled
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Binary
from sfumato.streams.registry import spec_of, stream_of
from sfumato.streams.weave.weave import Weave

WOVEN = Weave(Binary(), 8, 2, 2.0, (0, 1, 4), (0.5, 0.25, 0.25))


def test_every_thread_has_its_share_of_the_message() -> None:
    found = WOVEN.message()
    assert isinstance(found, Levels)
    assert sum(share for share, _ in found.parts) == pytest.approx(1)
    assert {mechanism.epsilon for _, mechanism in found.parts} == {2.0}


def test_devices_of_all_threads_hide_each_other() -> None:
    among_many = best(WOVEN.message(), 10_000, 1e-6).epsilon
    among_few = best(WOVEN.message(), 1_000, 1e-6).epsilon
    assert among_many is not None
    assert among_few is not None
    assert among_many < among_few < 2.0
    # No message tells more than the worst of its levels alone.
    message = WOVEN.message()
    assert isinstance(message, Levels)
    alone = [
        amplify(mechanism, 10_000, 1e-6, ["blanket"])[-1].epsilon for _, mechanism in message.parts
    ]
    assert among_many <= max(each for each in alone if each is not None) * (1 + 1e-6)


def test_a_requirement_sets_the_local_epsilon_up_to_its_limit() -> None:
    required = Requirement(0.05, 1e-6, min_batch=10_000, colluding=0.1)
    found = shuffled(WOVEN, required)
    assert found.epsilon < WOVEN.epsilon
    assert (found.spans, found.shares) == (WOVEN.spans, WOVEN.shares)
    assert holds(found.message(), required.epsilon, required.delta, required.crowd)
    easy = Requirement(1.5, 1e-6, min_batch=10_000)
    assert shuffled(WOVEN, easy).epsilon == WOVEN.epsilon


TASK = """
title = "Lights"
epsilon = 2.0
periods = 8
period = "1 hour"
changes = 2
values = {kind = "binary"}
"""


def test_a_task_file_promises_what_holds_once_reports_are_mixed() -> None:
    shuffle = "shuffle = {epsilon = 0.05, delta = 1e-6, min_batch = 10000, colluding = 0.1}\n"
    task = parse(TASK + shuffle)
    assert task.task_id != parse(TASK).task_id
    found = stream(task)
    assert isinstance(found, Weave)
    assert found.epsilon < 2.0
    required = Requirement(0.05, 1e-6, 10_000, 0.1)
    assert holds(found.message(), 0.05, 1e-6, required.crowd)
    obeyed = stream_of(spec_of(task, found, start=0))
    assert obeyed.guarantee == found.guarantee
    assert stream(parse(TASK)).guarantee.epsilon == 2.0


def test_moves_are_mixed_as_one_report_of_the_whole_stream() -> None:
    moves = TASK.replace('"binary"', '"moves", items = ["ACME"]').replace("2.0", "4.0")
    plain = parse(moves + 'protocol = "flat"\n')
    shuffle = "shuffle = {epsilon = 0.1, delta = 1e-6, min_batch = 10000, colluding = 0.1}\n"
    mixed_task = parse(moves + 'protocol = "flat"\n' + shuffle)
    found = stream(mixed_task)
    assert isinstance(found, Flat)
    assert found.epsilon < stream(plain).guarantee.epsilon == 4.0
    required = Requirement(0.1, 1e-6, 10_000, 0.1)
    carried = found.strand.mechanism
    assert carried.epsilon == found.epsilon
    assert holds(carried, 0.1, 1e-6, required.crowd)
    larger = replace(found, epsilon=found.epsilon + 1e-4)
    assert not holds(larger.strand.mechanism, 0.1, 1e-6, required.crowd)
    obeyed = stream_of(spec_of(mixed_task, found, start=0))
    assert obeyed.guarantee == found.guarantee
    assert "epsilon 0.1, delta 1e-06" in str(promised(found, required))


@pytest.mark.parametrize(
    ("shuffle", "sentence"),
    [
        ("5", "task, line 8: shuffle is 5; a table is expected"),
        ("{epsilon = 0.5, delta = 1e-6}", "shuffle.min_batch is None"),
        ("{epsilon = 0, delta = 1e-6, min_batch = 9}", "shuffle.epsilon is 0"),
        ("{epsilon = 0.5, delta = 1, min_batch = 9}", "shuffle.delta is 1"),
        ("{epsilon = 0.5, delta = 1e-6, min_batch = 2.5}", r"shuffle.min_batch is 2\.5"),
        ("{epsilon = 0.5, delta = 1e-6, min_batch = 9, colluding = 1}", "shuffle.colluding is 1"),
        ("{epsilon = 0.5, delta = 1e-6, min_batch = 9, batch = 1}", "shuffle.batch is no field"),
    ],
)
def test_a_bad_promise_in_a_task_file_gets_one_sentence(shuffle: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        parse(f"{TASK}shuffle = {shuffle}\n")


def test_the_promise_names_what_it_needs() -> None:
    sentence = str(promised(WOVEN, Requirement(0.05, 1e-6, min_batch=10_000, colluding=0.1)))
    assert "whole stream of 8 periods is protected with epsilon 0.05, delta 1e-06" in sentence
    assert "at least 10,000 reports of devices that take part in the whole horizon" in sentence
    assert "nobody who sees what was shuffled knows in which periods a device sends" in sentence
    assert "at most 10% of their senders collude" in sentence
