"""Send a thousand traces at once to a running server, and watch the queue drain.

    python -m tests.evals.drain http://127.0.0.1:8000 hs_… --traces 1000

Sends real agent traces, over and over with a number in the task where there are too few; prints what
`GET reflections/progress` says every few seconds, and at the end how fast it was and how the runs ended.
Ends with 1 when a run is missing, dead or stuck.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

from reflection.evaluation.agent_traces import FILE_NAME, load, to_payload
from tests.evals.send_agent_traces import DATA, Server

LOOK_EVERY = 5.0  # seconds


def payloads(count: int) -> list[dict[str, Any]]:
    """The traces to send, each with a task of its own and asked to be looked back at."""
    rows = load(DATA / FILE_NAME)
    told = (to_payload(row) for row in islice(cycle(rows), count))
    return [{**one, "task": f"[{number}] {one['task']}", "remember": True} for number, one in enumerate(told, start=1)]


def send(server: Server, bodies: list[dict[str, Any]], parallel: int) -> float:
    """Send all of them; return the seconds it took."""
    started = time.perf_counter()
    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(lambda body: server.call("POST", "traces", body), bodies))
    return time.perf_counter() - started


def watch(server: Server, patience: float) -> dict[str, Any]:
    """Print the progress until nothing is open, or nothing was settled for `patience` seconds; return the last."""
    settled, since = -1, time.monotonic()
    while True:
        told = server.call("GET", "reflections/progress")
        now = told["done"] + told["dead"]
        left = f"about {told['seconds_left']:.0f} s left" if told["seconds_left"] is not None else "no estimate"
        print(
            f"{now} of {told['total']}: {told['waiting']} waiting, {told['running']} running, {told['dead']} dead, "
            f"{told['stuck']} stuck; {left}",
            flush=True,
        )
        if now > settled:
            settled, since = now, time.monotonic()
        if not told["waiting"] + told["running"] or time.monotonic() - since > patience:
            return told
        time.sleep(LOOK_EVERY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--patience", type=float, default=120.0, help="seconds without any progress")
    options = parser.parse_args()
    server = Server(options.url, options.token)
    started = time.perf_counter()
    took = send(server, payloads(options.traces), options.parallel)
    print(f"sent {options.traces} traces in {took:.0f} s: {options.traces / took:.1f} a second", flush=True)
    told = watch(server, options.patience)
    seconds = time.perf_counter() - started
    settled = told["done"] + told["dead"]
    print(f"drained {settled} in {seconds:.0f} s from the first: {settled / seconds:.1f} a second; {told['by_status']}")
    return int(settled < options.traces or told["dead"] > 0 or told["stuck"] > 0)


if __name__ == "__main__":
    sys.exit(main())
