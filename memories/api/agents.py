"""Who am I, and the team's agents and scopes."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.refusals import NotFound
from memories import scopes
from memories.api import serializers as forms
from memories.models import Scope, ScopeGrant

READ, WRITE, ADMIN = TokenScope.MEMORY_READ, TokenScope.MEMORY_WRITE, TokenScope.ADMIN


class MeView(TokenView):
    token_scopes = {"GET": None}

    @extend_schema(operation_id="me", responses=forms.MeOut)
    def get(self, request: Request) -> Response:
        """What this token is, may, and searches by default."""
        caller = self.caller(request)
        searched = scopes.readable(caller.team, caller.agent)
        own = scopes.private_of(caller.team, caller.agent) if caller.agent else scopes.team_scope(caller.team)
        return Response({
            "team": caller.team.slug,
            "agent": caller.agent.slug if caller.agent else None,
            "token": f"hs_{caller.token.prefix}_…",
            "token_scopes": sorted(caller.scopes),
            "expires_at": caller.token.expires_at,
            "searches": [scope.slug for scope in searched],
            "writes_to": own.slug,
        })  # fmt: skip


class AgentsView(TokenView):
    token_scopes = {"GET": READ, "POST": ADMIN}

    @extend_schema(operation_id="agents_list", responses=forms.AgentOut(many=True))
    def get(self, request: Request) -> Response:
        """The team's agents, newest first."""
        agents = Agent.objects.of(self.caller(request).team)
        return page(request, agents, lambda rows: forms.AgentOut(rows, many=True).data)

    @extend_schema(operation_id="agents_create", request=forms.AgentIn, responses={201: forms.AgentOut})
    @idempotent
    def post(self, request: Request) -> Response:
        """Create an agent with its private scope. Wants a token of the team's own."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "create agents")
        agent = scopes.add_agent(team=caller.team, by=caller.actor, **read_input(forms.AgentIn, request.data))
        return Response(forms.AgentOut(agent).data, status=201)


class AgentView(TokenView):
    token_scopes = {"GET": READ, "PATCH": ADMIN, "DELETE": ADMIN}

    def agent(self, request: Request, slug: str) -> Agent:
        agent = Agent.objects.of(self.caller(request).team).filter(slug=slug).first()
        if agent is None:
            raise NotFound(f"There is no agent {slug}.", code="agent_not_found")
        return agent

    def manageable(self, request: Request, slug: str) -> Agent:
        """An agent that the caller may change: an agent's own token itself only."""
        caller, agent = self.caller(request), self.agent(request, slug)
        if caller.agent != agent:
            check_whole_team(caller.agent, "change other agents")
        return agent

    @extend_schema(operation_id="agents_read", responses=forms.AgentOut)
    def get(self, request: Request, slug: str) -> Response:
        """One agent."""
        return Response(forms.AgentOut(self.agent(request, slug)).data)

    @extend_schema(operation_id="agents_change", request=forms.AgentChange, responses=forms.AgentOut)
    def patch(self, request: Request, slug: str) -> Response:
        """Rename, describe, disable or enable an agent."""
        caller = self.caller(request)
        wanted = read_input(forms.AgentChange, request.data)
        agent = accounts.change_agent(team=caller.team, by=caller.actor, agent=self.manageable(request, slug), **wanted)
        return Response(forms.AgentOut(agent).data)

    @extend_schema(operation_id="agents_delete", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Disable an agent: its tokens stop working, its traces and memories stay."""
        caller = self.caller(request)
        accounts.change_agent(team=caller.team, by=caller.actor, agent=self.manageable(request, slug), disabled=True)
        return Response(status=204)


class ScopesView(TokenView):
    token_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(operation_id="scopes_list", responses=forms.ScopeOut(many=True))
    def get(self, request: Request) -> Response:
        """The scopes this token may read, newest first."""
        caller = self.caller(request)
        rows = Scope.objects.of(caller.team).select_related("agent")
        if caller.agent is not None:
            rows = rows.filter(pk__in=[scope.pk for scope in scopes.readable(caller.team, caller.agent)])
        return page(request, rows, lambda found: forms.ScopeOut(found, many=True).data)

    @extend_schema(operation_id="scopes_create", request=forms.ScopeIn, responses={201: forms.ScopeOut})
    @idempotent
    def post(self, request: Request) -> Response:
        """Create a shared scope; the calling agent may read and write it."""
        caller = self.caller(request)
        wanted = read_input(forms.ScopeIn, request.data)
        wanted.pop("kind")
        scope = scopes.create_shared(team=caller.team, by=caller.actor, agent=caller.agent, **wanted)
        return Response(forms.ScopeOut(scope).data, status=201)


class ScopeView(TokenView):
    token_scopes = {"GET": READ, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(operation_id="scopes_read", responses=forms.ScopeOut)
    def get(self, request: Request, slug: str) -> Response:
        """One scope."""
        return Response(forms.ScopeOut(find_scope(self, request, slug)).data)

    @extend_schema(operation_id="scopes_change", request=forms.ScopeChange, responses=forms.ScopeOut)
    def patch(self, request: Request, slug: str) -> Response:
        """Rename or describe a scope, or change how its memories are reviewed."""
        caller = self.caller(request)
        scope = scopes.change(
            team=caller.team, by=caller.actor, scope=manageable_scope(self, request, slug),
            **read_input(forms.ScopeChange, request.data),
        )  # fmt: skip
        return Response(forms.ScopeOut(scope).data)

    @extend_schema(operation_id="scopes_delete", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Delete an empty shared scope. One that holds memories is refused."""
        caller = self.caller(request)
        scopes.delete(team=caller.team, by=caller.actor, scope=manageable_scope(self, request, slug))
        return Response(status=204)


class GrantsView(TokenView):
    token_scopes = {"GET": READ, "POST": ADMIN}

    @extend_schema(operation_id="grants_list", responses=forms.GrantOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Which agents may read or write this scope."""
        scope = find_scope(self, request, slug)
        rows = ScopeGrant.objects.of(scope.team).filter(scope=scope).select_related("agent")
        return page(request, rows, lambda found: forms.GrantOut(found, many=True).data)

    @extend_schema(operation_id="grants_set", request=forms.GrantIn, responses={200: forms.GrantOut})
    @idempotent
    def post(self, request: Request, slug: str) -> Response:
        """Let an agent read or write this scope; both false takes the grant away."""
        caller = self.caller(request)
        wanted = read_input(forms.GrantIn, request.data)
        agent = Agent.objects.of(caller.team).filter(slug=wanted["agent"]).first()
        if agent is None:
            raise NotFound(f"There is no agent {wanted['agent']}.", code="agent_not_found")
        scopes.grant(
            team=caller.team, by=caller.actor, scope=manageable_scope(self, request, slug), agent=agent,
            can_read=wanted["can_read"], can_write=wanted["can_write"],
        )  # fmt: skip
        return Response(wanted)


def find_scope(view: TokenView, request: Request, slug: str) -> Scope:
    """Return a scope the caller may read, or raise `NotFound`."""
    caller = view.caller(request)
    if caller.agent is not None:
        return scopes.select(caller.team, caller.agent, [slug])[0]
    scope = Scope.objects.of(caller.team).select_related("agent").filter(slug=slug).first()
    if scope is None:
        raise NotFound(f"There is no scope {slug}.", code="scope_not_found")
    return scope


def manageable_scope(view: TokenView, request: Request, slug: str) -> Scope:
    """A scope that the caller may change and grant: an agent's own token its private one only."""
    caller, scope = view.caller(request), find_scope(view, request, slug)
    if caller.agent is None or scope.agent_id != caller.agent.pk:
        check_whole_team(caller.agent, "change or grant shared scopes")
    return scope
