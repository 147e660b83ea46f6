"""Who holds which keys: rows of (person, key), of which at most s are kept for each person."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.arrays import Array, Floats, Ints
from sfumato.core.domain import Domain
from sfumato.errors import InputError
from sfumato.randomness import Source

__all__ = ["Holdings", "read_holdings", "vectors_of"]


@dataclass(frozen=True, eq=False)
class Holdings:
    """The keys that people hold, one row for each person and key, with a value.

    Parameters
    ----------
    people
        The number of people, including those who hold no key.
    person, key
        The number of the person (0..people-1) and the code of the key in each row.
    value
        The value in each row.

    """

    people: int
    person: Ints
    key: Ints
    value: Floats

    def at_most(self, count: int, rng: Source) -> Holdings:
        """Return at most ``count`` keys of each person, drawn uniformly without looking at them.

        Every key of somebody who holds k is kept with the same probability min(1, count / k), so no
        key is favoured, and the mean of a person's kept values is right on average. Keeping the
        first keys of the public list would lose the last ones altogether.
        """
        order = rng.permutation(self.person.size)
        order = order[np.argsort(self.person[order], kind="stable")]
        kept = np.sort(order[_ranks(self.person[order]) < count])
        return Holdings(self.people, self.person[kept], self.key[kept], self.value[kept])


def _ranks(grouped: Ints) -> Ints:
    """Return the position of each row within its person's rows, which are adjacent."""
    starts = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1]])[: grouped.size])
    lengths = np.diff(np.concatenate([starts, [grouped.size]]))
    return np.arange(grouped.size) - np.repeat(starts, lengths)


def vectors_of(holdings: Holdings, signs: NDArray[np.int8], columns: int) -> Array:
    """Return each person's keys as positions with signs, in the form that mechanisms take."""
    shape = [("position", np.int64, (columns,)), ("sign", np.int8, (columns,))]
    vectors = np.zeros(holdings.people, dtype=shape)
    order = np.lexsort((holdings.key, holdings.person))
    person = holdings.person[order]
    ranks = _ranks(person)
    vectors["position"][person, ranks] = holdings.key[order]
    vectors["sign"][person, ranks] = signs[order]
    return vectors


# ---- reading data ----------------------------------------------------------------------------


def read_holdings(
    data: Any, keys: Domain, person: str, key: str, value: str | None = None
) -> Holdings:
    """Return the holdings in a table with one row for each key, or in one collection per person.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, or a mapping from names to columns; or a list with a
        mapping from key to value (or, without values, a list of keys) for each person. A row of a
        table without a key is a person who holds none.
    keys
        The public list of keys.
    person, key, value
        The names of the columns; if ``value`` is None, every value is 1.

    """
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _from_people(data, keys, valued=value is not None)
    columns = frames.picked(data, [name for name in (person, key, value) if name is not None])
    try:
        codes, people = _numbered(columns[person].tolist(), person)
        positions = _positions(columns[key].tolist(), keys, key)
    except TypeError as error:  # a cell contains a list
        raise InputError(
            f"{person} and {key} must hold one word or number in each row: {error}."
        ) from error
    rows = np.flatnonzero(positions >= 0)
    numbers = np.ones(rows.size) if value is None else _numbers(columns[value], rows, value)
    return _once(
        Holdings(people, codes[rows], positions[rows], numbers), columns[person][rows], keys
    )


def _from_people(data: Sequence[Any], keys: Domain, *, valued: bool) -> Holdings:
    if not len(data):
        raise InputError("data is empty; at least one person is expected.")
    person, positions, numbers = [], [], []
    for index, held in enumerate(data):
        if isinstance(held, (str, bytes)) or not hasattr(held, "__iter__"):
            wanted = "a mapping from key to value" if valued else "a list of items"
            raise InputError(f"data[{index}] is {reprlib.repr(held)}; {wanted} is expected.")
        if valued and not isinstance(held, Mapping):
            raise InputError(
                f"data[{index}] is {reprlib.repr(held)}; a mapping from key to value is expected."
            )
        for label in held:
            code = _code(keys, label)
            if code is None:
                _refuse_key(keys, label, f"data[{index}] names a key that")
            person.append(index)
            positions.append(code)
            numbers.append(held[label] if valued else 1.0)
    rows = np.arange(len(person))
    values = _numbers(frames.objects(numbers), rows, "value") if rows.size else np.zeros(0)
    holdings = Holdings(
        len(data), np.array(person, dtype=np.int64), np.array(positions, dtype=np.int64), values
    )
    return _once(holdings, rows[:0], keys)


def _numbered(people: list[Any], name: str) -> tuple[Ints, int]:
    """Return a number for each row's person, by first appearance, and how many people there are."""
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(who, len(numbers)) for who in people], dtype=np.int64)
    for label, number in numbers.items():
        if frames.absent(label):
            row = int(np.argmax(codes == number))
            raise InputError(f"{name}[{row}] is missing; every row says whose it is.")
    if not numbers:
        raise InputError(f"{name} is empty; at least one person is expected.")
    return codes, len(numbers)


def _positions(labels: list[Any], keys: Domain, name: str) -> Ints:
    """Return the code of each key; -1 where the key is missing."""
    known = {label: -1 if frames.absent(label) else _code(keys, label) for label in set(labels)}
    positions = [known[label] for label in labels]
    if None in known.values():
        row = positions.index(None)
        _refuse_key(keys, labels[row], f"{name}[{row}]")
    return np.array(positions, dtype=np.int64)


def _code(keys: Domain, label: Any) -> int | None:
    # A column of whole numbers becomes one of floats if a cell is missing.
    whole = isinstance(label, float) and label.is_integer()
    return keys.code(int(label) if whole else label)


def _refuse_key(keys: Domain, label: Any, where: str) -> NoReturn:
    raise InputError(f"{where} is {reprlib.repr(label)}; the keys are {keys.shown()}.")


def _numbers(column: Array, rows: Ints, name: str) -> Floats:
    """Return the values of these rows as finite numbers; raise InputError for any other."""
    try:
        values = column[rows].astype(np.float64)
    except (TypeError, ValueError):
        values = np.full(rows.size, np.nan)
        for position, cell in enumerate(column[rows]):
            if isinstance(cell, (int, float, np.integer, np.floating)):
                values[position] = cell
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(rows[bad[0]])
        raise InputError(
            f"{name}[{row}] is {reprlib.repr(column[row])}; a finite number is expected."
        )
    return values


def _once(holdings: Holdings, names: Array, keys: Domain) -> Holdings:
    """Return the holdings; raise InputError if somebody has a key twice."""
    order = np.lexsort((holdings.key, holdings.person))
    person, key = holdings.person[order], holdings.key[order]
    twice = np.flatnonzero((person[1:] == person[:-1]) & (key[1:] == key[:-1]))
    if twice.size:
        row = order[twice[0] + 1]
        who = names[row] if names.size else int(person[twice[0]])
        raise InputError(
            f"person {who!s} has the key {keys.labels[int(holdings.key[row])]!r} twice; "
            "once is expected."
        )
    return holdings
