"""Callers: threads that ask one after the other, each on its own connection, and note how long it took."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

IDLE = 3.0  # seconds after which a connection is made anew: the server closes one that idles for five


@dataclass(slots=True)
class Line:
    """One caller's connection, with its token. What failed stands in `errors`, by what went wrong."""

    url: str
    token: str
    waits: dict[str, list[float]] = field(default_factory=dict)  # milliseconds, by kind of call
    errors: Counter[str] = field(default_factory=Counter)
    degraded: int = 0
    connection: http.client.HTTPConnection | None = None
    used_at: float = 0.0

    def post(self, kind: str, path: str, body: Any) -> Any:
        """Ask, and note the time under `kind`. Returns the answer, or None when it was an error."""
        begun = time.perf_counter()
        try:
            status, answer = self._ask(path, json.dumps(body).encode())
        except (OSError, http.client.HTTPException) as error:
            self.errors[f"{kind}: {type(error).__name__}"] += 1
            self.connection = None
            return None
        self.waits.setdefault(kind, []).append((time.perf_counter() - begun) * 1000)
        if status >= 300:
            self.errors[f"{kind}: {status} {answer.get('code')}"] += 1
            return None
        self.degraded += bool(answer.get("degraded"))
        return answer

    def _ask(self, path: str, body: bytes) -> tuple[int, Any]:
        if self.connection is None or time.monotonic() - self.used_at > IDLE:
            if self.connection is not None:
                self.connection.close()
            self.connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self.connection.request("POST", f"/api/v1/{path}", body, headers)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        self.used_at = time.monotonic()
        return response.status, answer


@dataclass(frozen=True, slots=True)
class Run:
    """What a number of callers saw in `seconds`, and what share of one core they used themselves."""

    callers: int
    seconds: float
    waits: dict[str, list[float]]
    errors: Counter[str]
    degraded: int
    caller_share: float

    def summary(self) -> dict[str, Any]:
        """The figures: calls a second, milliseconds at the percentiles by kind of call, and errors."""
        kinds = {kind: _percentiles(waits) for kind, waits in sorted(self.waits.items())}
        calls = sum(map(len, self.waits.values()))
        return {
            "callers": self.callers,
            "seconds": round(self.seconds, 1),
            "calls": calls,
            "calls_a_second": round(calls / self.seconds, 1),
            "milliseconds": kinds,
            "errors": sum(self.errors.values()),
            "what_failed": dict(self.errors),
            "degraded": self.degraded,
            "callers_used_of_one_core": round(self.caller_share, 3),
            "load_average": round(os.getloadavg()[0], 2),
        }


def ask_together(lines: Sequence[Line], seconds: float, turn: Callable[[Line, int], None]) -> Run:
    """Have every line take turns for so long, all at once. `turn(line, n)` is one caller's n-th turn."""
    until = time.monotonic() + seconds

    def work(line: Line) -> None:
        number = 0
        while time.monotonic() < until:
            try:
                turn(line, number)
            except Exception as error:  # an answer of another form than promised, which must not pass for none
                line.errors[f"the caller failed: {error!r}"] += 1
            number += 1

    threads = [threading.Thread(target=work, args=(line,)) for line in lines]
    begun, used = time.monotonic(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    waits: dict[str, list[float]] = {}
    for line in lines:
        for kind, found in line.waits.items():
            waits.setdefault(kind, []).extend(found)
    return Run(
        callers=len(lines),
        seconds=took,
        waits=waits,
        errors=sum((line.errors for line in lines), Counter()),
        degraded=sum(line.degraded for line in lines),
        caller_share=(time.process_time() - used) / took,
    )


def _percentiles(waits: list[float]) -> dict[str, float]:
    """n, and p50, p95, p99 and the longest in milliseconds."""
    ordered = sorted(waits)
    at = {f"p{share}": ordered[min(len(ordered) * share // 100, len(ordered) - 1)] for share in (50, 95, 99)}
    return {"n": len(ordered)} | {name: round(wait, 1) for name, wait in (at | {"longest": ordered[-1]}).items()}
