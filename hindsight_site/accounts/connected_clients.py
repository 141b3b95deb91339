"""The only writers of connected clients: a person allows one, it redeems the code, renews, and is disconnected.

A connected client acts through an ApiToken of its own whose secret nobody has, so that everything that asks
whether a token stands (access tokens, rate limits, jobs) asks it of a connected client too. Codes and refresh
tokens are kept as hashes, and name the team so that it can be entered before the row is looked for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from hindsight_site.accounts import access_tokens, actions, audit, credentials
from hindsight_site.accounts.access_tokens import Issued
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import (
    Agent,
    ApiToken,
    AuthorizationCode,
    ConnectedClient,
    RefreshToken,
    Team,
    User,
)
from hindsight_site.accounts.oauth_clients import Client
from hindsight_site.refusals import FieldError, Invalid

CODE_LIVES = timedelta(minutes=1)  # RFC 6749, section 4.1.2, advises ten at most
REFRESH_LIVES = timedelta(days=30)  # without use; each renewal begins it anew
CODE, REFRESH = "hsc", "hsr"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # base64url of a SHA-256, RFC 7636, section 4.2
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")  # section 4.1

_SECRET = re.compile(r"(hsc|hsr)_([0-9a-f]{32})_[A-Za-z0-9_-]{43}")


class BadGrant(Exception):
    """A code or a refresh token that opens nothing. The message is ASCII; RFC 6749 calls it invalid_grant."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client gets: a signed access token, its scopes, and the refresh token that counts next."""

    access: Issued
    scopes: frozenset[str]
    refresh: str


def team_of(secret: str, kind: str) -> Team:
    """The team that a code (`CODE`) or a refresh token (`REFRESH`) claims to be of. Raises `BadGrant`."""
    match = _SECRET.fullmatch(secret)
    if match is None or match[1] != kind:
        raise BadGrant("This is not one of ours.")
    return Team(pk=uuid.UUID(match[2]))


def of_person(team: Team, person: User) -> QuerySet[ConnectedClient]:
    """The live clients that a person has connected in a team, newest first."""
    return of_team(team).filter(token__on_behalf_of=person)


def of_team(team: Team) -> QuerySet[ConnectedClient]:
    """The live clients of a team, newest first, each with its token, agent and person."""
    live = ConnectedClient.objects.of(team).filter(token__revoked_at=None, token__expires_at__gt=timezone.now())
    return live.select_related("token__agent", "token__on_behalf_of").order_by("-created_at", "-id")


@transaction.atomic
def allow(
    *,
    team: Team,
    by: Actor,
    person: User,
    agent: Agent,
    client: Client,
    redirect_uri: str,
    challenge: str,
    scopes: Collection[str],
    allowed: Collection[str],
) -> str:
    """A person lets `client` work as `agent`. Return the code that the client redeems within a minute.

    `allowed` are the scopes of the person's role. Raises `Invalid` for none, or for more than that.
    """
    wanted = sorted(set(scopes))
    if not wanted or set(wanted) - set(allowed):
        message = "Choose at least one thing it may do, and nothing beyond your own role."
        raise Invalid(message, code="scope_beyond_role", errors=(FieldError("scopes", message),))
    if agent.disabled_at is not None or agent.team_id != team.pk:
        message = "Choose an agent of the team that is not disabled."
        raise Invalid(message, errors=(FieldError("agent", message),))
    now = timezone.now()
    AuthorizationCode.objects.of(team).filter(expires_at__lt=now - REFRESH_LIVES).delete()
    RefreshToken.objects.of(team).filter(expires_at__lt=now).delete()
    secret, digest = _mint(CODE, team)
    code = AuthorizationCode.objects.create(
        team=team, digest=digest, person=person, agent=agent, scopes=wanted, client_id=client.id,
        client_name=client.name, redirect_uri=redirect_uri, challenge=challenge, expires_at=now + CODE_LIVES,
    )  # fmt: skip
    detail = {"client": client.id, "agent": agent.slug, "scopes": wanted}
    audit.record(team=team, by=by, verb="client.allowed", on=code, detail=detail)
    return secret


def redeem(*, team: Team, code: str, client_id: str, redirect_uri: str, verifier: str) -> Grant:
    """Exchange a code for tokens (RFC 6749, section 4.1.3; RFC 7636, section 4.6). The team is at work.

    A code is spent by its first presentation that gets past this client's id; a second one disconnects what the
    first connected (section 4.1.2), so the caller must commit even when this raises `BadGrant`.
    """
    found = AuthorizationCode.objects.of(team).filter(digest=_digest(code)).select_related("agent", "person", "team")
    row = found.first()
    if row is None or not hmac.compare_digest(row.client_id.encode(), client_id.encode()):
        raise BadGrant("This code is unknown.")  # another client learns nothing and spoils nothing
    now = timezone.now()
    if not found.filter(used_at=None).update(used_at=now):
        _disconnect_replayed(row)
        raise BadGrant("This code was used already; what it opened is closed.")
    if row.expires_at <= now:
        raise BadGrant("This code has expired.")
    if row.redirect_uri != redirect_uri:
        raise BadGrant("redirect_uri is not the one that the code was sent to.")
    if not VERIFIER.fullmatch(verifier) or not hmac.compare_digest(challenge_of(verifier), row.challenge):
        raise BadGrant("code_verifier does not fit the code_challenge.")
    connected = connect(team=row.team, by=audit.person(row.person), code=row)
    return _grant(connected, connected.token.scopes)


