"""A request id on every response and in every log line."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

from hindsight_site.accounts.ids import new_id

current_request_id: ContextVar[str] = ContextVar("request_id", default="")
current_team_id: ContextVar[str] = ContextVar("team_id", default="")

# A caller's own id is kept when it is plainly an id; anything else could forge log lines.
ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")


def request_id(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable:
    """Middleware: take or make the request id, and answer with it in `X-Request-ID`."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        ident = given if ACCEPTED.fullmatch(given) else new_id().hex
        request_token = current_request_id.set(ident)
        team_token = current_team_id.set("")
        try:
            response = get_response(request)
        finally:
            # Django logs an answer of 500 after all middleware: the filter below finds the ids here.
            request.log_ids = (ident, current_team_id.get())  # type: ignore[attr-defined]
            current_request_id.reset(request_token)
            current_team_id.reset(team_token)
        response["X-Request-ID"] = ident
        return response

    return middleware


class RequestFilter(logging.Filter):
    """Put the request's and the team's id on every log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        over = getattr(getattr(record, "request", None), "log_ids", ("", ""))
        record.request_id = current_request_id.get() or over[0]
        record.team_id = current_team_id.get() or over[1]
        return True
