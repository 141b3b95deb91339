"""How fast MCP is beside REST, on a running server: one trivial call of each, and one recall of each.

    RATE_LIMIT_TOKEN_PER_MINUTE=0 RATE_LIMIT_TEAM_PER_MINUTE=0 python manage.py up --json
    python tests/evals/mcp_speed.py --url http://127.0.0.1:8000 --token hs_…

Trivial are GET me and the tool hindsight_status on a reflection that has ended; GET reflection reads the same rows
as the latter, and server/discover none but the caller's. The kinds of call take turns in short rounds, so that
whatever else the machine does hits all alike.
Throughput is with several clients at once, latency with one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
QUERY = {"query": "export the invoices of a month", "min_relevance": 0}


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to send again and again."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None


class Line:
    """One kept-alive connection."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def send(self, request: Request) -> Any:
        self.connection.request(request.method, request.path, request.body, request.headers)
        answer = self.connection.getresponse()
        body = json.loads(answer.read())
        if answer.status >= 300 or (isinstance(body.get("result"), dict) and body["result"].get("isError")):
            raise SystemExit(f"{request.path}: {answer.status} {body}")
        return body


def rest(token: str, path: str, body: Any = None) -> Request:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    raw = None if body is None else json.dumps(body).encode()
    return Request("GET" if body is None else "POST", f"/api/v1/{path}", headers, raw)


def tool(token: str, name: str, arguments: dict[str, Any]) -> Request:
    return message(token, "tools/call", {"name": name, "arguments": arguments}, {"Mcp-Name": name})


def message(token: str, method: str, params: dict[str, Any], more: dict[str, str] | None = None) -> Request:
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **(more or {}),
    }  # fmt: skip
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return Request("POST", "/mcp", headers, json.dumps(body).encode())


def prepared(url: str, secret: str) -> dict[str, Request]:
    """The four requests, by name; what they need is made first."""
    line = Line(url)
    bearer = {
        name: line.send(rest(secret, "auth/token", {"audience": name}))["access_token"] for name in ("rest", "mcp")
    }
    for n in range(30):
        line.send(
            rest(secret, "memories", {"kind": "fact", "content": f"Invoices of month {n} are exported as YYYY-MM."})
        )
    trace = {"task": "Nothing to learn", "steps": [], "outcome": "succeeded"}
    skipped = line.send(rest(secret, "traces", trace))["reflection"]["id"]
    return {
        "GET me, ApiToken": rest(secret, "me"),
        "GET me, JWT": rest(bearer["rest"], "me"),
        "GET reflection": rest(bearer["rest"], f"reflections/{skipped}"),
        "server/discover": message(bearer["mcp"], "server/discover", {}),
        "hindsight_status": tool(bearer["mcp"], "hindsight_status", {"id": skipped}),
        "POST recall": rest(bearer["rest"], "recall", QUERY),
        "hindsight_recall": tool(bearer["mcp"], "hindsight_recall", QUERY),
    }


def many(url: str, request: Request, clients: int, seconds: float) -> float:
    """Requests a second of several clients at once."""
    until, counts = time.monotonic() + seconds, [0] * clients

    def work(place: int) -> None:
        line = Line(url)
        while time.monotonic() < until:
            line.send(request)
            counts[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def timed(line: Line, request: Request) -> float:
    """Milliseconds until the answer."""
    began = time.perf_counter()
    line.send(request)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--token", required=True)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each kind in each round")
    parser.add_argument("--clients", type=int, default=4)
    given = parser.parse_args()
    requests = prepared(given.url, given.token)
    line = Line(given.url)
    for request in requests.values():
        for _ in range(10):
            line.send(request)
    rates: dict[str, list[float]] = {name: [] for name in requests}
    waits: dict[str, list[float]] = {name: [] for name in requests}
    for _ in range(given.rounds):
        for name, request in random.sample(list(requests.items()), len(requests)):
            rates[name].append(many(given.url, request, given.clients, given.seconds))
        line = Line(given.url)  # the server closes one that idled during the rounds above
        line.send(requests["GET me, JWT"])
        for _ in range(50):
            for name, request in requests.items():
                waits[name].append(timed(line, request))
    print(f"{'call':20} {'requests/s':>11} {'median ms':>10} {'p95 ms':>8}")
    for name in requests:
        ordered = sorted(waits[name])
        print(
            f"{name:20} {statistics.median(rates[name]):11.1f} {statistics.median(ordered):10.2f} "
            f"{ordered[int(len(ordered) * 0.95)]:8.2f}"
        )
    for me in ("GET me, ApiToken", "GET me, JWT", "GET reflection"):
        ratio = [there / here for there, here in zip(rates["hindsight_status"], rates[me], strict=True)]
        print(f"hindsight_status has {statistics.median(ratio):.0%} of the throughput of {me}")
    more = [mcp - there for mcp, there in zip(waits["hindsight_recall"], waits["POST recall"], strict=True)]
    print(f"recall over MCP - recall over REST: {statistics.median(more):+.2f} ms")


if __name__ == "__main__":
    main()
