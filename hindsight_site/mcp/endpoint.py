"""Streamable HTTP without sessions, answered in JSON, or as a stream where a tool says how far it is.

What is checked, in this order: origin, method, token and its rate limit, size, JSON, envelope and headers, scope;
then the method runs. Every refusal is a JSON-RPC error, whatever its status: the SDKs hide any other body.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from mcp_types import RequestId, jsonrpc

from hindsight_site.mcp import authorise, methods, protocol, replies, stream
from hindsight_site.mcp.errors import NOT_ALLOWED, STATUS_OF, Fault
from hindsight_site.mcp.offer import Offer

JSON = "application/json"


def endpoint(request: HttpRequest, offer: Offer) -> HttpResponseBase:
    """Answer one message about what is on offer."""
    headers: dict[str, str] = {}
    body: Any = None
    message: protocol.Request | None = None
    try:
        authorise.check_origin(request)
        _check_method(request)
        caller = authorise.caller_of(request)
        headers = authorise.count(caller)
        body = protocol.load(_body(request))
        message = protocol.read(body, {name.lower(): value for name, value in request.headers.items()})
        if message is None:
            return HttpResponse(status=202, headers=headers)
        steps = methods.answer(offer, caller, message)
        if not stream.is_taken(request):
            return _respond(replies.result(message.id, stream.finished(steps)), 200, headers)
        try:
            first = next(steps)
        except StopIteration as end:
            return _respond(replies.result(message.id, end.value), 200, headers)
        return stream.respond(first, steps, message.id, headers)
    except Fault as fault:
        return _refuse(fault, protocol.id_in(body), message is None or message.is_modern, headers)
    except Exception:
        return _refuse(replies.unexpected(), protocol.id_in(body), True, headers)


def _check_method(request: HttpRequest) -> None:
    if request.method != "POST":
        message = "Send each message by POST. There is no stream to GET and no session to DELETE here."
        raise Fault(NOT_ALLOWED, message, status=405, headers={"Allow": "POST"})


def _body(request: HttpRequest) -> bytes:
    """The body, if it is JSON by its header and of a size that is taken. Raises `Fault`."""
    if request.content_type != JSON:
        raise Fault(jsonrpc.INVALID_REQUEST, f"Send the message as {JSON}.", status=415)
    if not request.accepts(JSON):
        raise Fault(jsonrpc.INVALID_REQUEST, f"The answer is {JSON}; say in Accept that you take it.", status=406)
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    try:
        raw = request.read(limit + 1)
    except UnreadablePostError:  # whoever sent it is gone, or stopped in the middle
        raise Fault(jsonrpc.PARSE_ERROR, "The body did not come whole.", status=400) from None
    if len(raw) > limit:
        raise Fault(jsonrpc.INVALID_REQUEST, f"The body is over the limit of {limit:,} bytes.", status=413)
    return raw


def _refuse(fault: Fault, ident: RequestId | None, by_code: bool, headers: dict[str, str]) -> HttpResponse:
    """Answer with an error. `by_code`: its status follows from its code, as it does from 2026-07-28 on."""
    status = fault.status or (STATUS_OF.get(fault.code, 200) if by_code else 200)
    return _respond(replies.error(ident, fault), status, {**headers, **fault.headers})


def _respond(body: bytes, status: int, headers: dict[str, str]) -> HttpResponse:
    answer = HttpResponse(body, status=status, content_type=JSON, headers=headers)
    answer["Cache-Control"] = "no-store"
    return answer
