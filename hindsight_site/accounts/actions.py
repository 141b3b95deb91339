"""The only writers of teams, agents and credentials. Each leaves an audit event in its transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from hindsight_site.accounts import audit, credentials
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import TeamRole, TokenScope
from hindsight_site.accounts.models import Agent, ApiToken, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.refusals import Conflict, FieldError, Invalid

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@transaction.atomic
def create_team(*, by: Actor, name: str, owner: User, slug: str = "", time_zone: str = "UTC") -> Team:
    """Create a team with its first owner."""
    team = Team.objects.create(name=name, slug=slug or free_slug(name), time_zone=time_zone)
    enter_team(team)
    Membership.objects.create(team=team, user=owner, role=TeamRole.OWNER)
    audit.record(team=team, by=by, verb="team.created", on=team)
    return team


def free_slug(name: str) -> str:
    """Return a slug made from `name` that no team has yet."""
    base = slugify(name)[:50] or "team"
    taken = set(Team.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    return next(
        slug for n in range(1, len(taken) + 2) if (slug := base if n == 1 else f"{base}-{n}") not in taken
    )


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
    if name is not None:
        agent.name = name
    if description is not None:
        agent.description = description
    if disabled is not None:
        agent.disabled_at = (agent.disabled_at or timezone.now()) if disabled else None
    agent.save(update_fields=["name", "description", "disabled_at"])
    audit.record(
        team=team, by=by, verb="agent.changed", on=agent, detail={"disabled": bool(agent.disabled_at)}
    )
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
) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret, which is not kept.

    `allowed` are the scopes that the creator may hand out (their role's, or their own token's).
    """
    wanted = sorted(set(scopes))
    unknown = sorted(set(wanted) - set(TokenScope.values))
    beyond = sorted(set(wanted) - set(allowed))
    if not wanted or unknown:
        message = f"must be some of: {', '.join(TokenScope.values)}."
        raise Invalid(f"scopes {message}", errors=(FieldError("scopes", message),))
    if beyond:
        message = f"You may not hand out: {', '.join(beyond)}."
        raise Invalid(message, code="scope_beyond_role", errors=(FieldError("scopes", message),))
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
    )
    audit.record(team=team, by=by, verb="token.created", on=token, detail={"scopes": wanted})
    return token, minted.secret


@transaction.atomic
def revoke_token(*, team: Team, by: Actor, token: ApiToken) -> None:
    """Revoke a token for good. Revoking twice is fine."""
    changed = ApiToken.objects.of(team).filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    if changed:
        audit.record(team=team, by=by, verb="token.revoked", on=token)
