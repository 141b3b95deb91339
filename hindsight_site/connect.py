"""The connect page: pick or create an agent, give it a token, and see its first call arrive.

It stands above the apps because an agent's first calls are recorded by each of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from hindsight_site.accounts import actions, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Agent, ApiToken
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from memories import scopes
from memories.models import Memory, Recall
from reflection.models import Trace


@dataclass(frozen=True)
class Light:
    """One thing an agent has done, or not yet."""

    title: str
    seen_at: datetime | None
    hint: str


@require_safe
@team_page()
def connect(request: TeamRequest) -> HttpResponse:
    """The team's agents, when each was last heard from, and a form for a new one."""
    return render(request, "accounts/connect.html", {"agents": agents_of(request.team), "wanted": {}})


def agents_of(team: Any) -> QuerySet[Agent]:
    """Return the agents with `live_tokens` and `last_call`."""
    live = Q(tokens__revoked_at=None)
    return (
        Agent.objects.of(team)
        .annotate(live_tokens=Count("tokens", filter=live), last_call=Max("tokens__last_used_at"))
        .order_by("name", "id")
    )


@require_POST
@team_page(permissions.CONNECT)
def add_agent(request: TeamRequest) -> HttpResponse:
    """Create an agent with its private scope."""
    name = request.POST.get("name", "").strip()
    slug = request.POST.get("slug", "").strip() or slugify(name)[:60]
    try:
        agent = scopes.add_agent(team=request.team, by=person(request.user), slug=slug, name=name)
    except Refused as refusal:
        context = {"agents": agents_of(request.team), "refusal": refusal, "wanted": request.POST}
        return render(request, "accounts/connect.html", context, status=refusal.status)
    messages.success(request, f"{agent.name} is set up, with a private scope and access to the team's.")
    return redirect("connect_agent", slug=agent.slug)


@require_safe
@team_page()
def connect_agent(request: TeamRequest, slug: str) -> HttpResponse:
    """What this agent needs to call us, and which calls have arrived."""
    agent = get_object_or_404(Agent.objects.of(request.team), slug=slug)
    return render(request, "accounts/connect_agent.html", agent_context(agent))


def agent_context(agent: Agent) -> dict[str, Any]:
    tokens = list(ApiToken.objects.of(agent.team).filter(agent=agent).order_by("-created_at", "-id")[:50])
    lights = lights_of(agent, tokens)
    return {
        "agent": agent,
        "tokens": tokens,
        "lights": lights,
        "all_on": all(light.seen_at for light in lights),
        "samples": samples(agent),
        "mcp_url": f"{settings.SITE_URL}/mcp",
    }


def lights_of(agent: Agent, tokens: list[ApiToken]) -> list[Light]:
    """Return the four steps of the loop with the time of the first of each (of the last, for a call)."""
    calls = [token.last_used_at for token in tokens if token.last_used_at]

    def first(rows: QuerySet) -> datetime | None:
        return rows.filter(agent=agent).order_by("created_at").values_list("created_at", flat=True).first()

    return [
        Light("Called", max(calls, default=None), "Any request with one of its tokens."),
        Light("Sent a trace", first(Trace.objects.of(agent.team)), "What it did on a task, step by step."),
        Light(
            "Learned something",
            first(Memory.objects.of(agent.team)),
            "The first memory distilled from its traces, or written by it.",
        ),
        Light("Recalled", first(Recall.objects.of(agent.team)), "It asked before a task what is known."),
    ]


def samples(agent: Agent) -> list[dict[str, str]]:
    """Return the code to copy, with this site's real address. The token stays in the environment."""
    context = {"url": settings.SITE_URL, "agent": agent}
    return [
        {"label": "Send a trace", "code": _sample("record_trace.sh", context)},
        {"label": "Recall before a task", "code": _sample("recall.sh", context)},
        {"label": "Both from Python", "code": _sample("loop.py", context)},
        {
            "label": "Give an MCP client the tools",
            "note": "For clients that start a program, such as desktop assistants. Put a token of this agent in the "
            "place of hs_…; hindsight-mcp comes with `pip install ./hindsight_site/mcp/bridge` from a checkout.",
            "code": mcp_configuration(),
        },
        {
            "label": "MCP from Python",
            "note": "The official SDK logs in by itself: pip install mcp.",
            "code": _sample("mcp_client.py", context),
        },
    ]


def _sample(name: str, context: dict[str, Any]) -> str:
    return render_to_string(f"accounts/samples/{name}.txt", context).strip()


def mcp_configuration(token: str = "hs_…") -> str:  # noqa: S107 - stands for one
    """Return the entry for an MCP client's configuration, in JSON: the bridge speaks stdio to it."""
    bridge = {
        "command": "hindsight-mcp",
        "args": ["--url", settings.SITE_URL],
        "env": {"HINDSIGHT_TOKEN": token},
    }
    return json.dumps({"mcpServers": {"hindsight": bridge}}, indent=2, ensure_ascii=False)


@never_cache
@require_POST
@team_page(permissions.CONNECT)
def add_token(request: TeamRequest, slug: str) -> HttpResponse:
    """Create a token and show its secret, once: it is in this answer and nowhere else."""
    agent = get_object_or_404(Agent.objects.of(request.team), slug=slug)
    try:
        token, secret = actions.create_token(
            team=request.team,
            by=person(request.user),
            agent=agent,
            name=request.POST.get("name", "").strip() or f"{agent.name}'s token",
            scopes=permissions.DEFAULT_TOKEN_SCOPES,
            allowed=permissions.TOKEN_SCOPES[request.membership.role],
            created_by=request.user,
        )
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("connect_agent", slug=slug)
    context = {
        "agent": agent,
        "token": token,
        "export": f"export HINDSIGHT_TOKEN={secret}",
        "configuration": mcp_configuration(secret),
        "first_call": f'curl -sS {settings.SITE_URL}/api/v1/me -H "Authorization: Bearer {secret}"',
    }
    return render(request, "accounts/token_created.html", context)


@require_POST
@team_page(permissions.CONNECT)
def revoke_token(request: TeamRequest, slug: str, token_id: Any) -> HttpResponse:
    """Revoke one of an agent's tokens for good."""
    token = get_object_or_404(ApiToken.objects.of(request.team).filter(agent__slug=slug), pk=token_id)
    actions.revoke_token(team=request.team, by=person(request.user), token=token)
    messages.success(request, f"{token.name} is revoked; calls with it are refused from now on.")
    return redirect("connect_agent", slug=slug)
