"""`sfumato serve` from its first line to a start that fails: nothing is lost, and all is said."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import refused, run
from tests.service.running import TOKENS

from sfumato.service.access import Access
from sfumato.service.supervisor import Supervisor
from sfumato.store import SQLiteStore
from sfumato.web import serving

VARIABLES = (*TOKENS, "SFUMATO_SHUFFLER_TOKEN", "SFUMATO_KEY_SECRET")


@pytest.fixture(autouse=True)
def _without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the store is to be; a collector ends as soon as it is ready."""

    def ready(app: object, sock: object, said: Callable[[], None], *_: object) -> None:
        del app, sock
        said()

    monkeypatch.setattr(serving, "serve", ready)
    monkeypatch.setattr(Supervisor, "run", lambda _, said: said())
    monkeypatch.setattr("time.sleep", lambda _: None)
    return tmp_path / "c.db"


def served(store: Path, *words: object) -> Any:
    result = run("serve", "--store", store, "--port", 0, "--json", *words)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def roles(store: Path, *tokens: str) -> list[str | None]:
    with closing(SQLiteStore(store)) as opened:
        access = Access(opened)
        return [access.role_by(f"Bearer {token}") for token in tokens]


@pytest.mark.parametrize("workers", [1, 2])
def test_tokens_are_drawn_once_and_shown_once(store: Path, workers: int) -> None:
    words = ("--workers", workers)
    fresh = served(store, *words)["tokens"]
    assert set(fresh) == {"operator", "analyst"}
    assert min(map(len, fresh.values())) >= 40
    assert roles(store, *fresh.values()) == [*fresh]
    assert served(store, *words)["tokens"] == {}
    renewed = served(store, *words, "--new-tokens")["tokens"]
    assert roles(store, *renewed.values(), *fresh.values()) == [*renewed, None, None]
    kept = b"".join(file.read_bytes() for file in store.parent.iterdir())
    assert not any(token.encode() in kept for token in (*fresh.values(), *renewed.values()))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_start_that_fails_changes_no_token(
    store: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("serve", "--store", store, "--workers", workers)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        assert "Address already in use" in refused(*words, "--port", port)
        tokens = served(store)["tokens"]
        assert set(tokens) == {"operator", "analyst"}
        monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", "x" * 40)
        assert "Address already in use" in refused(*words, "--port", port, "--new-tokens")
    monkeypatch.delenv("SFUMATO_OPERATOR_TOKEN")
    missing = ("--port", 0, "--new-tokens", "--key-secret-file", store.with_name("none"))
    assert "cannot be read" in refused(*words, *missing)
    assert roles(store, *tokens.values()) == [*tokens]


def test_a_collector_goes_on_when_nobody_reads_what_it_says(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.cli.serve.show", broken)
        result = run("serve", "--store", store, "--port", 0)
    assert result.exit_code == 0
    assert "Nobody has read the new tokens" in result.stderr
    assert "Traceback" not in result.stderr
    assert set(served(store)["tokens"]) == {"operator", "analyst"}


def test_short_tokens_are_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", "short")
    assert "has 5 characters" in refused("serve", "--store", store, "--port", 0)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("serve",), ("SFUMATO_OPERATOR_TOKEN", "SFUMATO_ANALYST_TOKEN")),
        (("serve",), ("SFUMATO_SHUFFLER_TOKEN", "SFUMATO_ANALYST_TOKEN")),
        (("shuffle", "serve"), ("SFUMATO_SHUFFLER_TOKEN", "SFUMATO_SHUFFLER_OPERATOR_TOKEN")),
    ],
)
def test_one_token_is_not_for_two_roles(
    store: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], names: tuple[str, ...]
) -> None:
    for name in names:
        monkeypatch.setenv(name, "t" * 40)
    message = refused(*command, "--store", store, "--port", 0)
    assert all(name in message for name in names)
    assert "hold the same token; each role needs one of its own" in message
    assert not store.exists()


def test_the_token_of_one_role_does_not_become_that_of_another(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = served(store)["tokens"]["operator"]
    monkeypatch.setenv("SFUMATO_ANALYST_TOKEN", operator)
    message = refused("serve", "--store", store, "--port", 0)
    assert "SFUMATO_ANALYST_TOKEN holds the token of the operator" in message
    assert roles(store, operator) == ["operator"]
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", "o" * 40)
    served(store)
    assert roles(store, operator, "o" * 40) == ["analyst", "operator"]


def test_a_store_that_is_new_is_called_new(store: Path) -> None:
    first = run("serve", "--store", store, "--port", 0).stdout.splitlines()[0]
    assert first.endswith("c.db, which is new.")
    again = run("serve", "--store", store, "--port", 0).stdout.splitlines()[0]
    assert again.endswith("c.db.")
    store.unlink()
    assert served(store)["new"] is True
    assert served(store)["new"] is False


def test_a_store_without_a_name_is_refused() -> None:
    for words in (("serve", "--port", 0), ("serve", "--workers", 2), ("export", "x.parquet")):
        assert "the store is ''; a file or postgresql://" in refused(*words, "--store", "")
    assert "SOURCE is ''; a file" in refused("aggregate", "")


def test_the_address_that_devices_see_is_shown_and_has_to_be_one(store: Path) -> None:
    made = served(store, "--url", "https://sums.example/phones/")
    assert made["devices"] == "https://sums.example/phones"
    words = ("--port", 0, "--store", store)
    said = run("serve", *words, "--url", "https://sums.example").stdout
    assert "Devices reach it at https://sums.example." in said
    for url in ("http://", "https://x y", "https://x.example/?a=1", "https://u:p@x.example"):
        assert f"--url is {url!r}; an address like" in refused("serve", *words, "--url", url)


def test_what_was_not_typed_is_missing(store: Path) -> None:
    SQLiteStore(store).close()
    export = ("export", store.with_name("x.parquet"), "--store", store)
    assert refused(*export) == f"--task is missing; {store} has no tasks."
    assert "--task is 'x'; " in refused(*export, "--task", "x")
    for verb in ("end", "archive", "delete"):
        task = ("task", verb, f"http://127.0.0.1:9/tasks/{'0a' * 32}")
        assert "--confirm is missing; at least the first 8" in refused(*task)
        assert "--confirm is '0b'; at least" in refused(*task, "--confirm", "0b")
