"""Joining a task: checking it, paying for it and drawing its secrets, in one transaction."""

from __future__ import annotations

from typing import Final

from sfumato.accounting.ledger import Ledger, units
from sfumato.device.journal import Joined, Journal
from sfumato.device.keys import Chain, Root
from sfumato.device.limits import Limits
from sfumato.device.parts import Parts, part_of
from sfumato.device.taking_part import say_so
from sfumato.errors import SfumatoError
from sfumato.randomness import Source
from sfumato.wire.published import Published
from sfumato.wire.sqlite_tables import Damaged

__all__ = ["ROOT", "ROOT_OF_FORMAT_1", "enrol", "ledger", "plant"]

ROOT: Final = "root 2"
ROOT_OF_FORMAT_1: Final = "root"
"""The names of the facts in a journal that hold the root of all task keys, now and in format 1."""


def plant(journal: Journal, rng: Source) -> None:
    """Store a root secret if there is none: a new one, or the successor of one of format 1."""
    if journal.fact(ROOT) is not None:
        return
    before = journal.fact(ROOT_OF_FORMAT_1)
    if before is None:
        if journal.payments():  # with another root, coins that were paid for would be drawn anew
            raise Damaged(journal.path, "it has paid for tasks and has no root")
        root = Root.fresh(bytes(rng.take(32)))
    else:
        try:
            root = Root.decode(before).renewed(row[0] for row in journal.payments())
        except SfumatoError as error:
            raise Damaged(journal.path, str(error).removesuffix(".")) from error
    with journal.transaction():
        journal.set_fact(ROOT, root.encode())
        journal.forget_fact(ROOT_OF_FORMAT_1)
    if before is not None:
        journal.settle_down()


def ledger(journal: Journal, limits: Limits) -> Ledger:
    """Return the ledger of a device: its payments, and the owner's limit."""
    return Ledger.of(limits.epsilon, (row[:2] for row in journal.payments()))


def enrol(
    journal: Journal, parts: Parts, limits: Limits, published: Published, tier: int, now: float
) -> None:
    """Join a task that was not joined before, in one transaction, and say so if it asks for it."""
    task_id = published.task_id
    part = part_of(published)
    guarantee = part.stream.offer(tier)
    limits.check(published, guarantee)
    if task_id not in parts.built:  # or a device of this process has looked at it before
        part.refuse_false_promise()
    spent = ledger(journal, limits)
    paid = spent.paid(task_id, guarantee.epsilon)
    task_key, rest = Root.decode(journal.fact(ROOT) or b"").take(task_id)
    ids, coins, chain = Chain.start(task_key)
    machine = part.stream.device(coins, tier)
    part.layout.fits(machine.message_bytes)
    title = str(published.spec.get("title", ""))[:200]
    with journal.transaction():
        journal.set_fact(ROOT, rest.encode())
        if len(paid.entries) > len(spent.entries):
            promise = guarantee.promise + _mixed(published)
            journal.pay(task_id, units(guarantee.epsilon), title, int(now), promise)
        journal.add(Joined(task_id, published.encode(), machine.save(), ids, chain.key, None))
    parts.built[task_id] = part
    say_so(journal, part, ids, now)


def _mixed(published: Published) -> str:
    """Return what a task promises once its reports are mixed, as the end of a sentence."""
    shuffle = published.shuffle
    if shuffle is None:
        return ""
    least = max(shuffle["min_batch"], published.spec.get("min_messages", 0))
    return (
        f"; once {published.addresses[0]} has mixed its reports with those of others, at least "
        f"{least:,} at a time, epsilon {shuffle['epsilon']:g} and delta "
        f"{shuffle['delta']:g} hold against who sees no more than that"
    )
