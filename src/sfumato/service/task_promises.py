"""What a task promises, for people: what can be learnt, what can be forged, who sees what."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.accounting.shuffle import told_of_all
from sfumato.core.duration import length
from sfumato.pages.promises import forged, learnt
from sfumato.pages.subject import Promise
from sfumato.service.running_task import RunningTask
from sfumato.streams.amplification import promised
from sfumato.wire.task import FOR_EVER

__all__ = ["explained", "of_all"]


def explained(running: RunningTask) -> tuple[Promise, ...]:
    """Return the questions that people have about a task's promise, with their answers."""
    stream = running.protocol
    seen = "Whoever sees everything that a device sends"
    strongest = max(stream.offers, key=lambda offer: offer.epsilon)
    first = [learnt(strongest, seen)]
    if running.required is not None:
        outside = "Whoever sees only what the shuffler hands on"
        mixed = learnt(promised(stream, running.required), outside)
        alone = first[0].answer
        first = [mixed, Promise("And if shuffler and collector work together?", alone)]
    influence = running.influence
    moved = ""
    if influence is not None:
        quantity = stream.quantity
        moved = quantity.changed.text(influence, quantity.decimals(influence))
    cap = running.published.spec.get("cap")
    return (*first, forged(influence, moved, cap), _seen(running))


def of_all(tasks: Sequence[RunningTask]) -> str:
    """Return what holds for a device that is in all of some tasks; empty if none is shuffled."""
    if len(tasks) < 2 or not any(running.is_mixed for running in tasks):
        return ""
    promises = []
    for running in tasks:
        required, offers = running.required, running.protocol.offers
        local = max(offer.epsilon for offer in offers), 0.0
        promises.append(local if required is None else (required.epsilon, required.delta))
    windows = any(running.protocol.guarantee.window for running in tasks)
    promise = told_of_all(promises, windows=windows)
    return f"For a device that is in all {len(tasks):,} tasks, whatever became of them, {promise}."


def _seen(running: RunningTask) -> Promise:
    """Return who sees what."""
    reader = "this collector" if running.opens else "the task's engine"
    sealed = "blurred reports"
    if running.keys:
        sealed = f"sealed reports, which only {reader} opens"
    shuffler = " The shuffler sees who sends, and nothing of what." if running.is_mixed else ""
    readers = "Anybody sees" if running.public else "Analysts with a token see"
    return Promise(
        "Who sees what?",
        f"The values themselves never leave a device. The network sees {sealed}.{shuffler} "
        f"{_read(running)} {readers} this page.",
    )


def _read(running: RunningTask) -> str:
    """Return who reads blurred reports, and how long what each said is kept."""
    if not running.opens:
        return (
            "The collector keeps reports unread until the task's engine has read them and added "
            "them up, and then erases them."
        )
    keep = running.published.spec.get("keep", FOR_EVER)
    kept = {0: "and then erases what each said", FOR_EVER: "and keeps what each said"}.get(keep)
    kept = kept or f"and erases what each said {length(keep)} later"
    return f"The collector reads blurred reports, adds them up when their period closes, {kept}."
