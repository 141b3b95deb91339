"""ApiTokens: minting, finding, touching. The secret is shown once; only its hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import ApiToken, Membership
from hindsight_site.accounts.permissions import TOKEN_SCOPES
from hindsight_site.accounts.tenancy import enter_team, present_token

ALPHABET = string.ascii_lowercase + string.digits
SECRET = re.compile(r"hs_([a-z0-9]{8})_[A-Za-z0-9_-]{43}")
TOUCH_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Minted:
    """A new secret, and what of it is stored."""

    secret: str
    prefix: str
    digest: bytes


class BadCredential(Exception):
    """The token does not open anything; the message says why in words safe to show, `code` to programs."""

    def __init__(self, message: str, code: str = "authentication_failed") -> None:
        super().__init__(message)
        self.code = code


def mint() -> Minted:
    """Return a new secret `hs_<8>_<43>`: a readable prefix and 256 random bits."""
    prefix = "".join(secrets.choice(ALPHABET) for _ in range(8))
    secret = f"hs_{prefix}_{secrets.token_urlsafe(32)}"
    return Minted(secret, prefix, _digest(secret))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("ascii")).digest()


def find(secret: str) -> ApiToken:
    """Return the live token of `secret`, with its team at work. Call in a transaction. Raises `BadCredential`."""
    match = SECRET.fullmatch(secret)
    if match is None:
        raise BadCredential("This is not a Hindsight token (hs_…).")
    present_token(match[1])
    token = ApiToken.objects.select_related("team").filter(prefix=match[1]).first()
    # The comparison runs for unknown prefixes too, so that timing tells nothing.
    stored = bytes(token.digest) if token else b"\0" * 32
    if not hmac.compare_digest(stored, _digest(secret)) or token is None:
        raise BadCredential("This token is unknown.")
    enter_team(token.team)  # its agent is a row of the team
    check_live(token)
    return token


def check_live(token: ApiToken) -> frozenset[str]:
    """Raise `BadCredential` when the token, its agent or its team is switched off; return what it may now."""
    if token.revoked_at is not None:
        raise BadCredential("This token was revoked.", "token_revoked")
    if token.expires_at is not None and token.expires_at <= timezone.now():
        raise BadCredential("This token has expired.", "token_expired")
    if token.agent is not None and token.agent.disabled_at is not None:
        raise BadCredential("The agent of this token is disabled.", "agent_disabled")
    if token.team.suspended_at is not None:
        raise BadCredential("The team of this token is suspended.", "team_suspended")
    return scopes_now(token)


def scopes_now(token: ApiToken) -> frozenset[str]:
    """The scopes of a token; of a connected client's, those that its person's role has at this moment.

    Raises `BadCredential` when that person is no longer in the team. Its team is at work.
    """
    if token.on_behalf_of_id is None:
        return frozenset(token.scopes)
    mine = Membership.objects.of(token.team).filter(user_id=token.on_behalf_of_id, user__is_active=True)
    role = mine.values_list("role", flat=True).first()
    if role is None:
        raise BadCredential("The person who allowed this client is not in the team any more.", "not_a_member")
    return frozenset(token.scopes) & TOKEN_SCOPES[role]


def touch(token: ApiToken) -> None:
    """Note that the token was used, at most once a minute."""
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at < now - TOUCH_EVERY:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - TOUCH_EVERY)
        ApiToken.objects.of(token.team).filter(stale, pk=token.pk).update(last_used_at=now)
