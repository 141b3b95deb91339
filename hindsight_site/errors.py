"""Errors outside any view: problem+json for programs, a page for people."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from hindsight_site.problems import respond
from hindsight_site.refusals import Refused


def for_programs(request: HttpRequest) -> bool:
    """Whether the caller is a program: everything below /api/ is."""
    return request.path.startswith(("/api/", "/mcp", "/oauth/token", "/.well-known/"))


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
    if for_programs(request):
        return respond(request, 500, "server_error", "Something went wrong here. Quote the request id to us.")
    return render(request, "500.html", status=500)


class RefusalMiddleware:
    """A domain function refused inside a page: say why, in words. The transaction is rolled back already."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
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
