"""What is said of a database that is wrong, away or too new, and how a collector goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import numpy as np
import psycopg
import pytest
from psycopg import conninfo
from tests.store.own_postgres import OwnPostgres
from tests.store.stores import TASK, count, filled

from sfumato.errors import InputError
from sfumato.store.postgres import PAUSE, DatabaseAway, PostgresStore
from sfumato.store.postgres_schema import FIRST, POSTGRES_STEPS
from sfumato.store.store_addresses import open_store


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgres]:
    with OwnPostgres() as running:
        yield running


@pytest.fixture
def store(server: OwnPostgres) -> Iterator[PostgresStore]:
    server.empty()
    opened = PostgresStore(server.dsn)
    opened.add_task(TASK, b"{}", {}, public=True)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("postgresql://u:secret@/nowhere?host=/nonexistent", "nowhere at /nonexistent cannot be"),
        ("postgresql://u:secret@127.0.0.1:1/nowhere", r"127.0.0.1:1 cannot be .* refused\)\."),
        ("postgresql://u:secret@host:port/name?unknown=1", "this is no address of a database"),
    ],
)
def test_a_wrong_address_is_one_sentence_without_secrets(dsn: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        open_store(dsn)
    assert "secret" not in str(raised.value)
    assert "postgresql://user@host/database is expected" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_tables_of_a_later_version_are_left_alone(server: OwnPostgres) -> None:
    server.empty()
    PostgresStore(server.dsn).close()
    with psycopg.connect(server.dsn, autocommit=True) as database:
        database.execute("UPDATE sfumato_schema SET version = 99")
    with pytest.raises(InputError, match=r"has version 99; this sfumato knows versions up to"):
        PostgresStore(server.dsn)
    with psycopg.connect(server.dsn, autocommit=True) as database:
        newest = FIRST - 1 + len(POSTGRES_STEPS)
        database.execute("UPDATE sfumato_schema SET version = %s", [newest])
        database.execute("ALTER TABLE releases DROP COLUMN figures")
    with pytest.raises(InputError, match="table releases has n, period, task_id"):
        PostgresStore(server.dsn)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("REVOKE ALL ON tasks FROM poor", "permission denied for table sfumato_schema"),
        ("ALTER ROLE poor SET default_transaction_read_only = on", "in a read-only transaction"),
        ("REVOKE CREATE ON SCHEMA public FROM poor", "permission denied for schema public"),
    ],
)
def test_a_database_that_refuses_is_quoted_and_not_called_damaged(
    server: OwnPostgres, settings: str, words: str
) -> None:
    server.empty()
    PostgresStore(server.dsn).close()
    with psycopg.connect(server.dsn, autocommit=True) as database:
        database.execute("CREATE ROLE poor LOGIN")
        database.execute("GRANT USAGE, CREATE ON SCHEMA public TO poor")
        database.execute(settings.encode())
    try:
        with pytest.raises(InputError, match=f"refuses what is needed .*{words}") as raised:
            PostgresStore(conninfo.make_conninfo(server.dsn, user="poor"))
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as database:
            database.execute("DROP OWNED BY poor")
            database.execute("DROP ROLE poor")
    assert "A user who may create, read and write its tables is expected" in str(raised.value)
    assert "damaged" not in str(raised.value)


def test_tables_of_an_earlier_version_are_brought_up_to_date(server: OwnPostgres) -> None:
    server.empty()
    with psycopg.connect(server.dsn, autocommit=True) as database:
        database.execute(POSTGRES_STEPS[0].encode())
        database.execute(f"CREATE TABLE sfumato_schema AS SELECT {FIRST} AS version".encode())
        database.execute(
            "INSERT INTO tasks (task_id, published, public) VALUES (%s, '{}', 1)", [TASK]
        )
    store = PostgresStore(server.dsn)
    (task,) = store.tasks()
    assert (task.last_period, task.archived, list(task.gaps)) == (None, False, [])
    assert store.commit([filled(1, bytes(range(16)), b"a")]) == [True]
    assert store.end_task(TASK, 0)
    store.close()


def test_a_database_that_was_away_is_gone_on_with(
    server: OwnPostgres, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    kept = [rng.bytes(160) for _ in range(4)]
    store.commit([filled(1, kept[0], bytes(10))])
    for lost in (kept[1], kept[2]):
        server.stop(signal.SIGQUIT)  # as a crash: it recovers from its log
        for _ in range(2):
            with pytest.raises(DatabaseAway):
                store.commit([filled(1, lost, bytes(10))])
        with pytest.raises(DatabaseAway), store.closing():
            pass
        server.start()
        monkeypatch.setattr("sfumato.store.postgres.PAUSE", 0.0)
        for session in (store._writer_session, store._reader_session, store._closer_session):  # noqa: SLF001
            session._next_try = 0.0  # noqa: SLF001 -- as if PAUSE had passed
        assert PAUSE < 1
        store.commit([filled(1, lost, bytes(10))])
    store.commit([filled(1, kept[3], bytes(10))])
    with store.closing() as ours:
        assert ours
    store.end_round(TASK, 1, 0)
    store.settle(TASK, 1, count)
    assert b"".join(sorted(store.ids(TASK, 1))) == b"".join(sorted(kept))
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))


def test_a_closer_whose_connection_was_cut_lets_others_close(
    server: OwnPostgres, store: PostgresStore
) -> None:
    other = PostgresStore(server.dsn)
    with store.closing() as ours:
        assert ours
        with psycopg.connect(server.dsn, autocommit=True) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            )
        _closes(other)
    other.close()


def test_a_database_where_another_writes_can_be_written_to(
    server: OwnPostgres, store: PostgresStore
) -> None:
    with psycopg.connect(server.dsn) as other:
        other.execute("UPDATE writers SET last = last")  # as a commit that takes long
        assert store.unwritable() is None
        other.rollback()
        other.execute("ALTER TABLE writers RENAME TO elsewhere")
        other.commit()
        assert "writers" in (store.unwritable() or "")
        other.execute("ALTER TABLE elsewhere RENAME TO writers")


def _closes(store: PostgresStore) -> None:
    """Wait until a store closes periods, as the database ends another's session in its own time."""
    patience = time.monotonic() + 60
    while True:
        with store.closing() as ours:
            if ours:
                return
        assert time.monotonic() < patience
        time.sleep(0.05)


