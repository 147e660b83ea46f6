"""Where every coin comes from, and exact samplers built on integer words.

Two sources, two types. :func:`secure` is a keystream of AES-256 in counter mode keyed by the
operating system, with fast key erasure (a key never outlives the block it made, so a later
look at memory cannot recover earlier coins) and a new key after a fork. :func:`seeded` repeats
itself for experiments and tests, and is refused wherever somebody's privacy is real.

Every sampler is *exact*: probabilities are rationals with integer terms, and rejection is used
where a power of two does not divide evenly. How many words a sampler takes depends on the words
themselves, never on anybody's data.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Literal, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError, InsecureRandomness

__all__ = [
    "Coins",
    "Keyed",
    "Secure",
    "Seeded",
    "Source",
    "Wheel",
    "holds",
    "members",
    "refuse_seeded",
    "secure",
    "seeded",
]

BITS: Final = 64
ONE: Final = 1 << BITS  # a threshold of ONE is certainty

_LONGEST_TERM = 1 << 32
_LONGEST_SCALE = 1 << 52
_SMALLEST_RATE = Fraction(1, 1 << 26)
_IN_CACHE = 1 << 13
_FEW_WORDS = 1 << 44  # a word below it is no good approximation of what follows it
_POOL = 1 << 16
_BLOCK = 32
_SHORT = 64
_FEW_DRAWS = 1 << 12  # for which no table is made
_ZEROS = bytes(1 << 20)
_NONCE = bytes(16)
_WIDTHS: Final[tuple[Literal[8, 16, 32, 64], ...]] = (8, 16, 32, 64)

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def _keystream(key: bytes, size: int) -> bytearray:
    """Return ``size`` bytes that only the holder of ``key`` can tell from chance."""
    stream = Cipher(AES(key), CTR(_NONCE)).encryptor()
    made = bytearray(size + 16)  # update_into asks for one spare block
    view = memoryview(made)
    for start in range(0, size, len(_ZEROS)):
        take = min(len(_ZEROS), size - start)
        stream.update_into(memoryview(_ZEROS)[:take], view[start : start + take + 15])
    view.release()
    del made[size:]
    return made


def _check_subset(k: int, m: int) -> None:
    if not 0 <= m <= k:
        raise ConfigurationError(f"m is {m}; a subset of {k} has 0..{k} members.")


def _sizes(lanes: NDArray[np.uint64]) -> Ints:
    """Return how many members each subset has."""
    small = np.uint16 if len(lanes) < 1 << 10 else np.int64  # sixteen bits are much quicker
    return cast("Ints", np.bitwise_count(lanes).sum(axis=0, dtype=small).astype(np.int64))


def members(lanes: NDArray[np.uint64]) -> Ints:
    """Return the members of subsets given as lanes, one per row in increasing order.

    All subsets must have the same size, as those of :meth:`Source.subset_lanes` have.

    Examples
    --------
    >>> members(np.array([[0b1010, 0b0110]], dtype=np.uint64)).tolist()
    [[1, 3], [1, 2]]

    """
    words, n = lanes.shape
    rows = np.ascontiguousarray(lanes.T).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(rows, bitorder="little").view(np.bool_)
    found = np.flatnonzero(bits).reshape(n, -1)
    found -= np.arange(n)[:, None] * (64 * words)
    return found


def holds(lanes: NDArray[np.uint64], items: Ints, columns: Ints) -> Bools:
    """Return whether the subset in each of these columns holds its item."""
    words = lanes[items >> 6, columns] >> (items & 63).astype(np.uint64)
    return np.asarray(words & np.uint64(1), dtype=np.bool_)


def _short(name: str, given: Fraction | int, longest: int) -> Fraction:
    """Return a fraction whose terms are so short that no product with them leaves 64 bits."""
    fraction = Fraction(given)
    if max(abs(fraction.numerator), fraction.denominator) > longest:
        raise ConfigurationError(
            f"{name} is {fraction}; a fraction with terms up to 2^{longest.bit_length() - 1} is "
            "expected."
        )
    return fraction


def _whole_parts(words: NDArray[np.uint64], rate: Fraction, result: Ints) -> Ints:
    """Write the whole parts of -ln(V) / rate, and return the places where they are not certain."""
    # The bits that were not drawn, and the last one that was, move the logarithm of a word by 2^-43
    # at most (or the word is called too small); rounding it to a float by 2^-53; and logarithm,
    # product and sum, all of numbers below 64, err by a few units of 2^-47. That is less than
    # 2^-42 in all. Without their last bit words are signed numbers, which processors convert
    # several times as fast.
    scale = float(1 / rate)
    margin = scale * 2.0**-42
    halves = (words >> np.uint64(1)).view(np.int64)
    size = halves.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.log(size, out=size)
        size *= -scale
        size += scale * ((BITS - 1) * math.log(2)) - margin
        least = np.floor(size)
        result[:] = least
        size -= least
    open_ = size > 1 - 2 * margin
    if halves.min(initial=_FEW_WORDS) < _FEW_WORDS // 2:
        open_ |= halves < _FEW_WORDS // 2
    return np.flatnonzero(open_)


def _size(numerator: int, bits: int, rate: Fraction, digits: Context, *, up: bool) -> Decimal:
    """Return -ln(numerator / 2^bits) / rate, rounded down or up."""
    step = digits.next_plus if up else digits.next_minus
    # ln and division are correctly rounded, so that one step outward brackets each; the power of
    # two and the terms of the rate are exact.
    two, top = digits.ln(Decimal(2)), digits.ln(Decimal(numerator))
    two = step(two)
    top = digits.next_minus(top) if up else digits.next_plus(top)
    log = step(digits.subtract(step(digits.multiply(two, Decimal(bits))), top))
    scaled = step(digits.multiply(log, Decimal(rate.denominator)))
    return max(step(digits.divide(scaled, Decimal(rate.numerator))), Decimal(0))


class Source(ABC):
    """A stream of uniform words, and the exact samplers that need nothing else.

    Examples
    --------
    >>> rng = seeded(7)
    >>> rng.below(6, 5).tolist() == seeded(7).below(6, 5).tolist()
    True
    >>> rng.bernoulli(ONE, 3).tolist()
    [True, True, True]

    """

    @abstractmethod
    def take(self, size: int) -> bytearray:
        """Return ``size`` fresh uniform bytes."""

    def words(self, n: int, bits: Literal[8, 16, 32, 64] = 64) -> NDArray[Any]:
        """Return n uniform unsigned words."""
        return np.frombuffer(self.take(n * bits // 8), dtype=f"<u{bits // 8}")

    def bound(self, code: Iterable[int]) -> Source:
        """Return the coins for one encoded value; fresh coins are good for any value.

        Coins that can be drawn again must not be shared by two values: see :class:`Keyed`.
        """
        del code
        return self

    def coins(self) -> Coins:
        """Return whole numbers one at a time, for code that handles one thing at a time."""
        return Coins(self)

    def simulator(self) -> np.random.Generator:
        """Return a numpy generator seeded from here, to draw *simulated* people; never reports."""
        return np.random.Generator(np.random.PCG64(int.from_bytes(self.take(16), "little")))

    # ---- coins -----------------------------------------------------------------------------

    def bernoulli(self, threshold: int, n: int) -> Bools:
        """Return n coins, each True with probability exactly threshold / 2^64.

        Sixteen bits decide all but one coin in 65,536; the rest of the word is drawn only there.
        """
        if not 0 <= threshold <= ONE:
            raise ConfigurationError(f"threshold is {threshold}; it must lie in 0..2^64.")
        if threshold == ONE:
            return np.ones(n, dtype=bool)
        first = self.words(n, 16)
        high = np.uint16(threshold >> 48)
        coins = first < high
        tied = np.flatnonzero(first == high)
        if tied.size:
            rest = self.words(tied.size) >> np.uint64(16)
            coins[tied] = rest < np.uint64(threshold & ((1 << 48) - 1))
        return coins

    def bernoulli_each(self, thresholds: NDArray[np.uint64]) -> Bools:
        """Return a coin for each threshold, True with probability exactly threshold / 2^64.

        Every coin takes a whole word, so the thresholds may be somebody's secret.
        """
        return self.words(thresholds.size) < thresholds

    def bits(self, n: int) -> NDArray[np.uint8]:
        """Return n fair bits, each 0 or 1."""
        return cast("NDArray[np.uint8]", self.words(n, 8) & np.uint8(1))

    def bit_lanes(self, k: int, n: int) -> NDArray[np.uint64]:
        """Return n rows of k fair bits as lanes: bit i of row j is bit i % 64 of [i // 64, j]."""
        words = (k + 63) // 64
        lanes = self.words(words * n).reshape(words, n)
        if k % 64:
            lanes[-1] &= np.uint64((1 << k % 64) - 1)
        return lanes

    def bernoulli_lanes(self, threshold: int, k: int, n: int) -> NDArray[np.uint64]:
        """Return n rows of k coins as lanes, each True with probability exactly threshold / 2^64.

        Coin i of row j is bit i % 64 of [i // 64, j], as for :meth:`bit_lanes`.
        """
        words = (k + 63) // 64
        rows = self._bernoulli_words(threshold, words * n).reshape(n, words)
        if k % 64:
            rows[:, -1] &= np.uint64((1 << k % 64) - 1)
        return rows.T

    def _bernoulli_words(self, threshold: int, n: int) -> NDArray[np.uint64]:
        """Return n words of 64 independent coins each.

        All 64 lanes compare their own random number with the threshold bit by bit, most
        significant first; a lane is decided at the first bit that differs. Eight bits decide all
        but one lane in 256, so later bits are drawn only for words that still have an open lane.
        """
        if not 0 <= threshold <= ONE:
            raise ConfigurationError(f"threshold is {threshold}; it must lie in 0..2^64.")
        everything = np.uint64(ONE - 1)
        if threshold == ONE:
            return np.full(n, everything)
        coins = np.zeros(n, dtype=np.uint64)
        undecided = np.full(n, everything)
        where: NDArray[np.int64] | None = None  # None: every word still has an open lane
        for bit in range(BITS - 1, -1, -1):
            if threshold & ((2 << bit) - 1) == 0:
                break  # no remaining bit can make an open lane smaller than the threshold
            below = bool(threshold >> bit & 1)  # the number drawn is smaller if its bit is 0
            open_ = undecided if where is None else undecided[where]
            word = self.words(open_.size)
            if where is None:
                if below:
                    coins |= undecided & ~word
                    undecided &= word
                else:
                    undecided &= ~word
                if bit <= BITS - 8:
                    where = np.flatnonzero(undecided)
            else:
                if below:
                    coins[where] |= open_ & ~word
                    open_ &= word
                else:
                    open_ &= ~word
                undecided[where] = open_
                where = where[open_ != 0]
                if not where.size:
                    break
        return coins

    def rational(self, numerator: NDArray[Any] | int, denominator: int, n: int) -> Bools:
        """Return n coins with probability exactly numerator / denominator (may differ by coin)."""
        return self.below(denominator, n) < numerator

    def bernoulli_exp(self, exponent: Fraction | int, n: int) -> Bools:
        """Return n coins, each True with probability exactly e^-exponent (exponent >= 0).

        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020): only
        rational coins are tossed, so no value of the exponential is ever computed.
        """
        exponent = _short("exponent", exponent, _LONGEST_TERM)
        if exponent < 0:
            raise ConfigurationError(
                f"exponent is {exponent}; e^-exponent is a probability only if it is >= 0."
            )
        whole, part = divmod(exponent, 1)
        numerators = np.full(n, part.numerator, dtype=np.int64)
        coins = self._bernoulli_exp_fraction(numerators, part.denominator)
        for _ in range(int(whole)):
            open_ = np.flatnonzero(coins)
            if not open_.size:
                break
            ones = np.ones(open_.size, dtype=np.int64)
            coins[open_] = self._bernoulli_exp_fraction(ones, 1)
        return coins

    def _bernoulli_exp_fraction(self, numerators: Ints, denominator: int) -> Bools:
        """Coins of probability e^-(numerator/denominator) for fractions in [0, 1]."""
        rounds = np.ones(numerators.size, dtype=np.int64)
        open_ = np.arange(numerators.size)
        k = 1
        while open_.size:
            goes_on = self.rational(numerators[open_], denominator * k, open_.size)
            open_ = open_[goes_on]
            rounds[open_] += 1
            k += 1
        return cast("Bools", rounds % 2 == 1)

    # ---- whole numbers ---------------------------------------------------------------------

    def below(self, k: int, n: int, dtype: Any = np.int64) -> NDArray[Any]:
        """Return n uniform integers in [0, k), unbiased; k up to 2^64 and what dtype holds."""
        if not 1 <= k <= (ONE if dtype is np.uint64 else ONE >> 1):
            raise ConfigurationError(
                f"k is {k}; a uniform integer below k needs k in 1..2^63, or 2^64 if unsigned."
            )
        if k & (k - 1) == 0:
            return self._below_power_of_two(k, n, dtype)
        # Lemire's multiply-and-shift; a product whose low half is under 2^32 mod k is redrawn.
        # Larger k use plain rejection under the next power of two.
        if k > 1 << 24:
            return self._below_by_rejection(k, n).astype(dtype)
        scaled = self.words(n, 32).astype(np.uint64)
        scaled *= np.uint64(k)
        biased = (1 << 32) % k
        low = scaled & np.uint64((1 << 32) - 1)
        again = np.flatnonzero(low < np.uint64(biased))
        scaled >>= np.uint64(32)
        result = scaled.astype(dtype)
        if again.size:
            result[again] = self.below(k, again.size, dtype)
        return result

    def _below_power_of_two(self, k: int, n: int, dtype: Any) -> NDArray[Any]:
        bits = k.bit_length() - 1
        width = next(w for w in _WIDTHS if bits <= w)
        words = self.words(n, width)
        words &= words.dtype.type(k - 1)
        return words.astype(dtype, copy=False)

    def _below_by_rejection(self, k: int, n: int) -> Ints:
        result = self._below_power_of_two(1 << k.bit_length(), n, np.int64)
        again = np.flatnonzero(result >= k)
        if again.size:
            result[again] = self._below_by_rejection(k, again.size)
        return result

    def below_each(self, sizes: NDArray[Any], least: int, most: int) -> Ints:
        """Return a uniform integer below each of the sizes, which lie in least..most.

        The coins taken depend on least and most alone, so the sizes may be somebody's secret. If
        all possible sizes divide one short number, a uniform number below that one is divided. If
        not, a number below ``most`` is drawn, then one below that number, and so on until one is
        below ``least``; the first of them that is below a size is uniform below it.
        """
        if not 1 <= least <= most <= 1 << 24:
            raise ConfigurationError(
                f"sizes lie in {least}..{most}; whole numbers in 1..2^24 are expected."
            )
        multiple = math.lcm(*range(least, most + 1)) if most < _SHORT else ONE
        if multiple <= 1 << 24:
            return cast("Ints", self.below(multiple, sizes.size) % sizes)
        found = self.below(most, sizes.size)
        open_ = np.flatnonzero(found >= least)
        last = found[open_]
        while open_.size:
            last = self._below_given(last)
            wanted = found[open_] >= sizes[open_]
            found[open_[wanted]] = last[wanted]
            goes_on = last >= least
            open_, last = open_[goes_on], last[goes_on]
        return found

    def _below_given(self, sizes: Ints) -> Ints:
        """Return a uniform integer below each of the sizes (Lemire), up to 2^24."""
        scaled = self.words(sizes.size, 32).astype(np.int64) * sizes
        again = np.flatnonzero(scaled & ((1 << 32) - 1) < (1 << 32) % sizes)
        scaled >>= 32
        if again.size:
            scaled[again] = self._below_given(sizes[again])
        return scaled

    def permutation(self, k: int) -> Ints:
        """Return a uniform order of 0..k-1: the order of k distinct random keys."""
        while True:
            keys = self.words(k)
            order = np.argsort(keys, kind="stable")
            ranked = keys[order]
            # Given that all keys differ every order is equally likely; a tie starts afresh.
            if k < 2 or bool(np.all(ranked[1:] != ranked[:-1])):
                return order

    def subsets(self, k: int, m: int, n: int) -> Ints:
        """Return n uniform m-subsets of 0..k-1, one per row, in no particular order."""
        return np.ascontiguousarray(self.subset_columns(k, m, n).T, dtype=np.int64)

    def subset_columns(self, k: int, m: int, n: int) -> NDArray[Any]:
        """Return n uniform m-subsets of 0..k-1, one per column, in the smallest dtype."""
        _check_subset(k, m)
        chosen = np.empty((m, n), dtype=np.min_scalar_type(max(k - 1, 0)))
        few = m <= 64 or m * m <= k
        block = 1 << 14 if few else max(1, (1 << 22) // k)  # temporaries stay in cache
        for start in range(0, n, block):
            columns = chosen[:, start : start + block]
            if few:
                columns[:] = self._few_of_many(k, m, columns.shape[1])
            else:
                columns[:] = members(self.subset_lanes(k, m, columns.shape[1])).T
        return chosen

    def _few_of_many(self, k: int, m: int, n: int) -> NDArray[Any]:
        """Return n uniform m-subsets of 0..k-1, one per column (Floyd), in O(m^2) each."""
        chosen = np.empty((m, n), dtype=np.min_scalar_type(max(k - 1, 0)))
        for row, top in enumerate(range(k - m, k)):
            pick = self.below(top + 1, n, chosen.dtype)
            taken = (chosen[:row] == pick).any(axis=0)
            chosen[row] = np.where(taken, chosen.dtype.type(top), pick)
        return chosen

    def subset_lanes(self, k: int, m: int, n: int) -> NDArray[np.uint64]:
        """Return n uniform m-subsets of 0..k-1 as bits: i is in j if bit i % 64 of [i // 64, j] is.

        Every item draws a number, bit by bit and 64 items at a time, and the m smallest make up
        the subset: of the items still open those with a 0 join if there is room for all of them,
        otherwise only they stay open. Once few are open it is cheaper to let them go and toggle
        uniform items that bring the size nearer to m. No step tells one item from another, so
        renaming the items renames the subset and nothing else: all m-subsets are equally likely.
        A few items of many, in or out, are drawn one by one instead.
        """
        _check_subset(k, m)
        chosen = np.zeros(((k + 63) // 64, n), dtype=np.uint64)
        open_ = np.full_like(chosen, ONE - 1)
        if k % 64:
            open_[-1] = (1 << k % 64) - 1
        few = min(m, k - m)
        if few <= min(8 + k // 32, 64):
            columns = np.arange(n)
            for item in self._few_of_many(k, few, n).astype(np.uint64):
                chosen[item >> 6, columns] |= np.uint64(1) << (item & 63)
            return chosen if m == few else chosen ^ open_
        short = np.full(n, m, dtype=np.int64)
        for _ in range(min(k.bit_length() - 2, 12)):  # about four items are left open
            zeros = self.words(chosen.size).reshape(chosen.shape)
            zeros &= open_
            count = _sizes(zeros)
            fits = count <= short
            short -= count * fits
            all_or_none = (-fits.astype(np.int64)).view(np.uint64)
            open_ &= all_or_none
            open_ ^= zeros
            zeros &= all_or_none
            chosen |= zeros
        # All that are open may join, if taking the surplus out again is the shorter way: a
        # uniform item is a member with probability m/k and none with (k-m)/k.
        count = _sizes(open_)
        fits = (count - short) * (k - m) < short * m
        short -= count * fits
        chosen |= open_ & (-fits.astype(np.int64)).view(np.uint64)
        self._toggle(chosen, short, k)
        return chosen

    def _toggle(self, lanes: NDArray[np.uint64], short: Ints, k: int) -> None:
        """Toggle uniform items until each subset, of so many members too few, has its size."""
        flat, n = lanes.reshape(-1), lanes.shape[1]
        rows = np.flatnonzero(short)
        short = short[rows]
        while rows.size:
            item = self.below(k, rows.size)
            place = (item >> 6) * n + rows
            bit = np.uint64(1) << (item & 63).astype(np.uint64)
            word = flat[place]
            nearer = ((word & bit) != 0) == (short < 0)
            flat[place] = word ^ bit * nearer
            short -= np.sign(short) * nearer
            unfinished = short != 0
            rows, short = rows[unfinished], short[unfinished]

    def outside(self, lanes: NDArray[np.uint64], k: int) -> Ints:
        """Return a uniform item of 0..k-1 outside of each of these subsets, none of them whole."""
        columns = np.arange(lanes.shape[1])
        items = self.below(k, columns.size)
        again = columns
        while (again := again[holds(lanes, items[again], again)]).size:
            items[again] = self.below(k, again.size)
        return items

    # ---- outcomes with weights -------------------------------------------------------------

    def spin(self, wheel: Wheel, n: int) -> NDArray[Any]:
        """Return n outcomes of a wheel, each the place of a weight."""
        return wheel.read(n, self)

    # ---- noise -----------------------------------------------------------------------------

    def geometric(self, rate: Fraction | int, n: int) -> Ints:
        """Return n whole numbers with P[k] = (1 - e^-rate) e^(-rate k), rate > 0.

        The whole part of -ln(V) / rate, for V uniform between 0 and 1, is such a number. V is known
        to 64 bits; where these, and what a floating-point logarithm may be off, leave it open which
        whole number it is, V gets further bits and the logarithm as many digits as it takes.
        """
        rate = _short("rate", rate, _LONGEST_SCALE)
        if rate <= 0:
            raise ConfigurationError(f"rate is {rate}; a geometric number needs a rate above 0.")
        if rate < _SMALLEST_RATE:
            return self._wide_geometric(rate, n)
        result = np.empty(n, dtype=np.int64)
        for start in range(0, n, _IN_CACHE):
            part = result[start : start + _IN_CACHE]
            words = self.words(part.size)
            open_ = _whole_parts(words, rate, part)
            for place in open_.tolist():
                part[place] = self._whole_part(int(words[place]), rate)
        return result

    def _wide_geometric(self, rate: Fraction, n: int) -> Ints:
        """Return geometric numbers of a rate so small that floats cannot tell them apart.

        Of a geometric number the quotient by q is geometric of rate q times as large, and the
        remainder, independent of it, has P[k] proportional to e^(-rate k): nearly uniform, if q is
        small against 1 / rate. So a uniform one is kept with probability e^(-rate k).
        """
        q = 1 << int(_SMALLEST_RATE / rate).bit_length()
        quotient = self.geometric(rate * q, n)
        remainder = np.empty(n, dtype=np.int64)
        open_ = np.arange(n)
        while open_.size:
            drawn = self.below(q, open_.size)
            words = self.words(open_.size)
            # e^(-rate k) is above 1 - rate q: nearly all words are below it without a look.
            sure = words < np.uint64(int(ONE * (1 - rate * q)))
            kept = sure.copy()
            for place in np.flatnonzero(~sure).tolist():
                kept[place] = self._below_exp(int(words[place]), rate * int(drawn[place]))
            remainder[open_[kept]] = drawn[kept]
            open_ = open_[~kept]
        return quotient * q + remainder

    def _below_exp(self, known: int, exponent: Fraction) -> bool:
        """Return whether V in [known, known + 1) / 2^64 is below e^-exponent."""
        bits = BITS
        one = Fraction(1)
        while True:
            digits = Context(prec=60 + bits // 2)
            if known and Fraction(_size(known, bits, one, digits, up=True)) < exponent:
                return False
            if Fraction(_size(known + 1, bits, one, digits, up=False)) > exponent:
                return True
            known = known << BITS | int(self.words(1)[0])
            bits += BITS

    def _whole_part(self, known: int, rate: Fraction) -> int:
        """Return the whole part of -ln(V) / rate for V in [known, known + 1) / 2^64."""
        bits = BITS
        while True:
            digits = Context(prec=60 + bits // 2)
            most = _size(known, bits, rate, digits, up=True) if known else None
            least = _size(known + 1, bits, rate, digits, up=False)
            if most is not None and int(most) == int(least):
                return int(least)
            known = known << BITS | int(self.words(1)[0])
            bits += BITS

    def discrete_laplace(self, rate: Fraction | int, n: int) -> Ints:
        """Return n integers with P[z] proportional to e^(-rate |z|), rate > 0."""
        result = self.geometric(rate, n)
        sign = 1 - 2 * (self.words(n, 8) < 128).view(np.int8)
        # Zero has one sign only: the second copy of it is drawn again.
        again = np.flatnonzero(result == 0)
        again = again[sign[again] < 0]
        result *= sign
        if again.size:
            result[again] = self.discrete_laplace(rate, again.size)
        return result


class Coins:
    """Whole numbers one at a time, for code that handles one thing at a time.

    Bits are taken from the source in blocks; unused ones are never written anywhere, so whoever
    saves a state and goes on later goes on with fresh ones.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._bits = 0
        self._left = 0

    def below(self, k: int) -> int:
        """Return a uniform integer in [0, k), by rejection under the next power of two."""
        width = (k - 1).bit_length()
        while True:
            if self._left < width:
                self._bits = int.from_bytes(self._source.take(_BLOCK), "little")
                self._left = 8 * _BLOCK
            drawn = self._bits & ((1 << width) - 1)
            self._bits >>= width
            self._left -= width
            if drawn < k:
                return drawn


class Wheel:
    """Draws from a finite law given by whole-number weights, however long, exactly.

    Sixteen bits decide all but few draws by a table, sixty-four all but one in 2^64 for each
    weight; there the weights themselves decide, with as many more bits as it takes.

    Parameters
    ----------
    weights
        Returns the weights, the same each time; they are not kept, as they may be long.

    Examples
    --------
    >>> wheel = Wheel(lambda: [1, 0, 3])
    >>> np.bincount(wheel.draw(8_000, seeded(1)), minlength=3).tolist()
    [2034, 0, 5966]

    """

    def __init__(self, weights: Callable[[], Iterable[int]]) -> None:
        self.weights = weights
        self._total = sum(weights())
        if self._total < 1:
            raise ConfigurationError(f"the weights sum to {self._total}; 1 or more is expected.")
        self._words = np.array(self._edges(BITS), dtype=np.uint64)
        self._dtype: np.dtype[Any] = np.min_scalar_type(self._words.size)

    def _edges(self, bits: int) -> list[int]:
        """Return where each outcome that is not the last one ends, in whole steps of 2^-bits."""
        ends = accumulate(self.weights())
        return [(end << bits) // self._total for end in ends if end < self._total]

    @cached_property
    def _table(self) -> tuple[NDArray[Any], Bools]:
        """Which outcome each 16 bits stand for, and whether an edge lies among what they begin."""
        starts = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        outcomes = np.searchsorted(self._words, starts, side="right").astype(self._dtype)
        split = np.zeros(1 << 16, dtype=bool)
        split[(self._words >> np.uint64(48)).astype(np.int64)] = True
        return outcomes, split

    def draw(self, n: int, rng: Source) -> NDArray[Any]:
        """Return n outcomes, each the place of a weight."""
        return rng.spin(self, n)

    def read(self, n: int, rng: Source) -> NDArray[Any]:
        """Return n outcomes by the words of a source, each the place of a weight."""
        if n < _FEW_DRAWS:
            return self._find(rng.words(n), rng)
        outcomes, split = self._table
        first = rng.words(n, 16)
        found: NDArray[Any] = outcomes[first]
        open_ = np.flatnonzero(split[first])
        if open_.size:
            rest = rng.words(open_.size) >> np.uint64(16)
            found[open_] = self._find(first[open_].astype(np.uint64) << np.uint64(48) | rest, rng)
        return found

    def _find(self, words: NDArray[np.uint64], rng: Source) -> NDArray[Any]:
        found = np.searchsorted(self._words, words, side="right").astype(self._dtype)
        for place in np.flatnonzero(np.isin(words, self._words)):
            found[place] = self._beyond(int(words[place]), rng)
        return found

    def _beyond(self, drawn: int, rng: Source) -> int:
        """Return the outcome of a draw that begins with the first bits of an edge."""
        bits = BITS
        while True:
            drawn, bits = drawn << BITS | int(rng.words(1)[0]), bits + BITS
            edges = self._edges(bits)
            if drawn not in edges:
                return bisect_right(edges, drawn)


class Secure(Source):
    """AES-256-CTR keyed by the operating system, with fast key erasure; safe across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()
        os.register_at_fork(after_in_child=self._after_fork)

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled: two copies would hand out the same coins."""
        raise InsecureRandomness("a secure source cannot be copied; call secure() instead.")

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        """Start from a key the operating system has just made."""
        self._key = os.urandom(32)
        self._pool = bytearray()
        self._used = 0

    def take(self, size: int) -> bytearray:
        """Return ``size`` fresh bytes and erase them here."""
        if size > _POOL // 4:  # a large block is made under a key of its own, used once
            return _keystream(bytes(self.take(32)), size)
        with self._lock:
            if self._used + size > len(self._pool):
                # Fast key erasure: the block's first bytes replace the key that made it.
                self._pool = _keystream(self._key, _POOL)
                # Fresh entropy goes in, too, so that a cloned machine goes its own way.
                fresh = zip(self._pool[:32], os.urandom(32), strict=True)
                self._key = bytes(one ^ other for one, other in fresh)
                self._pool[:32] = bytes(32)
                self._used = 32
            start, self._used = self._used, self._used + size
            taken = self._pool[start : self._used]
            self._pool[start : self._used] = bytes(size)
            return taken


class Seeded(Source):
    """The same coins for the same seed, on every machine, for ever: experiments and tests only."""

    def __init__(self, seed: int) -> None:
        digest = hashlib.sha256(b"sfumato seeded %d" % seed).digest()
        self._stream = Cipher(AES(digest), CTR(_NONCE)).encryptor()
        self.seed = seed

    def take(self, size: int) -> bytearray:
        """Return the next ``size`` bytes of this seed's stream."""
        return bytearray(self._stream.update(bytes(size)))


class Keyed(Source):
    """The same coins for the same key and purpose: noise that survives a crash of its process.

    Whoever knows the key knows the coins, so a key is kept like the data that they protect, and
    forgotten as soon as nothing has to be drawn again. Whatever blurs a value takes the coins that
    are :meth:`bound` to it: the same value repeats its report, and another one is blurred anew.

    Examples
    --------
    >>> key = bytes(secure().take(32))
    >>> Keyed(key, "noise 1").take(8) == Keyed(key, "noise 1").take(8)
    True
    >>> Keyed(key, "noise 1").take(8) == Keyed(key, "noise 2").take(8)
    False
    >>> Keyed(key, "report").bound([3]).take(8) == Keyed(key, "report").bound([4]).take(8)
    False

    """

    def __init__(self, key: bytes, purpose: str) -> None:
        if len(key) != _BLOCK:
            raise ConfigurationError(f"the key has {len(key)} bytes; {_BLOCK} are expected.")
        self._key, self._purpose = key, purpose
        derived = hmac.digest(key, b"sfumato keyed " + purpose.encode(), "sha256")
        self._stream = Cipher(AES(derived), CTR(_NONCE)).encryptor()

    def bound(self, code: Iterable[int]) -> Source:
        """Return the coins that this key and purpose have for one encoded value."""
        return Keyed(self._key, f"{self._purpose}, value {','.join(map(str, code))}")

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled: two copies would hand out the same coins."""
        raise InsecureRandomness("a keyed source cannot be copied; make it from its key again.")

    def take(self, size: int) -> bytearray:
        """Return the next ``size`` bytes of this key's stream."""
        return bytearray(self._stream.update(bytes(size)))


_SECURE: Secure | None = None


def secure() -> Secure:
    """Return the process-wide secure source."""
    global _SECURE  # noqa: PLW0603 - one pool per process; it holds no data, only unused coins
    if _SECURE is None:
        _SECURE = Secure()
    return _SECURE


def seeded(seed: int) -> Seeded:
    """Return a source that repeats itself: for simulated people, never for real ones."""
    return Seeded(seed)


def refuse_seeded(source: Source) -> Source:
    """Return ``source`` if real people may rely on it; raise otherwise."""
    if not isinstance(source, (Secure, Keyed)):
        raise InsecureRandomness(
            f"the source is {type(source).__name__}, whose coins anyone can repeat; "
            "real data need randomness.secure()."
        )
    return source
