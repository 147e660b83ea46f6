"""Pages of other sites cannot use a browser that holds a password for the collector."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from tests.service.chromium import NEEDS_BROWSER, browser, launched
from tests.service.running import TOKENS, Running
from tests.service.world import TASK, World

from sfumato.service.browsers import refuse_foreign_pages
from sfumato.web.problems import Refused

__all__ = ["browser", "launched"]

BASE = "https://stats.example"
HOST = {"host": "127.0.0.1:8080"}
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
PASSWORD = {"authorization": "Basic eDp5"}
TOKEN = {"authorization": "Bearer y"}

OWN: list[dict[str, str]] = [
    {},  # devices, curl, the command line
    TOKEN | JSON,
    TOKEN | FORM,  # curl -H "Authorization: ..." -d @task.json
    PASSWORD,  # curl -u x:token -X POST
    PASSWORD | JSON,
    {"origin": "http://127.0.0.1:8080"},
    {"origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"} | PASSWORD | JSON,
    {"origin": BASE, "sec-fetch-site": "same-origin"},  # behind a proxy that hides the host
    {"sec-fetch-site": "none"},
]
FOREIGN: list[dict[str, str]] = [
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:8081"},
    {"origin": "http://127.0.0.1"},
    {"origin": "http://127.0.0.1:8080.evil.example"},
    {"origin": "http://evil.example#127.0.0.1:8080"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://["},
    {"origin": f"{BASE}.evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": ""},
    {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8080"},
    {"sec-fetch-site": "same-origin", "origin": "http://evil.example"},
    PASSWORD | FORM,
    PASSWORD | {"content-type": "text/plain; charset=utf-8"},
    PASSWORD | {"content-type": "Multipart/Form-Data; boundary=x"},
]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "NEW"])
def test_what_changes_something_comes_from_ourselves_or_from_no_page(method: str) -> None:
    for headers in OWN:
        refuse_foreign_pages(method, Headers(HOST | headers), BASE)
    for headers in FOREIGN:
        with pytest.raises(Refused) as refused:
            refuse_foreign_pages(method, Headers(HOST | headers), BASE)
        assert refused.value.name == "foreign-page", headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_changes_nothing_is_not_asked_where_it_comes_from(method: str) -> None:
    for headers in OWN + FOREIGN:
        refuse_foreign_pages(method, Headers(HOST | headers), BASE)


def test_every_address_that_takes_something_is_guarded(tmp_path: Path) -> None:
    world = World(tmp_path)
    addresses = [
        "/v1/tasks",
        f"/v1/tasks/{world.open.name}/reports",
        f"/v1/tasks/{world.open.name}/keys",
        "/nothing/here",
    ]
    headers = world.headers("operator") | {"Origin": "http://evil.example"}
    before = set(world.open.keys)
    with world.client:
        for address in addresses:
            answer = world.client.post(address, json={"task": TASK}, headers=headers)
            assert answer.status_code == 403, address
            assert answer.json()["type"] == "urn:sfumato:problem:foreign-page"
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert len(world.collector.running_tasks) == 2
    assert set(world.open.keys) == before
    world.store.close()


def test_none_a_wrong_and_a_lesser_token_are_told_apart(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = f"/tasks/{world.hidden.name}"
    wrong = base64.b64encode(b"me:" + b"x" * 43).decode()
    with world.client:
        for given, status, said in (
            ({}, 404, "/login asks a browser for a token"),
            ({"Authorization": "Bearer " + "x" * 43}, 401, "this collector has no such token"),
            ({"Authorization": f"Basic {wrong}"}, 401, "this collector has no such token"),
            ({"Authorization": "Bearer"}, 401, "the header Authorization has no token"),
            ({"Authorization": "Digest x"}, 401, "the header Authorization has no token"),
            (world.headers("shuffler"), 404, "/login asks a browser for a token"),
        ):
            answer = world.client.get(path, headers=given)
            assert answer.status_code == status
            assert said in answer.json()["detail"]
            lines = answer.headers.get_list("www-authenticate")
            schemes = [line.partition(" ")[0] for line in lines]
            assert schemes == (["Basic", "Bearer"] if status == 401 else [])
    world.store.close()


# ---- in a real browser -------------------------------------------------------------------------


class _Page(BaseHTTPRequestHandler):
    """A page of another site; it is whatever is asked for."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _foreign(body: str) -> Iterator[str]:
    handler = type("Page", (_Page,), {"body": body.encode()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@NEEDS_BROWSER
def test_a_browser_logs_in_and_foreign_pages_cannot_use_that(tmp_path: Path, browser: Any) -> None:
    with Running(tmp_path / "collector.db") as running:
        start = int(time.time()) - 3601
        name = running.publish(TASK, start=start)["task_id"]
        password = TOKENS["SFUMATO_OPERATOR_TOKEN"]
        person = browser.new_context(http_credentials={"username": "me", "password": password})
        page = person.new_page()
        assert page.goto(f"{running.url}/tasks/{name}").status == 404
        assert page.goto(f"{running.url}/login").status == 200
        assert "Lights" in page.inner_text("table")
        shown = page.goto(f"{running.url}/tasks/{name}")
        assert shown.status == 200
        assert page.inner_text("h1") == "Lights"
        own = page.evaluate(
            f"fetch('/v1/tasks/{name}/keys', {{method: 'POST'}}).then(a => a.json())"
        )
        assert own["key_id"] > start  # a page of the collector may
        keys, tasks = f"{running.url}/v1/tasks/{name}/keys", f"{running.url}/v1/tasks"
        task = json.dumps({"task": TASK | {"title": "Evil"}})
        attacks = {
            "form": f'<form method="post" action="{keys}"></form><script>document.forms[0].submit()'
            "</script>",
            "text": f'<form method="post" action="{tasks}" enctype="text/plain"><input name=\''
            f"{task[:-1]}, \"x' value='\": 1}}'></form><script>document.forms[0].submit()</script>",
            "keys": f"<script>fetch('{keys}', {{method: 'POST', mode: 'no-cors', credentials: "
            "'include'})</script>",
            "fetch": f"<script>fetch('{tasks}', {{method: 'POST', mode: 'no-cors', credentials: "
            f"'include', body: '{task}'}})</script>",
        }
        for attack, body in attacks.items():
            with _foreign(body) as address:
                assert _posted(person, address) in (403, None), attack
        assert [task["title"] for task in running.tasks()] == ["Lights"]
        keys = json.loads(running.read(f"/v1/tasks/{name}"))["keys"]
        assert [key[0] for key in keys] == [own["key_id"]]


def _posted(person: Any, address: str) -> int | None:
    """Open a page; return how what it posts is answered, None if it may not even be told."""
    ended: list[Any] = []
    page = person.new_page()
    for event in ("requestfinished", "requestfailed"):
        page.on(event, lambda asked: ended.extend([asked] * (asked.method == "POST")))
    page.goto(address)
    end = time.time() + 30
    while not ended and time.time() < end:
        page.wait_for_timeout(20)
    (asked,) = ended
    answer = asked.response() if asked.failure is None else None
    page.close()
    return None if answer is None else int(answer.status)
