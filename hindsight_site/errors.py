"""Errors outside any view: problem+json for programs, a page for people."""

from __future__ import annotations

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.shortcuts import render
from django.template.loader import render_to_string

from hindsight_site import outages
from hindsight_site.problems import respond
from hindsight_site.refusals import Refused


def for_programs(request: HttpRequest) -> bool:
    """Whether the caller is a program: everything below /api/ is."""
    return request.path.startswith(
        ("/api/", "/mcp", "/oauth/token", "/token", "/oauth/revoke", "/oauth/register", "/.well-known/")
    )


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if for_programs(request):
        return respond(request, 400, "bad_request", "The request is not valid.")
    return render(request, "400.html", status=400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if for_programs(request):
        return respond(request, 403, "forbidden", "You may not do this.")
    return render(request, "403.html", status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if for_programs(request):
        return respond(request, 404, "not_found", "There is nothing at this address; see /api/v1/docs.")
    return render(request, "404.html", status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]  # Django calls this while it handles the error, which may be a middleware's
    if error is not None and outages.is_outage(error):
        outages.note(error)
        return unavailable(request)
    if isinstance(error, UnreadablePostError):  # whoever sent it is gone
        return bad_request(request)
    if for_programs(request):
        return respond(request, 500, "server_error", "Something went wrong here. Quote the request id to us.")
    # Without the reader's name and colours, which are in the database: it may be what went wrong.
    return HttpResponse(render_to_string("500.html"), status=500)


def unavailable(request: HttpRequest) -> HttpResponse:
    """The database is away: when to come back, in the caller's form. Asks nothing of the database."""
    headers = {"Retry-After": str(outages.RETRY_AFTER)}
    if request.path in {"/oauth/token", "/token"}:
        body = {"error": "temporarily_unavailable", "error_description": outages.DETAIL}
        return JsonResponse(body, status=503, headers={**headers, "Cache-Control": "no-store"})
    if for_programs(request):
        return respond(request, 503, "unavailable", outages.DETAIL, headers)
    return HttpResponse(render_to_string("503.html"), status=503, headers=headers)


class RefusalMiddleware:
    """A domain function refused inside a page, or the database did: say why, in words.

    The transaction is rolled back already.
    """

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if outages.is_outage(exception):
            outages.note(exception)
            return unavailable(request)
        if isinstance(exception, UnreadablePostError):
            return bad_request(request)
        if not isinstance(exception, Refused):
            return None
        if exception.status == 404:
            return not_found(request)
        return render(request, "refused.html", {"refusal": exception}, status=exception.status)


def refuse_nul(get_response: Any) -> Any:
    """Middleware: a NUL in an address or a form is nothing a page can look for or store."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if not for_programs(request):
            sent = [*request.GET.lists(), *(request.POST.lists() if request.method == "POST" else ())]
            if any("\x00" in value for _, values in sent for value in values):
                return bad_request(request)
        return get_response(request)

    return middleware


def refuse_unmeasured(get_response: Any) -> Any:
    """Middleware: a body in chunks, without a length, would be taken for an empty one by WSGI."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
            if for_programs(request):
                return respond(request, 411, "length_required", "Send the body with a Content-Length, not in chunks.")
            return bad_request(request)
        return get_response(request)

    return middleware
