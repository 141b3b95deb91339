"""The tokens of a team's own, bound to no agent: for whoever automates what concerns the whole team."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from hindsight_site.accounts import actions, connected_clients, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import FieldError, Invalid, Refused

SHOWN = 200
WHAT_SCOPES_OPEN = {
    TokenScope.MEMORY_READ: "read memories, and recall",
    TokenScope.MEMORY_WRITE: "write, change and archive memories, and give feedback",
    TokenScope.TRACE_WRITE: "send traces",
    TokenScope.REFLECT: "have traces looked back at",
    TokenScope.REVIEW: "approve, demote and restore memories; give verdicts, when it acts for a person",
    TokenScope.ADMIN: "make agents and tokens, change and grant scopes, delete for good, read the audit",
}
# Days until a token ends, as the form offers them; "" is never.
LIVES = (("90", "in 90 days"), ("365", "in a year"), ("30", "in 30 days"), ("", "never"))


@require_safe
@team_page(permissions.CONNECT)
def tokens_page(request: TeamRequest) -> HttpResponse:
    """The team's own tokens, newest first, and a form for another."""
    return show_tokens(request)


def show_tokens(request: TeamRequest, refusal: Refused | None = None) -> HttpResponse:
    """Render the page, with what was refused and the form as it was filled in."""
    may_give = permissions.TOKEN_SCOPES[request.membership.role]
    context = {
        "tokens": ApiToken.objects.of(request.team)
        .filter(agent=None)
        .select_related("on_behalf_of")
        .order_by("-created_at", "-id")[:SHOWN],
        "scopes": [(scope.value, WHAT_SCOPES_OPEN[scope]) for scope in TokenScope if scope in may_give],
        "lives": LIVES,
        "clients": connected_clients.of_team(request.team).select_related("team")[:SHOWN],
        "now": timezone.now(),
        "refusal": refusal,
        "wanted": {
            "name": request.POST.get("name", ""),
            "scopes": request.POST.getlist("scopes"),
            "days": request.POST.get("days", LIVES[0][0]),
            "acts_for_me": "acts_for_me" in request.POST,
        },
    }
    return render(request, "accounts/team_tokens.html", context, status=refusal.status if refusal else 200)


@never_cache
@require_POST
@team_page(permissions.CONNECT)
def create(request: TeamRequest) -> HttpResponse:
    """Make a token and show its secret, once: it is in this answer and nowhere else."""
    try:
        token, secret = actions.create_token(
            team=request.team,
            by=person(request.user),
            name=_name(request),
            scopes=_scopes(request),
            allowed=permissions.TOKEN_SCOPES[request.membership.role],
            created_by=request.user,
            expires_at=_end(request),
            on_behalf_of=request.user if "acts_for_me" in request.POST else None,
        )
    except Refused as refusal:
        return show_tokens(request, refusal)
    return _once(request, token, secret)


@never_cache
@require_POST
@team_page(permissions.CONNECT)
def rotate(request: TeamRequest, team_token_id: uuid.UUID) -> HttpResponse:
    """Replace a token by a new one of the same kind; the old one works for an hour longer."""
    try:
        token, secret = actions.rotate_token(
            team=request.team,
            by=person(request.user),
            token=_token(request, team_token_id),
            allowed=permissions.TOKEN_SCOPES[request.membership.role],
            grace=timedelta(hours=1),
        )
    except Refused as refusal:
        return show_tokens(request, refusal)
    return _once(request, token, secret)


@require_POST
@team_page(permissions.CONNECT)
def revoke(request: TeamRequest, team_token_id: uuid.UUID) -> HttpResponse:
    """Revoke a token for good."""
    token = _token(request, team_token_id)
    actions.revoke_token(team=request.team, by=person(request.user), token=token)
    messages.success(request, f"{token.name} is revoked; calls with it are refused from now on.")
    return redirect("team_tokens")


def _once(request: TeamRequest, token: ApiToken, secret: str) -> HttpResponse:
    context = {"token": token, "export": f"export HINDSIGHT_TOKEN={secret}"}
    return render(request, "accounts/team_token_created.html", context)


def _token(request: TeamRequest, team_token_id: uuid.UUID) -> ApiToken:
    return get_object_or_404(ApiToken.objects.of(request.team).filter(agent=None), pk=team_token_id)


def _name(request: TeamRequest) -> str:
    name = " ".join(request.POST.get("name", "").split())
    if not 1 <= len(name) <= 120:
        message = "Give the token a name of 1 to 120 characters, such as what it is for."
        raise Invalid(message, errors=(FieldError("name", message),))
    return name


def _scopes(request: TeamRequest) -> list[str]:
    if not (scopes := request.POST.getlist("scopes")):
        message = "Tick at least one thing that the token may."
        raise Invalid(message, errors=(FieldError("scopes", message),))
    return scopes


def _end(request: TeamRequest) -> datetime | None:
    days = request.POST.get("days", LIVES[0][0])
    if days not in dict(LIVES):
        raise Invalid("Choose when the token ends from the list.")
    return timezone.now() + timedelta(days=int(days)) if days else None
