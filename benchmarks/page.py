"""How long a visitor waits for the page of a task with a hundred million reports.

``python -m benchmarks.page`` starts a collector on the store that :mod:`benchmarks.answers` writes,
of 64 items over 1,024 periods, and opens the task's page in Chromium. It prints how long each thing
that a visitor does takes until the page has settled, the server and the way there included, and
what of it is the browser's own, in milliseconds; of five attempts each the best one. ``--check``
ends with exit code 1 unless each takes less than 100 ms. It needs playwright and chromium.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.answers import fill
from sfumato.store import SQLiteStore

__all__ = ["TIMED", "main"]

LIMIT: Final = 100.0
WAYS: Final = {"filtered": "", "as released": "?decoder=online"}
"""The ways in which the page is opened, with the query of its address."""
TIMED: Final = """async () => {
  const chart = document.getElementById("chart");
  const over = chart.querySelector(".u-over");
  const box = over.getBoundingClientRect();
  const times = {};
  const best = async (name, act) => {
    times[name] = Infinity;
    for (let again = 0; again < 5; again += 1) {
      const begun = performance.now();
      await act(again);
      times[name] = Math.min(times[name], performance.now() - begun);
    }
  };
  const settled = () => new Promise((done) => {
    const seen = new MutationObserver(() => {
      if (chart.hasAttribute("aria-busy")) return;
      seen.disconnect();
      done();
    });
    seen.observe(chart, { attributes: true, attributeFilter: ["aria-busy"] });
  });
  const find = (key) => document.querySelector(`[data-key="${key}"]`);
  const click = (element) => { element.click(); return settled(); };
  await best("read", async (again) => {
    const at = { clientX: box.left + 100 + 50 * again, clientY: box.top + 50, bubbles: true };
    over.dispatchEvent(new MouseEvent("mousemove", at));
  });
  await best("choose", () => click(document.querySelector("#table tr:nth-child(7) input")));
  await best("turn", (again) => click(find(again % 2 ? "Previous" : "Next")));
  await best("ask", (again) => { find("last").value = 9 + again; return click(find("ask")); });
  const own = (name) => Math.min(...performance.getEntriesByName(name).map((one) => one.duration));
  return { ...times, own: own("parsed") + own("taken") };
}"""
"""Returns the milliseconds of what a visitor does, up to when the page has settled.

Of these, ``own`` are spent in the browser, and the others include the server.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--periods", type=int, default=1024, help="default %(default)s")
    parser.add_argument("--items", type=int, default=64, help="default %(default)s")
    parser.add_argument("--check", action="store_true", help="fail unless the limit holds")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "collector.db"
        store = SQLiteStore(path)
        fill(store, given.periods, given.items)
        (task,) = store.tasks()
        store.close()
        with _served(path) as url:
            found = _visited(f"{url}/tasks/{task.task_id.hex()}")
    for way, times in found.items():
        words = ", ".join(f"{name} {one:.1f}" for name, one in times.items())
        print(f"{way}: {words} ms")
    slow = {
        f"{way}: {name}"
        for way, times in found.items()
        for name, one in times.items()
        if name != "first paint" and one >= LIMIT
    }
    verdict = f"DOES NOT HOLD: {', '.join(sorted(slow))}" if slow else "holds"
    print(f"Limit {LIMIT:.0f} ms {verdict}.")
    return 1 if slow and given.check else 0


@contextmanager
def _served(path: Path) -> Iterator[str]:
    """Yield the address of a collector on a store, in a process of its own."""
    words = [sys.executable, "-m", "sfumato", "serve", "--store", str(path), "--port", "0"]
    with subprocess.Popen(  # noqa: S603
        [*words, "--rate", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None  # noqa: S101 -- it was asked for
        said = ""
        while not said.endswith("\n}\n"):
            said += process.stdout.readline()
        yield json.loads(said)["url"]
        process.terminate()


def _visited(address: str) -> dict[str, dict[str, float]]:
    """Return the times of a visit of the page, opened in each way."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- only developers have it

    found = {}
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or "chromium"
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for way, query in WAYS.items():
            page = chromium.new_page(viewport={"width": 1100, "height": 900})
            page.goto(address + query)
            end = time.monotonic() + 60
            while page.query_selector("#state.waiting") or not page.query_selector("canvas"):
                if time.monotonic() > end:
                    raise TimeoutError(address)
                page.wait_for_timeout(100)
            page.fill("[data-key=last]", "8")
            page.click("[data-key=ask]")  # the first range waits for the posterior
            page.wait_for_selector("#answer .answers", timeout=60_000)
            page.reload()
            page.wait_for_selector("canvas")
            paint = "performance.getEntriesByType('paint')[0].startTime"
            times: dict[str, Any] = {"first paint": page.evaluate(paint)} | page.evaluate(TIMED)
            found[way] = times
            page.close()
        chromium.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
