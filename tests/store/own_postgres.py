"""A PostgreSQL server of one's own, on a socket in a temporary folder, for tests of the store."""

from __future__ import annotations

import os

import pytest
from benchmarks.postgres_server import PostgresServer, programs

__all__ = ["OwnPostgres", "needs_postgres", "programs"]


def needs_postgres() -> None:
    """Leave a test out where there is no PostgreSQL."""
    if programs() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no PostgreSQL; ./run test installs it")
        pytest.skip("there is no PostgreSQL (apt-get install postgresql)")


class OwnPostgres(PostgresServer):
    """A server for tests, which are left out where there is none."""

    def __init__(self) -> None:
        needs_postgres()
        super().__init__()
