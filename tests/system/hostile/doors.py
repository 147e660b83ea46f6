"""All doors, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.system.hostile.cli_doors import Arguments, Files
from tests.system.hostile.http_doors import Addresses, Sockets
from tests.system.hostile.judging import Door
from tests.system.hostile.kept_doors import DeviceJournals, ReleaseJournals, Stores
from tests.system.hostile.wire_doors import (
    Batches,
    Questions,
    Receipts,
    Requests,
    TaskFiles,
    Tasks,
)

__all__ = ["DOORS"]

DOORS: Final[Sequence[type[Door]]] = (
    TaskFiles,
    Tasks,
    Questions,
    Receipts,
    Requests,
    Batches,
    DeviceJournals,
    ReleaseJournals,
    Stores,
    Addresses,
    Sockets,
    Files,
    Arguments,
)
