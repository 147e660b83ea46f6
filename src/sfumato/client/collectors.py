"""Asking a collector over HTTP, with nothing but the standard library."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sfumato.errors import InputError

__all__ = ["TOKENS", "addresses", "ask", "joined_at", "no_task", "task_of"]

LARGEST: Final = 64 << 20
TIMEOUT: Final = 60.0
TOKENS: Final = ("SFUMATO_ANALYST_TOKEN", "SFUMATO_OPERATOR_TOKEN")
"""The variables that hold the token of whoever reads answers."""


def ask(
    url: str,
    fields: dict[str, Any] | None = None,
    *,
    body: Any = None,
    variables: tuple[str, ...] = (),
    token: str | None = None,
    method: str | None = None,
) -> Any:
    """Return what a collector answers; raise InputError with its own sentence if it refuses.

    If there is no token, it is read from the first of these environment variables that is set: on a
    command line everybody on the machine could read it.
    """
    wrong = InputError(f"the address is {url!r}; one with http:// or https:// is expected.")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    address = f"{url}?{urlencode(fields)}" if fields else url
    request = urllib.request.Request(address)  # noqa: S310 -- checked above
    known = token or next(filter(None, map(os.environ.get, variables)), None)
    if known:
        request.add_header("Authorization", f"Bearer {known}")
    if method is not None:
        request.method = method
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            return json.loads(answer.read(LARGEST))
    except urllib.error.HTTPError as error:
        raise InputError(_refusal(error, variables)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{parts.netloc} gives no answer ({_reason(error)}); is a collector there?"
        ) from None


def _reason(error: Exception) -> str:
    """Return what went wrong on the way, in words."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause)


def _refusal(error: urllib.error.HTTPError, variables: tuple[str, ...]) -> str:
    with error:
        try:
            detail = str(json.loads(error.read(1 << 16))["detail"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return f"the collector answered {error.code}; is it one of sfumato?"
    if error.code == 404 and variables:  # or it is not for whoever asks
        return f"{detail} A token is read from {' or '.join(variables)}."
    if error.code in (401, 403) and variables:
        return f"{detail} It is read from {' or '.join(variables)}."
    return detail


def addresses(base: str, task_id: str) -> dict[str, str]:
    """Return where devices join a task of a collector, and where its page is."""
    return {"join": f"{base}/v1/tasks/{task_id}", "page": f"{base}/tasks/{task_id}"}


def joined_at(task: str) -> str:
    """Return the address at which devices join a task, as its collector is known to them.

    It is that of the task itself if devices send their reports to somebody else.
    """
    published, name = ask(task), task.rpartition("/")[2]
    if "collector" in published["spec"]:  # which a shuffler stands before
        return addresses(published["spec"]["collector"], name)["join"]
    joined = str(published["endpoint"]).removesuffix("/reports")
    return joined if joined.endswith(f"/v1/tasks/{name}") else task


def task_of(address: str) -> str:
    """Return the address of a task's data, from that of its data, its page or its collector.

    Examples
    --------
    >>> task_of("http://here/tasks/" + "0a" * 32)[:23]
    'http://here/v1/tasks/0a'

    """
    known = re.match(r"(https?://[^?#]*?)(?:/v1)?/tasks/([0-9a-f]{64})\b", address)
    if known:
        return f"{known[1]}/v1/tasks/{known[2]}"
    base, tasks_of, name = address.rstrip("/").partition("/tasks/")
    if tasks_of:
        raise InputError(
            f"the address is {address!r}; {name!r} is no id of a task, which has 64 hexadecimal "
            "digits."
        )
    tasks = ask(f"{base}/v1/tasks", variables=TOKENS)["tasks"]
    if not tasks:
        raise no_task(base)
    if len(tasks) != 1:
        listed = "; ".join(
            f"{base}/tasks/{task['task_id']} ({task['title']})" for task in tasks[:8]
        )
        raise InputError(
            f"{base} has {len(tasks)} tasks; the address of one is expected: {listed}."
        )
    return f"{base}/v1/tasks/{tasks[0]['task_id']}"


def no_task(base: str, token: str | None = None) -> InputError:
    """Return the error that a collector has no task for whoever asks.

    Examples
    --------
    >>> print(no_task("http://here", "a token"))
    http://here has no task yet; `sfumato task publish` gives it one.

    """
    asked = ""
    if not (token or any(map(os.environ.get, TOKENS))):
        asked = f" that is read without a token, and none is in {' or '.join(TOKENS)}"
    return InputError(f"{base} has no task yet{asked}; `sfumato task publish` gives it one.")
