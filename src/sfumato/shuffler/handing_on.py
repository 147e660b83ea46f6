"""What the shuffler has to do with the collector: fetching tasks, and handing batches on."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from sfumato.errors import InputError
from sfumato.shuffler.holding import Batched
from sfumato.shuffler.mixing import Shuffler
from sfumato.wire.exchanging import HTTPException, exchange
from sfumato.wire.published import LARGEST, Published
from sfumato.wire.questions import LARGEST as LARGEST_QUESTION
from sfumato.wire.reading import read_json
from sfumato.wire.reports import BATCH_TYPE, Batch

__all__ = ["Collecting", "told"]

TIMEOUT: Final = 60.0
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
FOR_GOOD: Final = (400, 404, 409, 413, 415)
"""The status codes of a refusal that does not change when the same batch is sent again."""
MOST_TOLD: Final = 16 << 20
"""The largest number of bytes of what a shuffler tells its operator."""
MOMENT: Final = 1.0
"""The number of seconds for which a fetched question is used again."""


@dataclass
class Collecting:
    """The shuffler's side of its exchanges with the collector.

    Parameters
    ----------
    shuffler
        The shuffler.
    token
        The token by which the collector knows it.

    """

    shuffler: Shuffler
    token: str = field(repr=False)
    problem: str = ""
    """What went wrong in the last exchange; empty if nothing did."""
    _wait: float = 0.0
    _next_try: float = 0.0
    _refreshed: dict[bytes, int] = field(default_factory=dict)
    _questions: dict[bytes, tuple[float, bytes]] = field(default_factory=dict)

    def fetch(self, task_id: bytes) -> None:
        """Fetch a task that is not known yet; raise InputError if there is none for this place."""
        published = Published.parse(self._get(f"/v1/tasks/{task_id.hex()}", LARGEST))
        if published.task_id != task_id:
            raise InputError("the collector has sent another task.")
        self.shuffler.learn(published)

    def refresh(self) -> None:
        """Fetch the key of each task once in each period, so that all devices have the same."""
        now = self.shuffler.clock()
        for task in list(self.shuffler.tasks.values()):
            period = task.begun(now)
            if self._refreshed.get(task.task_id) == period:
                continue
            try:
                self.fetch(task.task_id)
            except InputError as error:
                self.problem = str(error)
                continue
            self._refreshed[task.task_id] = period

    def question(self, task_id: bytes) -> bytes:
        """Return the open question of a task; all devices that ask within a moment get the same."""
        now = time.monotonic()
        at, body = self._questions.get(task_id, (-MOMENT, b""))
        if now - at >= MOMENT:
            body = self._get(f"/v1/tasks/{task_id.hex()}/question", LARGEST_QUESTION)
            self._questions[task_id] = (now, body)
        return body

    def _get(self, path: str, largest: int) -> bytes:
        try:
            status, body = exchange(
                urlsplit(self.shuffler.collector + path), None, {}, TIMEOUT, largest
            )
        except (OSError, HTTPException, ValueError) as error:
            raise InputError(f"the collector cannot be reached ({str(error)[:120]}).") from None
        if status != 200:
            raise InputError(f"the collector answered {status}.")
        return body

    # ---- handing on --------------------------------------------------------------------------

    def hand_on(self) -> int:
        """Send the batches that are ready; return how many the collector has acknowledged.

        A batch that is not acknowledged stays as it is, and the very same bytes are sent again
        later: the collector counts each report once.
        """
        if time.monotonic() < self._next_try:
            return 0
        done = 0
        for batch in self.shuffler.holding.batches():
            fates = self._sent(batch)
            if fates is None:
                self._wait = min(max(2 * self._wait, FIRST_WAIT), LONGEST_WAIT)
                self._next_try = time.monotonic() + self._wait
                return done
            self.shuffler.holding.handed_on(batch, fates)
            self.problem, self._wait = "", 0.0
            done += 1
        return done

    def _sent(self, batch: Batched) -> Counter[str] | None:
        """Send a batch; return what became of its reports, or None if it has to be sent again."""
        task = self.shuffler.tasks[batch.bucket.task_id]
        reports = np.frombuffer(batch.reports, dtype=task.layout.report_dtype)
        body = Batch(task.task_id, batch.bucket.key_id, reports).encode()
        url = urlsplit(f"{self.shuffler.collector}/v1/tasks/{task.task_id.hex()}/reports")
        headers = {"Content-Type": BATCH_TYPE, "Authorization": f"Bearer {self.token}"}
        try:
            status, answer = exchange(url, body, headers, TIMEOUT, 64 * batch.n + (1 << 16))
            if status in FOR_GOOD:
                self.problem = f"the collector refused a batch with {status}."
                return Counter(refused=batch.n)
            if status == 200:
                return _fates(read_json(answer, "its receipt"), batch.n)
            self.problem = f"the collector answered {status}."
        except (OSError, HTTPException, ValueError, KeyError, TypeError, InputError) as error:
            self.problem = str(error)[:200]
        return None


def _fates(receipt: Any, n: int) -> Counter[str]:
    """Return how many reports were counted and refused; raise InputError if the token is wrong."""
    refused = Counter(str(each["reason"]) for each in receipt["refused"])
    if refused["direct"]:
        raise InputError("the collector does not know this shuffler's token.")
    counted = int(receipt["accepted"]) + int(receipt["repeated"])
    if counted + refused.total() != n:
        raise ValueError("the receipt is about another batch")
    return +Counter(counted=counted, refused=refused.total())  # without zeros


def told(url: str, operator: str) -> dict[str, Any]:
    """Return what a shuffler tells its operator; raise InputError if it does not."""
    headers = {"Authorization": f"Bearer {operator}"}
    try:
        status, body = exchange(
            urlsplit(f"{url.rstrip('/')}/v1/counts"), None, headers, 10.0, MOST_TOLD
        )
    except (OSError, HTTPException, ValueError) as error:
        raise InputError(f"the shuffler at {url} cannot be reached ({str(error)[:120]}).") from None
    if status == 401:
        raise InputError(
            "the shuffler does not know the operator's token; set it as it was started."
        )
    if status != 200:
        raise InputError(f"the shuffler at {url} answered {status}.")
    answer: dict[str, Any] = read_json(body, "what the shuffler tells")
    return answer
