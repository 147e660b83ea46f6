"""Secure words are fresh and not kept; only seeded and keyed words repeat."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from tests.fitting import python
from tests.randomness.walking import Scripted

from sfumato.errors import ConfigurationError, InsecureRandomness
from sfumato.randomness import (
    ONE,
    Keyed,
    Secure,
    refuse_seeded,
    secure,
    seeded,
)


def test_secure_words_are_fresh_whatever_their_number() -> None:
    source = Secure()
    for size in (1, 16, 1 << 14, (1 << 14) + 1, 100_003, (1 << 20) + 5):
        first, second = source.take(size), source.take(size)
        assert len(first) == len(second) == size
        assert size < 16 or first != second
    assert source.take(0) == b""
    ones = np.unpackbits(np.frombuffer(source.take(1 << 20), "u1")).mean()
    assert abs(ones - 0.5) < 6.1 * 0.5 / sqrt(1 << 23)


def kept_by(source: Secure) -> bytes:
    """Every byte that the source still holds."""
    return b"".join(bytes(x) for x in vars(source).values() if isinstance(x, (bytes, bytearray)))


@pytest.mark.parametrize("size", [16, 1000, 40_000])
def test_a_secure_source_does_not_keep_what_it_gave(size: int) -> None:
    source = Secure()
    source.take(64)
    for _ in range(3):
        given = bytes(source.take(size))
        assert given not in kept_by(source)
        assert given[:16] not in kept_by(source)


def test_a_secure_source_does_not_keep_the_key_of_earlier_words() -> None:
    source = Secure()
    keys = [vars(source)["_key"]]
    for _ in range(40):
        source.take(4096)
        if vars(source)["_key"] != keys[-1]:
            keys.append(vars(source)["_key"])
            assert all(key not in kept_by(source) for key in keys[:-1])
            assert kept_by(source).count(keys[-1]) == 1  # in its own place, not in the pool
    assert len(keys) == len(set(keys)) == 4  # a new key with every 65,504 bytes


def test_a_forked_process_draws_other_words_than_its_parent() -> None:
    code = """
import os
from sfumato.randomness import secure
secure().take(100)
reader, writer = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.write(writer, (secure().take(16).hex() + " ").encode())
        os._exit(0)
    os.wait()
os.close(writer)
print(os.read(reader, 1000).decode(), secure().take(16).hex())
"""
    words = python(code).split()
    assert len(words) == len(set(words)) == 3


def test_a_child_forked_while_the_source_is_busy_does_not_wait_for_ever() -> None:
    code = """
import os
from sfumato.randomness import secure
vars(secure())["_lock"].acquire()
if (child := os.fork()) == 0:
    secure().take(16)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code).strip() == "7"


def test_threads_do_not_share_words() -> None:
    source = Secure()
    given: list[bytes] = []

    def draw() -> None:
        given.extend([bytes(source.take(16)) for _ in range(3000)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == len(set(given)) == 24_000


def test_a_process_has_one_secure_source() -> None:
    assert secure() is secure()


def test_a_seed_gives_the_same_words_for_ever() -> None:
    assert seeded(0).take(16).hex() == "9f1a012b5d0369e59383961f2c97e965"
    assert seeded(7).words(2).tolist() == [18407269321609765994, 6579678849563564819]
    assert seeded(7).below(1000, 6).tolist() == [60, 997, 579, 356, 736, 88]
    assert seeded(7).bernoulli(ONE // 3, 12).astype(int).tolist() == [
        0,
        1,
        0,
        0,
        1,
        0,
        0,
        0,
        1,
        0,
        1,
        1,
    ]
    assert seeded(7).discrete_laplace(Fraction(1, 5), 8).tolist() == [0, 5, -12, -11, 9, -5, 2, 3]
    assert seeded(7).permutation(6).tolist() == [2, 3, 4, 5, 1, 0]


def test_a_seeds_words_do_not_depend_on_how_they_are_asked_for() -> None:
    whole, parts = seeded(5), seeded(5)
    assert whole.take(116) == b"".join(parts.take(size) for size in (5, 0, 11, 100))
    assert seeded(5).words(4, 16).tobytes() == seeded(5).words(1, 64).tobytes()


def test_two_seeds_give_different_words() -> None:
    assert len({bytes(seeded(seed).take(16)) for seed in range(-50, 50)}) == 100


def test_simulated_people_repeat_with_their_seed() -> None:
    first, again, other = (seeded(s).simulator().integers(1 << 60, size=4) for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_a_source_that_repeats_itself_is_refused_where_privacy_is_real() -> None:
    source = Secure()
    assert refuse_seeded(source) is source
    for repeating in (seeded(1), Scripted()):
        with pytest.raises(InsecureRandomness, match=r"real data need randomness.secure\(\)"):
            refuse_seeded(repeating)


def test_a_secure_source_cannot_be_copied() -> None:
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InsecureRandomness, match="cannot be copied"):
            copier(Secure())


def test_a_keyed_source_repeats_with_its_key_and_purpose() -> None:
    one, other = bytes(32), bytes(31) + b"1"
    assert Keyed(one, "noise 1").take(40) == Keyed(one, "noise 1").take(40)
    assert (
        len({bytes(Keyed(k, p).take(8)) for k in (one, other) for p in ("noise 1", "noise")}) == 4
    )
    keyed = Keyed(one, "noise")
    assert refuse_seeded(keyed) is keyed
    with pytest.raises(InsecureRandomness, match="cannot be copied"):
        copy.copy(keyed)
    with pytest.raises(ConfigurationError, match="the key has 3 bytes; 32 are expected"):
        Keyed(b"abc", "noise")


def test_a_system_whose_processes_do_not_fork_has_secure_coins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    assert Secure().take(8) != Secure().take(8)
