"""`Idempotency-Key`: the same key and body gives the same answer, however often and however parallel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import caller_of
from hindsight_site.accounts.models import IdempotencyKey
from hindsight_site.refusals import Conflict, Invalid

MAX_KEY_CHARS = 200


def idempotent(handler: Callable[..., Response]) -> Callable[..., Response]:
    """Decorate a `post` method: replay the stored answer when its key was seen before.

    Runs inside the request's transaction, so an answer is stored exactly when its effect is. A
    refused request stores nothing and may be sent again with the same key.
    """

    @wraps(handler)
    def wrapper(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key", "")
        if not key:
            return handler(view, request, *args, **kwargs)
        if len(key) > MAX_KEY_CHARS or not key.isprintable():
            raise Invalid(f"Idempotency-Key must be printable and at most {MAX_KEY_CHARS} characters.")
        digest = _digest(request)
        if stored := _lookup(request, key):
            return _replay(stored, digest)
        response = handler(view, request, *args, **kwargs)
        _store(request, key, digest, response)
        return response

    wrapper.takes_idempotency_key = True  # type: ignore[attr-defined]  # the OpenAPI document says so
    return wrapper


def _digest(request: Request) -> bytes:
    body = json.dumps(request.data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(f"{request.method} {request.get_full_path()}\n{body}".encode()).digest()


def _lookup(request: Request, key: str) -> IdempotencyKey | None:
    caller = caller_of(request)
    # Two parallel calls with one key wait for each other here; the lock goes with the transaction.
    name = hashlib.sha256(f"{caller.token.pk}:{key}".encode()).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(name[:8], "big", signed=True)])
    return IdempotencyKey.objects.of(caller.team).filter(token=caller.token, key=key).first()


def _replay(stored: IdempotencyKey, digest: bytes) -> Response:
    if bytes(stored.request_digest) != digest:
        raise Conflict(
            "This Idempotency-Key was used with another request. Use a new key.",
            code="idempotency_key_reused",
        )
    headers = {"Idempotent-Replayed": "true"}
    return Response(stored.body, status=stored.status_code, headers=headers)


def _store(request: Request, key: str, digest: bytes, response: Response) -> None:
    caller = caller_of(request)
    IdempotencyKey.objects.create(
        team=caller.team,
        token=caller.token,
        key=key,
        request_digest=digest,
        status_code=response.status_code,
        # Through JSON, so that the replay is exactly what the first caller read.
        body=json.loads(json.dumps(response.data, default=str)),
    )
