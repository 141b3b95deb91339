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

from hindsight_site.accounts.authentication import Caller, caller_of
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
        caller, digest = caller_of(request), _digest(request)
        if stored := find(caller, key, digest):
            return Response(stored.body, status=stored.status_code, headers={"Idempotent-Replayed": "true"})
        response = handler(view, request, *args, **kwargs)
        keep(caller, key, digest, status_code=response.status_code, body=response.data)
        return response

    wrapper.takes_idempotency_key = True  # type: ignore[attr-defined]  # the OpenAPI document says so
    return wrapper


def _digest(request: Request) -> bytes:
    return digest_of(f"{request.method} {request.get_full_path()}", request.data)


def digest_of(call: str, body: Any) -> bytes:
    """What tells one request from another: which call it is, and its body."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(f"{call}\n{text}".encode()).digest()


def find(caller: Caller, key: str, digest: bytes) -> IdempotencyKey | None:
    """Return the answer kept under `key`, or None at its first use; parallel calls with one key take turns.

    Raises `Invalid` for a key that is none, and `Conflict` for one that was used with another request.
    """
    if len(key) > MAX_KEY_CHARS or not key.isprintable():
        raise Invalid(f"Idempotency-Key must be printable and at most {MAX_KEY_CHARS} characters.")
    # Two parallel calls with one key wait for each other here; the lock goes with the transaction.
    name = hashlib.sha256(f"{caller.token.pk}:{key}".encode()).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(name[:8], "big", signed=True)])
    stored = IdempotencyKey.objects.of(caller.team).filter(token=caller.token, key=key).first()
    if stored is not None and bytes(stored.request_digest) != digest:
        raise Conflict(
            "This Idempotency-Key was used with another request. Use a new key.",
            code="idempotency_key_reused",
        )
    return stored


def keep(caller: Caller, key: str, digest: bytes, *, status_code: int, body: Any) -> None:
    """Keep an answer under `key`, in the transaction of its effect."""
    IdempotencyKey.objects.create(
        team=caller.team,
        token=caller.token,
        key=key,
        request_digest=digest,
        status_code=status_code,
        # Through JSON, so that the replay is exactly what the first caller read.
        body=json.loads(json.dumps(body, default=str)),
    )
