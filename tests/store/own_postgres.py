"""A PostgreSQL server of one's own, on a socket in a temporary folder, for tests of the store."""

from __future__ import annotations

import os

import pytest
from benchmarks.postgres_server import PostgresServer, programs

__all__ = ["OwnPostgres", "programs"]


class OwnPostgres(PostgresServer):
    """A server for tests, which are left out where there is none."""

    def __init__(self) -> None:
        if programs() is None:
            if os.environ.get("CI") == "true":
                pytest.fail("there is no PostgreSQL; ./run test installs it")
            pytest.skip("there is no PostgreSQL (apt-get install postgresql)")
        super().__init__()
