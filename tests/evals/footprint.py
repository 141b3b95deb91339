"""How soon a site is there and what memory it holds at rest, on a data folder of its own that is deleted again.

    python -m tests.evals.footprint [--starts 3]

Start-up is `manage.py up` on an initialised folder until it says that it is ready. Memory is the PSS of each
process once it has answered recalls, taken in memories and worked off traces: a page that n processes share counts an
n-th to each of them, so that shared ones count once. Wants Linux. Times depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.evals.load.footprint import pss
from tests.running_site import Site

MOST_SECONDS = 3.0  # to start
MOST_MB = {"web": 250.0, "worker": 300.0}  # of each process of this command
ROUNDS = 40  # memories written and questions asked, several for each thread
TRACES = 6
TASKS_TIMEOUT = 60.0  # seconds for the queue to work off the traces


@dataclass(frozen=True, slots=True)
class Held:
    """What one process holds. `command` is the one of `manage.py` that it runs."""

    command: str
    pid: int
    megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--starts", type=int, default=3, help="starts of an initialised site (default: %(default)s)")
    starts = max(1, parser.parse_args().starts)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))  # and so stops what it has started
    print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="hindsight-footprint-") as folder:
        site = Site(Path(folder) / "data")
        try:
            site.start()
            print(f"  first start, with initdb and migrations, s {site.seconds_to_start:8.2f}")
            seconds = []
            for _ in range(starts):
                site.stop()
                site.start()
                seconds.append(site.seconds_to_start)
            _show("start of an initialised site, best, s", min(seconds), MOST_SECONDS, len(seconds))
            _use(site)
            for held in _held(site):
                _show(f"{held.command} {held.pid}, MB", held.megabytes, MOST_MB.get(held.command), 1)
        finally:
            site.stop()


def _show(measure: str, value: float, most: float | None, n: int) -> None:
    bound = f"at most {most:.0f}" if most else ""
    mark = ("ok" if value <= most else "MISSED") if most else ""
    print(f"  {measure:<42} {value:8.2f}  n={n:<4} {bound:<12} {mark}".rstrip())


def _use(site: Site) -> None:
    """Have every process do what it is there for."""
    for number in range(ROUNDS):
        text = f"Service {number} listens on port {9000 + number} and keeps its logs for {number} days."
        assert site.api("POST", "memories", {"content": text, "kind": "fact"})[0] == 201
        assert site.api("POST", "recall", {"query": f"which port does service {number} listen on"})[0] == 200
    waiting = []
    for number in range(TRACES):
        steps = [
            {"role": "tool", "kind": "tool_result", "tool": "search", "content": f"Row {i} of {number}."}
            for i in range(12)
        ]
        trace = {"task": f"Look through report {number}", "steps": steps, "outcome": "failed", "remember": True}
        status, answer = site.api("POST", "traces", trace)
        assert status == 201, answer
        waiting.append(answer["reflection"]["id"])
    until = time.monotonic() + TASKS_TIMEOUT
    for reflection in waiting:
        while site.api("GET", f"reflections/{reflection}")[1]["status"] in ("queued", "running"):
            assert time.monotonic() < until, "the queue does not work"
            time.sleep(0.2)


def _held(site: Site) -> list[Held]:
    """Every process of the site but the database's, the largest of each command first."""
    assert site.process
    top = psutil.Process(site.process.pid)
    found = []
    for process in (top, *top.children(recursive=True)):
        command = re.search(r"manage\.py (\w+)", " ".join(process.cmdline()))
        if command:
            found.append(Held(command[1], process.pid, pss(process.pid)))
    return sorted(found, key=lambda held: (held.command, -held.megabytes))


if __name__ == "__main__":
    main()
