"""The publisher: values in, noisy sums of blocks out, as soon as a block is complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import InputError, MismatchError
from sfumato.randomness import Keyed
from sfumato.streams.published.publishing_plan import PublishingPlan

__all__ = ["Blocks", "Publisher", "State"]


class Blocks(NamedTuple):
    """Published blocks: the position of each block's last value, and its noisy sum."""

    to: Ints
    sums: Floats


@dataclass
class State:
    """The state of a publisher between values, which is as sensitive as the stream.

    Parameters
    ----------
    count
        The number of values so far.
    held
        The values held out so far, from which the threshold will be chosen.
    threshold
        The current threshold; None before it is chosen.
    blocks
        The number of complete blocks.
    partial, filled
        The sum of the clipped values of the current block, and their number.
    thresholds
        The thresholds of all chapters so far.
    begun
        The number of blocks that were complete at the start of the current chapter.

    """

    count: int = 0
    held: list[Ints] = field(default_factory=list)
    threshold: int | None = None
    blocks: int = 0
    partial: int = 0
    filled: int = 0
    thresholds: list[int] = field(default_factory=list)
    begun: int = 0

    @property
    def chapter(self) -> int:
        """The number of the current chapter, counted from 0."""
        return max(len(self.thresholds) - 1, 0)

    def plain(self) -> dict[str, Any]:
        """Return everything except the values held out, as plain data."""
        return {name: value for name, value in vars(self).items() if name != "held"}

    def check(self, release: PublishingPlan, *, complete: bool = False) -> None:
        """Raise MismatchError unless a publisher of this release can be in this state.

        These numbers determine which noise comes next: with wrong ones, noise that hides one value
        would be used again for another.
        """
        whole = (self.count, self.blocks, self.partial, self.filled, self.begun, *self.thresholds)
        if any(type(number) is not int or not 0 <= number < 1 << 62 for number in whole):
            raise MismatchError("the saved state has something else than whole numbers in it.")
        if self.threshold != (self.thresholds[-1] if self.thresholds else None):
            raise MismatchError("the saved state has a threshold that was not chosen last.")
        start, begun, end = release.chapter_at(self.chapter)
        inside, width = self.count - start, release.block
        if not self.thresholds:
            counted, held = inside < 0 or release.skipped == 0, self.count
            counted &= self.count < max(release.holdout, 1) and not (self.blocks or self.filled)
        else:
            counted = inside >= 0 and (end is None or self.count < end)
            there = self.blocks - self.begun, self.filled
            counted &= there == divmod(inside, width) or (
                complete and there == (-(-inside // width), 0)
            )
            held = 0 if end is None else max(0, self.count - end + release.watched)
        if not counted or self.begun != begun or self.partial > self.filled * release.bound:
            raise MismatchError("the saved state has counts that do not fit together.")
        values = np.concatenate([*self.held, np.zeros(0, dtype=np.int64)])
        if values.size != held or (held and not 0 <= values.min() <= values.max() <= release.bound):
            raise MismatchError("the saved state lacks values that were held out.")


class Publisher:
    """Publishes one stream; the result is the same value by value and batch by batch.

    All noise is derived from the key, so a publisher with the same key and state continues exactly,
    and never uses noise twice. Memory does not depend on the length of the stream: only the noise
    of the trees drawn together is held.

    Parameters
    ----------
    release
        The plan by which the stream is published.
    key
        32 secret bytes, which must be kept until the stream is complete and then erased.
    state
        The state of an earlier publisher, to continue from.

    Examples
    --------
    >>> from sfumato.streams.published.noise_tree import Tree
    >>> from sfumato.streams.published.thresholds import Fixed
    >>> plan = PublishingPlan(20.0, bound=100, threshold=Fixed(10), tree=Tree(4, 2), block=2)
    >>> publisher = Publisher(plan, bytes(32))
    >>> publisher.feed(np.array([3, 4, 99, 1, 5])).to.tolist()
    [2, 4]
    >>> publisher.finish().to.tolist()
    [5]

    """

    def __init__(self, release: PublishingPlan, key: bytes, state: State | None = None) -> None:
        self.release = release
        self._key = key
        self.state = state or State()
        self._row: tuple[tuple[int, int], Ints, Floats] | None = None
        if not release.holdout and self.state.threshold is None:
            self._choose()

    def feed(self, values: Ints) -> Blocks:
        """Add values, whole numbers of units from 0 to the bound; return the blocks now due."""
        if values.size and not (values.min() >= 0 and values.max() <= self.release.bound):
            raise InputError(f"some value lies outside of 0..{self.release.bound} units.")
        state, release = self.state, self.release
        if state.threshold is None:
            missing = release.holdout - state.count
            held, values = values[:missing], values[missing:]
            state.held.append(held.astype(np.int64))
            state.count += held.size
            if state.count == release.holdout:
                again = self._choose()
                if release.reuse:  # these values are published as well, before later ones
                    state.count = 0
                    values = np.concatenate([again, values])
        if not values.size or state.threshold is None:
            return Blocks(np.zeros(0, dtype=np.int64), np.zeros(0))
        if not release.renew:
            return self._add(np.minimum(values, state.threshold))
        due = [*self._chapters(values)]
        return Blocks(*(np.concatenate(column) for column in zip(*due, strict=True)))

    def _chapters(self, values: Ints) -> Iterator[Blocks]:
        """Yield the blocks that values complete; the end of a chapter also ends a block."""
        state, release = self.state, self.release
        while values.size:
            end = release.holdout + len(state.thresholds) * release.renew
            part, values = values[: end - state.count], values[end - state.count :]
            assert state.threshold is not None  # noqa: S101 - it is chosen before any block
            watched = part[max(end - release.watched - state.count, 0) :]
            yield self._add(np.minimum(part, state.threshold))
            if watched.size:
                state.held.append(watched.astype(np.int64))
            if state.count == end:
                yield self.finish()  # a block belongs to one chapter
                self._choose()

    def finish(self) -> Blocks:
        """Return the last block, which may be short, at the end of the stream."""
        state = self.state
        if not state.filled:
            return Blocks(np.zeros(0, dtype=np.int64), np.zeros(0))
        sums = self._noisy(np.array([state.partial]))
        state.blocks, state.partial, state.filled = state.blocks + 1, 0, 0
        return Blocks(np.array([state.count]), sums)

    def _choose(self) -> Ints:
        """Choose the threshold; erase and return the values it was chosen from."""
        state = self.state
        values = np.concatenate([*state.held, np.zeros(0, dtype=np.int64)])
        again = len(state.thresholds)
        rng = Keyed(self._key, f"threshold {again}" if again else "threshold")
        state.threshold = self.release.choose(values, rng, again=bool(again))
        state.thresholds.append(state.threshold)
        state.held, state.begun = [], state.blocks
        return values

    def _add(self, values: Ints) -> Blocks:
        state, width = self.state, self.release.block
        first = state.count
        state.count += values.size
        missing = width - state.filled
        if values.size < missing:
            state.partial += int(values.sum())
            state.filled += values.size
            return Blocks(np.zeros(0, dtype=np.int64), np.zeros(0))
        whole = 1 + (values.size - missing) // width
        end = missing + (whole - 1) * width
        sums = np.empty(whole, dtype=np.int64)
        sums[0] = state.partial + int(values[:missing].sum())
        np.sum(values[missing:end].reshape(-1, width), axis=1, out=sums[1:])
        to = first + missing + width * np.arange(whole)
        noisy = self._noisy(sums)
        state.blocks += whole
        state.partial, state.filled = int(values[end:].sum()), values.size - end
        return Blocks(to, noisy)

    def feed_sums(self, sums: Ints) -> Blocks:
        """Add whole blocks of which only the sums are known; return them with their noise.

        The values in them are cut to the threshold already, which is known in advance.
        """
        state, width = self.state, self.release.block
        if state.filled or state.threshold is None or self.release.renew:
            raise InputError("whole blocks cannot begin here, or their threshold is not known yet.")
        blocks = Blocks(state.count + width * np.arange(1, sums.size + 1), self._noisy(sums))
        state.blocks, state.count = state.blocks + sums.size, state.count + width * sums.size
        return blocks

    def _noisy(self, sums: Ints) -> Floats:
        """Return the sums of the next blocks with their noise added."""
        leaves = self.release.tree.leaves * self.release.tree.together
        noisy = np.empty(sums.size)
        done = 0
        while done < sums.size:
            row, leaf = divmod(self.state.blocks - self.state.begun + done, leaves)
            integers, corrections = self._noise(row)
            take = slice(leaf, min(leaves, leaf + sums.size - done))
            size = take.stop - take.start
            part = noisy[done : done + size]
            # Integers are added first, exactly: a rounded sum of true value and noise could reveal
            # the true value.
            part[:] = sums[done : done + size] + integers[take]
            part += corrections[take] if corrections.size > 1 else corrections
            done += size
        return noisy

    def _noise(self, row: int) -> tuple[Ints, Floats]:
        """Return the noise of the leaves of a row of trees, drawn once."""
        index = (self.state.chapter, row)
        if self._row is None or self._row[0] != index:
            release = self.release
            assert self.state.threshold is not None  # noqa: S101 - it is chosen before any block
            law = release.noise(self.state.threshold)
            purpose = f"trees {row}" + (f" of chapter {index[0]}" if index[0] else "")
            nodes = release.tree.draw(law, Keyed(self._key, purpose))
            self._row = (index, *release.tree.leaf_sums(nodes))
        return self._row[1:]
