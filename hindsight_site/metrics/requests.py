"""What the web processes of this machine serve: counted in files that they share, by prometheus-client.

Its multiprocess mode, which the settings switch on for `manage.py web`: each process writes to a small file of
its own in memory, a scrape that any of them answers adds them up. Restarted processes lose nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
NO_ROUTE = "(none)"  # an address that is none of ours, or a request that was refused before its address was read

REQUESTS = Counter("hindsight_requests", "Requests answered.", ["route", "method", "status"])
SECONDS = Histogram(
    "hindsight_request_seconds",
    "How long requests took, in seconds.",
    ["route", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
# Taken at the end of each request: a process that has nothing to do does not grow.
MEMORY = Gauge(
    "hindsight_web_memory_bytes",
    "Resident memory of the web processes together, shared pages counted in each.",
    multiprocess_mode="livesum",
)
LARGEST = Gauge(
    "hindsight_web_memory_largest_bytes", "Resident memory of the largest web process.", multiprocess_mode="livemax"
)

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def count_requests(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: count the request by its route's pattern, so that no id or name becomes a label."""

    def middleware(request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        response = get_response(request)
        route = request.resolver_match.route if request.resolver_match else NO_ROUTE
        method = request.method if request.method in METHODS else "OTHER"
        SECONDS.labels(route, method).observe(time.perf_counter() - begun)
        REQUESTS.labels(route, method, str(response.status_code)).inc()
        _note_memory()
        return response

    return middleware


def read() -> str:
    """The lines of all web processes of this machine."""
    if not settings.METRICS_DIR:
        return generate_latest(_ours()).decode()
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(settings.METRICS_DIR))
    return generate_latest(registry).decode()


def forget_process(pid: int) -> None:
    """Leave the memory of a process that ended out of the sums. What it has counted stays."""
    mark_process_dead(pid, path=str(settings.METRICS_DIR))


def _ours() -> CollectorRegistry:
    """Without several processes (tests, a development server): what this one counted, and no more."""
    registry = CollectorRegistry()
    for metric in (REQUESTS, SECONDS, MEMORY, LARGEST):
        registry.register(metric)
    return registry


def _note_memory() -> None:
    if _STATM.exists():
        resident = int(_STATM.read_text().split()[1]) * _PAGE
        MEMORY.set(resident)
        LARGEST.set(resident)
