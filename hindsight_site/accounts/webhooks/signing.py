"""How a message proves where it comes from. Pure but for the random secret.

The form of https://www.standardwebhooks.com: HMAC-SHA256 over `id.timestamp.body`, base64, in `webhook-signature`
as `v1,…`; the secret is `whsec_` and base64. Any library of theirs checks it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime

PREFIX = "whsec_"


def new_secret() -> str:
    """A fresh secret of 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def secret_of(key: bytes) -> str:
    """A secret in the form of `new_secret`, from key material of ours."""
    return PREFIX + base64.b64encode(key).decode()


def headers(secret: str, *, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers that name and sign a message; each attempt is signed anew with its own time."""
    timestamp = str(int(at.timestamp()))
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(base64.b64decode(secret.removeprefix(PREFIX)), signed, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "Webhook-Id": message_id,
        "Webhook-Timestamp": timestamp,
        "Webhook-Signature": f"v1,{base64.b64encode(digest).decode()}",
    }
