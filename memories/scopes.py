"""Agents' memory spaces: who may read and write where."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import Conflict, FieldError, Forbidden, Invalid, NotFound
from memories.enums import ReviewMode, ScopeKind
from memories.models import Memory, Scope, ScopeGrant

TEAM_SCOPE = "team"  # every team's default shared scope
PRIVATE = "private"  # an agent's word for its own scope
PRIVATE_PREFIX = "private-"


@transaction.atomic
def add_agent(*, team: Team, by: Actor, slug: str, name: str = "", description: str = "") -> Agent:
    """Create an agent with its private scope and a grant to the team's shared scope."""
    agent = accounts.create_agent(team=team, by=by, slug=slug, name=name, description=description)
    add_private(team=team, agent=agent)
    shared = team_scope(team)
    ScopeGrant.objects.create(team=team, scope=shared, agent=agent, can_read=True, can_write=True)
    return agent


def add_private(*, team: Team, agent: Agent) -> Scope:
    """Make an agent's private scope; part of adding the agent, whose event speaks for both."""
    return Scope.objects.create(
        team=team,
        slug=PRIVATE_PREFIX + agent.slug,
        name=f"{agent.name} (private)",
        kind=ScopeKind.PRIVATE,
        agent=agent,
    )


def team_scope(team: Team) -> Scope:
    """Return the team's default shared scope, made at the first need."""
    scope, _ = Scope.objects.of(team).get_or_create(
        team=team, slug=TEAM_SCOPE, defaults={"name": "Team", "kind": ScopeKind.SHARED}
    )
    return scope


@transaction.atomic
def create_shared(
    *,
    team: Team,
    by: Actor,
    slug: str,
    name: str,
    agent: Agent | None = None,
    description: str = "",
    review_mode: str = ReviewMode.SAMPLED,
) -> Scope:
    """Create a shared scope; the calling agent may read and write it."""
    accounts.check_slug(slug)
    if slug == PRIVATE or slug.startswith(PRIVATE_PREFIX):
        message = f"may not begin with '{PRIVATE}': that is an agent's own scope."
        raise Invalid(f"slug {message}", errors=(FieldError("slug", message),))
    scope, created = Scope.objects.of(team).get_or_create(
        team=team,
        slug=slug,
        defaults={
            "name": name or slug,
            "description": description,
            "kind": ScopeKind.SHARED,
            "review_mode": review_mode,
        },
    )
    if not created:
        raise Conflict(f"The team has a scope {slug} already.", code="slug_taken")
    audit.record(team=team, by=by, verb="scope.created", on=scope)
    if agent is not None:
        grant(team=team, by=by, scope=scope, agent=agent, can_read=True, can_write=True)
    return scope


@transaction.atomic
def grant(*, team: Team, by: Actor, scope: Scope, agent: Agent, can_read: bool, can_write: bool) -> None:
    """Let an agent read or write a scope; neither takes the grant away."""
    held = ScopeGrant.objects.of(team).filter(scope=scope, agent=agent).first()
    if can_read or can_write:
        ScopeGrant.objects.of(team).update_or_create(
            team=team, scope=scope, agent=agent, defaults={"can_read": can_read, "can_write": can_write}
        )
    else:
        ScopeGrant.objects.of(team).filter(scope=scope, agent=agent).delete()
    audit.record(
        team=team,
        by=by,
        verb="scope.granted",
        on=scope,
        before=audit.state_of(held) if held else "",
        after=audit.fingerprint({"agent": agent.pk, "read": can_read, "write": can_write}),
        detail={"agent": agent.slug, "read": can_read, "write": can_write},
    )


def readable(team: Team, agent: Agent | None) -> list[Scope]:
    """Return the scopes to search, in order: the agent's own, then shared ones by name.

    Without an agent (a token for the whole team): every shared scope.
    """
    scopes = Scope.objects.of(team)
    if agent is None:
        return list(scopes.filter(kind=ScopeKind.SHARED).order_by("slug"))
    granted = ScopeGrant.objects.of(team).filter(agent=agent, can_read=True).values("scope_id")
    mine = Q(agent=agent, kind=ScopeKind.PRIVATE)
    found = scopes.filter(mine | Q(pk__in=granted)).order_by("slug")
    return sorted(found, key=lambda scope: scope.agent_id != agent.pk)


def private_of(team: Team, agent: Agent) -> Scope:
    """Return the agent's own scope."""
    return Scope.objects.of(team).get(agent=agent, kind=ScopeKind.PRIVATE)


def select(team: Team, agent: Agent | None, slugs: list[str] | None) -> list[Scope]:
    """Return the scopes a caller asked to search; `None` means all that it may read."""
    scopes = readable(team, agent)
    if slugs is None:
        return scopes
    by_slug = {scope.slug: scope for scope in scopes}
    if agent is not None and scopes and scopes[0].agent_id == agent.pk:
        by_slug[PRIVATE] = scopes[0]
    missing = [slug for slug in slugs if slug not in by_slug]
    if missing:
        raise NotFound(f"There is no scope {missing[0]} that you may read.", code="scope_not_found")
    return list({by_slug[slug].pk: by_slug[slug] for slug in slugs}.values())


def writable(team: Team, agent: Agent | None, slug: str = "") -> Scope:
    """Return the scope to write to: the agent's own unless another is named."""
    if agent is not None and slug in {"", PRIVATE, PRIVATE_PREFIX + agent.slug}:
        return private_of(team, agent)
    scope = Scope.objects.of(team).filter(slug=slug or TEAM_SCOPE).first()
    if scope is None:
        raise NotFound(f"There is no scope {slug}.", code="scope_not_found")
    if agent is None:
        return scope
    held = ScopeGrant.objects.of(team).filter(agent=agent, scope=scope).first()
    if held is None:
        raise NotFound(f"There is no scope {slug} that you may use.", code="scope_not_found")
    if not held.can_write:
        raise Forbidden(f"Agent {agent.slug} may read the scope {slug} but not write it.")
    return scope


@transaction.atomic
def change(
    *,
    team: Team,
    by: Actor,
    scope: Scope,
    name: str | None = None,
    description: str | None = None,
    review_mode: str | None = None,
) -> Scope:
    """Rename or describe a scope, or change how its new memories are reviewed."""
    before = audit.state_of(scope)
    wanted = {"name": name, "description": description, "review_mode": review_mode}
    changed = {field: value for field, value in wanted.items() if value is not None}
    for field, value in changed.items():
        setattr(scope, field, value)
    scope.save(update_fields=list(changed))
    detail = {"fields": sorted(changed)}
    audit.record(team=team, by=by, verb="scope.changed", on=scope, before=before, detail=detail)
    return scope


@transaction.atomic
def delete(*, team: Team, by: Actor, scope: Scope) -> None:
    """Delete an empty shared scope. Raises `Conflict` for a private one or one that was ever used."""
    if scope.kind == ScopeKind.PRIVATE or scope.slug == TEAM_SCOPE:
        raise Conflict("A private scope and the team's own scope stay as long as their owner.")
    if Memory.objects.of(team).filter(scope=scope).exists():
        raise Conflict("This scope holds memories, so it cannot be deleted. Take its grants away instead.")
    before, detail = audit.state_of(scope), {"slug": scope.slug}
    audit.record(team=team, by=by, verb="scope.deleted", on=scope, before=before, after="", detail=detail)
    scope.delete()
