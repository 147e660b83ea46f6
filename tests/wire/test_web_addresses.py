"""The address of a server is part of each task's id, so that what is none is refused at once."""

from __future__ import annotations

import pytest

from sfumato.errors import InputError
from sfumato.wire.web_addresses import refuse_address

GOOD = (
    "http://127.0.0.1:8080",
    "http://localhost",
    "https://sums.example/",
    "https://sums.example:8443/a/b%20c",
    "http://[::1]:80",
    "http://collector_1:1/",
)
BAD = (
    "",
    "sums.example",
    "ftp://sums.example",
    "HTTPS://sums.example",
    "http://",
    "http:///path",
    "https://x y",
    "https://x.example/a b",
    "https://x.example/?a=1",
    "https://x.example?",
    "https://x.example/#a",
    "https://u:p@x.example",
    "https://u@x.example",
    "http://x:0",
    "http://x:99999",
    "http://x:",
    "http://x:port",
    "http://[::1",
    "http://[1:2]",
    "http://-",
    "http://x.example\n",
    "https://ümlaut.example",
)


@pytest.mark.parametrize("address", GOOD)
def test_addresses_with_a_host_are_taken(address: str) -> None:
    refuse_address("--url", address)


@pytest.mark.parametrize("address", BAD)
def test_what_is_no_address_is_refused_in_one_sentence(address: str) -> None:
    with pytest.raises(InputError, match=r"^--url is .*; an address like https://\S+ is expected"):
        refuse_address("--url", address)
