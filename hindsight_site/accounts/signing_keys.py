"""The keys that sign access tokens: made at first need, published, rotated.

A key is published as `next` before it signs, so that whoever keeps a copy of the key set has it in
time; it signs while `active`; what it signed is accepted while it is `retiring`. The private half is
encrypted with a key derived from SECRET_KEY and deleted when the key signs no more.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from jwt import PyJWK
from jwt.algorithms import OKPAlgorithm

from hindsight_site.accounts.enums import KeyState
from hindsight_site.accounts.models import SigningKey

ALGORITHM = "EdDSA"
PUBLISHED_BEFORE_USE = timedelta(minutes=10)  # above the time that others may keep the key set
ACCEPTED_AFTER_USE = timedelta(minutes=15)  # above a token's lifetime and the leeway
KID = re.compile(r"[A-Za-z0-9_-]{43}")

_LOCK = 0x68736B79  # "hsky": two processes that start at once make one key


@dataclass(frozen=True, slots=True)
class Signer:
    """The key that signs now."""

    kid: str
    key: Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation did. `wait_until` is set when it was too early and nothing was rotated."""

    active: str
    next: str
    retiring: int
    retired: int
    wait_until: datetime | None = None


def signer() -> Signer:
    """Return the active key, making the first pair of keys when there is none.

    Raises `ImproperlyConfigured` when the key was encrypted with another SECRET_KEY.
    """
    row = _in_state(KeyState.ACTIVE) or _make_first()
    private = _open(row)
    if private is None:
        raise ImproperlyConfigured(
            "The signing key was encrypted with another SECRET_KEY: add the former one to "
            "SECRET_KEY_FALLBACKS, or make new keys with `manage.py rotate_keys`."
        )
    return Signer(row.kid, private)


def accepted() -> QuerySet[SigningKey]:
    """The keys whose signatures count at this moment."""
    retiring = Q(state=KeyState.RETIRING, accepted_until__gt=timezone.now())
    return SigningKey.objects.filter(Q(state__in=[KeyState.NEXT, KeyState.ACTIVE]) | retiring)


def public_key(kid: str) -> Ed25519PublicKey:
    """Return the public key named `kid`. Raises `LookupError` for one that is not accepted.

    A name stands for one key for ever, so what was found is kept in memory. That the key is still
    accepted is for the caller to ask the database.
    """
    if not KID.fullmatch(kid):
        raise LookupError(kid)
    return _public_key(kid)


@lru_cache(maxsize=16)
def _public_key(kid: str) -> Ed25519PublicKey:
    row = accepted().filter(kid=kid).first()
    if row is None:
        raise LookupError(kid)  # not kept: the key may be another process's newest
    return PyJWK.from_dict(row.public_jwk).key


def published() -> dict[str, Any]:
    """The accepted public keys as a JWK set (RFC 7517)."""
    if _in_state(KeyState.ACTIVE) is None:
        _make_first()
    return {"keys": [row.public_jwk for row in accepted().order_by("created_at")]}


@transaction.atomic
def rotate(*, leaked: bool = False) -> Rotation:
    """Let the next key sign, the active one retire, and publish a new next one.

    Does nothing when the next key has not been published for `PUBLISHED_BEFORE_USE`, so running it
    twice is safe. With `leaked` no present key is accepted any more, and agents exchange anew.
    """
    _lock()
    now = timezone.now()
    _retire(SigningKey.objects.filter(state=KeyState.RETIRING, accepted_until__lte=now), now)
    if leaked:
        _retire(SigningKey.objects.exclude(state=KeyState.RETIRED), now)
    active, following = _in_state(KeyState.ACTIVE), _in_state(KeyState.NEXT)
    if active is not None and following is not None and _open(active) is not None:
        usable_from = following.created_at + PUBLISHED_BEFORE_USE
        if usable_from > now:
            return _told(usable_from)
    _succeed(active, following, now)
    return _told()


def _succeed(active: SigningKey | None, following: SigningKey | None, now: datetime) -> None:
    if active is not None:
        active.state, active.private_pem, active.accepted_until = (
            KeyState.RETIRING,
            "",
            now + ACCEPTED_AFTER_USE,
        )
        active.save(update_fields=["state", "private_pem", "accepted_until"])
    if following is not None and _open(following) is None:
        _retire(SigningKey.objects.filter(pk=following.pk), now)
        following = None
    if following is None:
        _make(KeyState.ACTIVE)
    else:
        following.state, following.activated_at = KeyState.ACTIVE, now
        following.save(update_fields=["state", "activated_at"])
    _make(KeyState.NEXT)


def _retire(rows: QuerySet[SigningKey], now: datetime) -> None:
    rows.update(state=KeyState.RETIRED, private_pem="", retired_at=now)


def _told(wait_until: datetime | None = None) -> Rotation:
    rows = list(SigningKey.objects.values_list("state", "kid"))
    kids, states = dict(rows), [state for state, _ in rows]
    return Rotation(
        active=kids[KeyState.ACTIVE],
        next=kids[KeyState.NEXT],
        retiring=states.count(KeyState.RETIRING),
        retired=states.count(KeyState.RETIRED),
        wait_until=wait_until,
    )


@transaction.atomic
def _make_first() -> SigningKey:
    """Make an active and a next key, unless another process was first."""
    _lock()
    active = _in_state(KeyState.ACTIVE)
    if active is None:
        active = _make(KeyState.ACTIVE)
        _make(KeyState.NEXT)
    return active


def _make(state: KeyState) -> SigningKey:
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    jwk = OKPAlgorithm.to_jwk(private.public_key(), as_dict=True)
    kid = thumbprint(jwk)
    return SigningKey.objects.create(
        kid=kid,
        private_pem=_cipher().encrypt(pem).decode("ascii"),
        public_jwk={**jwk, "kid": kid, "use": "sig", "alg": ALGORITHM},
        state=state,
        activated_at=timezone.now() if state == KeyState.ACTIVE else None,
    )


def thumbprint(jwk: dict[str, str]) -> str:
    """The RFC 7638 thumbprint of an Ed25519 key (RFC 8037, appendix A.3): SHA-256, base64url."""
    required = {name: jwk[name] for name in ("crv", "kty", "x")}
    canonical = json.dumps(required, separators=(",", ":"), sort_keys=True).encode("ascii")
    return base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()).rstrip(b"=").decode("ascii")


def _open(row: SigningKey) -> Ed25519PrivateKey | None:
    """The private half, or None when no SECRET_KEY we have opens it."""
    try:
        pem = _cipher().decrypt(row.private_pem.encode("ascii"))
    except InvalidToken:
        return None
    key = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(key, Ed25519PrivateKey)  # noqa: S101 - `_make` wrote it
    return key


def _cipher() -> MultiFernet:
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(secret)) for secret in secrets])


@lru_cache(maxsize=4)
def _derived(secret: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"hindsight signing keys")
    return base64.urlsafe_b64encode(derivation.derive(secret.encode()))


def _in_state(state: KeyState) -> SigningKey | None:
    return SigningKey.objects.filter(state=state).first()


def _lock() -> None:
    """Wait for whoever makes or rotates keys; the lock goes with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
