"""Central releases of many streams at once, each with noise of its own that a key determines.

A task of an engine that is lost is done again, elsewhere, or twice at the same time. What it draws
must be the same each time: with other noise for the same values, two results that both come back
would show the values. So engines take a key, and no other source of noise. For the same reason a
key is for one table: it must not be used again once a value has changed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.arrays import Ints
from sfumato.engines.spark_session import secret_broadcast
from sfumato.errors import ConfigurationError, InputError, MismatchError, SfumatoError
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.several import key_of_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

__all__ = ["release_each", "release_one", "release_with_spark"]

COLUMNS: Final = ("stream", "position", "value")
RELEASED: Final = "stream string, to long, sum double, refused string"
KEY_BYTES: Final = 32


def release_one(
    plan: PublishingPlan, key: bytes, name: str, positions: Ints, values: Ints
) -> Blocks:
    """Return what is published of one stream: the blocks of its values, in order of position.

    Parameters
    ----------
    plan
        The plan by which each stream is published.
    key
        32 secret bytes, from which, with its name, the noise of each stream is derived.
    name
        The name of the stream.
    positions, values
        The values, as whole numbers of units, and the number of each in the stream. They come in
        any order; a value that is there twice counts once.

    """
    _demand_key(key)
    for column, cells in zip(COLUMNS[1:], (positions, values), strict=True):
        if cells.dtype.kind not in "iu":
            raise InputError(
                f"{column} of stream {name!r} is {cells.dtype}; a whole number in each row is "
                "expected."
            )
    own, first = np.unique(positions, return_index=True)
    ordered = values[first]
    twice = ordered[np.searchsorted(own, positions)] != values
    if twice.any():
        raise MismatchError(
            f"stream {name!r} has two different values at position "
            f"{int(positions[np.argmax(twice)])}; one is expected."
        )
    publisher = Publisher(plan, key_of_stream(key, name))
    parts = [publisher.feed(ordered.astype(np.int64)), publisher.finish()]
    return Blocks(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def release_each(plan: PublishingPlan, key: bytes, table: pa.Table) -> pa.Table:
    """Return what is published of every stream of a table: ``stream``, ``to`` and ``sum``.

    Each value belongs to one stream, and is protected with all of the plan's epsilon. Which stream
    that is, and how many values each stream has, is public.

    Parameters
    ----------
    plan
        The plan by which each stream is published.
    key
        32 secret bytes, from which, with its name, the noise of each stream is derived.
    table
        The columns ``stream``, ``position`` and ``value``.

    """
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    _demand_key(key)
    _demand_columns(table.schema.names)
    names = np.asarray(table["stream"].to_pylist(), dtype=str)
    positions, values = (table[each].to_numpy() for each in COLUMNS[1:])
    columns: tuple[list[str], list[int], list[float]] = ([], [], [])
    for name in sorted(set(names.tolist())):
        chosen = names == name
        blocks = release_one(plan, key, name, positions[chosen], values[chosen])
        columns[0].extend([name] * len(blocks.to))
        columns[1].extend(blocks.to.tolist())
        columns[2].extend(blocks.sums.tolist())
    return pa.table(dict(zip(("stream", "to", "sum"), columns, strict=True)))


def release_with_spark(plan: PublishingPlan, key: bytes, frame: DataFrame) -> pa.Table:
    """Return what :func:`release_each` does, in order, computed by Spark to the last bit the same.

    Parameters
    ----------
    plan
        The plan by which each stream is published.
    key
        32 secret bytes; executors get them with a broadcast that is encrypted, and destroyed
        afterwards.
    frame
        The columns ``stream``, ``position`` and ``value``; its session has the settings
        :data:`~sfumato.engines.spark_session.SECRETIVE`.

    """
    _demand_key(key)
    _demand_columns(frame.columns)
    plain = json.dumps(plan.configuration())
    with secret_broadcast(frame.sparkSession, key) as shared:
        groups = frame.select(*COLUMNS).groupBy("stream")
        table = groups.applyInArrow(_applied(shared, plain), RELEASED).toArrow()
    for refused in table["refused"].drop_null().to_pylist():
        raise InputError(refused)
    return table.drop_columns(["refused"]).sort_by([("stream", "ascending"), ("to", "ascending")])


def _applied(shared: Broadcast[bytes], plain: str) -> Any:
    """Return a function of one group, with the annotations that Spark looks for."""

    def release(group: pa.Table) -> pa.Table:
        return _group_released(shared, plain, group)

    release.__annotations__ = {}
    return release


def _group_released(shared: Broadcast[bytes], plain: str, group: pa.Table) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    plan = PublishingPlan.from_configuration(json.loads(plain))
    name = str(group["stream"][0].as_py())
    positions, values = (group[each].to_numpy() for each in COLUMNS[1:])
    try:
        blocks, refused = release_one(plan, shared.value, name, positions, values), None
    except SfumatoError as error:
        blocks, refused = Blocks(np.zeros(1, np.int64), np.zeros(1)), str(error)
    n = len(blocks.to)
    return pa.table(
        {
            "stream": pa.array([name] * n, pa.string()),
            "to": pa.array(blocks.to, pa.int64()),
            "sum": pa.array(blocks.sums, pa.float64()),
            "refused": pa.array([refused] * n, pa.string()),
        }
    )


def _demand_key(key: Any) -> None:
    """Raise ConfigurationError for a source of coins that does not draw the same again."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        what = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise ConfigurationError(
            f"key is {what}; {KEY_BYTES} secret bytes are expected, so that what is computed again "
            "draws the same noise."
        )


def _demand_columns(names: list[str]) -> None:
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InputError(
            f"the table has no column {missing[0]!r}; {', '.join(COLUMNS)} are needed."
        )
