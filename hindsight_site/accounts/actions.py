"""The only writers of teams, agents and credentials. Each leaves an audit event in its transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.text import slugify

from hindsight_site.accounts import audit, credentials
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import TeamRole, TokenScope
from hindsight_site.accounts.models import Agent, ApiToken, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.refusals import Conflict, FieldError, Forbidden, Invalid

_SLUGS = 0x68735F74  # "hs_t"
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_GRACE = timedelta(hours=24)


@transaction.atomic
def create_team(*, by: Actor, name: str, owner: User, slug: str = "", time_zone: str = "UTC") -> Team:
    """Create a team with its first owner."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SLUGS])  # two new teams of one name take turns
    team = Team.objects.create(name=name, slug=slug or free_slug(name), time_zone=time_zone)
    enter_team(team)
    Membership.objects.create(team=team, user=owner, role=TeamRole.OWNER)
    audit.record(team=team, by=by, verb="team.created", on=team)
    return team


def free_slug(name: str) -> str:
    """Return a slug made from `name` that no team has yet."""
    base = slugify(name)[:50] or "team"
    taken = set(Team.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    return next(slug for n in range(1, len(taken) + 2) if (slug := base if n == 1 else f"{base}-{n}") not in taken)


def check_slug(slug: str, field: str = "slug") -> str:
    """Return `slug`, or raise `Invalid` that says what one looks like."""
    if not SLUG.fullmatch(slug) or len(slug) > 60:
        message = "must be at most 60 lower-case letters, digits and single hyphens, such as 'support-bot'."
        raise Invalid(f"{field} {message}", errors=(FieldError(field, message),))
    return slug


@transaction.atomic
def create_agent(*, team: Team, by: Actor, slug: str, name: str = "", description: str = "") -> Agent:
    """Create an agent. Call `memories.scopes.add_agent`, which also makes its private scope."""
    check_slug(slug)
    agent, created = Agent.objects.of(team).get_or_create(
        team=team, slug=slug, defaults={"name": name or slug, "description": description}
    )
    if not created:
        raise Conflict(f"The team has an agent {slug} already.", code="slug_taken")
    audit.record(team=team, by=by, verb="agent.created", on=agent)
    return agent


@transaction.atomic
def change_agent(
    *,
    team: Team,
    by: Actor,
    agent: Agent,
    name: str | None = None,
    description: str | None = None,
    disabled: bool | None = None,
) -> Agent:
    """Rename, describe, disable or enable an agent. A disabled agent's tokens stop working at once."""
    before = audit.state_of(agent)
    if name is not None:
        agent.name = name
    if description is not None:
        agent.description = description
    if disabled is not None:
        agent.disabled_at = (agent.disabled_at or timezone.now()) if disabled else None
    agent.save(update_fields=["name", "description", "disabled_at"])
    detail = {"disabled": bool(agent.disabled_at)}
    audit.record(team=team, by=by, verb="agent.changed", on=agent, before=before, detail=detail)
    return agent


@transaction.atomic
def create_token(
    *,
    team: Team,
    by: Actor,
    name: str,
    scopes: Iterable[str],
    allowed: Iterable[str],
    agent: Agent | None = None,
    created_by: User | None = None,
    expires_at: datetime | None = None,
    on_behalf_of: User | None = None,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret, which is not kept.

    `allowed` are the scopes that the creator may hand out (their role's, or their own token's). With
    `on_behalf_of` it stands for that person (a client they connected, or a script of theirs): it may no more
    than their role, and dies with their membership.
    """
    wanted = _checked_scopes(scopes, allowed)
    _check_ahead(expires_at)
    minted = credentials.mint()
    token = ApiToken.objects.create(
        team=team,
        agent=agent,
        name=name,
        prefix=minted.prefix,
        digest=minted.digest,
        scopes=wanted,
        created_by=created_by,
        expires_at=expires_at,
        on_behalf_of=on_behalf_of,
    )
    audit.record(team=team, by=by, verb="token.created", on=token, detail={"scopes": wanted})
    return token, minted.secret


def _checked_scopes(scopes: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """The scopes in order, once each. Raises `Invalid` for unknown ones and those not to be handed out."""
    wanted = sorted(set(scopes))
    unknown = sorted(set(wanted) - set(TokenScope.values))
    beyond = sorted(set(wanted) - set(allowed))
    if not wanted or unknown:
        message = f"must be some of: {', '.join(TokenScope.values)}."
        raise Invalid(f"scopes {message}", errors=(FieldError("scopes", message),))
    if beyond:
        message = f"You may not hand out: {', '.join(beyond)}."
        raise Invalid(message, code="scope_beyond_role", errors=(FieldError("scopes", message),))
    return wanted


def _check_ahead(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        message = "must lie ahead."
        raise Invalid(f"expires_at {message}", errors=(FieldError("expires_at", message),))


@transaction.atomic
def rename_token(*, team: Team, by: Actor, token: ApiToken, name: str) -> ApiToken:
    """Give a token another name."""
    before = audit.state_of(token)
    token.name = name
    token.save(update_fields=["name"])
    audit.record(team=team, by=by, verb="token.renamed", on=token, before=before)
    return token


@transaction.atomic
def set_token_scopes(
    *, team: Team, by: Actor, token: ApiToken, scopes: Iterable[str], allowed: Iterable[str]
) -> ApiToken:
    """Change what a token may, from its next request on. `allowed` as in `create_token`.

    Scopes that the token has already may stay without being in `allowed`.
    """
    _check_usable(token)
    before, had = audit.state_of(token), sorted(token.scopes)
    wanted = _checked_scopes(scopes, {*allowed, *had})
    _replace(team, token, {"scopes": wanted})
    detail = {"before": had, "scopes": wanted}
    audit.record(team=team, by=by, verb="token.scopes_changed", on=token, before=before, detail=detail)
    return token


@transaction.atomic
def set_token_expiry(*, team: Team, by: Actor, token: ApiToken, expires_at: datetime | None) -> ApiToken:
    """Change when a token expires; None for never. An expired or revoked token stays dead."""
    _check_usable(token)
    _check_ahead(expires_at)
    before = audit.state_of(token)
    _replace(team, token, {"expires_at": expires_at})
    detail = {"expires_at": expires_at and expires_at.isoformat()}
    audit.record(team=team, by=by, verb="token.expiry_changed", on=token, before=before, detail=detail)
    return token


def _check_usable(token: ApiToken) -> None:
    if token.on_behalf_of_id is not None:
        if token.agent_id is None:
            message = "This token acts for a person: it can be revoked, not changed or rotated. Make a new one."
            raise Conflict(message, code="acts_for_person")
        message = "This token is a connected client's, as its person allowed it; it can be revoked, not changed."
        raise Conflict(message, code="connected_client")
    if token.revoked_at is not None:
        raise Conflict("This token was revoked; create a new one.", code="token_revoked")
    if token.expires_at is not None and token.expires_at <= timezone.now():
        raise Conflict("This token has expired; create a new one.", code="token_expired")


def _replace(team: Team, token: ApiToken, fields: dict[str, Any]) -> None:
    """Write `fields`, unless what the token may or its end was changed since it was read."""
    unchanged = ApiToken.objects.of(team).filter(
        pk=token.pk, revoked_at=None, scopes=token.scopes, expires_at=token.expires_at
    )
    if not unchanged.update(**fields):
        raise Conflict("This token was changed a moment ago; look at it again.", code="token_changed")
    for name, value in fields.items():
        setattr(token, name, value)


@transaction.atomic
def rotate_token(
    *, team: Team, by: Actor, token: ApiToken, allowed: Iterable[str], grace: timedelta = timedelta(0)
) -> tuple[ApiToken, str]:
    """Replace a token by a new one of the same name, agent, scopes and expiry; return it with its secret.

    The old one works for `grace` (at most `MAX_GRACE`) longer. Raises `Forbidden` when it may more
    than the caller (`allowed`), who would get those scopes with the secret; `Conflict` when it is
    dead or was rotated by someone else at the same moment.
    """
    _check_usable(token)
    if beyond := sorted(set(token.scopes) - set(allowed)):
        raise Forbidden(f"This token may what you may not: {', '.join(beyond)}.", code="scope_beyond_role")
    if not timedelta(0) <= grace <= MAX_GRACE:
        message = f"must be from 0 to {MAX_GRACE.total_seconds():.0f}."
        raise Invalid(f"grace_seconds {message}", errors=(FieldError("grace_seconds", message),))
    new, secret = create_token(
        team=team, by=by, name=token.name, scopes=token.scopes, allowed=token.scopes, agent=token.agent,
        created_by=token.created_by, expires_at=token.expires_at,
    )  # fmt: skip
    now = timezone.now()
    ends = {"expires_at": min(now + grace, token.expires_at or now + grace)} if grace else {"revoked_at": now}
    before = audit.state_of(token)
    _replace(team, token, ends)
    detail = {"replaced_by": new.prefix, "grace_seconds": int(grace.total_seconds())}
    audit.record(team=team, by=by, verb="token.rotated", on=token, before=before, detail=detail)
    return new, secret


@transaction.atomic
def revoke_token(*, team: Team, by: Actor, token: ApiToken) -> None:
    """Revoke a token for good. Revoking twice is fine."""
    before, now = audit.state_of(token), timezone.now()
    if ApiToken.objects.of(team).filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
        token.revoked_at = now
        audit.record(team=team, by=by, verb="token.revoked", on=token, before=before)
