"""Send real agent traces to a running server, as an agent would, and see each to its end.

    python -m tests.evals.send_agent_traces http://127.0.0.1:8000 hs_… --traces 40

Speaks HTTP with the standard library only, so that what it shows is what curl shows. For every trace
it waits for a visible end state; for failed tau-bench traces it looks for the failing step in the
episode; then it recalls with the words of another trial of the same task.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from reflection.evaluation.agent_traces import FILE_NAME, load, source, to_payload

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "dev"
ENDED = {"stored", "nothing_new", "rejected", "skipped", "failed"}


class Server:
    """The few calls this script makes."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/") + "/api/v1", token

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def spread(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Take `count` rows, as many of each source as there are, one after the other."""
    by_source: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_source.setdefault(source(row), []).append(row)
    queues, taken = list(by_source.values()), []
    while len(taken) < count and any(queues):
        taken += [queue.pop(0) for queue in queues if queue]
    return taken[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--traces", type=int, default=40)
    options = parser.parse_args()
    server, rows = Server(options.url, options.token), spread(load(DATA / FILE_NAME), options.traces)
    posted = post_all(server, rows)
    ends, named, failed_tau = see_to_end(server, posted)
    found = recall_all(server, rows)
    unseen = sum(count for state, count in ends.items() if state not in ENDED)
    print(f"ends: {dict(ends)}; without an end: {unseen}")
    print(f"failed tau-bench traces whose episode names the failing step: {named} of {failed_tau}")
    print(f"recall with the task's words finds its episode among the first five: {found} of {len(rows)}")
    return int(unseen > 0 or named < failed_tau)


def post_all(server: Server, rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Post every row; print how long the answers took. Returns (row, reflection id)."""
    posted, took = [], []
    for number, row in enumerate(rows, start=1):
        started = time.perf_counter()
        answer = server.call("POST", "traces", to_payload(row))
        took.append(time.perf_counter() - started)
        posted.append((row, answer["reflection"]["id"]))
        print(f"\rposted {number} of {len(rows)}", end="", file=sys.stderr)
    took.sort()
    print(f"\nposted {len(rows)} traces: p50 {took[len(took) // 2] * 1000:.0f} ms, max {took[-1] * 1000:.0f} ms")
    return posted


def see_to_end(server: Server, posted: list[tuple[dict[str, Any], str]]) -> tuple[Counter[str], int, int]:
    """Wait for every reflection. Returns the end states, and failing steps named of failed tau-bench runs."""
    ends: Counter[str] = Counter()
    named = failed_tau = 0
    for row, ident in posted:
        reflection = server.call("GET", f"reflections/{ident}?wait=20")
        ends[reflection["status"]] += 1
        if row["domain"].startswith("tau-") and not row["success"]:
            failed_tau += 1
            texts = [memory["content"] for memory in reflection["memories"] if memory["kind"] == "task"]
            named += any("step " in text for text in texts)
    return ends, named, failed_tau


def recall_all(server: Server, rows: list[dict[str, Any]]) -> int:
    """Ask with each task's own words. Returns for how many its episode is among the first five."""
    found = 0
    for row in rows:
        answer = server.call("POST", "recall", {"query": row["task"][:1500], "kinds": ["task"], "top_k": 5})
        opening = " ".join(row["task"].split())[:40]
        found += any(opening in " ".join(hit["snippet"].split()) for hit in answer["hits"])
    return found


if __name__ == "__main__":
    sys.exit(main())
