"""Encryption at rest of what a job needs for a while: an export's file, an upload, the text to erase.

AES-256-GCM with a key derived from SECRET_KEY and the team, so that a row is of no use in another team or
in a stolen backup. A former SECRET_KEY named in SECRET_KEY_FALLBACKS still opens what it sealed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import uuid
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

NONCE = 12  # bytes in front of what is sealed


class Unreadable(Exception):
    """Sealed with another SECRET_KEY, or damaged."""


def seal(data: bytes, *, team_id: uuid.UUID, purpose: str) -> bytes:
    """Encrypt `data` for a team and a purpose; both are needed to open it again."""
    nonce = os.urandom(NONCE)
    return nonce + AESGCM(_key(settings.SECRET_KEY, team_id)).encrypt(nonce, data, purpose.encode())


def unseal(sealed: bytes, *, team_id: uuid.UUID, purpose: str) -> bytes:
    """Decrypt what `seal` made. Raises `Unreadable`."""
    for secret in _secrets():
        try:
            return AESGCM(_key(secret, team_id)).decrypt(sealed[:NONCE], sealed[NONCE:], purpose.encode())
        except InvalidTag:
            continue
    raise Unreadable("It was sealed with another SECRET_KEY: name that one in SECRET_KEY_FALLBACKS.")


def sign(digest: bytes, *, purpose: str) -> str:
    """A keyed signature (HMAC-SHA256, hex) that only this site can make."""
    return _signature(settings.SECRET_KEY, digest, purpose)


def signed_here(digest: bytes, signature: str, *, purpose: str) -> bool:
    """Whether `signature` is one that `sign` made for `digest`, under this or a former SECRET_KEY."""
    return any(hmac.compare_digest(_signature(secret, digest, purpose), signature) for secret in _secrets())


def _secrets() -> Sequence[str]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def _signature(secret: str, digest: bytes, purpose: str) -> str:
    return hmac.new(secret.encode(), f"hindsight {purpose}\n".encode() + digest, hashlib.sha256).hexdigest()


def _key(secret: str, team_id: uuid.UUID) -> bytes:
    info = b"hindsight sealed rows" + team_id.bytes
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret.encode())
