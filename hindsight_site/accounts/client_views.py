"""Disconnecting MCP clients: one's own from the account page, anybody's as an admin from the team's tokens."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from hindsight_site.accounts import connected_clients, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import ConnectedClient
from hindsight_site.accounts.pages import TeamRequest, current_membership, team_page
from hindsight_site.accounts.tenancy import enter_team


def own_clients(request: HttpRequest) -> list[ConnectedClient]:
    """The live clients of the person in all their teams. The team that was at work is so again afterwards."""
    found: list[ConnectedClient] = []
    for membership in getattr(request, "memberships", []):
        enter_team(membership.team)
        for client in connected_clients.of_person(membership.team, membership.user):
            client.team = membership.team  # known already
            found.append(client)
    if (team := getattr(request, "team", None)) is not None:
        enter_team(team)
    return found


@require_POST
@login_required
def disconnect_own(request: Any, team_id: uuid.UUID, client_id: uuid.UUID) -> HttpResponse:
    """Disconnect one of one's own clients, in whichever team it is."""
    current_membership(request)
    team = next((m.team for m in request.memberships if m.team_id == team_id), None)
    if team is None:
        raise Http404
    enter_team(team)
    client = get_object_or_404(connected_clients.of_person(team, request.user), pk=client_id)
    return _disconnect(request, client, "account")


@require_POST
@team_page(permissions.CONNECT)
def disconnect_any(request: TeamRequest, team_id: uuid.UUID, client_id: uuid.UUID) -> HttpResponse:
    """Disconnect a client of anybody in the team."""
    if team_id != request.team.pk:
        raise Http404
    client = get_object_or_404(connected_clients.of_team(request.team), pk=client_id)
    return _disconnect(request, client, "team_tokens")


def _disconnect(request: Any, client: ConnectedClient, back_to: str) -> HttpResponse:
    connected_clients.disconnect(team=client.token.team, by=person(request.user), connected=client)
    messages.success(request, f"{client.client_name} is disconnected; what it sends is refused from now on.")
    return redirect(back_to)