@transaction.atomic
def connect(*, team: Team, by: Actor, code: AuthorizationCode) -> ConnectedClient:
    """Make what a spent code stands for. Raises `BadGrant` when the person or the agent is gone since."""
    token, _ = actions.create_token(
        team=team, by=by, name=code.client_name, scopes=code.scopes, allowed=code.scopes, agent=code.agent,
        created_by=code.person, expires_at=timezone.now() + REFRESH_LIVES, on_behalf_of=code.person,
    )  # fmt: skip
    connected = ConnectedClient.objects.create(
        team=team, token=token, client_id=code.client_id, client_name=code.client_name
    )
    AuthorizationCode.objects.of(team).filter(pk=code.pk).update(connected=connected)
    detail = {"client": code.client_id, "agent": code.agent.slug, "scopes": token.scopes}
    audit.record(team=team, by=by, verb="client.connected", on=connected, detail=detail)
    _still_stands(token)
    return connected


def renew(*, team: Team, refresh: str, client_id: str, scopes: frozenset[str] | None) -> Grant:
    """Exchange a refresh token for new tokens (RFC 6749, section 6). The team is at work.

    Each counts once. One that comes a second time was copied, so the client is disconnected (RFC 9700, section
    4.14.2) and the caller must commit even when this raises `BadGrant`. `scopes` are those of the access token:
    None for all that were granted. Raises `Invalid` for more than those.
    """
    rows = RefreshToken.objects.of(team).filter(digest=_digest(refresh))
    row = rows.select_related("connected__token__agent", "connected__token__team", "team").first()
    if row is None or not hmac.compare_digest(row.connected.client_id.encode(), client_id.encode()):
        raise BadGrant("This refresh token is unknown.")
    connected = row.connected
    if scopes is not None and not scopes <= frozenset(connected.token.scopes):
        raise Invalid("A renewed token may not do more than was granted.", code="invalid_scope")
    now = timezone.now()
    if row.expires_at <= now:
        raise BadGrant("This refresh token has expired.")
    if row.used_at is None:
        _still_stands(connected.token)  # first, so that a refusal which may pass does not spend it
    if not rows.filter(used_at=None).update(used_at=now):
        disconnect(team=row.team, by=audit.system("reuse of a refresh token"), connected=connected)
        raise BadGrant("This refresh token was used already; the client is disconnected.")
    RefreshToken.objects.of(team).filter(connected=connected, expires_at__lte=now).delete()
    ApiToken.objects.of(team).filter(pk=connected.token_id).update(expires_at=now + REFRESH_LIVES)
    connected.token.expires_at = now + REFRESH_LIVES
    return _grant(connected, connected.token.scopes if scopes is None else scopes)


@transaction.atomic
def disconnect(*, team: Team, by: Actor, connected: ConnectedClient) -> None:
    """Take back what a client was allowed: its access and refresh tokens open nothing from now on.

    Disconnecting twice is fine, also at once.
    """
    token = ApiToken.objects.of(team).select_for_update().get(pk=connected.token_id)
    if token.revoked_at is not None:
        return
    before = audit.state_of(token)
    actions.revoke_token(team=team, by=by, token=token)
    audit.record(
        team=team,
        by=by,
        verb="client.disconnected",
        on=connected,
        before=before,
        after=audit.state_of(token),
        detail={"client": connected.client_id},
    )


def of_refresh_token(team: Team, secret: str) -> ConnectedClient | None:
    """The connected client that a refresh token is of, spent or not. The team is at work."""
    rows = RefreshToken.objects.of(team).filter(digest=_digest(secret))
    row = rows.select_related("connected__token__team").first()
    return row.connected if row else None


def challenge_of(verifier: str) -> str:
    """PKCE's S256 of a code verifier (RFC 7636, section 4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode("ascii")


def _disconnect_replayed(row: AuthorizationCode) -> None:
    row.refresh_from_db(fields=["connected"])  # the first use may have been going on when the row was read
    if row.connected is not None:
        disconnect(team=row.team, by=audit.system("replay of a code"), connected=row.connected)


def _still_stands(token: ApiToken) -> None:
    try:
        credentials.check_live(token)
    except BadCredential as error:
        raise BadGrant(str(error)) from None


def _grant(connected: ConnectedClient, scopes: Collection[str]) -> Grant:
    """Sign an access token and make the next refresh token."""
    wanted = frozenset(scopes) & credentials.scopes_now(connected.token)
    issued = access_tokens.issue(connected.token, audience=Audience.MCP, scopes=wanted)
    credentials.touch(connected.token)
    secret, digest = _mint(REFRESH, connected.token.team)
    RefreshToken.objects.create(
        team=connected.token.team, digest=digest, connected=connected, expires_at=timezone.now() + REFRESH_LIVES
    )
    return Grant(issued, wanted, secret)


def _mint(kind: str, team: Team) -> tuple[str, bytes]:
    secret = f"{kind}_{team.pk.hex}_{secrets.token_urlsafe(32)}"
    return secret, _digest(secret)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
