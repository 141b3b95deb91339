"""GET /metrics, for whoever holds METRICS_TOKEN, and on a site that is only this machine's own, for this machine."""

from __future__ import annotations

import hmac
import ipaddress
import logging
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from hindsight_site.metrics import database, totals
from hindsight_site.metrics.text import Metric, lines, one

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATEMENT_SECONDS = 3  # what a statement may take: a database that is late is told as away, and not held up more
_FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Forwarded", "Via")


@require_safe
@never_cache
@transaction.non_atomic_requests
def metrics(request: HttpRequest) -> HttpResponse:
    """200 with the lines; 401 with another token than METRICS_TOKEN, 404 where there is none and from outside."""
    if not (_is_from_here(request) or _has_token(request)):
        if not settings.METRICS_TOKEN:
            raise Http404
        refused = HttpResponse("Send METRICS_TOKEN as a bearer token.\n", content_type=CONTENT_TYPE, status=401)
        refused["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    return HttpResponse(lines(_of_database()) + _of_requests(), content_type=CONTENT_TYPE)


def _of_database() -> list[Metric]:
    """What the database tells; that it is away, when it does not answer."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {STATEMENT_SECONDS * 1000}")
            told = database.read() + totals.read()
    except DatabaseError as error:
        logger.warning("metrics without the database", extra={"error": type(error).__name__})
        told = []
    return [one("hindsight_database_up", "1 while the database answers.", float(bool(told))), *told]


def _of_requests() -> str:
    if not settings.COUNT_REQUESTS:
        return ""
    from hindsight_site.metrics import requests

    return requests.read()


def _has_token(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return bool(
        settings.METRICS_TOKEN
        and scheme.lower() == "bearer"
        and hmac.compare_digest(given.strip().encode(), settings.METRICS_TOKEN.encode())
    )


def _is_from_here(request: HttpRequest) -> bool:
    """Whether a process of this machine asks a site that is this machine's own.

    The address alone proves nothing: behind a proxy on the same machine everybody comes from the loopback.
    """
    site = urlsplit(settings.SITE_URL).hostname or ""
    return (
        (site == "localhost" or _is_loopback(site))
        and _is_loopback(request.META.get("REMOTE_ADDR", ""))
        and not any(header in request.headers for header in _FORWARDED)
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
