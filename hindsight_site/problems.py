"""Errors → RFC 9457 problem+json. Never a driver's text, a path or a stack."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from hindsight_site import outages
from hindsight_site.middleware import current_request_id
from hindsight_site.refusals import FieldError, Refused

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"


def problem(status: int, code: str, detail: str, errors: tuple[FieldError, ...] = (), **extra: Any) -> dict[str, Any]:
    """Return the body of a problem document."""
    return {
        "type": f"urn:hindsight:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [{"field": e.field, "code": e.code, "message": e.message} for e in errors],
        "request_id": current_request_id.get(),
        **extra,
    }


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Turn whatever a view raised into a problem document, and roll its transaction back."""
    set_rollback()
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        body = problem(error.status, error.code, error.message, error.errors, **error.extra)
        headers = _headers(error)
    elif isinstance(error, exceptions.ValidationError):
        errors = tuple(flatten(error.get_full_details()))
        body = problem(422, "invalid", summary(errors), errors)
    elif isinstance(error, Http404):
        body = problem(404, "not_found", "There is no such thing here.")
    elif isinstance(error, PermissionDenied):
        body = problem(403, "forbidden", str(error) or "You may not do this.")
    elif isinstance(error, exceptions.APIException):
        body = problem(error.status_code, str(error.get_codes()), str(error.detail))
        headers = _headers(error)
    elif outages.is_outage(error):
        outages.note(error)
        body = problem(503, "unavailable", outages.DETAIL)
        headers = {"Retry-After": str(outages.RETRY_AFTER)}
    elif isinstance(error, UnreadablePostError):
        body = problem(400, "incomplete", "The body did not arrive whole. Send it again.")
    else:
        logger.error("unhandled error in an API view", exc_info=error)
        body = problem(500, "server_error", "Something went wrong here. Quote the request id to us.")
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _headers(error: Refused | exceptions.APIException) -> dict[str, str]:
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


def flatten(details: Any, path: str = "") -> list[FieldError]:
    """Flatten REST framework's nested error details into dotted paths."""
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        return [FieldError(path or "body", str(details["message"]), str(details["code"]))]
    if isinstance(details, dict):
        pairs = [
            (path if key == "non_field_errors" else f"{path}.{key}".strip("."), value) for key, value in details.items()
        ]
        return [error for key, value in pairs for error in flatten(value, str(key))]
    errors = []
    for index, value in enumerate(details):
        leaf = isinstance(value, dict) and set(value) == {"message", "code"}
        errors += flatten(value, path if leaf else f"{path}.{index}".strip("."))
    return errors


def summary(errors: tuple[FieldError, ...]) -> str:
    """One line that names the first thing to mend."""
    if not errors:
        return "The request is not valid."
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0].field}: {errors[0].message}{more}"


def respond(
    request: HttpRequest, status: int, code: str, detail: str, headers: dict[str, str] | None = None
) -> HttpResponse:
    """A problem document outside REST framework: unknown addresses and crashes under /api/."""
    body = problem(status, code, detail)
    return JsonResponse(body, status=status, headers=headers, content_type=CONTENT_TYPE)