def test_a_closer_that_stands_still_lets_others_close(
    server: OwnPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, moving = PostgresStore(server.dsn), PostgresStore(server.dsn)
    with moving.closing() as ours, other.closing() as theirs:
        assert ours
        assert not theirs
    monkeypatch.setattr("sfumato.store.postgres.CLOSING", 300)
    still = PostgresStore(server.dsn)
    with still.closing() as ours:
        assert ours
        _closes(other)
    _closes(still)
    for store in (other, moving, still):
        store.close()


def test_a_closer_that_goes_on_keeps_the_right_to_close(
    server: OwnPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.store.postgres.CLOSING", 600)
    long, other = PostgresStore(server.dsn), PostgresStore(server.dsn)
    with long.closing() as ours:
        assert ours
        for _ in range(15):  # much longer than a process may stand still
            time.sleep(0.1)
            long.versions()
            with other.closing() as theirs:
                assert not theirs
    with other.closing() as theirs:
        assert theirs
    for store in (long, other):
        store.close()


def test_a_database_without_room_for_more_connections_can_be_written_to(
    server: OwnPostgres, store: PostgresStore
) -> None:
    assert store.unwritable() is None
    with ExitStack() as others:
        with suppress(psycopg.OperationalError):
            while True:
                others.enter_context(psycopg.connect(server.dsn))
        assert store.commit([filled(1, bytes(16), b"\1")]) == [True]
        assert store.unwritable() is None
