"""Is the process alive, and can it serve? For load balancers, containers and whoever watches."""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from hindsight_site import stuck_work
from hindsight_site.schema_state import unapplied_migrations

logger = logging.getLogger(__name__)

# A task that has waited this long has no worker: a busy one takes the next within its time-out.
QUEUE_IS_LATE_AFTER = 180.0  # seconds

# The queue's `lock` is when a task came in, and while a worker has it, when it is given up for lost.
WAITING = "SELECT count(*), extract(epoch FROM now() - min(lock)) FROM django_q_ormq WHERE lock <= now()"


@require_safe
@never_cache
@transaction.non_atomic_requests
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all. Asks nothing of the database."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
@transaction.non_atomic_requests
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when requests can be served, 503 when the database is away or its schema is not ours.

    A late queue, and work that is stuck, is reported as `degraded` but is no reason to take the web away: what
    agents send is kept and waits for a worker.
    """
    try:
        checks = {"database": {"ok": True}, "migrations": _migrations()}
        if checks["migrations"]["ok"]:
            checks["queue"] = _queue()
            checks["work"] = _work()
    except DatabaseError as error:
        logger.warning("not ready: the database does not answer", extra={"error": type(error).__name__})
        checks = {"database": {"ok": False}}
    serving = checks["database"]["ok"] and checks["migrations"]["ok"]
    status = "not_ready" if not serving else "ready" if all(check["ok"] for check in checks.values()) else "degraded"
    response = JsonResponse({"status": status, "checks": checks}, status=200 if serving else 503)
    if not serving:
        response["Retry-After"] = "5"
    return response


def _migrations() -> dict[str, Any]:
    missing = len(unapplied_migrations())
    return {"ok": missing == 0, "unapplied": missing}


def _work() -> dict[str, Any]:
    """What the sweep of each minute found stuck, and whether it still runs. Before its first time all is well."""
    told = stuck_work.told()
    if told is None:
        return {"ok": True, "stuck": {}, "swept_seconds_ago": None}
    return {"ok": told.ok, "stuck": dict(told.counts), "swept_seconds_ago": round(told.age, 1)}


def _queue() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        waiting, oldest = cursor.fetchone()
    seconds = round(float(oldest or 0.0), 1)
    return {"ok": seconds <= QUEUE_IS_LATE_AFTER, "waiting": waiting, "oldest_seconds": seconds}
