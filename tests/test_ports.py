"""Ports of tests are free, and differ also between processes that run tests."""

from __future__ import annotations

import socket

import pytest
from tests import ports
from tests.fitting import python
from tests.ports import own_port


def test_a_port_is_given_once_in_all_processes_and_can_be_listened_on() -> None:
    own = [own_port() for _ in range(3)]
    line = f"import runpy; own_port = runpy.run_path({ports.__file__!r})['own_port']"
    others = [int(port) for port in python(f"{line}; print(own_port(), own_port())").split()]
    assert len({*own, *others}) == 5
    for port in own:
        for _ in range(2):  # also after a server that was there has gone
            socket.create_server(("127.0.0.1", port)).close()


def test_a_port_where_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = own_port()
    with socket.create_server(("127.0.0.1", taken)):
        ports._HELD.pop().close()  # noqa: SLF001 -- nobody holds it any more
        monkeypatch.setattr(ports, "FIRST", taken)
        assert own_port() > taken
